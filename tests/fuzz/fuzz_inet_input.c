/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Any frames into a stack: nothing is read or written out of bounds, each frame ends in one
 * outcome, no mbuf is lost, and what goes up or out is consistent.
 *
 * Input: two bytes of flags (below), then frames, each a length (16 bits, big endian; what is left
 * of the input ends the last one) and its bytes. All frames form one burst.
 */
#include "fuzz_frames.h"
#include "sl_inet_punt.h"

/* First byte: the port. Second: see fuzz_frames.h. */
enum {
	F_VLAN = 1,
	F_SVLAN = 2,
	F_PROMISCUOUS = 4,
	F_ANY_DST = 8,
	F_NO_SOCKET = 16,
	F_ASKING = 32, /* we are waiting for two neighbours */
	F_PUNT = 64,   /* the port has a taker, which copies */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t
touch(const struct rte_mbuf *m)
{
	uint64_t sum = 0;

	for (; m != NULL; m = m->next) {
		const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);

		for (uint16_t i = 0; i < m->data_len; i++)
			sum += p[i];
	}
	return sum;
}

static void
check_in(void)
{
	const char *why;

	for (unsigned int i = 0; i < t_ins; i++) {
		struct rte_mbuf *m = t_in[i].buf;

		if (m == NULL)
			continue; /* refused */
		REQUIRE(rte_mbuf_check(m, 1, &why) == 0);
		REQUIRE(m->pkt_len == t_in[i].len && t_in[i].truesize > 0);
		REQUIRE(touch(m) <= 255 * (uint64_t)m->pkt_len);
	}
}

static void
copy_frame(void *arg, uint16_t worker, const struct sl_inet_frame *f)
{
	static uint8_t copy[70000];
	uint32_t off = f->off, left = f->len;

	(void)arg, (void)worker;
	REQUIRE(f->l2_len >= 14 && f->head_len >= f->l2_len && f->head_len + f->len <= sizeof(copy));
	memcpy(copy, f->head, f->head_len);
	for (const struct rte_mbuf *m = f->m; left > 0; m = m->next) {
		uint32_t skip = RTE_MIN(off, (uint32_t)m->data_len);
		uint32_t part = RTE_MIN(left, m->data_len - skip);

		memcpy(copy + f->head_len, rte_pktmbuf_mtod_offset(m, char *, skip), part);
		off -= skip;
		left -= part;
	}
}

static bool
take_frame(void *arg, uint16_t worker, const struct sl_inet_frame *f)
{
	copy_frame(arg, worker, f);
	return f->len % 2 == 0;
}

static void
ask_neighbours(void)
{
	static const char *const peers[] = {"198.18.0.1", "2001:db8::1"};

	for (size_t i = 0; i < SL_COUNT_OF(peers); i++) {
		struct sl_inet_flow flow = {.dst = t_addr(peers[i]), .dport = 9, .sport = 9};
		struct rte_mbuf *m = rte_pktmbuf_alloc(t_pool);

		REQUIRE(m != NULL && sl_inet_source(t_inet, &flow.dst, &flow.src) == 0);
		REQUIRE(sl_inet_udp_output(t_inet, 0, &flow, m) == 0);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct sl_inet_punt_ops taker = {.take = take_frame, .show = copy_frame};
	struct rte_mbuf *pkts[SL_INET_BURST];
	struct sl_inet_port_conf conf = {0};
	uint8_t flags, memory;
	static bool ready;
	uint16_t n;

	if (!ready)
		t_init("fuzz_inet_input");
	ready = true;
	if (size < 2)
		return 0;
	flags = data[0];
	memory = data[1];
	conf.vlan = (flags & F_VLAN) != 0 ? 7 : 0;
	conf.svlan = conf.vlan != 0 && (flags & F_SVLAN) != 0 ? 9 : 0;
	conf.promiscuous = (flags & F_PROMISCUOUS) != 0;
	conf.any_dst = (flags & F_ANY_DST) != 0;
	t_open(&conf);
	if ((flags & F_ASKING) != 0)
		ask_neighbours();
	if ((flags & F_PUNT) != 0)
		REQUIRE(sl_inet_punt_set(t_inet, t_port, &taker, NULL) == 0);
	t_udp_answer = (flags & F_NO_SOCKET) != 0 ? SL_RX_UDP_NO_SOCKET : SL_RX_UDP_QUEUED;
	n = make_burst(data + 2, size - 2, memory, pkts);
	sl_inet_input_burst(t_inet, 0, t_port, pkts, n);
	t_flush();
	check_in();
	check_out();
	t_drop_out();
	t_pass(4 * T_S);
	check_out();
	/* The fragments' time is up. */
	t_pass(31 * T_S);
	REQUIRE(sl_inet_held(t_inet, SL_INET_NO_WORKER) == 0);
	REQUIRE(sl_inet_received(t_inet, SL_INET_NO_WORKER) == n);
	t_close();
	REQUIRE(test_bad == 0); /* the sums and the pool, which t_close checks */
	return 0;
}
