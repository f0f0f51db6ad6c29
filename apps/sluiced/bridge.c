/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "bridge.h"
#include "sl_assert.h"
#include "sl_shared.h"

/* The groups 01:80:c2:00:00:00 to 0f, which stay on their link (IEEE 802.1D, 7.12.6). */
#define RESERVED_GROUP UINT64_C(0x0180c2000000)
#define RESERVED_MASK UINT64_C(0xfffffffffff0)
#define GROUP_BIT (UINT64_C(1) << 40)
#define PREFETCH_AHEAD 4u

const struct bridge_outcome_info bridge_outcome_info[BRIDGE_OUTCOMES] = {
	[BRIDGE_FORWARDED] = {"bridge_forwarded", false},
	[BRIDGE_FLOODED] = {"bridge_flooded", false},
	[BRIDGE_SHORT] = {"bridge_short", true},
	[BRIDGE_SOURCE] = {"bridge_source", true},
	[BRIDGE_RESERVED] = {"bridge_reserved", true},
	[BRIDGE_SAME_PORT] = {"bridge_same_port", true},
	[BRIDGE_SENT] = {"bridge_sent", false},
	[BRIDGE_TX_FULL] = {"bridge_tx_full", true},
	[BRIDGE_MTU] = {"bridge_mtu", true},
	[BRIDGE_OFFLOAD] = {"bridge_offload", true},
	[BRIDGE_NO_MBUF] = {"bridge_no_mbuf", true},
};

const char *const bridge_learn_name[BRIDGE_LEARN_RESULTS] = {
	[BRIDGE_KNOWN] = "known",
	[BRIDGE_LEARNED] = "learned",
	[BRIDGE_MOVED] = "moved",
	[BRIDGE_LIMIT] = "learn_limit",
	[BRIDGE_FULL] = "learn_full",
	[BRIDGE_BUSY] = "learn_busy",
};

struct member {
	uint16_t port_id;
	uint16_t mtu;
	uint64_t offloads; /* RTE_ETH_TX_OFFLOAD_... */
};

/* What waits for a member's transmit queue: within one call of bridge_input only. */
struct out {
	uint16_t queue;
	uint16_t n;
	bool asks; /* one of them asks the port for something */
	struct rte_mbuf *pkts[BRIDGE_BURST];
};

/* The worker's own; others read the counters. */
struct bridge_worker {
	struct bridge_counts counts;
	struct out out[BRIDGE_MEMBERS_MAX];
} SL_CACHE_ALIGNED;

struct bridge {
	char name[BRIDGE_NAME_LEN];
	uint16_t members;
	uint16_t workers;
	struct rte_mempool *pool;
	struct bridge_table *table;
	struct member member[BRIDGE_MEMBERS_MAX];
	struct bridge_worker worker[];
};

/* One burst on its way through. */
struct pass {
	struct bridge *b;
	struct bridge_worker *w;
	uint16_t from;
	struct bridge_counts counts; /* of this burst */
};

/* ---- life ---- */

static int
member_init(struct member *m, uint16_t port_id)
{
	struct rte_eth_conf conf;
	int ret;

	if (!rte_eth_dev_is_valid_port(port_id))
		return -ENODEV;
	m->port_id = port_id;
	ret = rte_eth_dev_get_mtu(port_id, &m->mtu);
	if (ret == 0)
		ret = rte_eth_dev_conf_get(port_id, &conf);
	if (ret == 0)
		m->offloads = conf.txmode.offloads;
	return ret;
}

int
bridge_create(const struct bridge_conf *conf, struct bridge **out)
{
	struct bridge *b;
	int ret = 0;

	if (conf->members < 2 || conf->members > BRIDGE_MEMBERS_MAX || conf->workers == 0)
		return -EINVAL;
	b = rte_zmalloc_socket("bridge", sizeof(*b) + conf->workers * sizeof(b->worker[0]),
		SL_CACHE_LINE, conf->table.socket);
	if (b == NULL)
		return -ENOMEM;
	snprintf(b->name, sizeof(b->name), "%s", conf->name);
	b->members = conf->members;
	b->workers = conf->workers;
	b->pool = conf->pool;
	for (uint16_t i = 0; i < conf->members && ret == 0; i++)
		ret = member_init(&b->member[i], conf->port_id[i]);
	if (ret == 0)
		ret = bridge_table_create(&conf->table, &b->table);
	if (ret != 0) {
		rte_free(b);
		return ret;
	}
	*out = b;
	return 0;
}

