/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * The stock virtio-user driver in a process whose memory grows and shrinks under traffic: packets
 * of pools that were made a moment ago go to our port in another process, which sends them back.
 *
 *     this process: virtio-user                      the child: net_tapvu
 *     main lcore makes and frees pools               echoes what it receives
 *     a worker sends from the newest one, and
 *     looks at every packet that comes back
 *
 * usage: test_hotadd PLUGIN "virtio-user options"
 */
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "cpus.h"
#include "sl_base.h"
#include "sl_shared.h"
#include "sl_test.h"
#include "sl_test_eal.h"

#define BURST 32u
#define ROUNDS 12
#define PACKETS 2000u /* back from each new pool */
#define POOL 8191u    /* its memory is several pages of 2 MB */
#define HUGE_PAGES 40u

/* What the child says when it is asked to end. */
struct result {
	uint64_t packets;
	uint64_t bad; /* chains and rings */
	int32_t in_use;
};

static char path[64];
static int control[2]; /* 0: ours, 1: the child's */
static uint16_t port;

static void
port_setup(const char *name, const char *args, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = {0};

	REQUIRE(rte_eal_hotplug_add("vdev", name, args) == 0);
	REQUIRE(rte_eth_dev_get_port_by_name(name, &port) == 0);
	REQUIRE(rte_eth_dev_configure(port, 1, 1, &conf) == 0);
	REQUIRE(rte_eth_rx_queue_setup(port, 0, 256, 0, NULL, pool) == 0);
	REQUIRE(rte_eth_tx_queue_setup(port, 0, 256, 0, NULL) == 0);
	REQUIRE(rte_eth_dev_start(port) == 0);
}

/* ---- the child ---- */

static uint64_t
xstats_bad(void)
{
	struct rte_eth_xstat_name names[128];
	struct rte_eth_xstat x[128];
	int n = rte_eth_xstats_get(port, x, 128);
	uint64_t bad = 0;

	REQUIRE(n > 0 && n <= 128 && rte_eth_xstats_get_names(port, names, 128) == n);
	for (int i = 0; i < n; i++)
		if (x[i].value != 0 && (strstr(names[i].name, "bad") != NULL ||
					       strstr(names[i].name, "loop") != NULL ||
					       strstr(names[i].name, "broken") != NULL)) {
			fprintf(stderr, "%s %llu\n", names[i].name, (unsigned long long)x[i].value);
			bad += x[i].value;
		}
	return bad;
}

static void
echo_some(uint64_t *packets)
{
	struct rte_mbuf *m[BURST];

	for (int i = 0; i < 100; i++) {
		uint16_t n = rte_eth_rx_burst(port, 0, m, BURST), sent = 0;
		struct test_wait w = {0};

		while (sent < n && test_patience(&w))
			sent += rte_eth_tx_burst(port, 0, m + sent, (uint16_t)(n - sent));
		rte_pktmbuf_free_bulk(m + sent, n - sent);
		*packets += n;
	}
}

