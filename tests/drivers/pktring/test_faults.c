/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * A port of net_pktring and a client of it, from first to last, with every call in turn failing
 * that can fail for want of something: on the port's side, in its control thread, and in the client
 * library. The driver and the library are linked here, so that only their own calls are counted.
 * What fails says so; nothing is left.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_kvargs.h>
#include <rte_malloc.h>

#include "sl_client.h"
#include "sl_shared.h"
#include "sl_test.h"
#include "sl_test_eal.h"
#include "sl_test_leak.h"

#define NAME "net_pktring_faults"
#define TURNS_MAX 1000

static char path[64];
static struct rte_mempool *pool;

static int left; /* (a) the call of that number fails; both threads count */
static int armed;
static const char *failing; /* its name, for people */

static bool
fails(const char *name)
{
	if (!sl_load_relaxed(&armed) || sl_fetch_sub_acq_rel(&left, 1) != 1)
		return false;
	failing = name;
	errno = ENOMEM;
	return true;
}

/* Names are the linker's (--wrap); a failing call returns what it returns on failure. */
#define WRAP(type, name, failure, params, args)                                                    \
	type __real_##name params;                                                                 \
	type __wrap_##name params;                                                                 \
	type __wrap_##name params                                                                  \
	{                                                                                          \
		return fails(#name) ? (failure) : __real_##name args;                              \
	}

struct rte_intr_handle;
struct rte_eth_dev;

WRAP(void *, malloc, NULL, (size_t n), (n))
WRAP(void *, calloc, NULL, (size_t n, size_t size), (n, size))
WRAP(void *, aligned_alloc, NULL, (size_t align, size_t n), (align, n))
WRAP(void *, mmap, MAP_FAILED, (void *at, size_t n, int prot, int flags, int fd, off_t offset),
	(at, n, prot, flags, fd, offset))
WRAP(int, memfd_create, -1, (const char *name, unsigned int flags), (name, flags))
WRAP(int, ftruncate, -1, (int fd, off_t n), (fd, n))
WRAP(int, fcntl, -1, (int fd, int cmd, long arg), (fd, cmd, arg))
WRAP(int, socket, -1, (int domain, int type, int protocol), (domain, type, protocol))
WRAP(int, connect, -1, (int fd, const void *to, socklen_t len), (fd, to, len))
WRAP(int, bind, -1, (int fd, const void *to, socklen_t len), (fd, to, len))
WRAP(int, listen, -1, (int fd, int n), (fd, n))
WRAP(int, accept4, -1, (int fd, void *from, socklen_t *len, int flags), (fd, from, len, flags))
WRAP(int, epoll_create1, -1, (int flags), (flags))
WRAP(int, eventfd, -1, (unsigned int count, int flags), (count, flags))
WRAP(ssize_t, send, -1, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags))
WRAP(ssize_t, recv, -1, (int fd, void *p, size_t n, int flags), (fd, p, n, flags))
WRAP(ssize_t, sendmsg, -1, (int fd, const struct msghdr *msg, int flags), (fd, msg, flags))
WRAP(ssize_t, recvmsg, -1, (int fd, struct msghdr *msg, int flags), (fd, msg, flags))
WRAP(void *, rte_zmalloc, NULL, (const char *type, size_t n, unsigned int align), (type, n, align))
WRAP(struct rte_kvargs *, rte_kvargs_parse, NULL, (const char *text, const char *const keys[]),
	(text, keys))
WRAP(void *, rte_zmalloc_socket, NULL, (const char *type, size_t n, unsigned int align, int socket),
	(type, n, align, socket))
WRAP(struct rte_eth_dev *, rte_eth_dev_allocate, NULL, (const char *name), (name))
WRAP(int, rte_ctrl_thread_create, -ENOMEM,
	(pthread_t * thread, const char *name, const pthread_attr_t *attr, void *(*body)(void *),
		void *arg),
	(thread, name, attr, body, arg))
WRAP(struct rte_intr_handle *, rte_intr_instance_alloc, NULL, (uint32_t flags), (flags))
WRAP(int, rte_intr_vec_list_alloc, -ENOMEM,
	(struct rte_intr_handle * handle, const char *name, int n), (handle, name, n))

