/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * A socket's life: made (or taken from the closed ones) -> open -> closing -> closed. The order of
 * a close is: say so (UD4) and wake the reader; wait for its token (UD3), which is kept, so that no
 * later call gets in; hide the socket from workers; wait for a grace period; free what is queued.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "sl_udpq_mbuf.h"
#include "udp_priv.h"

#define SLOTS_DEFAULT 8192u
#define RCVBUF_DEFAULT (UINT64_C(32) << 20)

static int
conf_check(const struct sl_udp *udp, const struct sl_udp_sock_conf *conf)
{
	if (conf->family != AF_INET && conf->family != AF_INET6)
		return -EAFNOSUPPORT;
	if (conf->worker != SL_INET_NO_WORKER && conf->worker >= udp->workers)
		return -EINVAL;
	return conf->rcvtimeo_ns < 0 ? -EINVAL : 0;
}

/* A closed socket, the one longest so, or a new one. Locked. */
static struct sl_udp_sock *
sock_take(struct sl_udp *udp)
{
	struct sl_udp_sock *s = TAILQ_FIRST(&udp->closed);

	if (s != NULL) {
		TAILQ_REMOVE(&udp->closed, s, link);
		return s;
	}
	s = aligned_alloc(SL_CACHE_LINE, RTE_ALIGN_CEIL(sizeof(*s), (size_t)SL_CACHE_LINE));
	if (s != NULL) {
		memset(s, 0, sizeof(*s));
		s->reader = 1;
		s->closing = 1;
		udp->made++;
	}
	return s;
}

static int
queue_create(const struct sl_udp *udp, const struct sl_udp_sock_conf *conf, struct sl_udpq **queue)
{
	bool local = conf->worker != SL_INET_NO_WORKER && udp->workers == 1;
	struct sl_udpq_conf qc = {
		.mode = local ? SL_UDPQ_LOCAL : SL_UDPQ_SPLIT,
		.producers = udp->workers,
		.slots = conf->slots != 0 ? conf->slots : SLOTS_DEFAULT,
		.rcvbuf = conf->rcvbuf != 0 ? conf->rcvbuf : RCVBUF_DEFAULT,
		.free_burst = sl_udpq_free_mbufs,
	};

	return sl_udpq_create(&qc, queue);
}

static void
sock_init(struct sl_udp_sock *s, struct sl_udp *udp, const struct sl_udp_sock_conf *conf,
	struct sl_udpq *queue)
{
	s->udp = udp;
	s->queue = queue;
	s->conf = *conf;
	s->plain = !conf->guarded && !conf->recv_ttl && !conf->recv_pktinfo && !conf->recv_tos;
	s->sleeps = conf->worker == SL_INET_NO_WORKER && !conf->busy;
	s->pid = getpid();
	s->worker = conf->worker != SL_INET_NO_WORKER ? &udp->worker[conf->worker] : NULL;
	memset(&s->names, 0, sizeof(s->names));
	s->names.bound = udp_addr_any(s);
	s->names.local = s->names.bound;
	rte_seqcount_init(&s->names_seq);
	s->error = 0;
	s->fault = 0;
	s->datagrams = s->bytes = s->truncated = s->faults = s->purged = 0;
	sl_store_relaxed(&s->closing, 0u);
	sl_store_release(&s->reader, 0u); /* UD3 */
}

int
sl_udp_socket(struct sl_udp *udp, const struct sl_udp_sock_conf *conf, struct sl_udp_sock **out)
{
	struct sl_udpq *queue = NULL;
	struct sl_udp_sock *s = NULL;
	int ret = conf_check(udp, conf);

	if (ret == 0 && conf->guarded)
		ret = udp_guard_probe(getpid());
	if (ret == 0)
		ret = queue_create(udp, conf, &queue);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&udp->lock);
	if (udp->open == udp->sockets_max) {
		ret = -ENFILE;
	} else {
		s = sock_take(udp);
		ret = s != NULL ? 0 : -ENOMEM;
	}
	if (ret == 0)
		udp->open++;
	pthread_mutex_unlock(&udp->lock);
	if (ret != 0) {
		sl_udpq_destroy(queue);
		return ret;
	}
	sock_init(s, udp, conf, queue);
	*out = s;
	return 0;
}

/* Make whoever receives leave, and let nobody in again. */
static void
stop_reader(struct sl_udp_sock *s)
{
	while (sl_exchange_acq_rel(&s->reader, 1u) != 0) { /* UD3 */
		/* Again each time: the reader may have taken the last wake-up as another's. */
		if (s->sleeps)
			sl_udpq_wake(s->queue);
		sched_yield();
	}
}

