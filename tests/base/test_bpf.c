/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Classic BPF: what is refused, what a program finds at places inside and outside of a packet, in
 * one segment and in several. */
#include <errno.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "sl_bpf.h"
#include "sl_test.h"
#include "sl_test_eal.h"

#define LEN 64u
#define SEGS_MAX 3
#define HUGE_LEN 70000u

/* As <pcap/bpf.h> has it; both headers define the instructions' names. */
struct bpf_program {
	unsigned int len;
	struct sock_filter *insns;
};

/* A packet of its index bytes, from 1 on, parted where asked. */
struct parts {
	uint8_t data[SEGS_MAX][LEN];
	struct rte_mbuf m[SEGS_MAX];
};

static struct rte_mbuf *
part(struct parts *p, uint16_t first, uint16_t second)
{
	const uint16_t len[SEGS_MAX] = {first, second, (uint16_t)(LEN - first - second)};
	uint8_t next = 1;

	memset(p, 0, sizeof(*p));
	for (int i = 0; i < SEGS_MAX; i++) {
		for (uint16_t k = 0; k < len[i]; k++)
			p->data[i][k] = next++;
		p->m[i].buf_addr = p->data[i];
		p->m[i].data_len = len[i];
		p->m[i].pkt_len = LEN;
		p->m[i].nb_segs = 1;
		p->m[i].next = i + 1 < SEGS_MAX ? &p->m[i + 1] : NULL;
	}
	p->m[0].nb_segs = SEGS_MAX;
	if (first == LEN) {
		p->m[0].nb_segs = 1;
		p->m[0].next = NULL;
	}
	return &p->m[0];
}

static uint32_t
run(struct sock_filter *insns, unsigned int n, const struct rte_mbuf *m)
{
	const struct bpf_program program = {n, insns};
	struct sl_bpf *f;
	uint32_t got;

	REQUIRE(sl_bpf_create(&program, &f) == 0);
	got = sl_bpf_run(f, m);
	sl_bpf_free(f);
	return got;
}

/* What a load from X + k, of 1, 2 or 4 bytes, returns. */
static uint32_t
load(const struct rte_mbuf *m, uint16_t size, uint32_t x, uint32_t k)
{
	struct sock_filter absolute[] = {
		BPF_STMT(BPF_LD | size | BPF_ABS, x + k), BPF_STMT(BPF_RET | BPF_A, 0)};
	/* A is not what X is, or one could be taken for the other. */
	struct sock_filter indexed[] = {BPF_STMT(BPF_LD | BPF_IMM, 3),
		BPF_STMT(BPF_LDX | BPF_IMM, x), BPF_STMT(BPF_LD | size | BPF_IND, k),
		BPF_STMT(BPF_RET | BPF_A, 0)};
	uint32_t got = run(indexed, SL_COUNT_OF(indexed), m);

	if (x <= LEN && k <= LEN)
		CHECK_EQ(run(absolute, SL_COUNT_OF(absolute), m), got);
	return got;
}

static void
loads_find_what_is_there(void)
{
	static const uint16_t cuts[][2] = {{LEN, 0}, {20, 1}, {1, 2}, {33, 30}};
	static const uint16_t code[] = {BPF_B, BPF_H, BPF_W};
	struct parts p;

	for (size_t c = 0; c < SL_COUNT_OF(cuts); c++) {
		struct rte_mbuf *m = part(&p, cuts[c][0], cuts[c][1]);

		for (uint32_t at = 0; at <= LEN; at++) {
			for (uint32_t s = 0; s < SL_COUNT_OF(code); s++) {
				uint32_t want = 0;

				for (uint32_t i = 0; at + (1u << s) <= LEN && i < 1u << s; i++)
					want = want << 8 | (at + i + 1);
				CHECK_EQ(load(m, code[s], at, 0), want);
				CHECK_EQ(load(m, code[s], at / 2, at - at / 2), want);
			}
		}
	}
}

/* Places far behind the packet, and those that are below zero in arithmetic that wraps. */
static void
loads_from_elsewhere_end_it(void)
{
	static const uint32_t far[] = {LEN + 1, 65535, 65536, 1u << 31, UINT32_MAX - 8,
		UINT32_MAX - 3, UINT32_MAX - 2, UINT32_MAX - 1, UINT32_MAX};
	struct parts p;

	for (int parted = 0; parted < 2; parted++) {
		struct rte_mbuf *m = parted ? part(&p, 20, 20) : part(&p, LEN, 0);

		for (size_t i = 0; i < SL_COUNT_OF(far); i++) {
			CHECK_EQ(load(m, BPF_B, far[i], 0), 0);
			CHECK_EQ(load(m, BPF_H, far[i], 0), 0);
			CHECK_EQ(load(m, BPF_W, far[i], 0), 0);
		}
	}
}

