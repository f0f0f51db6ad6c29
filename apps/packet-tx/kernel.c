/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The ring of the host kernel's packet socket, for comparison. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/app.h"
#include "sl_errno.h"
#include "tx.h"

static int fd = -1;
static struct tx_ring ring;

static void
set(int name, const void *value, socklen_t len, const char *what)
{
	int ret = sl_sys(setsockopt(fd, SOL_PACKET, name, value, len));

	if (ret != 0)
		app_fail("%s: %s", what, sl_strerror(ret));
}

static void
attach(const char *iface)
{
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(iface)};
	int ret;

	if (ll.sll_ifindex == 0)
		app_fail("--iface %s: there is no such interface", iface);
	ret = sl_sys(bind(fd, (struct sockaddr *)&ll, sizeof(ll)));
	if (ret != 0)
		app_fail("--iface %s: %s", iface, sl_strerror(ret));
}

static uint32_t
kernel_open(const struct tx_conf *conf)
{
	struct tpacket_req3 req = {0};
	uint32_t frame, blocks, block_size;
	int one = 1;

	fd = sl_sys(socket(AF_PACKET, SOCK_RAW, 0));
	if (fd < 0)
		app_fail("packet sockets of the kernel: %s (CAP_NET_RAW is needed)",
			sl_strerror(fd));
	tx_ring_geometry(conf, &frame, &blocks, &block_size);
	req.tp_block_size = block_size;
	req.tp_block_nr = blocks;
	req.tp_frame_size = frame;
	req.tp_frame_nr = block_size / frame * blocks;
	set(PACKET_VERSION, &conf->version, sizeof(conf->version), "--version");
	if (conf->loss)
		set(PACKET_LOSS, &one, sizeof(one), "--loss");
	set(PACKET_TX_RING, &req,
		conf->version == TPACKET_V3 ? sizeof(req) : sizeof(struct tpacket_req), "--frames");
	ring = (struct tx_ring){
		.version = conf->version, .frames = req.tp_frame_nr, .frame_size = frame};
	ring.addr =
		mmap(NULL, (size_t)block_size * blocks, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring.addr == MAP_FAILED)
		app_fail("--frames %u: the ring cannot be mapped", conf->frames);
	attach(conf->iface);
	return ring.frames;
}

static uint8_t *
kernel_next(void)
{
	return tx_ring_next(&ring);
}

static void
kernel_submit(uint32_t len)
{
	tx_ring_submit(&ring, len);
}

static int
kernel_flush(const struct tx_conf *conf)
{
	int ret = sl_sys((int)send(fd, NULL, 0, conf->dontwait ? MSG_DONTWAIT : 0));

	return ret < 0 ? ret : 0;
}

static uint32_t
kernel_refused(void)
{
	return tx_ring_refused(&ring);
}

static bool
kernel_idle(void)
{
	return tx_ring_idle(&ring);
}

static void
kernel_close(void)
{
	close(fd);
}

const struct tx_backend tx_kernel = {"kernel", kernel_open, kernel_next, kernel_submit,
	kernel_flush, kernel_refused, kernel_idle, kernel_close};
