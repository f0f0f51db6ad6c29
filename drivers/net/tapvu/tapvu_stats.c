/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Counters: sums over queues, rings and frontends; a reset takes a baseline and stops nobody. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tapvu_priv.h"

/* Everything that is counted, in one row; names and values are walked in the same order. */
struct sums {
	struct sl_tapq_stats rx;
	struct sl_tapq_write_stats tx;
	struct sl_tap_stats from, to; /* the bridge: from and to the frontend */
	struct sl_frag_stats frag;
	uint64_t ring[SL_VRING_OUTCOME_COUNT];
	uint64_t calls;
};

#define WORDS (sizeof(struct sums) / sizeof(uint64_t))

/* Adds structs that are nothing but 64-bit counters. */
static void
add_words(void *to, const void *from, size_t bytes)
{
	const uint64_t *f = from;
	uint64_t *t = to;

	for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
		t[i] += sl_load_relaxed(&f[i]);
}

static void
add_ring(struct sums *s, const struct tapvu_ring *r)
{
	add_words(&s->tx, &r->written, sizeof(s->tx));
	add_words(r->index % 2 == 1 ? &s->from : &s->to, &r->bridged, sizeof(r->bridged));
	add_words(s->ring, r->ended, sizeof(s->ring));
	add_words(s->ring, r->ring.outcomes, sizeof(s->ring));
	s->calls += sl_load_relaxed(&r->calls);
}

static void
add_queue(struct sums *s, const struct tapvu_rxq *q)
{
	struct sl_tapq_stats rx;
	struct sl_frag_stats frag;

	if (q == NULL)
		return;
	sl_tapq_stats(q->tapq, UINT32_MAX, &rx);
	sl_frag_stats(q->frag, UINT32_MAX, &frag);
	add_words(&s->rx, &rx, sizeof(rx));
	add_words(&s->frag, &frag, sizeof(frag));
}

void
tapvu_stats_keep(struct tapvu_port *port, const struct tapvu_rxq *q)
{
	struct sums s;

	memset(&s, 0, sizeof(s));
	add_queue(&s, q);
	add_words(port->gone, &s, sizeof(s));
}

static void
collect(struct tapvu_port *port, struct sums *s)
{
	memset(s, 0, sizeof(*s));
	for (uint32_t f = 0; f < TAPVU_FRONTENDS_MAX; f++)
		for (uint32_t i = 0; i < 2 * port->args.queues; i++)
			add_ring(s, &port->frontend[f].ring[i]);
	pthread_mutex_lock(&port->lock);
	for (uint32_t i = 0; i < TAPVU_QUEUES_MAX; i++)
		add_queue(s, port->rxq[i]);
	add_words(s, port->gone, sizeof(*s));
	pthread_mutex_unlock(&port->lock);
}

/* Since the last reset. */
static void
collect_since(struct tapvu_port *port, struct sums *s)
{
	uint64_t now[WORDS];

	collect(port, s);
	memcpy(now, s, sizeof(*s));
	for (size_t i = 0; i < WORDS; i++)
		now[i] -= port->base[i];
	memcpy(s, now, sizeof(*s));
}

int
tapvu_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats)
{
	struct sums s;

	collect_since(dev->data->dev_private, &s);
	stats->ipackets = s.rx.outcomes[SL_TAPQ_BUILT] + s.from.frames;
	stats->ibytes = s.rx.bytes + s.from.bytes;
	for (int o = SL_TAPQ_BUILT + 1; o < SL_TAPQ_OUTCOME_COUNT; o++)
		stats->ierrors += s.rx.outcomes[o];
	stats->ierrors += s.from.bad_chain + s.from.no_header + s.from.bad_frame + s.from.failed;
	stats->rx_nombuf = s.rx.no_frag + s.rx.no_mbuf;
	stats->opackets = s.tx.sent + s.to.frames;
	stats->obytes = s.tx.bytes + s.to.bytes;
	stats->oerrors = s.tx.too_big + s.tx.bad_offload + s.to.too_big;
	return 0;
}

int
tapvu_stats_reset(struct rte_eth_dev *dev)
{
	struct tapvu_port *port = dev->data->dev_private;
	struct sums s;

	collect(port, &s);
	memcpy(port->base, &s, sizeof(s));
	return 0;
}

