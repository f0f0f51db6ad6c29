/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Setting up, mapping and taking away rings. A ring is swapped while no worker sees the socket and
 * nobody sends: the memory of a transmit ring may only go when nothing is in flight, and the count
 * that says so is true only while nobody takes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "psock_priv.h"

/* SOF_TIMESTAMPING_TX_SOFTWARE and _SOFTWARE of <linux/net_tstamp.h> */
#define STAMP_SOFTWARE (1 << 1 | 1 << 4)

void
psock_tx_conf(const struct sl_psock *s, struct sl_pktring_tx_conf *conf)
{
	*conf = (struct sl_pktring_tx_conf){.has_off = s->has_off,
		.dgram = s->type == SOCK_DGRAM,
		.timestamp = s->timestamp & STAMP_SOFTWARE,
		.vnet_size = s->vnet_size};
}

static int
read_request(const struct sl_psock *s, const void *value, socklen_t len, struct tpacket_req3 *ask)
{
	socklen_t need =
		s->version == TPACKET_V3 ? sizeof(struct tpacket_req3) : sizeof(struct tpacket_req);

	if (len < need || value == NULL)
		return -EINVAL;
	memset(ask, 0, sizeof(*ask));
	memcpy(ask, value, need);
	return 0;
}

/* Nothing may be sent while the sum is taken, and from then on until the ring is swapped. */
static bool
is_pending(struct sl_psock *s)
{
	return s->tx != NULL && sl_pktring_tx_pending(s->tx) != 0;
}

static int
check_request(struct sl_psock *s, const struct sl_pktring_req *req, struct sl_pktring_geo *geo)
{
	struct sl_pktring_state state = {.mapped = s->mapped > 0};

	state.exists = req->dir == SL_PKTRING_TX ? s->tx != NULL : s->rx != NULL;
	if (req->dir == SL_PKTRING_TX) {
		rte_spinlock_lock(&s->tx_lock);
		state.pending = is_pending(s);
		rte_spinlock_unlock(&s->tx_lock);
	}
	return sl_pktring_geometry(req, &state, geo);
}

static void
purge_queue(struct sl_psock *s)
{
	struct sl_dgram *d;
	uint16_t n;

	while ((n = sl_udpq_peek_burst(s->queue, SL_UDPQ_BURST_MAX, &d)) > 0) {
		void *bufs[SL_UDPQ_BURST_MAX];

		for (uint16_t i = 0; i < n; i++)
			bufs[i] = d[i].buf;
		sl_udpq_release_burst(s->queue, n);
		for (uint16_t i = 0; i < n; i++)
			rte_pktmbuf_free(bufs[i]);
	}
}

/* What the sender holds between calls. */
static void
free_spares(struct sl_psock *s)
{
	psock_cut_end(s, &s->cut);
	if (s->spares > 0)
		rte_mempool_put_bulk(s->net->conf.pool, (void **)s->spare, s->spares);
	s->spares = 0;
}

/* Put `next` in the transmit ring's place; -EBUSY when the old one got busy since the check. */
static int
swap_tx(struct sl_psock *s, struct sl_pktring_tx *next)
{
	struct sl_pktring_tx *old;
	int ret = 0;

	rte_spinlock_lock(&s->tx_lock);
	old = s->tx;
	if (is_pending(s)) {
		ret = -EBUSY;
	} else {
		sl_store_release(&s->tx, next); /* PS5 */
		s->shown = 0;
		free_spares(s);
	}
	rte_spinlock_unlock(&s->tx_lock);
	if (ret == 0)
		SL_ASSERT(sl_pktring_tx_destroy(old) == 0);
	return ret;
}

static int
set_tx(struct sl_psock *s, const struct sl_pktring_geo *geo)
{
	struct sl_pktring_tx *next = NULL;
	struct sl_pktring_tx_conf conf;
	int ret = 0;

	psock_tx_conf(s, &conf);
	/* What a close in flight needs is got now, when want of memory can still be told. */
	if (geo->bytes > 0 && s->dead == NULL) {
		s->dead = malloc(sizeof(*s->dead));
		ret = s->dead != NULL ? 0 : -ENOMEM;
	}
	if (ret == 0 && geo->bytes > 0)
		ret = sl_pktring_tx_create(geo, &conf, RTE_MAX_LCORE, &next);
	if (ret == 0)
		ret = swap_tx(s, next);
	if (ret != 0)
		SL_ASSERT(sl_pktring_tx_destroy(next) == 0);
	return ret;
}

