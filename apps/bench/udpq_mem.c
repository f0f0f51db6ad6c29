/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "sl_errno.h"

#include "udpq_loop.h"
#include "udpq_mem.h"
#include "udpq_pcap.h"
#include "udpq_stack.h"

#define BURST LOOP_BURST
#define DEVICE "net_pcap_sluice_bench"
#define DESCRIPTORS 512
#define POOL_SIZE 4095
#define POOL_CACHE 256
#define PATH_MAX_LEN 256

enum row { ROW_BARE, ROW_LOOP, ROW_STACK, ROW_COUNT };

static const char *const row_name[ROW_COUNT] = {"bare", "loop", "stack"};
static const char *const row_note[ROW_COUNT] = {
	"rte_eth_rx_burst and free",
	"hand-written: parse, verify both checksums, copy the payload out, free",
	"sl_inet_poll and sl_udp_recvmmsg, payload copied out",
};

struct mem {
	const struct bench_opts *opts;
	double tsc_hz;
	struct rte_mempool *pool;
	uint16_t port;
	struct loop_buffer buffer[BURST];
	uint8_t *user;
	struct stack *stack;
	/* per row */
	struct bench_series pps[ROW_COUNT];
	uint64_t packets[ROW_COUNT];
	uint64_t cycles[ROW_COUNT];
};

static uint16_t
turn_bare(struct mem *mem)
{
	struct rte_mbuf *pkts[BURST];
	uint16_t n = rte_eth_rx_burst(mem->port, 0, pkts, BURST);

	loop_free(pkts, n);
	return n;
}

static uint16_t
turn_loop(struct mem *mem)
{
	struct rte_mbuf *pkts[BURST];
	uint16_t n = rte_eth_rx_burst(mem->port, 0, pkts, BURST);

	return loop_take(pkts, n, RTE_BE16(PCAP_DST_PORT), mem->buffer);
}

/* Each row has its own loop, so that no call through a pointer is measured. */
static uint64_t
row_run(struct mem *mem, enum row row, uint64_t end)
{
	uint64_t n = 0;

	if (row == ROW_BARE) {
		while (rte_rdtsc() < end)
			n += turn_bare(mem);
	} else if (row == ROW_LOOP) {
		while (rte_rdtsc() < end)
			n += turn_loop(mem);
	} else {
		/* An error shows as a packet that was not taken. */
		while (rte_rdtsc() < end)
			n += (uint64_t)RTE_MAX(stack_turn(mem->stack), 0);
	}
	return n;
}

static uint64_t
port_received(const struct mem *mem)
{
	struct rte_eth_stats stats;

	return rte_eth_stats_get(mem->port, &stats) == 0 ? stats.ipackets : 0;
}

/* Time that this thread has run, as TSC cycles. One thread does all the work here, so what others
 * take away from its core meanwhile need not disturb. */
static uint64_t
cycles_run(const struct mem *mem)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)(((double)ts.tv_sec + (double)ts.tv_nsec * 1e-9) * mem->tsc_hz);
}

/* Every packet that the port delivered must have been taken: all of them are good. */
static int
slice(struct mem *mem, enum row row, double seconds)
{
	uint64_t before = port_received(mem), cycles, n, received;

	/* On a busy machine we may not have run at all: such a slice says nothing. */
	do {
		cycles = cycles_run(mem);
		n = row_run(mem, row, rte_rdtsc() + (uint64_t)(seconds * mem->tsc_hz));
		cycles = cycles_run(mem) - cycles;
		received = port_received(mem) - before;
	} while (n == 0 && received == 0);
	mem->packets[row] += n;
	mem->cycles[row] += cycles;
	if (mem->pps[row].n < BENCH_SLICES_MAX)
		mem->pps[row].v[mem->pps[row].n++] = (double)n * mem->tsc_hz / (double)cycles;
	if (n == received)
		return 0;
	fprintf(stderr,
		"sluice-bench: check failed: %s/%s took %" PRIu64 " of %" PRIu64 " packets\n",
		MEM_CASE, row_name[row], n, received);
	return -EPROTO;
}

/* One burst, byte for byte: flows come in the order of the file. */
static bool
payload_right(const struct mem *mem, int n, uint32_t *flow)
{
	bool right = n > 0;

	for (int k = 0; k < n; k++, *flow = (*flow + 1) % PCAP_FLOWS) {
		const struct loop_buffer *b = &mem->buffer[k];

		for (uint32_t i = 0; i < PCAP_PAYLOAD; i++)
			right = right && b->len == PCAP_PAYLOAD &&
				b->data[i] == pcap_payload_byte(*flow, i);
	}
	return right;
}

static void
buffers_clear(struct mem *mem)
{
	memset(mem->user, 0, BURST * LOOP_STRIDE);
	for (int i = 0; i < BURST; i++)
		mem->buffer[i].len = 0;
}

/* Both that copy must deliver what was sent, before anything is measured. */
static int
payload_verify(struct mem *mem)
{
	uint32_t flow = 0;
	bool right;
	int n;

	buffers_clear(mem);
	right = payload_right(mem, turn_loop(mem), &flow);
	buffers_clear(mem);
	mem->packets[ROW_STACK] = BURST;
	n = stack_turn(mem->stack);
	for (int i = 0; i < n; i++)
		mem->buffer[i].len = stack_length(mem->stack, i);
	right = right && payload_right(mem, n, &flow);
	if (right)
		return 0;
	fprintf(stderr, "sluice-bench: check failed: %s: payload is not what was sent\n", MEM_CASE);
	return -EPROTO;
}

