/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Connected sockets are found by their whole 4-tuple in the flow table, an rte_hash that workers
 * read without a lock. A key that is deleted leaves its slot occupied until a grace period has
 * passed (the next close waits for one): a worker may be comparing with it.
 */
#include <errno.h>
#include <string.h>

#include "udp_priv.h"

static struct udp_key
key_of(const struct udp_names *names)
{
	return (struct udp_key){
		.local = names->local,
		.remote = names->remote,
		.lport = names->lport,
		.rport = names->rport,
	};
}

struct sl_udp_sock *
udp_flow_find(const struct sl_udp *udp, const struct udp_key *key)
{
	void *s;

	return rte_hash_lookup_data(udp->flows, key, &s) >= 0 ? s : NULL;
}

/* A slot must be left for the key's later deletion. */
static int
flow_add(struct sl_udp_sock *s, const struct udp_names *names)
{
	struct udp_key key = key_of(names);
	struct sl_udp *udp = s->udp;
	int ret;

	if (udp_flow_find(udp, &key) != NULL)
		return -EADDRINUSE;
	if (udp->retired.positions - udp->freed_positions == udp->positions_max)
		return -ENOSPC;
	ret = rte_hash_add_key_data(udp->flows, &key, s);
	if (ret != 0)
		return ret == -EINVAL ? ret : -ENOSPC;
	sl_store_relaxed(&udp->port[names->lport].connected, udp->port[names->lport].connected + 1);
	return 0;
}

void
udp_flow_remove(struct sl_udp_sock *s)
{
	struct udp_key key = key_of(&s->names);
	struct sl_udp *udp = s->udp;
	struct udp_port *port = &udp->port[s->names.lport];
	int32_t at;

	if (!s->names.connected)
		return;
	at = rte_hash_del_key(udp->flows, &key);
	SL_ASSERT(at >= 0);
	udp->position[udp->retired.positions++ % udp->positions_max] = at;
	sl_store_relaxed(&port->connected, port->connected - 1);
	udp_port_changed(udp);
}

static int
disconnect(struct sl_udp_sock *s)
{
	struct udp_names names = s->names;

	if (!names.connected)
		return 0;
	udp_flow_remove(s);
	names.local = names.bound;
	memset(&names.remote, 0, sizeof(names.remote));
	names.rport = 0;
	names.connected = false;
	udp_names_write(s, &names);
	udp_port_set_live(s, true);
	return 0;
}

/* Our end of a flow to `remote`: what the socket is bound to, else what the route says. */
static int
choose_local(const struct sl_udp_sock *s, const struct udp_names *names, struct sl_addr *local)
{
	if (sl_addr_is_any(&names->bound))
		return sl_inet_source(s->udp->inet, &names->remote, local);
	*local = names->bound;
	return sl_addr_is_v4(local) == sl_addr_is_v4(&names->remote) ? 0 : -ENETUNREACH;
}

static int
connect_locked(struct sl_udp_sock *s, const struct sl_addr *remote, uint16_t port)
{
	struct udp_names names;
	int ret = 0;

	if (s->names.lport == 0) {
		struct sl_addr any = udp_addr_any(s);

		ret = udp_bind_locked(s, &any, 0);
	}
	names = s->names;
	names.remote = *remote;
	names.rport = port;
	names.connected = true;
	/* As on Linux without SO_BROADCAST, which is not here. */
	if (ret == 0 && sl_inet_addr_is_broadcast(s->udp->inet, remote))
		ret = -EACCES;
	if (ret == 0)
		ret = choose_local(s, &names, &names.local);
	if (ret != 0)
		return ret;
	if (s->names.connected && names.rport == s->names.rport &&
		udp_addr_equal(&names.remote, &s->names.remote) &&
		udp_addr_equal(&names.local, &s->names.local))
		return 0;
	ret = flow_add(s, &names);
	if (ret != 0)
		return ret;
	udp_flow_remove(s); /* a former peer's */
	udp_names_write(s, &names);
	udp_port_set_live(s, false);
	return 0;
}

int
sl_udp_connect(struct sl_udp_sock *s, const struct sockaddr *addr, socklen_t len)
{
	struct sockaddr_storage sa;
	struct sl_addr remote;
	uint16_t port = 0;
	int ret = udp_name_get(s, addr, len, &sa);

	if (ret == 0 && len < sizeof(sa.ss_family))
		ret = -EINVAL;
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&s->udp->lock);
	if (udp_closed_locked(s)) {
		ret = -EBADF;
	} else if (sa.ss_family == AF_UNSPEC) {
		ret = disconnect(s);
	} else {
		ret = udp_addr_get(s, (const struct sockaddr *)&sa, len, &remote, &port);
		if (ret == 0 && s->conf.v6only && sl_addr_is_v4(&remote))
			ret = -ENETUNREACH;
		if (ret == 0)
			ret = connect_locked(s, &remote, port);
	}
	pthread_mutex_unlock(&s->udp->lock);
	return ret;
}