static const struct {
	const char *name;
	size_t offset;
} fixed[] = {
	{"rx_small_packets", offsetof(struct sums, rx.small)},
	{"rx_stops_no_slice", offsetof(struct sums, rx.no_frag)},
	{"rx_stops_no_mbuf", offsetof(struct sums, rx.no_mbuf)},
	{"tx_dropped_too_big", offsetof(struct sums, tx.too_big)},
	{"tx_dropped_bad_offload", offsetof(struct sums, tx.bad_offload)},
	{"tx_bad_chains", offsetof(struct sums, tx.bad_chain)},
	{"tx_stops_full", offsetof(struct sums, tx.full)},
	{"bridge_to_kernel_frames", offsetof(struct sums, from.frames)},
	{"bridge_to_kernel_bad_chain", offsetof(struct sums, from.bad_chain)},
	{"bridge_to_kernel_no_header", offsetof(struct sums, from.no_header)},
	{"bridge_to_kernel_bad_frame", offsetof(struct sums, from.bad_frame)},
	{"bridge_to_kernel_down", offsetof(struct sums, from.down)},
	{"bridge_to_kernel_failed", offsetof(struct sums, from.failed)},
	{"bridge_to_kernel_stops_full", offsetof(struct sums, from.full)},
	{"bridge_to_peer_frames", offsetof(struct sums, to.frames)},
	{"bridge_to_peer_bad_chain", offsetof(struct sums, to.bad_chain)},
	{"bridge_to_peer_too_big", offsetof(struct sums, to.too_big)},
	{"bridge_to_peer_failed", offsetof(struct sums, to.failed)},
	{"bridge_to_peer_stops_full", offsetof(struct sums, to.full)},
	{"frag_bytes_carved", offsetof(struct sums, frag.carved)},
	{"frag_bytes_returned", offsetof(struct sums, frag.returned)},
	{"frag_bytes_wasted", offsetof(struct sums, frag.wasted)},
	{"frag_refills", offsetof(struct sums, frag.refills)},
	{"frag_stolen", offsetof(struct sums, frag.stolen)},
	{"frag_exhausted", offsetof(struct sums, frag.exhausted)},
	{"calls", offsetof(struct sums, calls)},
};

#define XSTATS                                                                                     \
	((unsigned int)SL_COUNT_OF(fixed) + SL_TAPQ_OUTCOME_COUNT + SL_TAPQ_VNET_ERROR_COUNT +     \
		SL_VRING_OUTCOME_COUNT)

/* The k-th counter: its name, and where it stands in the sums. */
static size_t
xstat_at(unsigned int k, char *name, size_t size)
{
	if (k < SL_COUNT_OF(fixed)) {
		snprintf(name, size, "%s", fixed[k].name);
		return fixed[k].offset;
	}
	k -= (unsigned int)SL_COUNT_OF(fixed);
	if (k < SL_TAPQ_OUTCOME_COUNT) {
		snprintf(name, size, "rx_chain_%s", sl_tapq_outcome_name((enum sl_tapq_outcome)k));
		return offsetof(struct sums, rx.outcomes) + k * sizeof(uint64_t);
	}
	k -= SL_TAPQ_OUTCOME_COUNT;
	if (k < SL_TAPQ_VNET_ERROR_COUNT) {
		snprintf(name, size, "rx_vnet_%s",
			sl_tapq_vnet_error_name((enum sl_tapq_vnet_error)k));
		return offsetof(struct sums, rx.vnet) + k * sizeof(uint64_t);
	}
	k -= SL_TAPQ_VNET_ERROR_COUNT;
	snprintf(name, size, "ring_%s", sl_vring_outcome_name((enum sl_vring_outcome)k));
	return offsetof(struct sums, ring) + k * sizeof(uint64_t);
}

static uint64_t
value_at(const struct sums *s, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const uint8_t *)s + offset, sizeof(value));
	return value;
}

static void
walk(const struct sums *s, void (*f)(const char *name, uint64_t value, void *arg), void *arg)
{
	for (unsigned int k = 0; k < XSTATS; k++) {
		char name[RTE_ETH_XSTATS_NAME_SIZE];
		size_t offset = xstat_at(k, name, sizeof(name));

		f(name, value_at(s, offset), arg);
	}
}

void
tapvu_port_counters(
	struct tapvu_port *port, void (*f)(const char *name, uint64_t value, void *arg), void *arg)
{
	struct sums s;

	collect_since(port, &s);
	walk(&s, f, arg);
}

void
tapvu_ring_counters(const struct tapvu_ring *r,
	void (*f)(const char *name, uint64_t value, void *arg), void *arg)
{
	struct sums s;

	memset(&s, 0, sizeof(s));
	add_ring(&s, r);
	walk(&s, f, arg);
}

int
tapvu_xstats_names(struct rte_eth_dev *dev, struct rte_eth_xstat_name *names, unsigned int n)
{
	(void)dev;
	if (names == NULL || n < XSTATS)
		return (int)XSTATS;
	for (unsigned int k = 0; k < XSTATS; k++)
		(void)xstat_at(k, names[k].name, sizeof(names[k].name));
	return (int)XSTATS;
}

int
tapvu_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *x, unsigned int n)
{
	struct sums s;

	if (x == NULL || n < XSTATS)
		return (int)XSTATS;
	collect_since(dev->data->dev_private, &s);
	for (unsigned int k = 0; k < XSTATS; k++) {
		char name[RTE_ETH_XSTATS_NAME_SIZE];

		x[k].id = k;
		x[k].value = value_at(&s, xstat_at(k, name, sizeof(name)));
	}
	return (int)XSTATS;
}