void
bridge_destroy(struct bridge *b)
{
	if (b == NULL)
		return;
	bridge_table_destroy(b->table);
	rte_free(b);
}

void
bridge_set_tx_queue(struct bridge *b, uint16_t worker, uint16_t member, uint16_t queue)
{
	b->worker[worker].out[member].queue = queue;
}

struct bridge_table *
bridge_stations(struct bridge *b)
{
	return b->table;
}

uint32_t
bridge_now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint32_t)ts.tv_sec;
}

/* ---- a burst ---- */

/* Those that do not pass are dropped. */
static uint16_t
prepare_out(struct pass *p, const struct member *m, struct out *o)
{
	uint16_t ready = 0;

	while (ready < o->n) {
		ready += rte_eth_tx_prepare(
			m->port_id, o->queue, o->pkts + ready, (uint16_t)(o->n - ready));
		if (ready == o->n)
			break;
		rte_pktmbuf_free(o->pkts[ready]);
		p->counts.outcome[BRIDGE_OFFLOAD]++;
		o->n--;
		memmove(&o->pkts[ready], &o->pkts[ready + 1],
			(size_t)(o->n - ready) * sizeof(o->pkts[0]));
	}
	return ready;
}

static void
send_out(struct pass *p, uint16_t to)
{
	const struct member *m = &p->b->member[to];
	struct out *o = &p->w->out[to];
	uint16_t n = o->asks ? prepare_out(p, m, o) : o->n;
	uint16_t sent = rte_eth_tx_burst(m->port_id, o->queue, o->pkts, n);

	p->counts.outcome[BRIDGE_SENT] += sent;
	p->counts.outcome[BRIDGE_TX_FULL] += (uint64_t)(n - sent);
	if (sent < n)
		rte_pktmbuf_free_bulk(o->pkts + sent, (unsigned int)(n - sent));
	o->n = 0;
	o->asks = false;
}

/* Takes the frame. */
static void
copy_to(struct pass *p, struct rte_mbuf *m, uint16_t to)
{
	const struct member *member = &p->b->member[to];
	struct out *o = &p->w->out[to];
	int ret;

	p->counts.copies++;
	if (bridge_frame_payload(m) > member->mtu) {
		p->counts.outcome[BRIDGE_MTU]++;
		rte_pktmbuf_free(m);
		return;
	}
	ret = bridge_frame_finish(&m, member->offloads, p->b->pool);
	if (ret != 0) {
		p->counts.outcome[ret == -ENOMEM ? BRIDGE_NO_MBUF : BRIDGE_OFFLOAD]++;
		rte_pktmbuf_free(m);
		return;
	}
	o->asks |= (m->ol_flags & RTE_MBUF_F_TX_L4_MASK) != 0;
	o->pkts[o->n++] = m;
	if (o->n == BRIDGE_BURST)
		send_out(p, to);
}

static void
flood(struct pass *p, struct rte_mbuf *m)
{
	uint16_t last = p->b->members - 1u;
	int ret = 0;

	if (last == p->from)
		last--;
	/* Once for all, before the copies share their bytes. */
	if (last != 0 && p->b->members > 2 && bridge_frame_asks(m))
		ret = bridge_frame_finish(&m, RTE_ETH_TX_OFFLOAD_MULTI_SEGS, p->b->pool);
	for (uint16_t to = 0; to < last && ret == 0; to++) {
		struct rte_mbuf *copy;

		if (to == p->from)
			continue;
		copy = rte_pktmbuf_clone(m, p->b->pool);
		if (copy != NULL) {
			copy_to(p, copy, to);
			continue;
		}
		p->counts.copies++;
		p->counts.outcome[BRIDGE_NO_MBUF]++;
	}
	if (ret == 0) {
		copy_to(p, m, last);
		return;
	}
	p->counts.copies += p->b->members - 1u;
	p->counts.outcome[ret == -ENOMEM ? BRIDGE_NO_MBUF : BRIDGE_OFFLOAD] += p->b->members - 1u;
	rte_pktmbuf_free(m);
}

/* BRIDGE_FORWARDED if it may go on. The bytes may lie in memory that a peer can change, so they are
 * read once. */
