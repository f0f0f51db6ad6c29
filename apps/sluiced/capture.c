/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_pcapng.h>
#include <rte_ring.h>

#include "capture.h"
#include "filter.h"
#include "sl_errno.h"

#define COPIES 1023u /* and as many as the ring holds */
#define RING 1024u
#define BURST 32
/* Ethernet, two tags and a frame check, beyond the MTU. */
#define FRAME_EXTRA 26u
#define BLOCK_TIME 12 /* offset of the time in an enhanced packet block */
#define NSEC_PER_SEC UINT64_C(1000000000)

struct capture;

/* A queue of a port, one direction. */
struct capture_point {
	struct capture *c;
	uint16_t port_id;
	uint16_t queue;
	bool transmit;
	const struct rte_eth_rxtx_callback *callback;
};

struct capture {
	struct session session;
	struct filter *filter;
	struct rte_mempool *pool;
	struct rte_ring *ring;
	rte_pcapng_t *file;
	uint32_t longest; /* frame that a copy has room for; more is cut off */
	uint64_t count;	  /* packets; UINT64_MAX for no end */
	uint16_t port;	  /* index, or CONF_PORTS_MAX for all */
	uint32_t npoints;
	struct capture_point point[CONF_PORTS_MAX * (2 * CONF_QUEUES_MAX + CONF_LCORES_MAX)];
	uint64_t written; /* (session's thread) */
	/* Written by workers. */
	SL_CACHE_ALIGNED uint64_t taken; /* (a) packets that matched */
	uint64_t lost;			 /* (a) of these, those without room */
};

/* (l) */
static struct capture_stats last;

/*
 * Give a copy its time. What the library makes of the TSC is off by centuries now and then: it
 * keeps the start of its count unprotected for all lcores, and takes packets from before that for
 * packets of a far future. In the format the time is two words, the high one first, behind a
 * block's type, length and interface.
 */