static void
rows_emit(const struct mem *mem)
{
	for (int i = 0; i < ROW_COUNT && mem->pps[i].n > 0; i++) {
		double packets = mem->packets[i] > 0 ? (double)mem->packets[i] : 1;
		struct bench_spread pps = bench_spread(&mem->pps[i]);

		bench_emit(mem->opts,
			json_pack("{s:s, s:s, s:I, s:s, s:s, s:f, s:I, s:I, s:i, s:I, s:s, s:s}",
				"bench", "udpq", "case", MEM_CASE, "value", (json_int_t)pps.median,
				"unit", "pps", "side", row_name[i], "cycles_per_packet",
				(double)mem->cycles[i] / packets, "min", (json_int_t)pps.min, "max",
				(json_int_t)pps.max, "slices", (int)mem->pps[i].n, "packets",
				(json_int_t)mem->packets[i], "memory", bench_eal_memory(), "note",
				row_note[i]));
	}
}

static void
ratio_emit(const struct mem *mem, enum row a, enum row b)
{
	struct bench_spread ratio = bench_ratio(&mem->pps[a], &mem->pps[b]);
	char text[32];

	snprintf(text, sizeof(text), "%s/%s", row_name[a], row_name[b]);
	bench_emit(mem->opts,
		json_pack("{s:s, s:s, s:f, s:s, s:s, s:f, s:f, s:i}", "bench", "udpq", "case",
			MEM_CASE, "value", ratio.median, "unit", "x", "ratio", text, "min",
			ratio.min, "max", ratio.max, "slices", (int)mem->pps[a].n));
}

static int
rows_measure(struct mem *mem, double seconds)
{
	struct bench_plan plan = bench_plan(seconds, ROW_COUNT);
	int ret = payload_verify(mem);

	for (unsigned int n = 0; n < plan.slices && ret == 0 && !bench_stopped(); n++) {
		for (int row = 0; row < ROW_COUNT && ret == 0; row++)
			ret = slice(mem, (enum row)row, plan.seconds);
	}
	if (ret == 0 && !stack_check(mem->stack, mem->packets[ROW_STACK])) {
		fprintf(stderr, "sluice-bench: check failed: %s: the stack's counters\n", MEM_CASE);
		ret = -EPROTO;
	}
	if (ret == 0) {
		rows_emit(mem);
		ratio_emit(mem, ROW_LOOP, ROW_BARE);
		ratio_emit(mem, ROW_STACK, ROW_LOOP);
	}
	return ret;
}

static int
port_start(struct mem *mem)
{
	int ret = rte_eth_dev_get_port_by_name(DEVICE, &mem->port);

	return ret == 0 ? loop_port_start(mem->port, DESCRIPTORS, mem->pool) : ret;
}

/* 1 when DPDK has no net_pcap here. */
static int
port_make(struct mem *mem)
{
	char path[PATH_MAX_LEN], args[PATH_MAX_LEN + 64];
	int ret = pcap_file_write(path, sizeof(path));

	if (ret != 0)
		return ret;
	snprintf(args, sizeof(args), "rx_pcap=%s,infinite_rx=1", path);
	if (rte_eal_hotplug_add("vdev", DEVICE, args) != 0)
		ret = 1;
	else if ((ret = port_start(mem)) != 0)
		rte_eal_hotplug_remove("vdev", DEVICE);
	/* Queue setup has read it into memory. */
	unlink(path);
	return ret;
}

static void
port_remove(struct mem *mem)
{
	rte_eth_dev_stop(mem->port);
	rte_eth_dev_close(mem->port);
	rte_eal_hotplug_remove("vdev", DEVICE);
}

static int
buffers_make(struct mem *mem)
{
	mem->user = loop_buffers_make(mem->buffer);
	if (mem->user == NULL)
		return -ENOMEM;
	mem->pool = rte_pktmbuf_pool_create(
		"memory", POOL_SIZE, POOL_CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	return mem->pool != NULL ? 0 : -ENOMEM;
}

int
mem_run(const struct bench_opts *opts, double tsc_hz, double seconds)
{
	struct mem mem = {.opts = opts, .tsc_hz = tsc_hz};
	int ret = buffers_make(&mem);

	if (ret == 0)
		ret = port_make(&mem);
	if (ret == 0) {
		ret = stack_create(mem.port, mem.pool, mem.buffer, &mem.stack);
		if (ret == 0)
			ret = rows_measure(&mem, seconds);
		else
			fprintf(stderr, "sluice-bench: cannot set up the stack: %s\n",
				sl_strerror(ret));
		stack_destroy(mem.stack);
		port_remove(&mem);
	} else if (ret == 1) {
		bench_emit(opts, json_pack("{s:s, s:s, s:n, s:s, s:s}", "bench", "udpq", "case",
					 MEM_CASE, "value", "unit", "skipped", "note",
					 "DPDK has no net_pcap here: install its driver package"));
		ret = 0;
	} else {
		fprintf(stderr, "sluice-bench: cannot set up %s: %s\n", MEM_CASE, sl_strerror(ret));
	}
	rte_mempool_free(mem.pool);
	free(mem.user);
	return ret;
}