static int
set_rx(struct sl_psock *s, const struct sl_pktring_geo *geo)
{
	struct sl_pktring_rx *next = NULL, *old = s->rx;
	int ret = 0;

	if (geo->bytes > 0)
		ret = sl_pktring_rx_create(geo, psock_now_ns(), &next);
	if (ret != 0)
		return ret;
	s->rx = next;
	sl_pktring_rx_destroy(old);
	return 0;
}

/* Hook the socket again, unless its port went away or down meanwhile (its event told it then). */
static void
hook_after(struct sl_psock *s)
{
	struct psock_port *port = psock_port(s->net, s->ifindex);

	if (s->ifindex == 0 || (port != NULL && sl_load_relaxed(&port->up))) {
		if (psock_hook(s) != 0)
			psock_set_error(s, ENOBUFS);
	}
}

/* Caller: in a control call. */
int
psock_ring_set(struct sl_psock *s, enum sl_pktring_dir dir, const void *value, socklen_t len)
{
	struct sl_pktring_req req = {.dir = dir, .version = s->version, .reserve = s->reserve};
	struct sl_pktring_geo geo;
	bool was_hooked = s->hooked;
	int ret = read_request(s, value, len, &req.ask);

	if (ret == 0)
		ret = check_request(s, &req, &geo);
	if (ret != 0)
		return ret;
	psock_unhook(s);
	ret = dir == SL_PKTRING_TX ? set_tx(s, &geo) : set_rx(s, &geo);
	if (ret == 0 && dir == SL_PKTRING_RX)
		purge_queue(s);
	if (was_hooked)
		hook_after(s);
	return ret;
}

/* Under net->lock, when nobody reaches the socket any more. */
void
psock_ring_close(struct sl_psock *s)
{
	free_spares(s);
	sl_pktring_rx_destroy(s->rx);
	psock_reap_locked(s->net);
	if (sl_pktring_tx_destroy(s->tx) == 0) {
		free(s->dead);
		return;
	}
	/* In flight. Reaped by later control calls. */
	s->dead->ring = s->tx;
	s->dead->next = s->net->dead;
	s->net->dead = s->dead;
}

static int
map_at(uint8_t *at, const struct sl_pktring_mem *mem)
{
	void *p = mmap(at, mem->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, mem->fd, 0);

	return p == MAP_FAILED ? -ENOMEM : 0;
}

int
sl_psock_mmap(struct sl_psock *s, size_t len, void **addr)
{
	struct sl_psock_net *net = s->net;
	const struct sl_pktring_mem none = {0}, *rx = &none, *tx = &none;
	uint8_t *at = MAP_FAILED;
	int ret = -EINVAL;

	psock_control(net, SL_PSOCK_NO_WORKER);
	if (s->rx != NULL)
		rx = sl_pktring_rx_mem(s->rx);
	if (s->tx != NULL)
		tx = sl_pktring_tx_mem(s->tx);
	if (len == rx->bytes + tx->bytes && len > 0) {
		/* One range for both, so that they end up one behind the other. */
		at = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ret = at == MAP_FAILED ? -ENOMEM : 0;
	}
	if (ret == 0 && rx->bytes > 0)
		ret = map_at(at, rx);
	if (ret == 0 && tx->bytes > 0)
		ret = map_at(at + rx->bytes, tx);
	if (ret == 0) {
		s->mapped++;
		*addr = at;
	} else if (at != MAP_FAILED) {
		munmap(at, len);
	}
	psock_control_end(net, SL_PSOCK_NO_WORKER);
	return ret;
}

void
sl_psock_munmap(struct sl_psock *s, void *addr, size_t len)
{
	psock_control(s->net, SL_PSOCK_NO_WORKER);
	munmap(addr, len);
	s->mapped--;
	psock_control_end(s->net, SL_PSOCK_NO_WORKER);
}