int __real_epoll_ctl(int fd, int op, int what, struct epoll_event *event);
int __wrap_epoll_ctl(int fd, int op, int what, struct epoll_event *event);

/* To take a watch away needs nothing. */
int
__wrap_epoll_ctl(int fd, int op, int what, struct epoll_event *event)
{
	if (op == EPOLL_CTL_ADD && fails("epoll_ctl"))
		return -1;
	return __real_epoll_ctl(fd, op, what, event);
}

static int failed; /* steps that failed */

static bool
good(bool ok)
{
	failed += !ok;
	return ok;
}

/* A frame each way, and a client that goes while its frame is held. */
static void
client_life(uint16_t port, int version)
{
	struct sl_client_conf conf = {
		.path = path, .version = version, .tx_frames = 8, .rx_frames = 8};
	struct rte_mbuf *m;
	struct sl_client *c;
	uint8_t *slot;

	if (!good(sl_client_connect(&conf, &c, NULL) == 0))
		return;
	slot = sl_client_tx_next(c);
	REQUIRE(slot != NULL);
	memset(slot, 1, 60);
	sl_client_tx_submit(c, 60);
	sl_client_kick(c);
	/* The answer to the hello comes when the rings are in their queue. */
	REQUIRE(rte_eth_rx_burst(port, 0, &m, 1) == 1);
	sl_client_close(c);
	CHECK_EQ(rte_pktmbuf_mtod(m, uint8_t *)[59], 1);
	rte_pktmbuf_free(m);
}

static void
port_life(uint16_t port, int version)
{
	struct rte_eth_conf conf = {.intr_conf = {.rxq = 1, .lsc = 1}};

	if (!good(rte_eth_dev_configure(port, 1, 1, &conf) == 0))
		return;
	REQUIRE(rte_eth_rx_queue_setup(port, 0, 0, SOCKET_ID_ANY, NULL, pool) == 0);
	REQUIRE(rte_eth_tx_queue_setup(port, 0, 0, SOCKET_ID_ANY, NULL) == 0);
	REQUIRE(rte_eth_dev_start(port) == 0);
	client_life(port, version);
	REQUIRE(rte_eth_dev_stop(port) == 0);
}

static void
life(int version)
{
	char args[128];
	uint16_t port;

	snprintf(args, sizeof(args), "path=%s", path);
	if (!good(rte_eal_hotplug_add("vdev", NAME, args) == 0))
		return;
	REQUIRE(rte_eth_dev_get_port_by_name(NAME, &port) == 0);
	port_life(port, version);
	REQUIRE(rte_eal_hotplug_remove("vdev", NAME) == 0);
}

static void
every_call_fails_in_turn(void)
{
	unsigned int descriptors;
	int k;

	life(TPACKET_V2); /* what DPDK opens once */
	CHECK_EQ(failed, 0);
	descriptors = test_descriptors();
	for (k = 1; k < TURNS_MAX; k++) {
		int bad = test_bad;

		failed = 0;
		failing = NULL;
		left = k;
		sl_store_relaxed(&armed, 1);
		life(k % 3);
		sl_store_relaxed(&armed, 0);
		CHECK_EQ(test_descriptors(), descriptors);
		CHECK_EQ(test_mappings("sluice-ring"), 0);
		CHECK_EQ(rte_mempool_in_use_count(pool), 0);
		CHECK_EQ(rte_eth_dev_count_avail(), 0);
		CHECK(access(path, F_OK) != 0);
		if (failing == NULL) /* there were not that many */
			break;
		if (test_bad != bad)
			fprintf(stderr, "call %d: %s\n", k, failing);
	}
	CHECK_EQ(failed, 0);
	CHECK(k > 25 && k < TURNS_MAX);
	printf("     %d calls\n", k - 1);
}

int
main(void)
{
	REQUIRE(test_eal_start("pktring-faults", "-l 0 --log-level=*:critical") >= 0);
	snprintf(path, sizeof(path), "/tmp/sluice-pktring-faults-%d.sock", getpid());
	pool = rte_pktmbuf_pool_create("pool", 255, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	REQUIRE(pool != NULL);
	SL_TEST_RUN(every_call_fails_in_turn);
	rte_mempool_free(pool);
	rte_eal_cleanup();
	return test_end();
}