static enum bridge_outcome
addresses(const struct rte_mbuf *m, uint64_t *src, uint64_t *dst)
{
	uint8_t head[RTE_ETHER_HDR_LEN];
	const uint8_t *bytes = rte_pktmbuf_read(m, 0, sizeof(head), head);

	if (bytes == NULL)
		return BRIDGE_SHORT;
	if (bytes != head)
		memcpy(head, bytes, sizeof(head));
	sl_snapshot_barrier();
	*dst = bridge_mac(head);
	*src = bridge_mac(head + RTE_ETHER_ADDR_LEN);
	if ((*src & GROUP_BIT) != 0 || *src == 0)
		return BRIDGE_SOURCE;
	return (*dst & RESERVED_MASK) == RESERVED_GROUP ? BRIDGE_RESERVED : BRIDGE_FORWARDED;
}

/* Drop what may not go on; the rest moves to the front. Returns how many they are. */
static uint16_t
sift(struct pass *p, struct rte_mbuf **pkts, uint16_t n, uint64_t *src, uint64_t *dst)
{
	uint16_t kept = 0;

	for (uint16_t i = 0; i < n; i++) {
		enum bridge_outcome what;

		if (i + PREFETCH_AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i + PREFETCH_AHEAD], void *));
		what = addresses(pkts[i], &src[kept], &dst[kept]);
		if (what == BRIDGE_FORWARDED) {
			pkts[kept++] = pkts[i];
			continue;
		}
		p->counts.outcome[what]++;
		rte_pktmbuf_free(pkts[i]);
	}
	return kept;
}

static void
pass_on(struct pass *p, struct rte_mbuf *m, uint16_t to)
{
	if (to == BRIDGE_UNKNOWN) {
		p->counts.outcome[BRIDGE_FLOODED]++;
		flood(p, m);
	} else if (to == p->from) {
		p->counts.outcome[BRIDGE_SAME_PORT]++;
		rte_pktmbuf_free(m);
	} else {
		p->counts.outcome[BRIDGE_FORWARDED]++;
		copy_to(p, m, to);
	}
}

static void
count(struct bridge_counts *to, const struct bridge_counts *n)
{
	sl_counter_add(&to->received, n->received);
	sl_counter_add(&to->copies, n->copies);
	for (int i = 0; i < BRIDGE_OUTCOMES; i++)
		if (n->outcome[i] != 0)
			sl_counter_add(&to->outcome[i], n->outcome[i]);
	for (int i = 0; i < BRIDGE_LEARN_RESULTS; i++)
		if (n->learn[i] != 0)
			sl_counter_add(&to->learn[i], n->learn[i]);
}

void
bridge_input(struct bridge *b, uint16_t worker, uint16_t member, struct rte_mbuf **pkts, uint16_t n,
	uint32_t now_s)
{
	struct pass p = {.b = b, .w = &b->worker[worker], .from = member};
	uint64_t src[BRIDGE_BURST], dst[BRIDGE_BURST];
	uint16_t to[BRIDGE_BURST];

	SL_DEBUG_ASSERT(n <= BRIDGE_BURST && member < b->members && worker < b->workers);
	p.counts.received = n;
	n = sift(&p, pkts, n, src, dst);
	if (n > 0) {
		bridge_table_learn_burst(b->table, src, n, member, now_s, p.counts.learn);
		bridge_table_find_burst(b->table, dst, n, now_s, to);
	}
	for (uint16_t i = 0; i < n; i++)
		pass_on(&p, pkts[i], to[i]);
	for (uint16_t i = 0; i < b->members; i++)
		if (p.w->out[i].n > 0)
			send_out(&p, i);
	count(&p.w->counts, &p.counts);
}

uint16_t
bridge_poll(struct bridge *b, uint16_t worker, uint16_t member, uint16_t queue)
{
	struct rte_mbuf *pkts[BRIDGE_BURST];
	uint16_t n = rte_eth_rx_burst(b->member[member].port_id, queue, pkts, BRIDGE_BURST);

	if (n > 0)
		bridge_input(b, worker, member, pkts, n, bridge_now_s());
	return n;
}

void
bridge_counts(const struct bridge *b, struct bridge_counts *sum)
{
	for (uint16_t w = 0; w < b->workers; w++) {
		const struct bridge_counts *c = &b->worker[w].counts;

		sum->received += sl_load_relaxed(&c->received);
		sum->copies += sl_load_relaxed(&c->copies);
		for (int i = 0; i < BRIDGE_OUTCOMES; i++)
			sum->outcome[i] += sl_load_relaxed(&c->outcome[i]);
		for (int i = 0; i < BRIDGE_LEARN_RESULTS; i++)
			sum->learn[i] += sl_load_relaxed(&c->learn[i]);
	}
}

void
bridge_worker_counts(const struct bridge *b, uint16_t worker, struct bridge_counts *counts)
{
	*counts = b->worker[worker].counts;
}
