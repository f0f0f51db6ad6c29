/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef TAP_BED_H
#define TAP_BED_H

/* A tap of the kernel's, in a network namespace that ends with the program, and a packet socket on
 * its far side. */
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include <arpa/inet.h>

#include "sl_tap.h"
#include "vring/driver.h"

static const char *why_not; /* set when this machine cannot do it */

static struct sl_tap tap;
static int wire = -1; /* a packet socket on the far side of the tap */

static inline struct sl_tapq_ring
ring_of(struct driver *d)
{
	return (struct sl_tapq_ring){
		.ring = &d->ring, .mem = &d->mem, .header = SL_TAPQ_VNET_LONG, .mergeable = true};
}

static inline void
wire_open(void)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(0x88b5)};

	at.sll_ifindex = (int)if_nametoindex(tap.name);
	wire = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(0x88b5));
	REQUIRE(wire >= 0 && bind(wire, (struct sockaddr *)&at, sizeof(at)) == 0);
}

static inline void
open_all(uint16_t queues)
{
	REQUIRE(sl_tap_open(&tap, "slt%d", queues) == 0);
	REQUIRE(sl_tap_set_up(&tap, true) == 0);
	wire_open();
}

static inline void
close_all(void)
{
	close(wire);
	sl_tap_close(&tap);
}

/* Frames of our own type, so that the host's chatter (neighbour discovery) is told apart. */
static inline void
make_frame(uint8_t *b, uint32_t len, uint8_t fill)
{
	memset(b, fill, len);
	memset(b, 0xff, 12);
	b[12] = 0x88;
	b[13] = 0xb5;
}

static inline void
send_chain(struct driver *d, uint64_t addr, const uint8_t *frame, uint32_t len)
{
	struct piece p = {addr, SL_TAPQ_VNET_LONG + len, false};

	memset(driver_host(d, addr), 0, SL_TAPQ_VNET_LONG);
	memcpy(driver_host(d, addr + SL_TAPQ_VNET_LONG), frame, len);
	driver_put(d, &p, 1);
}

static inline int
descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static inline void
bed_init(void)
{
	if (unshare(CLONE_NEWNET) != 0)
		why_not = "needs the right to make a network namespace";
	else if (access("/dev/net/tun", R_OK | W_OK) != 0)
		why_not = "needs /dev/net/tun";
}

#endif
