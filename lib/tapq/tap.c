/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if_tun.h>

#include "sl_errno.h"
#include "tapq_priv.h"

/* The kernel's names for what it may send us; the newer ones may be missing in its headers. */
#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

static int
queue_open(struct sl_tap *t, uint16_t i, uint16_t queues)
{
	struct ifreq request;
	int header = (int)SL_TAPQ_VNET_LONG, send_buffer = INT_MAX, ret;

	memset(&request, 0, sizeof(request));
	memcpy(request.ifr_name, t->name, sizeof(request.ifr_name));
	request.ifr_flags =
		(short)(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | (queues > 1 ? IFF_MULTI_QUEUE : 0));
	t->fd[i] = sl_sys(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
	if (t->fd[i] < 0)
		return t->fd[i] == -ENOENT ? -ENODEV : t->fd[i];
	ret = sl_sys(ioctl(t->fd[i], TUNSETIFF, &request));
	/* "Has other properties" reads as EINVAL there, as every other mistake does. */
	if (ret == -EINVAL)
		return -EBUSY;
	if (ret == 0)
		ret = sl_sys(ioctl(t->fd[i], TUNSETVNETHDRSZ, &header));
	/* Without a limit the kernel builds frames on page fragments, and a write never waits. */
	if (ret == 0)
		ret = sl_sys(ioctl(t->fd[i], TUNSETSNDBUF, &send_buffer));
	if (ret == 0)
		memcpy(t->name, request.ifr_name, sizeof(t->name));
	return ret;
}

int
sl_tap_open(struct sl_tap *t, const char *name, uint16_t queues)
{
	int ret = 0;

	memset(t, 0, sizeof(*t));
	t->control = -1;
	for (uint16_t i = 0; i < SL_TAP_QUEUES_MAX; i++)
		t->fd[i] = -1;
	if (queues == 0 || queues > SL_TAP_QUEUES_MAX || strlen(name) >= SL_TAP_NAME_MAX)
		return -EINVAL;
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->control = sl_sys(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	if (t->control < 0)
		return t->control;
	for (uint16_t i = 0; i < queues && ret == 0; i++)
		ret = queue_open(t, i, queues);
	if (ret != 0) {
		sl_tap_close(t);
		return ret;
	}
	t->queues = queues;
	return 0;
}

static void
urings_close(struct sl_tap *t)
{
	for (uint16_t i = 0; i < t->queues; i++) {
		tap_uring_destroy(t->from[i]);
		tap_uring_destroy(t->to[i]);
		t->from[i] = t->to[i] = NULL;
	}
}

int
sl_tap_uring_open(struct sl_tap *t)
{
	int ret = 0;

	for (uint16_t i = 0; i < t->queues && ret == 0; i++) {
		ret = tap_uring_create(t->fd[i], &t->from[i]);
		if (ret == 0)
			ret = tap_uring_create(t->fd[i], &t->to[i]);
	}
	if (ret != 0)
		urings_close(t);
	return ret;
}

void
sl_tap_close(struct sl_tap *t)
{
	urings_close(t);
	for (uint16_t i = 0; i < SL_TAP_QUEUES_MAX; i++) {
		if (t->fd[i] >= 0)
			close(t->fd[i]);
		t->fd[i] = -1;
	}
	if (t->control >= 0)
		close(t->control);
	t->control = -1;
	t->queues = 0;
}

static int
offload(struct sl_tap *t, unsigned long bits)
{
	return sl_sys(ioctl(t->fd[0], TUNSETOFFLOAD, bits));
}

int
sl_tap_set_offloads(struct sl_tap *t, uint32_t accept)
{
	unsigned long bits = 0;
	int ret;

	/* Segmentation without partial checksums means nothing, and the kernel refuses it. */
	if ((accept & SL_TAPQ_VNET_ACCEPT_CSUM) != 0) {
		bits = TUN_F_CSUM;
		bits |= (accept & SL_TAPQ_VNET_ACCEPT_TSO4) != 0 ? TUN_F_TSO4 : 0;
		bits |= (accept & SL_TAPQ_VNET_ACCEPT_TSO6) != 0 ? TUN_F_TSO6 : 0;
		bits |= (accept & SL_TAPQ_VNET_ACCEPT_USO) != 0 ? TUN_F_USO4 | TUN_F_USO6 : 0;
	}
	ret = offload(t, bits);
	if (ret == -EINVAL && (bits & TUN_F_USO4) != 0) {
		accept &= ~(uint32_t)SL_TAPQ_VNET_ACCEPT_USO;
		ret = offload(t, bits & ~(unsigned long)(TUN_F_USO4 | TUN_F_USO6));
	}
	if (ret == 0)
		t->offloads = bits != 0 ? accept : 0;
	return ret;
}

static void
request_init(const struct sl_tap *t, struct ifreq *request)
{
	memset(request, 0, sizeof(*request));
	memcpy(request->ifr_name, t->name, sizeof(request->ifr_name));
}

int
sl_tap_set_mtu(struct sl_tap *t, uint16_t mtu)
{
	struct ifreq request;

	request_init(t, &request);
	request.ifr_mtu = mtu;
	return sl_sys(ioctl(t->control, SIOCSIFMTU, &request));
}

int
sl_tap_get_mtu(struct sl_tap *t, uint16_t *mtu)
{
	struct ifreq request;
	int ret;

	request_init(t, &request);
	ret = sl_sys(ioctl(t->control, SIOCGIFMTU, &request));
	if (ret == 0)
		*mtu = (uint16_t)request.ifr_mtu;
	return ret;
}

int
sl_tap_set_up(struct sl_tap *t, bool up)
{
	struct ifreq request;
	int ret;

	request_init(t, &request);
	ret = sl_sys(ioctl(t->control, SIOCGIFFLAGS, &request));
	if (ret != 0)
		return ret;
	if (up)
		request.ifr_flags |= IFF_UP;
	else
		request.ifr_flags &= (short)~IFF_UP;
	return sl_sys(ioctl(t->control, SIOCSIFFLAGS, &request));
}

int
sl_tap_set_carrier(struct sl_tap *t, bool on)
{
	int carrier = on;

	return sl_sys(ioctl(t->fd[0], TUNSETCARRIER, &carrier));
}
