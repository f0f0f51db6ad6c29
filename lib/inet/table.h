/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef INET_TABLE_H
#define INET_TABLE_H

/*
 * The control side of routes and addresses: what was asked for, in order, under one lock that
 * control calls write under and listings from any thread read under. Workers never take it while
 * they are online; what they see is published (IN1).
 */
#include <pthread.h>

#include "inet_priv.h"
#include "sl_inet_table.h"

/* Former tables that some worker may still look at. */
#define TABLE_RETIRED_MAX 16u
/* How long a change waits for workers to end their turns, when it must, before it gives up. */
#define TABLE_WAITS 5000
#define TABLE_WAIT_US 100

struct inet_table_route {
	struct sl_inet_route_info info;
	struct inet_port *port;
	uint32_t users; /* of a connected one: addresses with this prefix */
};

struct inet_table {
	pthread_rwlock_t lock;
	/* (l) */
	uint32_t routes_max; /* that are not connected */
	uint32_t configured; /* of these there are so many */
	uint32_t n;
	struct inet_table_route *route; /* sorted: family, prefix, metric, kind */
	uint32_t retired_n;
	struct {
		const struct inet_fib *fib;
		uint64_t token;
	} retired[TABLE_RETIRED_MAX];
};

/** -EINVAL for conf's number of routes; -ENOMEM. */
int inet_table_create(const struct sl_inet_conf *conf, struct inet_table **out) SL_MUST_CHECK;
/** Frees the published tables, too: nobody looks at them any more. */
void inet_table_destroy(struct sl_inet *inet);

static inline void
inet_table_read(const struct sl_inet *inet)
{
	pthread_rwlock_rdlock(&inet->table->lock);
}

static inline void
inet_table_write(struct sl_inet *inet)
{
	pthread_rwlock_wrlock(&inet->table->lock);
}

static inline void
inet_table_unlock(const struct sl_inet *inet)
{
	pthread_rwlock_unlock(&inet->table->lock);
}

/* Under the lock, for writing. An address of the port's comes, or is about to go: 0; -ENOMEM;
 * -EBUSY, and nothing has changed. */
int inet_table_connect(struct sl_inet *inet, struct inet_port *port, const struct sl_addr *addr,
	uint8_t prefix) SL_MUST_CHECK;
int inet_table_disconnect(struct sl_inet *inet, struct inet_port *port, const struct sl_addr *addr,
	uint8_t prefix) SL_MUST_CHECK;

/** The port with that handle, or NULL. Any thread. */
struct inet_port *inet_port_find(const struct sl_inet *inet, uint16_t handle);
/** May a host on a link have that address? What input refuses as a source is refused here too. */
bool inet_addr_acceptable(const struct sl_addr *addr, uint8_t prefix);
/** As sl_inet_addr_add, under the lock. */
int inet_addr_add_locked(struct sl_inet *inet, struct inet_port *port, const struct sl_addr *addr,
	uint8_t prefix) SL_MUST_CHECK;

#endif
