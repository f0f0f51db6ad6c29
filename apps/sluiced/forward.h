/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_FORWARD_H
#define SLUICED_FORWARD_H

/**
 * @file
 * A service of kind = forward: it decides which back end a client's datagram goes to (balancer.h),
 * rewrites it, and sends it on; and it brings back what back ends answer.
 *
 *     client C        the service V on workers            back end B
 *        |  C -> V        claim: to V            C -> B        |
 *        |--------------> decide, rewrite  ------------------->|
 *        |  V -> C        claim: from B          B -> C        |
 *        |<-------------- rewrite  <---------------------------|
 *
 * The client's address stays (source = keep), so back ends must have their way to clients by way of
 * us. An answer needs no memory: who sent it says which service it is of.
 *
 * A *worker* decides about what its own receive queues bring, with a balancer of its own, so a
 * flow's decision belongs to the lcore that RSS gives the client's datagrams to; answers may come
 * to any lcore. The network layer hands the datagrams over by its claims (sl_inet_claim.h):
 *
 *     control thread, d->lock held                    workers, in their turns
 *     forward_open, forward_prepare                   forward_turn: flows age
 *     forward_claims_make, forward_claims_publish     by claim: decide, rewrite, send
 *     forward_commit, claims without former ones
 *     grace period, forward_close
 *
 * A back end of a service is known by its *index* in it (0..), which with its generation stays its
 * own as long as its name, address and UDP port do; conf.backend has other indexes.
 */

#include "balancer.h"
#include "conf.h"
#include "daemon.h"

struct daemon;
struct forward;
struct sl_inet_claims;

/** A decision, and what it rests on. */
struct forward_explanation {
	struct balancer_explanation e; /**< with indexes of the service */
	uint16_t worker;	       /**< whose decision it is */
	const char *backend; /**< where the next datagram would go; NULL: nowhere. Good until the
			      * service changes, as the next two are */
	const char *was;     /**< where the flow is bound to; NULL: it is not known */
	const char *slot;    /**< whose slot it is; NULL: nobody's */
};

/** What the control side reads of a back end. */
struct forward_backend_stats {
	uint64_t flows;	  /**< bound now, over all workers */
	uint64_t picked;  /**< datagrams that were sent to it, since it has its index */
	uint64_t replies; /**< datagrams that came back from it */
	enum balancer_state state;
	uint32_t slots; /**< of the Maglev table */
};

/**
 * Make a service. Back ends are up; nobody is claimed for yet.
 *
 * @param conf   has the back ends that s names
 * @param out    set on success only; freed by forward_close
 * @return       0; -ENOMEM; else as balancer_view_create
 * Caller: control thread, d->lock held; EAL, the stack and its ports are there.
 */
int forward_open(struct daemon *d, const struct conf *conf, const struct conf_service *s,
	struct forward **out) SL_MUST_CHECK;

/**
 * Make ready to take over another configuration of the same service: its back ends, weights,
 * affinity and drain. A back end that has name, address and port of a former one is that one, with
 * its flows and its state; others start up. Size of table and bounds of flows stay as they were
 * made; what else differs needs a new service.
 *
 * Nothing changes yet, but that forward_claims_make claims for the former and for the next back
 * ends: once such claims are published, the next ones can be used, and no answer of theirs is lost.
 *
 * @return   0, and forward_commit or forward_abandon follows; -ENOMEM or as balancer_view_create
 * Caller: as forward_open.
 */
int forward_prepare(
	struct forward *f, const struct conf *conf, const struct conf_service *s) SL_MUST_CHECK;

/** What was prepared is in force. Former back ends are claimed for until other claims are
 * published. Caller: as forward_open; waits for a grace period. */
void forward_commit(struct forward *f);

/** What was prepared, if anything, is not wanted. */
void forward_abandon(struct forward *f);

/** Free a service, whose claims are gone since a grace period. NULL is allowed. */
void forward_close(struct daemon *d, struct forward *f);

