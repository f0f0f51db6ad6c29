/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Calls that are wrong. Every length with every kind of memory, as socket address of every call that
 * takes one: results must be the kernel's. And what no kernel can be asked: sockets that are closed, and
 * threads that are no workers.
 */
#include <limits.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "udp_test.h"

enum call { BIND, CONNECT, SENDTO, SENDMSG, GETSOCKNAME, CALLS };
enum memory { NOTHING, NOBODYS, ZEROS, V4, V6, MEMORIES };

static const char *const call_names[CALLS] = {"bind", "connect", "sendto", "sendmmsg",
	"getsockname"};
static const char *const memory_names[MEMORIES] = {"NULL", "bad memory", "zeros", "IPv4", "IPv6"};
static const socklen_t lengths[] = {0, 1, 2, 3, 4, 8, 15, 16, 17, 23, 24, 27, 28, 127, 128, 129,
	4096, INT_MAX, (socklen_t)INT_MAX + 1, UINT32_MAX};

static const char *no_kernel;
static uint8_t *bad; /* memory that nobody may touch */

/* One wrong call; the kernel's socket is fd, or ours is s. */
struct attempt {
	enum call call;
	void *name;
	socklen_t len;
	struct sl_udp_sock *s;
	int fd;
};

static ssize_t
result(ssize_t ret)
{
	return ret < 0 ? -errno : ret;
}

/* The name's length comes back: it is part of the result, unless that is an error, where kernels differ. */
static ssize_t
with_length(ssize_t ret, socklen_t len)
{
	return ret < 0 ? ret : (ssize_t)len;
}

/* What sendmmsg is given; good until the next one is made. */
static struct mmsghdr *
message(const struct attempt *a)
{
	static struct iovec iov = {(void *)(uintptr_t) "data", 4};
	static struct mmsghdr m;

	m = (struct mmsghdr){.msg_hdr = {a->name, a->len, &iov, 1, NULL, 0, 0}};
	return &m;
}

/* Into the kernel without a sanitizer's wrappers, which would look at what is wrong first. */
static ssize_t
kernel_call(const struct attempt *a)
{
	socklen_t len = a->len;
	ssize_t ret;

	switch (a->call) {
	case BIND:
		return result(syscall(SYS_bind, a->fd, a->name, len));
	case CONNECT:
		return result(syscall(SYS_connect, a->fd, a->name, len));
	case SENDTO:
		return result(syscall(SYS_sendto, a->fd, "data", 4, 0, a->name, len));
	case SENDMSG:
		return result(syscall(SYS_sendmmsg, a->fd, message(a), 1, 0));
	default:
		ret = result(syscall(SYS_getsockname, a->fd, a->name, &len));
		return with_length(ret, len);
	}
}

static ssize_t
our_call(const struct attempt *a)
{
	socklen_t len = a->len;
	ssize_t ret;

	switch (a->call) {
	case BIND:
		return sl_udp_bind(a->s, a->name, len);
	case CONNECT:
		return sl_udp_connect(a->s, a->name, len);
	case SENDTO:
		return sl_udp_sendto(a->s, 0, "data", 4, 0, a->name, len);
	case SENDMSG:
		return sl_udp_sendmmsg(a->s, 0, message(a), 1, 0);
	default:
		ret = sl_udp_getsockname(a->s, a->name, &len);
		return with_length(ret, len);
	}
}

/* A pair of sockets in the state that is asked for. */
static void
open_pair(struct attempt *a, int family, bool guarded, bool connected)
{
	struct sl_udp_sock_conf conf = {.family = family, .guarded = guarded, .slots = 16};
	const char *peer = family == AF_INET ? TU_PEER : TU_PEER6;
	struct sockaddr_storage ss;
	socklen_t len = tu_sockaddr(peer, 7777, family, &ss);

	REQUIRE(sl_udp_socket(tu_udp, &conf, &a->s) == 0);
	a->fd = socket(family, SOCK_DGRAM, 0);
	REQUIRE(a->fd >= 0);
	if (connected) {
		REQUIRE(sl_udp_connect(a->s, (struct sockaddr *)&ss, len) == 0);
		REQUIRE(connect(a->fd, (struct sockaddr *)&ss, len) == 0);
	}
}

/* Whatever is named, a whole page of it may be read and written, but for bad memory. */
static void *
make_memory(enum memory memory, enum call call)
{
	static union {
		struct sockaddr_storage ss;
		uint8_t page[4096];
	} room;
	uint16_t port = call == BIND ? 0 : 7777;

	memset(&room, 0, sizeof(room));
	if (memory == V4)
		tu_sockaddr(call == BIND ? TU_US : TU_PEER, port, AF_INET, &room.ss);
	else if (memory == V6)
		tu_sockaddr(call == BIND ? TU_US6 : TU_PEER6, port, AF_INET6, &room.ss);
	return memory == NOTHING ? NULL : memory == NOBODYS ? (void *)bad : &room;
}

static void
compare(struct attempt *a, int family, enum memory memory, bool guarded, bool connected)
{
	ssize_t kernel, ours;

	open_pair(a, family, guarded, connected);
	a->name = make_memory(memory, a->call);
	kernel = kernel_call(a);
	a->name = make_memory(memory, a->call);
	ours = our_call(a);
	if (ours != kernel)
		fprintf(stderr, "%s of %s, length %d, on %s%s%s: kernel %zd, ours %zd\n",
			call_names[a->call], memory_names[memory], (int)a->len,
			family == AF_INET ? "AF_INET" : "AF_INET6", guarded ? ", guarded" : "",
			connected ? ", connected" : "", kernel, ours);
	CHECK_EQ(ours, kernel);
	sl_udp_close(a->s, 0);
	close(a->fd);
	tu_drain();
}