static int
backend(const char *plugin)
{
	char args[512], word = 'r';
	struct rte_mempool *pool;
	struct result result = {0};

	snprintf(args, sizeof(args), "--lcores 0@%u -d %s --log-level=*:1", cpu_nth(0), plugin);
	REQUIRE(test_eal_start("tapvu_hotadd_backend", args) >= 0);
	pool = rte_pktmbuf_pool_create("packets", 4095, 64, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	REQUIRE(pool != NULL);
	snprintf(args, sizeof(args), "path=%s", path);
	port_setup("net_tapvu0", args, pool);
	REQUIRE(write(control[1], &word, 1) == 1);
	do {
		echo_some(&result.packets);
	} while (recv(control[1], &word, 1, MSG_DONTWAIT) < 0);
	result.bad = xstats_bad();
	REQUIRE(rte_eth_dev_stop(port) == 0 && rte_eth_dev_close(port) == 0);
	result.in_use = (int32_t)rte_mempool_in_use_count(pool);
	REQUIRE(write(control[1], &result, sizeof(result)) == (ssize_t)sizeof(result));
	rte_eal_cleanup();
	return 0;
}

/* ---- the frontend ---- */

static pid_t child;
static struct rte_mempool *source; /* (a) that the worker takes packets from */
static uint64_t returned;	   /* (a) packets that came back from it */
static uint64_t spoilt;		   /* the worker's until it has ended */
static uint64_t sent, got;	   /* likewise */
static uint32_t ending;		   /* (a) */

static uint32_t
length_of(uint64_t seq)
{
	return 60 + (uint32_t)(seq * 37 % 1400);
}

static bool
holds(const struct rte_mbuf *m, uint64_t seq)
{
	const uint64_t *at = rte_pktmbuf_mtod(m, const uint64_t *);

	if (m->pkt_len != length_of(seq))
		return false;
	for (uint32_t i = 0; i < length_of(seq) / 8; i++)
		if (at[i] != seq * 0x9e3779b97f4a7c15u + i)
			return false;
	return true;
}

static bool
send_one(uint64_t seq)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(sl_load_acquire(&source)); /* T1 */
	uint64_t *at;

	if (m == NULL)
		return false;
	at = (uint64_t *)rte_pktmbuf_append(m, (uint16_t)length_of(seq));
	for (uint32_t i = 0; i < length_of(seq) / 8; i++)
		at[i] = seq * 0x9e3779b97f4a7c15u + i;
	if (rte_eth_tx_burst(port, 0, &m, 1) == 1)
		return true;
	rte_pktmbuf_free(m);
	return false;
}

/* Until it is told to end and all is back. */
static int
worker(void *arg)
{
	struct test_wait w = {0};

	(void)arg;
	while ((sl_load_relaxed(&ending) == 0 || got < sent) && test_patience(&w)) {
		struct rte_mbuf *m[BURST];
		uint16_t n;

		if (sl_load_relaxed(&ending) == 0 && sent - got < 2 * BURST)
			sent += send_one(sent);
		n = rte_eth_rx_burst(port, 0, m, BURST);
		for (uint16_t i = 0; i < n; i++)
			spoilt += !holds(m[i], got + i);
		rte_pktmbuf_free_bulk(m, n);
		got += n;
		sl_fetch_add_relaxed(&returned, (uint64_t)n);
		if (n > 0)
			w = (struct test_wait){0};
	}
	return 0;
}

static void
wait_for_packets(uint64_t n)
{
	uint64_t before = sl_load_relaxed(&returned);
	struct test_wait w = {0};

	while (sl_load_relaxed(&returned) - before < n && test_patience(&w))
		usleep(500);
	CHECK(sl_load_relaxed(&returned) - before >= n);
}

/* The driver frees what it has sent when it sends more. */
static void
wait_for_pool(const struct rte_mempool *pool)
{
	struct test_wait w = {0};

	while (rte_mempool_in_use_count(pool) > 0 && test_patience(&w))
		usleep(500);
	CHECK_EQ(rte_mempool_in_use_count(pool), 0);
}

static uint64_t
memory_bytes(void)
{
	return rte_eal_get_physmem_size();
}