/**
 * Make the claims of all services of a table.
 *
 * @param out   set on success only; for forward_claims_publish, or forward_claims_drop
 * @return      0; -ENOMEM; -ENOSPC more than SL_INET_CLAIMS_MAX
 * Caller: as forward_open.
 */
int forward_claims_make(struct daemon *d, struct forward *const *f, uint16_t n,
	struct sl_inet_claims **out) SL_MUST_CHECK;

/** Put them in force, wait for a grace period, and free the former ones. */
void forward_claims_publish(struct daemon *d, struct sl_inet_claims *claims);

/** Free claims that were not published. */
void forward_claims_drop(struct sl_inet_claims *claims);

/**
 * Health or an operator says what may be done with a back end.
 *
 * @return   0; -ENOENT no such back end in this service; -ENOMEM, and it stays as it was
 * Caller: control thread, d->lock held; waits for a grace period.
 */
int forward_set_state(
	struct forward *f, const char *backend, enum balancer_state state) SL_MUST_CHECK;

/** Flows that are bound to a back end (index of the service) now, over all workers. Any thread. */
uint64_t forward_flows(const struct forward *f, uint16_t backend);

/** Index of a back end in the service, or MAGLEV_NONE. Caller: d->lock held. */
uint16_t forward_find(const struct forward *f, const char *backend);

/** Read a back end. Caller: d->lock held. -ENOENT: nobody has that index. */
int forward_backend_stats(const struct forward *f, uint16_t backend,
	struct forward_backend_stats *stats) SL_MUST_CHECK;

/**
 * Say where the next datagram with that key would go. Its owner is the worker that knows the flow,
 * else the first one.
 *
 * Caller: control thread, d->lock held, workers parked (daemon_park).
 */
void forward_explain(
	struct forward *f, const struct flow_key *key, struct forward_explanation *out);

/**
 * Has a back end said, since the last call, that nobody listens at its port (ICMP port unreachable
 * from its own address)? Takes the mark away. Ordering: FW1. Caller: one thread (the service's
 * worker: backends_turn).
 */
bool forward_unreachable_take(struct forward *f, uint16_t backend);

/** Reasons of all decisions so far, BALANCER_REASONS values. Any thread. */
void forward_reasons(const struct forward *f, uint64_t *reasons);

/** Add its outcomes over all workers, SERVICE_OUTCOMES values. Any thread. */
void forward_outcomes(const struct forward *f, uint64_t *outcome);

/** Packets that it was handed, over all workers: they sum to its outcomes. Any thread. */
uint64_t forward_entered(const struct forward *f);

/** What a worker has counted so far. */
struct forward_counters {
	uint64_t entered;
	uint64_t outcome[SERVICE_OUTCOMES];
	uint64_t picked[CONF_FORWARD_BACKENDS_MAX];  /**< by index of the back end */
	uint64_t replies[CONF_FORWARD_BACKENDS_MAX]; /**< likewise */
	uint64_t reason[BALANCER_REASONS];
};

/* For one that looks at what a single packet does. Caller, of all four: the worker, in its turn. */
void forward_worker_counters(
	const struct forward *f, uint16_t worker, struct forward_counters *counters);
uint64_t forward_worker_entered(const struct forward *f, uint16_t worker);
/** What the next datagram with that key would get, and why; nothing changes. */
void forward_worker_explain(const struct forward *f, uint16_t worker, const struct flow_key *key,
	struct balancer_explanation *e);
/** Address of a back end. */
void forward_worker_backend(const struct forward *f, uint16_t backend, struct sl_addr *addr);

/** Once a turn: flows age. Caller: the worker. */
void forward_turn(struct forward *f, uint16_t worker, uint64_t now_ms);

/** Bytes of memory that a service takes: for conf_memory_needed_mb. */
size_t forward_memory(const struct conf_service *s, uint16_t workers);

#endif