static void
test_every_name(void)
{
	struct attempt a;

	if (no_kernel != NULL)
		SKIP(no_kernel);
	for (unsigned int call = 0; call < CALLS; call++) {
		for (unsigned int i = 0; i < SL_COUNT_OF(lengths) * MEMORIES * 8; i++) {
			unsigned int bits = i % 8, memory = i / 8 % MEMORIES;

			a.call = call;
			a.len = lengths[i / 8 / MEMORIES];
			if (memory == NOBODYS && !(bits & 2))
				continue; /* a signal, as promised */
			compare(&a, bits & 1 ? AF_INET : AF_INET6, memory, bits & 2, bits & 4);
		}
	}
}

/* Each call on a socket that is closed; closing it again, and closing nothing, do nothing. */
static void
test_closed(void)
{
	struct sl_udp_sock_conf conf = {.family = AF_INET, .slots = 16};
	struct sl_udp_sock_stats stats;
	struct sl_dgram d[4];
	struct sl_udp_sock *s;
	char b[8];

	REQUIRE(sl_udp_socket(tu_udp, &conf, &s) == 0);
	REQUIRE(tu_bind(s, TU_US, 5000) == 0);
	tu_datagram(TU_US, 5000, "x", 1);
	sl_udp_close(s, 0);
	sl_udp_close(s, 0);
	sl_udp_close(s, SL_INET_NO_WORKER);
	sl_udp_close(NULL, 0);
	sl_udp_destroy(NULL);
	sl_inet_destroy(NULL);
	for (unsigned int call = 0; call < CALLS; call++) {
		struct attempt a = {.call = call, .len = sizeof(struct sockaddr_in), .s = s};

		a.name = make_memory(V4, call);
		CHECK_EQ(our_call(&a), -EBADF);
	}
	CHECK_EQ(sl_udp_recvfrom(s, b, sizeof(b), 0, NULL, NULL), -EBADF);
	CHECK_EQ(sl_udp_read(s, b, sizeof(b)), -EBADF);
	CHECK_EQ(sl_udp_recvmmsg(s, NULL, 0, 0, NULL), -EBADF);
	CHECK_EQ(sl_udp_recv_burst(s, d, 4), -EBADF);
	CHECK_EQ(sl_udp_take_error(s), 0);
	sl_udp_set_rcvbuf(s, 1);
	sl_udp_sock_stats(s, &stats);
	CHECK_EQ(stats.purged, 1);
	/* The books are right: the layer has room for as many sockets as ever. */
	for (int i = 0; i < 100; i++) {
		REQUIRE(sl_udp_socket(tu_udp, &conf, &s) == 0);
		sl_udp_close(s, 0);
		sl_udp_close(s, 0);
	}
}

static void
test_no_worker(void)
{
	static const uint16_t nobody[] = {1, 127, 128, SL_INET_NO_WORKER};
	struct sl_udp_sock_conf conf = {.family = AF_INET, .slots = 16};
	struct iovec iov = {(void *)(uintptr_t) "data", 4};
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &iov, .msg_iovlen = 1}};
	struct sl_udp_sock *s;

	REQUIRE(sl_udp_socket(tu_udp, &conf, &s) == 0);
	REQUIRE(tu_connect(s, TU_PEER, 7777) == 0);
	for (unsigned int i = 0; i < SL_COUNT_OF(nobody); i++) {
		CHECK_EQ(sl_udp_sendto(s, nobody[i], "data", 4, 0, NULL, 0), -EINVAL);
		CHECK_EQ(sl_udp_sendmmsg(s, nobody[i], &m, 1, 0), -EINVAL);
	}
	CHECK_EQ(sl_udp_sendto(s, 0, "data", 4, 0, NULL, 0), 4);
	sl_udp_close(s, 0);
	tu_drain();
}

/* A limit of 0 is the one that sockets have from the start. */
static void
test_rcvbuf(void)
{
	struct sl_udp_sock_conf conf = {.family = AF_INET, .slots = 64};
	struct sl_udp_sock *s;
	char b[8];

	REQUIRE(sl_udp_socket(tu_udp, &conf, &s) == 0);
	REQUIRE(tu_bind(s, TU_US, 5000) == 0);
	for (uint64_t limit = 0; limit < 2; limit++) {
		unsigned int got = 0;

		sl_udp_set_rcvbuf(s, limit);
		for (int i = 0; i < 8; i++)
			tu_datagram(TU_US, 5000, "x", 1);
		while (sl_udp_recvfrom(s, b, sizeof(b), MSG_DONTWAIT, NULL, NULL) == 1)
			got++;
		CHECK_EQ(got, limit == 0 ? 8 : 1);
	}
	sl_udp_close(s, 0);
}

int
main(int argc, char **argv)
{
	(void)argc;
	bad = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(bad != MAP_FAILED);
	tu_eal(argv[0]);
	tu_port();
	no_kernel = tu_kernel_net();
	tu_stack(1, tu_pool);
	SL_TEST_RUN(test_every_name);
	SL_TEST_RUN(test_closed);
	SL_TEST_RUN(test_no_worker);
	SL_TEST_RUN(test_rcvbuf);
	SL_TEST_RUN(tu_stack_end);
	return test_end();
}
