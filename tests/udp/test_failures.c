/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The k-th thing that creation needs cannot be had, for each k: the error says so, nothing is lost, and
 * the next attempt succeeds. */
#include <sys/resource.h>
#include <sys/uio.h>

#include <rte_hash.h>

#include "udp_test.h"

#define PORT 5000

static int countdown; /* the call that fails; 0: none */

static bool
fails(void)
{
	return countdown != 0 && --countdown == 0;
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
struct rte_hash *__real_rte_hash_create(const struct rte_hash_parameters *params);
struct rte_hash *__wrap_rte_hash_create(const struct rte_hash_parameters *params);
int __real_eventfd(unsigned int count, int flags);
int __wrap_eventfd(unsigned int count, int flags);
ssize_t __real_process_vm_writev(pid_t pid, const struct iovec *from, unsigned long nfrom,
	const struct iovec *to, unsigned long nto, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *from, unsigned long nfrom,
	const struct iovec *to, unsigned long nto, unsigned long flags);

void *
__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *
__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

struct rte_hash *
__wrap_rte_hash_create(const struct rte_hash_parameters *params)
{
	return fails() ? NULL : __real_rte_hash_create(params);
}

int
__wrap_eventfd(unsigned int count, int flags)
{
	if (!fails())
		return __real_eventfd(count, flags);
	errno = EMFILE;
	return -1;
}

ssize_t
__wrap_process_vm_writev(pid_t pid, const struct iovec *from, unsigned long nfrom,
	const struct iovec *to, unsigned long nto, unsigned long flags)
{
	if (!fails())
		return __real_process_vm_writev(pid, from, nfrom, to, nto, flags);
	errno = EPERM;
	return -1;
}

/* How many calls a success takes is not known: fail the first, the second, ... until it succeeds. */
static void
test_layer(void)
{
	struct sl_inet_conf ic = {.workers = 2};
	struct sl_udp_conf uc = {.sockets = 16, .pool = tu_pool};
	struct sl_inet *inet;
	struct sl_udp *udp = NULL;
	int ret, k = 0;

	REQUIRE(sl_inet_create(&ic, &inet) == 0);
	do {
		countdown = ++k;
		ret = sl_udp_create(inet, &uc, &udp);
		CHECK(ret == 0 || ret == -ENOMEM);
		CHECK(ret == 0 || udp == NULL);
	} while (ret != 0 && k < 100);
	countdown = 0;
	CHECK_EQ(ret, 0);
	CHECK_EQ(k, 6); /* the layer, three tables, the hash; then none is left to fail */
	sl_udp_destroy(udp);
	sl_inet_destroy(inet);
}

static void
sockets(const struct sl_udp_sock_conf *conf, int needs, int last_error)
{
	struct sl_udp_sock *s = NULL;
	int ret, k = 0, last = 0;

	do {
		countdown = ++k;
		ret = sl_udp_socket(tu_udp, conf, &s);
		CHECK(ret == 0 || s == NULL);
		last = ret != 0 ? ret : last;
	} while (ret != 0 && k < 100);
	countdown = 0;
	CHECK_EQ(ret, 0);
	CHECK(k > needs);
	CHECK_EQ(last, last_error);
	sl_udp_close(s, 0);
}

static void
test_sockets(void)
{
	const struct sl_udp_sock_conf split = {.family = AF_INET, .worker = SL_INET_NO_WORKER};
	const struct sl_udp_sock_conf guarded = {.family = AF_INET, .worker = 0, .guarded = true};
	struct sl_udp_sock *s;

	/* The queue, its parts, the eventfd and the socket itself, which the second has from the first. */
	sockets(&split, 5, -ENOMEM);
	sockets(&split, 5, -EMFILE);
	sockets(&guarded, 4, -EMFILE);
	/* A kernel or a container that refuses the guarded copy. */
	countdown = 1;
	CHECK_EQ(sl_udp_socket(tu_udp, &guarded, &s), -EPERM);
	countdown = 0;
}

static void
test_bind(void)
{
	struct sl_udp_sock_conf conf = {.family = AF_INET, .reuse_port = true, .slots = 2};
	struct sl_udp_sock *s[6];
	uint8_t b[4];

	for (int i = 0; i < 6; i++)
		REQUIRE(sl_udp_socket(tu_udp, &conf, &s[i]) == 0);
	countdown = 1;
	CHECK_EQ(tu_bind(s[0], TU_US, PORT), -ENOMEM);
	CHECK_EQ(tu_bind(s[0], TU_US, PORT), 0);
	/* Four fit; the fifth makes the vector grow, and cannot. */
	for (int i = 1; i < 4; i++)
		CHECK_EQ(tu_bind(s[i], TU_US, PORT), 0);
	countdown = 1;
	CHECK_EQ(tu_bind(s[4], TU_US, PORT), -ENOMEM);
	countdown = 1;
	CHECK_EQ(tu_connect(s[5], TU_PEER, 7777), -ENOMEM);
	CHECK_EQ(tu_bind(s[4], TU_US, PORT), 0);
	CHECK_EQ(tu_connect(s[5], TU_PEER, 7777), 0);
	for (int i = 0; i < 4; i++)
		sl_udp_close(s[i], 0);
	tu_datagram(TU_US, PORT, "x", 1);
	CHECK_EQ(sl_udp_recvfrom(s[4], b, 4, MSG_DONTWAIT, NULL, NULL), 1);
	sl_udp_close(s[4], 0);
	sl_udp_close(s[5], 0);
}

/* The real thing: no descriptor is left. */
static void
test_no_descriptor(void)
{
	struct sl_udp_sock_conf conf = {.family = AF_INET, .worker = SL_INET_NO_WORKER};
	struct rlimit old, none;
	struct sl_udp_sock *s;
	int fd = dup(0);

	REQUIRE(fd >= 0 && getrlimit(RLIMIT_NOFILE, &old) == 0);
	close(fd);
	none = (struct rlimit){.rlim_cur = (rlim_t)fd, .rlim_max = old.rlim_max};
	REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
	CHECK_EQ(sl_udp_socket(tu_udp, &conf, &s), -EMFILE);
	REQUIRE(setrlimit(RLIMIT_NOFILE, &old) == 0);
	CHECK_EQ(sl_udp_socket(tu_udp, &conf, &s), 0);
	sl_udp_close(s, 0);
}

/* A layer that only receives has no pool to send from. */
static void
test_send_without_pool(void)
{
	struct sl_udp_sock_conf conf = {.family = AF_INET, .slots = 2};
	struct sl_udp_sock *s;

	REQUIRE(sl_udp_socket(tu_udp, &conf, &s) == 0);
	CHECK_EQ(tu_connect(s, TU_PEER, 7777), 0);
	CHECK_EQ(sl_udp_sendto(s, 0, "x", 1, 0, NULL, 0), -ENOBUFS);
	sl_udp_close(s, 0);
}

int
main(int argc, char **argv)
{
	(void)argc;
	tu_eal(argv[0]);
	tu_port();
	SL_TEST_RUN(test_layer);
	tu_stack(2, tu_pool);
	SL_TEST_RUN(test_sockets);
	SL_TEST_RUN(test_bind);
	SL_TEST_RUN(test_no_descriptor);
	SL_TEST_RUN(tu_stack_end);
	tu_stack(1, NULL);
	SL_TEST_RUN(test_send_without_pool);
	SL_TEST_RUN(tu_stack_end);
	return test_end();
}