static void
lengths_are_the_packets(void)
{
	struct sock_filter insns[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), BPF_STMT(BPF_RET | BPF_A, 0)};
	struct rte_mbuf m = {.nb_segs = 2}, rest = {.nb_segs = 1};
	uint8_t *data = calloc(2, HUGE_LEN / 2);
	struct parts p;

	REQUIRE(data != NULL);
	CHECK_EQ(run(insns, SL_COUNT_OF(insns), part(&p, LEN, 0)), LEN);
	CHECK_EQ(run(insns, SL_COUNT_OF(insns), part(&p, 10, 10)), LEN);
	/* Longer than what is copied. */
	m.buf_addr = data;
	m.pkt_len = HUGE_LEN;
	m.data_len = HUGE_LEN / 2;
	m.next = &rest;
	rest.buf_addr = data + HUGE_LEN / 2;
	rest.data_len = HUGE_LEN / 2;
	CHECK_EQ(run(insns, SL_COUNT_OF(insns), &m), HUGE_LEN);
	data[65535] = 7;
	data[65536] = 8;
	CHECK_EQ(load(&m, BPF_B, 65535, 0), 7);
	CHECK_EQ(load(&m, BPF_B, 65536, 0), 0);
	free(data);
}

static void
what_does_harm_is_refused(void)
{
	struct sock_filter no_end[] = {BPF_STMT(BPF_LD | BPF_IMM, 1)};
	struct sock_filter unknown[] = {
		BPF_STMT(BPF_LDX | BPF_B | BPF_ABS, 0), BPF_STMT(BPF_RET | BPF_K, 0)};
	struct sock_filter outside[] = {
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 5, 0), BPF_STMT(BPF_RET | BPF_K, 0)};
	struct sock_filter loop[] = {
		BPF_STMT(BPF_JMP | BPF_JA, UINT32_MAX), BPF_STMT(BPF_RET | BPF_K, 0)};
	struct sock_filter by_zero[] = {
		BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), BPF_STMT(BPF_RET | BPF_A, 0)};
	struct sock_filter memory[] = {
		BPF_STMT(BPF_ST, BPF_MEMWORDS), BPF_STMT(BPF_RET | BPF_A, 0)};
	struct sock_filter unwritten[] = {
		BPF_STMT(BPF_LD | BPF_MEM, 2), BPF_STMT(BPF_RET | BPF_A, 0)};
	struct sock_filter ancillary[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_VLAN_TAG)),
		BPF_STMT(BPF_RET | BPF_A, 0)};
	const struct bpf_program bad[] = {{0, no_end}, {1, no_end}, {2, unknown}, {2, outside},
		{2, loop}, {2, by_zero}, {2, memory}, {2, unwritten}, {2, ancillary}};
	struct sl_bpf *f = NULL;

	for (size_t i = 0; i < SL_COUNT_OF(bad); i++)
		CHECK_EQ(sl_bpf_create(&bad[i], &f), -EINVAL);
	CHECK(f == NULL);
	sl_bpf_free(NULL);
}

/* By a number that the packet brings. */
static void
division_by_zero_drops(void)
{
	struct sock_filter insns[] = {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
		BPF_STMT(BPF_MISC | BPF_TAX, 0), BPF_STMT(BPF_LD | BPF_IMM, 42),
		BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0), BPF_STMT(BPF_RET | BPF_A, 0)};
	struct parts p;
	struct rte_mbuf *m = part(&p, LEN, 0);

	CHECK_EQ(run(insns, SL_COUNT_OF(insns), m), 42);
	p.data[0][0] = 0;
	CHECK_EQ(run(insns, SL_COUNT_OF(insns), m), 0);
}

int
main(int argc, char **argv)
{
	(void)argc;
	REQUIRE(test_eal_start(argv[0], "-l 0 --log-level=lib.eal:critical") >= 0);
	SL_TEST_RUN(loads_find_what_is_there);
	SL_TEST_RUN(loads_from_elsewhere_end_it);
	SL_TEST_RUN(lengths_are_the_packets);
	SL_TEST_RUN(what_does_harm_is_refused);
	SL_TEST_RUN(division_by_zero_drops);
	return test_end();
}
