/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Calls that are wrong: every length of a name with messages of every shape, for each type of socket;
 * results must be the kernel's. */
#include <limits.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "backend.h"

#define NONE SL_PSOCK_NO_WORKER

enum call { SEND, RECV, BIND, GETSOCKNAME, CALLS };

static const char *const call_names[CALLS] = {"sendmsg", "recvmsg", "bind", "getsockname"};
static const int types[] = {SOCK_RAW, SOCK_DGRAM, SOCK_PACKET};
static const socklen_t lengths[] = {0, 1, 2, 4, 11, 12, 15, 16, 17, 18, 19, 20, 21, 127, 128, 129, 4096,
	INT_MAX, (socklen_t)INT_MAX + 1, UINT32_MAX};

static uint8_t data[128] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5};
static struct iovec many[UIO_MAXIOV + 1];
static struct iovec whole = {data, sizeof(data)}, too_short = {data, 13}, negative = {data, SIZE_MAX},
		    two[2] = {{data, 60}, {data, SIZE_MAX - 3}};

static const struct shape {
	const char *what;
	struct iovec *iov;
	size_t n;
} shapes[] = {
	{"a frame", &whole, 1},
	{"no data", NULL, 0},
	{"no array", NULL, 1},
	{"too short a frame", &too_short, 1},
	{"a length below 0", &negative, 1},
	{"a sum that wraps", two, 2},
	{"1024 pieces", many, UIO_MAXIOV},
	{"1025 pieces", many, UIO_MAXIOV + 1},
	{"more pieces than can be", many, SIZE_MAX},
};

struct attempt {
	enum call call;
	int type;
	bool named;
	socklen_t len;
	const struct shape *shape;
};

static long
kernel_result(long ret)
{
	return ret < 0 ? -errno : ret;
}

/* Into the kernel without a sanitizer's wrappers, which would look at what is wrong first. */
static long
call_kernel(const struct attempt *a, int fd, void *name, struct msghdr *m)
{
	socklen_t len = a->len;
	long ret;

	switch (a->call) {
	case SEND:
		return kernel_result(syscall(SYS_sendmsg, fd, m, MSG_DONTWAIT));
	case RECV:
		return kernel_result(syscall(SYS_recvmsg, fd, m, MSG_DONTWAIT));
	case BIND:
		return kernel_result(syscall(SYS_bind, fd, name, len));
	default:
		ret = kernel_result(syscall(SYS_getsockname, fd, name, &len));
		return ret < 0 ? ret : (long)len;
	}
}

static long
call_library(const struct attempt *a, struct sl_psock *s, void *name, struct msghdr *m)
{
	socklen_t len = a->len;
	long ret;

	switch (a->call) {
	case SEND:
		return sl_psock_sendmsg(s, m, MSG_DONTWAIT, NONE);
	case RECV:
		return sl_psock_recvmsg(s, m, MSG_DONTWAIT);
	case BIND:
		return sl_psock_bind(s, name, len, NONE);
	default:
		ret = sl_psock_getsockname(s, name, &len);
		return ret < 0 ? ret : (long)len;
	}
}

/* SOCK_PACKET knows ports by their names alone, so none is named there but a wrong one. */
static long
attempt_on(const struct attempt *a, struct sock *k)
{
	static union {
		struct sockaddr_ll ll;
		uint8_t page[4096];
	} room;
	struct msghdr m = {.msg_name = a->named ? &room : NULL,
		.msg_namelen = a->len,
		.msg_iov = a->shape->iov,
		.msg_iovlen = a->shape->n};
	void *name = m.msg_name;

	memset(&room, 0, sizeof(room));
	room.ll = (struct sockaddr_ll){.sll_family = AF_PACKET,
		.sll_ifindex = b_ifindex(k),
		.sll_protocol = htons(0x88b5),
		.sll_halen = 6};
	return k->kernel ? call_kernel(a, k->fd, name, &m) : call_library(a, k->s, name, &m);
}

/* The kernel's socket and the library's, bound but for BIND. A protocol of 0: nothing that is sent comes
 * back. */
static void
open_pair(const struct attempt *a, struct sock *pair)
{
	for (int kernel = 0; kernel < 2; kernel++) {
		REQUIRE(b_open(kernel, a->type, 0, &pair[kernel]) == 0);
		if (a->type != SOCK_PACKET && a->call != BIND)
			REQUIRE(b_bind_port(&pair[kernel], 0) == 0);
	}
}

static void
compare(const struct attempt *a, struct sock *pair)
{
	long kernel = attempt_on(a, &pair[1]), library = attempt_on(a, &pair[0]);

	if (library != kernel)
		fprintf(stderr, "%s, type %d, %s of %d bytes, %s: kernel %ld, library %ld\n",
			call_names[a->call], a->type, a->named ? "a name" : "no name", (int)a->len,
			a->shape->what, kernel, library);
	CHECK_EQ(library, kernel);
	drain();
}

/* Names matter to every call, messages to two; a call leaves the sockets as they were, but for BIND. */
static void
every_name(struct attempt *a)
{
	struct sock pair[2];

	open_pair(a, pair);
	for (unsigned int i = 0; i < SL_COUNT_OF(lengths) * 2; i++) {
		a->len = lengths[i / 2];
		a->named = i % 2;
		compare(a, pair);
		if (a->call == BIND) {
			b_close(&pair[0]);
			b_close(&pair[1]);
			open_pair(a, pair);
		}
	}
	b_close(&pair[0]);
	b_close(&pair[1]);
}

static void
every_name_and_shape(void)
{
	if (kernel_ifindex == 0)
		SKIP("packet sockets on the host kernel need CAP_NET_ADMIN and CAP_NET_RAW");
	for (unsigned int i = 0; i < SL_COUNT_OF(many); i++)
		many[i] = (struct iovec){data + i % 60, i < 60};
	for (unsigned int i = 0; i < SL_COUNT_OF(types) * SL_COUNT_OF(shapes) * CALLS; i++) {
		struct attempt a = {.call = i % CALLS,
			.type = types[i / CALLS % SL_COUNT_OF(types)],
			.shape = &shapes[i / CALLS / SL_COUNT_OF(types)]};

		if (a.call < BIND || a.shape == shapes)
			every_name(&a);
	}
}

static void
no_worker(void)
{
	struct msghdr m = {.msg_iov = &whole, .msg_iovlen = 1};
	struct sl_psock *s = sock_bound(SOCK_RAW, 0x88b5);

	CHECK_EQ(sl_psock_sendmsg(s, &m, 0, 3), sizeof(data));
	CHECK_EQ(sl_psock_sendmsg(s, &m, 0, NONE), sizeof(data));
	CHECK_EQ(sl_psock_sendmsg(s, &m, 0, 4), -EINVAL); /* the net has four */
	CHECK_EQ(sl_psock_sendmsg(s, &m, 0, NONE - 1), -EINVAL);
	CHECK_EQ(drain(), 2);
	sl_psock_close(s, NONE);
	sl_psock_close(NULL, NONE);
	CHECK_EQ(sl_psock_net_destroy(NULL), 0);
}

int
main(void)
{
	kernel_init();
	help_init("misuse");
	net_open(NULL, SL_PSOCK_LEND_AUTO);
	SL_TEST_RUN(every_name_and_shape);
	SL_TEST_RUN(no_worker);
	net_close();
	return help_end();
}
