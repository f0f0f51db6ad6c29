/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * A socket's whole life, with every allocation in turn failing. What fails says so, everything else
 * goes on, and at the end nothing is left: no mbuf, no mapping, no descriptor; and under the
 * address sanitizer no memory.
 */
#include <linux/filter.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "psock_help.h"
#include "sl_test_leak.h"

#define NONE SL_PSOCK_NO_WORKER

static int fail_at; /* the k-th wrapped call from now fails; 0: none does */
static bool armed;

/* Names are the linker's (--wrap). */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
int __real_memfd_create(const char *name, unsigned int flags);
int __wrap_memfd_create(const char *name, unsigned int flags);

static bool
fails(void)
{
	if (!armed || fail_at == 0)
		return false;
	return --fail_at == 0;
}

void *
__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

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

void *
__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return fails() ? MAP_FAILED : __real_mmap(addr, len, prot, flags, fd, offset);
}

int
__wrap_memfd_create(const char *name, unsigned int flags)
{
	if (fails()) {
		errno = EMFILE;
		return -1;
	}
	return __real_memfd_create(name, flags);
}

/* Calls that failed; a call may fail because an earlier one did. */
static int failed;

static bool
good(int ret)
{
	if (ret < 0)
		failed++;
	return ret >= 0;
}

static void
control_calls(struct sl_psock *s)
{
	static struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, 0xffff)};
	struct sock_fprog prog = {1, all};
	struct packet_mreq group = {IFINDEX, PACKET_MR_MULTICAST, 6, {1, 0, 0x5e, 0, 0, 1}};
	uint32_t fanout = 3;

	good(sl_psock_setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog), NONE));
	good(sl_psock_setsockopt(
		s, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &group, sizeof(group), NONE));
	good(sl_psock_setsockopt(s, SOL_PACKET, PACKET_FANOUT, &fanout, sizeof(fanout), NONE));
}

static int
ring_set(struct sl_psock *s, int name, int version)
{
	struct tpacket_req3 req = {2 * FRAME, FRAMES / 2, FRAME, FRAMES, 0, 0, 0};

	return sl_psock_setsockopt(s, SOL_PACKET, name, &req,
		version == TPACKET_V3 ? sizeof(req) : sizeof(struct tpacket_req), NONE);
}

/* Both rings, mapped; a request sent, and in flight when the socket is closed. */
static void
life(int version)
{
	struct sl_psock *s;
	void *map = NULL;
	size_t len = 0;

	if (!good(sl_psock_create(net, SOCK_RAW, 0, &s)))
		return;
	good(sock_bind(s, IFINDEX, ETH_P_ALL, NONE));
	control_calls(s);
	good(sock_set(s, PACKET_VERSION, version));
	if (good(ring_set(s, PACKET_TX_RING, version)))
		len += FRAME * FRAMES;
	if (good(ring_set(s, PACKET_RX_RING, version)))
		len += FRAME * FRAMES;
	if (len > 0 && good(sl_psock_mmap(s, len, &map))) {
		if (s->tx != NULL) {
			sl_pktring_request(
				version, (uint8_t *)map + (s->rx != NULL ? FRAME * FRAMES : 0), 60);
			good((int)sock_kick(s, MSG_DONTWAIT));
		}
		sl_psock_munmap(s, map, len);
	}
	show(frame(0x0800, 60), 0);
	sl_psock_close(s, NONE);
}

static void
every_allocation_fails_in_turn(void)
{
	unsigned int open_before = test_descriptors();
	int k = 0, done = 0;

	for (int version = TPACKET_V1; version <= TPACKET_V3; version++) {
		for (k = 1; k < 1000; k++) {
			struct sl_psock *s;

			failed = 0;
			fail_at = k;
			armed = true;
			life(version);
			armed = false;
			done = fail_at;
			drain(); /* what was in flight; the next control call frees the ring */
			s = sock_open(SOCK_RAW, 0);
			sl_psock_close(s, NONE);
			CHECK_EQ(test_mappings("sluice-ring"), 0);
			CHECK_EQ(test_descriptors(), open_before);
			CHECK_EQ(rte_mempool_in_use_count(pool), 0);
			if (done > 0) /* there were not that many */
				break;
		}
		CHECK_EQ(failed, 0);
		CHECK(k > 20);
		printf("     V%d: %d allocations\n", version + 1, k - 1);
	}
}

static void
a_net_without_memory(void)
{
	struct sl_psock_net_conf conf = {.workers = 2, .pool = pool};
	struct sl_psock_port_conf port = {.port_id = PORT, .tx_queues = 1};
	struct sl_psock_net *other;
	int k, ret;

	for (k = 1; k < 100; k++) {
		fail_at = k;
		armed = true;
		ret = sl_psock_net_create(&conf, &other);
		if (ret == 0) {
			ret = sl_psock_port_add(other, &port);
			armed = false;
			CHECK_EQ(sl_psock_net_destroy(other), 0);
		}
		armed = false;
		if (fail_at > 0)
			break;
		CHECK_EQ(ret, -ENOMEM);
	}
	CHECK_EQ(ret, 0);
	CHECK(k > 3);
}

int
main(void)
{
	help_init("failures");
	net_open(NULL, SL_PSOCK_LEND_ALWAYS);
	SL_TEST_RUN(every_allocation_fails_in_turn);
	SL_TEST_RUN(a_net_without_memory);
	net_close();
	return help_end();
}
