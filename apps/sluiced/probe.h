/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_PROBE_H
#define SLUICED_PROBE_H

/**
 * @file
 * Health checks on the data path: requests leave by the worker that reads for the service, from the
 * service's own address, or, where back ends are behind another port, from that port's; answers
 * come in by the port that clients' answers come by.
 *
 * A *probe* is one back end's check: its health (health.h) and a connected UDP socket on a port of
 * its own, so that nobody but the back end can answer, and its port unreachable is an error of that
 * socket.
 */

#include "conf.h"
#include "health.h"

struct daemon;
struct service_sums;
struct sl_udp_sock;

struct probe {
	struct health health; /**< the worker's */
	struct sl_udp_sock *sock;
};

/**
 * Make one.
 *
 * @param service  its address
 * @param up    what it is taken for: as new (true, on trial), or down until it has risen
 * @param out   set on success only; freed by probe_close
 * @return      0; -ENOMEM; -ENFILE; as sl_udp_bind and sl_udp_connect
 * Caller: control thread, d->lock held.
 */
int probe_open(struct daemon *d, const struct sl_addr *service, const struct conf_backend *to,
	const struct conf_check *check, bool up, struct probe **out) SL_MUST_CHECK;

/** Close it; what its socket counted goes to d->gone. No worker has it any more. NULL is allowed.
 * Caller: as probe_open; waits for a grace period. */
void probe_close(struct daemon *d, struct probe *p);

/**
 * Take what came, and ask when it is time.
 *
 * @param hint   a client was told that the port is unreachable
 * @return       true when the back end is up or down now and was not before
 * Caller: the worker, once a millisecond or so; `worker` is its index.
 */
bool probe_turn(struct probe *p, uint16_t worker, const struct conf_check *check, bool hint,
	uint64_t now_ms);

/** Add its socket's sums. Caller: d->lock held. */
void probe_sums(const struct probe *p, struct service_sums *sums);

#endif
