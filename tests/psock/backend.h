/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef BACKEND_H
#define BACKEND_H

/*
 * One test body, two backends: a packet socket of the library, and one of the host kernel on a veth
 * pair of the test's own. Calls return what they return, or -errno.
 */
#include <net/if.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "psock_help.h"
#include "sl_errno.h"

struct sock {
	bool kernel;
	int fd;
	struct sl_psock *s;
};

static int kernel_ifindex; /* 0: no right to make one */

/* A network namespace of this process alone, with two ends of a cable, both up. */
static inline void
kernel_init(void)
{
	if (unshare(CLONE_NEWNET) != 0)
		return;
	if (system("ip link add cable0 type veth peer name cable1 && ip link set cable0 up && "
		   "ip link set cable1 up") != 0)
		return;
	kernel_ifindex = (int)if_nametoindex("cable0");
}

static inline int
b_open(bool kernel, int type, uint16_t proto, struct sock *k)
{
	*k = (struct sock){.kernel = kernel, .fd = -1};
	if (!kernel)
		return sl_psock_create(net, type, proto, &k->s);
	k->fd = sl_sys(socket(AF_PACKET, type, proto));
	return k->fd < 0 ? k->fd : 0;
}

static inline void
b_close(struct sock *k)
{
	if (k->kernel)
		close(k->fd);
	else
		sl_psock_close(k->s, SL_PSOCK_NO_WORKER);
}

static inline int
b_ifindex(const struct sock *k)
{
	return k->kernel ? kernel_ifindex : IFINDEX;
}

static inline int
b_bind(struct sock *k, const void *addr, socklen_t len)
{
	return k->kernel ? sl_sys(bind(k->fd, addr, len))
			 : sl_psock_bind(k->s, addr, len, SL_PSOCK_NO_WORKER);
}

static inline int
b_bind_port(struct sock *k, uint16_t proto)
{
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET, .sll_ifindex = b_ifindex(k), .sll_protocol = proto};

	return b_bind(k, &ll, sizeof(ll));
}

static inline int
b_set(struct sock *k, int level, int name, const void *value, socklen_t len)
{
	return k->kernel ? sl_sys(setsockopt(k->fd, level, name, value, len))
			 : sl_psock_setsockopt(k->s, level, name, value, len, SL_PSOCK_NO_WORKER);
}

static inline int
b_set_int(struct sock *k, int name, int value)
{
	return b_set(k, SOL_PACKET, name, &value, sizeof(value));
}

static inline int
b_get(struct sock *k, int level, int name, void *value, socklen_t *len)
{
	return k->kernel ? sl_sys(getsockopt(k->fd, level, name, value, len))
			 : sl_psock_getsockopt(k->s, level, name, value, len);
}

static inline int
b_send(struct sock *k, const struct msghdr *msg, int flags)
{
	if (k->kernel)
		return sl_sys((int)sendmsg(k->fd, msg, flags));
	return (int)sl_psock_sendmsg(k->s, msg, flags, SL_PSOCK_NO_WORKER);
}

static inline void *
b_map(struct sock *k, size_t len)
{
	void *p = NULL;

	if (k->kernel) {
		p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, k->fd, 0);
		return p == MAP_FAILED ? NULL : p;
	}
	return sl_psock_mmap(k->s, len, &p) == 0 ? p : NULL;
}

static inline void
b_unmap(struct sock *k, void *p, size_t len)
{
	if (k->kernel)
		munmap(p, len);
	else
		sl_psock_munmap(k->s, p, len);
}

static inline int
b_ring(struct sock *k, int name, int version)
{
	struct tpacket_req3 req = {.tp_block_size = 2 * FRAME,
		.tp_block_nr = FRAMES / 2,
		.tp_frame_size = FRAME,
		.tp_frame_nr = FRAMES};
	int ret = b_set_int(k, PACKET_VERSION, version);

	if (ret != 0)
		return ret;
	return b_set(k, SOL_PACKET, name, &req,
		version == TPACKET_V3 ? sizeof(req) : sizeof(struct tpacket_req));
}

/* A test body as two cases. */
#define ON_BOTH(test)                                                                              \
	static void library_##test(void)                                                           \
	{                                                                                          \
		test(false);                                                                       \
	}                                                                                          \
	static void kernel_##test(void)                                                            \
	{                                                                                          \
		if (kernel_ifindex == 0)                                                           \
			SKIP("packet sockets on the host kernel need CAP_NET_ADMIN and "           \
			     "CAP_NET_RAW");                                                       \
		test(true);                                                                        \
	}

#endif