static unsigned int
child_lines(const char *file, const char *with)
{
	char name[64], line[512];
	unsigned int n = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/%s", (int)child, file);
	f = fopen(name, "r");
	REQUIRE(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		n += strstr(line, with) != NULL;
	fclose(f);
	return n;
}

/* One mapping a region of the frontend's, and no more of them at the end than at the start. */
static void
memory_is_added_and_removed_under_traffic(void)
{
	struct rte_mempool *first = source;
	uint64_t before = memory_bytes();
	unsigned int mapped;

	wait_for_packets(PACKETS);
	mapped = child_lines("maps", "memfd:");
	for (int i = 0; i < ROUNDS; i++) {
		struct rte_mempool *pool =
			rte_pktmbuf_pool_create("hot", POOL, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);

		REQUIRE(pool != NULL);
		CHECK(memory_bytes() > before);
		sl_store_release(&source, pool); /* T1 */
		wait_for_packets(PACKETS);
		sl_store_release(&source, first); /* T1 */
		wait_for_packets(PACKETS);
		wait_for_pool(pool);
		rte_mempool_free(pool);
		CHECK_EQ(memory_bytes(), before);
		wait_for_packets(PACKETS);
	}
	CHECK_EQ(child_lines("maps", "memfd:"), mapped);
}

static void
nothing_is_lost_or_spoilt(void)
{
	struct result result;
	char word = 'x';

	sl_store_relaxed(&ending, 1u);
	rte_eal_mp_wait_lcore();
	CHECK_EQ(got, sent);
	CHECK_EQ(spoilt, 0);
	REQUIRE(rte_eth_dev_stop(port) == 0);
	REQUIRE(rte_eal_hotplug_remove("vdev", "net_virtio_user0") == 0);
	REQUIRE(write(control[0], &word, 1) == 1);
	REQUIRE(recv(control[0], &result, sizeof(result), MSG_WAITALL) == (ssize_t)sizeof(result));
	CHECK_EQ(result.packets, sent);
	CHECK_EQ(result.bad, 0);
	CHECK_EQ(result.in_use, 0);
	printf("     %llu packets there and back\n", (unsigned long long)got);
}

static void
the_child_ends_well(void)
{
	int status = -1;

	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static unsigned int
huge_pages_free(void)
{
	FILE *f = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "r");
	unsigned int n = 0;

	if (f != NULL) {
		if (fscanf(f, "%u", &n) != 1)
			n = 0;
		fclose(f);
	}
	return n;
}

static int
frontend(const char *options)
{
	char prefix[64], args[256], lcores[32], word;
	char *eal[] = {(char *)"frontend", (char *)"--in-memory", (char *)"--single-file-segments",
		(char *)"-m", (char *)"16", (char *)"--no-pci", (char *)"--no-telemetry",
		(char *)"--lcores", lcores, (char *)"--log-level=*:1", (char *)"--file-prefix",
		prefix};

	snprintf(lcores, sizeof(lcores), "(0,1)@(%u,%u)", cpu_nth(0), cpu_nth(1));
	snprintf(prefix, sizeof(prefix), "sl_tapvuhf_%d", (int)getpid());
	REQUIRE(recv(control[0], &word, 1, 0) == 1);
	REQUIRE(test_eal_init(SL_COUNT_OF(eal), eal) >= 0);
	source = rte_pktmbuf_pool_create("first", 2047, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	REQUIRE(source != NULL);
	snprintf(args, sizeof(args), "path=%s,%s", path, options);
	port_setup("net_virtio_user0", args, source);
	REQUIRE(rte_eal_mp_remote_launch(worker, NULL, SKIP_MAIN) == 0);
	SL_TEST_RUN(memory_is_added_and_removed_under_traffic);
	SL_TEST_RUN(nothing_is_lost_or_spoilt);
	SL_TEST_RUN(the_child_ends_well);
	rte_eal_cleanup();
	return test_end();
}

int
main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: test_hotadd PLUGIN VIRTIO_USER_OPTIONS\n");
		return 2;
	}
	if (huge_pages_free() < HUGE_PAGES) {
		printf("SKIP hot-added memory: needs %u free pages of 2 MB\n0 passed, 0 failed, 1 "
		       "skipped\n",
			HUGE_PAGES);
		return 0;
	}
	snprintf(path, sizeof(path), "/tmp/sl_tapvuh_%d.sock", (int)getpid());
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) == 0);
	child = fork();
	REQUIRE(child >= 0);
	return child == 0 ? backend(argv[1]) : frontend(argv[2]);
}