static void
set_time(struct rte_mbuf *block)
{
	struct timespec now;
	uint32_t words[2];
	uint64_t ns;

	clock_gettime(CLOCK_REALTIME, &now);
	ns = (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
	words[0] = (uint32_t)(ns >> 32);
	words[1] = (uint32_t)ns;
	memcpy(rte_pktmbuf_mtod_offset(block, void *, BLOCK_TIME), words, sizeof(words));
}

static void
copy(struct capture_point *p, const struct rte_mbuf *m)
{
	struct capture *c = p->c;
	struct rte_mbuf *mc;

	if (!filter_match(c->filter, m))
		return;
	if (sl_fetch_add_relaxed(&c->taken, UINT64_C(1)) >= c->count)
		return;
	mc = rte_pcapng_copy(p->port_id, p->queue, m, c->pool, c->longest, rte_rdtsc(),
		p->transmit ? RTE_PCAPNG_DIRECTION_OUT : RTE_PCAPNG_DIRECTION_IN);
	if (mc != NULL) {
		set_time(mc);
		if (rte_ring_enqueue(c->ring, mc) == 0)
			return;
	}
	rte_pktmbuf_free(mc);
	sl_fetch_add_relaxed(&c->lost, UINT64_C(1));
}

static void
copy_burst(struct capture_point *p, struct rte_mbuf **pkts, uint16_t n)
{
	struct capture *c = p->c;

	/* When there are enough, none is looked at any more. */
	if (sl_load_relaxed(&c->taken) >= c->count)
		return;
	for (uint16_t i = 0; i < n; i++)
		copy(p, pkts[i]);
}

static uint16_t
on_receive(uint16_t port_id, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t max,
	void *arg)
{
	(void)port_id;
	(void)queue;
	(void)max;
	copy_burst(arg, pkts, n);
	return n;
}

static uint16_t
on_transmit(uint16_t port_id, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, void *arg)
{
	(void)port_id;
	(void)queue;
	copy_burst(arg, pkts, n);
	return n;
}

/* Let a queue's bursts pass by us. */
static bool
point_add(struct capture *c, uint16_t port_id, uint16_t queue, bool transmit)
{
	struct capture_point *p = &c->point[c->npoints];

	*p = (struct capture_point){
		.c = c, .port_id = port_id, .queue = queue, .transmit = transmit};
	p->callback = transmit ? rte_eth_add_tx_callback(port_id, queue, on_transmit, p)
			       : rte_eth_add_rx_callback(port_id, queue, on_receive, p);
	c->npoints += p->callback != NULL;
	return p->callback != NULL;
}

static bool
points_add(struct capture *c)
{
	struct daemon *d = c->session.d;
	bool ok = true;

	for (uint16_t i = 0; i < d->conf.nports; i++) {
		const struct conf_port *p = &d->conf.port[i];

		if (c->port != CONF_PORTS_MAX && c->port != i)
			continue;
		for (uint16_t q = 0; q < p->queues && ok; q++)
			ok = point_add(c, d->port_id[i], q, false);
		for (uint16_t q = 0; q < conf_tx_queues(&d->conf, p) && ok; q++)
			ok = point_add(c, d->port_id[i], q, true);
	}
	return ok;
}

static void
unhook(struct session *s)
{
	struct capture *c = (struct capture *)s;

	for (uint32_t i = 0; i < c->npoints; i++) {
		struct capture_point *p = &c->point[i];

		if (p->transmit)
			rte_eth_remove_tx_callback(p->port_id, p->queue, p->callback);
		else
			rte_eth_remove_rx_callback(p->port_id, p->queue, p->callback);
	}
	/* ethdev leaves it to us when nobody runs them any more, and to free them. */
	sl_inet_synchronize(s->d->inet, SL_INET_NO_WORKER);
	for (uint32_t i = 0; i < c->npoints; i++)
		rte_free(RTE_PTR_ADD(c->point[i].callback, 0));
	c->npoints = 0;
	last.running = false;
	last.lost = sl_load_relaxed(&c->lost);
	last.captured = RTE_MIN(sl_load_relaxed(&c->taken), c->count) - last.lost;
}

/* Packets, until there are none. False: the client is gone. */
static bool
write_all(struct capture *c)
{
	struct rte_mbuf *m[BURST];
	unsigned int n;

	while ((n = rte_ring_dequeue_burst(c->ring, (void **)m, BURST, NULL)) > 0) {
		ssize_t want = 0, got;

		for (unsigned int i = 0; i < n; i++)
			want += m[i]->pkt_len;
		/* A part of what was to be written is no file any more. */
		got = rte_pcapng_write_packets(c->file, m, (uint16_t)n);
		rte_pktmbuf_free_bulk(m, n);
		if (got != want)
			return false;
		c->written += n;
	}
	return true;
}

static bool
pump(struct session *s, bool ending)
{
	struct capture *c = (struct capture *)s;

	if (!write_all(c))
		return false;
	if (ending)
		for (uint16_t i = 0; i < s->d->conf.nports; i++)
			if (c->port == CONF_PORTS_MAX || c->port == i)
				(void)rte_pcapng_write_stats(c->file, s->d->port_id[i], NULL, 0, 0,
					c->written, sl_load_relaxed(&c->lost));
	return c->written + sl_load_relaxed(&c->lost) < c->count;
}

static void
done(struct session *s)
{
	struct capture *c = (struct capture *)s;
	struct rte_mbuf *m;

	while (c->ring != NULL && rte_ring_dequeue(c->ring, (void **)&m) == 0)
		rte_pktmbuf_free(m);
	rte_pcapng_close(c->file); /* NULL is allowed */
	rte_ring_free(c->ring);
	rte_mempool_free(c->pool);
	filter_free(c->filter);
	free(c);
}

static const struct session_kind kind = {"capture", pump, unhook, done};

static uint16_t
find_port(const struct conf *conf, const char *name)
{
	uint16_t i = 0;

	while (i < conf->nports && strcmp(conf->port[i].name, name) != 0)
		i++;
	return i;
}

static uint32_t
longest_frame(const struct daemon *d)
{
	uint32_t longest = 0;

	for (uint16_t i = 0; i < d->conf.nports; i++) {
		uint16_t mtu = 0;

		if (rte_eth_dev_get_mtu(d->port_id[i], &mtu) == 0)
			longest = RTE_MAX(longest, mtu + FRAME_EXTRA);
	}
	return longest;
}

/* Memory for copies and their way to the client. */
static int
room_create(struct capture *c)
{
	c->longest = longest_frame(c->session.d);
	c->pool = rte_pktmbuf_pool_create("sluiced_capture", COPIES, 0, 0,
		(uint16_t)RTE_MIN(rte_pcapng_mbuf_size(c->longest), (uint32_t)UINT16_MAX),
		SOCKET_ID_ANY);
	c->ring = rte_ring_create("sluiced_capture", RING, SOCKET_ID_ANY, RING_F_SC_DEQ);
	return c->pool != NULL && c->ring != NULL ? 0 : -ENOMEM;
}

static int
create(struct daemon *d, const struct capture_request *r, struct capture **out, char *why,
	size_t size)
{
	struct capture *c;
	uint16_t port = CONF_PORTS_MAX;
	int ret;

	if (r->port[0] != '\0') {
		port = find_port(&d->conf, r->port);
		if (port == d->conf.nports) {
			snprintf(why, size, "there is no port %s", r->port);
			return -ENOENT;
		}
	}
	c = aligned_alloc(SL_CACHE_LINE, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	memset(c, 0, sizeof(*c));
	c->session = (struct session){.kind = &kind, .d = d, .fd = -1};
	c->count = r->count != 0 ? r->count : UINT64_MAX;
	c->port = port;
	ret = filter_create(r->filter, &c->filter, why, size);
	if (ret == 0)
		ret = room_create(c);
	if (ret == -ENOMEM)
		snprintf(why, size, "no memory for copies; give [sluiced] more \"memory\"");
	if (ret == 0)
		*out = c;
	else
		done(&c->session);
	return ret;
}

/* Connect, write the file's head, and hear of packets. */
static int
begin(struct capture *c, const char *name)
{
	int ret = session_connect(&c->session, name), fd;

	if (ret != 0)
		return ret;
	fd = dup(c->session.fd); /* which the file closes */
	c->file = rte_pcapng_fdopen(fd, NULL, NULL, "sluiced", NULL);
	if (c->file == NULL && fd >= 0)
		close(fd);
	if (c->file != NULL && points_add(c) && session_start(&c->session) == 0)
		return 0;
	unhook(&c->session);
	return -ENOMEM;
}

int
capture_start(struct daemon *d, const struct capture_request *r, char *why, size_t size)
{
	struct capture *c;
	int ret;

	if (session_busy(&kind)) {
		snprintf(why, size, "there is a capture already; end that one first");
		return -EBUSY;
	}
	why[0] = '\0';
	ret = create(d, r, &c, why, size);
	if (ret == 0) {
		ret = begin(c, r->name);
		if (ret != 0)
			done(&c->session);
	}
	if (ret == 0)
		last = (struct capture_stats){.running = true};
	else if (why[0] == '\0')
		snprintf(why, size, "cannot be started: %s", sl_strerror(ret));
	return ret;
}

void
capture_stats(struct capture_stats *stats)
{
	*stats = last;
}