void
udp_retired_free(struct sl_udp *udp, const struct udp_retired *until)
{
	struct udp_vec *vec;

	while ((vec = STAILQ_FIRST(&udp->retired_vecs)) != NULL && vec->retired < until->vecs) {
		STAILQ_REMOVE_HEAD(&udp->retired_vecs, link);
		free(vec);
	}
	for (; udp->freed_positions < until->positions; udp->freed_positions++) {
		uint32_t i = (uint32_t)(udp->freed_positions % udp->positions_max);

		rte_hash_free_key_with_position(udp->flows, udp->position[i]);
	}
}

/* Free what nobody will read. */
static uint64_t
purge(struct sl_udpq *queue)
{
	struct sl_dgram *d;
	uint64_t sum = 0;
	uint16_t n;

	while ((n = sl_udpq_peek_burst(queue, SL_UDPQ_BURST_MAX, &d)) != 0) {
		void *bufs[SL_UDPQ_BURST_MAX];

		for (uint16_t i = 0; i < n; i++)
			bufs[i] = d[i].buf;
		sl_udpq_release_burst(queue, n);
		sl_udpq_free_mbufs(bufs, n);
		sum += n;
	}
	return sum;
}

/* The grace period is waited for without the lock: a worker that wants it would never be quiescent.
 * What others retire meanwhile is not freed here, hence the marks. */
static void
unlink_sock(struct sl_udp_sock *s, uint16_t worker)
{
	struct sl_udp *udp = s->udp;
	struct udp_retired until;

	pthread_mutex_lock(&udp->lock);
	udp_flow_remove(s);
	udp_port_unlink(s);
	until = udp->retired;
	pthread_mutex_unlock(&udp->lock);
	sl_inet_synchronize(udp->inet, worker);
	pthread_mutex_lock(&udp->lock);
	udp_port_forget(s);
	udp_retired_free(udp, &until);
	pthread_mutex_unlock(&udp->lock);
}

void
sl_udp_close(struct sl_udp_sock *s, uint16_t worker)
{
	struct sl_udpq *queue;
	struct sl_udp *udp;
	bool bound;

	if (s == NULL || sl_exchange_acq_rel(&s->closing, 1u) != 0) /* UD4 */
		return;
	queue = s->queue;
	udp = s->udp;
	stop_reader(s);
	/* Whoever binds after this finds the socket closing. */
	pthread_mutex_lock(&udp->lock);
	bound = s->names.lport != 0;
	pthread_mutex_unlock(&udp->lock);
	if (bound)
		unlink_sock(s, worker);
	sl_counter_add(&s->purged, purge(queue));
	pthread_mutex_lock(&udp->lock);
	s->queue = NULL;
	TAILQ_INSERT_TAIL(&udp->closed, s, link);
	udp->open--;
	pthread_mutex_unlock(&udp->lock);
	sl_udpq_destroy(queue);
}

void
udp_socks_free(struct sl_udp *udp)
{
	struct sl_udp_sock *s;

	while ((s = TAILQ_FIRST(&udp->closed)) != NULL) {
		TAILQ_REMOVE(&udp->closed, s, link);
		free(s);
	}
}

int
sl_udp_take_error(struct sl_udp_sock *s)
{
	/* The word alone is passed on, nothing is reached through it. */
	return sl_load_relaxed(&s->error) != 0 ? sl_exchange_relaxed(&s->error, 0) : 0;
}

void
sl_udp_set_rcvbuf(struct sl_udp_sock *s, uint64_t bytes)
{
	pthread_mutex_lock(&s->udp->lock);
	if (s->queue != NULL) /* not closed */
		sl_udpq_set_rcvbuf(s->queue, bytes != 0 ? bytes : RCVBUF_DEFAULT);
	pthread_mutex_unlock(&s->udp->lock);
}

void
sl_udp_sock_stats(const struct sl_udp_sock *s, struct sl_udp_sock_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	pthread_mutex_lock(&s->udp->lock);
	if (s->queue != NULL) /* not closed */
		sl_udpq_stats(s->queue, UINT32_MAX, &stats->queue);
	pthread_mutex_unlock(&s->udp->lock);
	stats->datagrams = sl_load_relaxed(&s->datagrams);
	stats->bytes = sl_load_relaxed(&s->bytes);
	stats->truncated = sl_load_relaxed(&s->truncated);
	stats->faults = sl_load_relaxed(&s->faults);
	stats->purged = sl_load_relaxed(&s->purged);
}
