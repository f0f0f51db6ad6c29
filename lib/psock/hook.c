/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Create, bind, close, and what ports' comings and goings do to sockets. The rule of bind: change
 * nothing, wait for nothing; else unhook, wait until workers have passed, look the port up again -
 * it can have gone meanwhile - and hook.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "psock_priv.h"
#include "sl_bpf.h"
#include "sl_udpq_mbuf.h"

#define QUEUE_SLOTS 1024
#define RCVBUF_DEFAULT 212992

void
psock_set_error(struct sl_psock *s, int error)
{
	sl_store_release(&s->error, error); /* PS3 */
}

/* What a socket is bound to, in one word that bind reads without a lock: the port's index in the
 * upper half, the protocol in the lowest 16 bits. */
#define BOUND_GROUP (UINT64_C(1) << 16)	  /* in a fanout group: no bind at all */
#define BOUND_CHANGING (UINT64_C(1) << 17) /* another bind is at work: to be waited for */
#define BOUND_IFINDEX(bound) ((int)((bound) >> 32))
#define BOUND_PROTO(bound) ((uint16_t)(bound))

void
psock_bound_publish(struct sl_psock *s)
{
	uint64_t bound = (uint64_t)(uint32_t)s->ifindex << 32 | s->proto;

	if (s->group != NULL)
		bound |= BOUND_GROUP;
	sl_store_release(&s->bound, bound); /* PS6 */
}

static int
queue_create(struct sl_udpq **q)
{
	struct sl_udpq_conf conf = {.mode = SL_UDPQ_SHARED,
		.producers = 1,
		.slots = QUEUE_SLOTS,
		.rcvbuf = RCVBUF_DEFAULT,
		.free_burst = sl_udpq_free_mbufs};

	return sl_udpq_create(&conf, q);
}

/* Into every table that the socket belongs to. */
int
psock_hook(struct sl_psock *s)
{
	int ret;

	pthread_mutex_lock(&s->net->lock);
	s->hooked = true;
	ret = psock_rehook_locked(s->net, s->ifindex);
	if (ret != 0)
		s->hooked = false;
	pthread_mutex_unlock(&s->net->lock);
	return ret;
}

void
psock_unhook(struct sl_psock *s)
{
	if (!s->hooked)
		return;
	pthread_mutex_lock(&s->net->lock);
	s->hooked = false;
	/* Without memory for smaller tables there is nothing to do but try again: leaving the
	 * socket in would be a use after free. */
	while (psock_rehook_locked(s->net, s->ifindex > 0 ? s->ifindex : 0) != 0)
		sched_yield();
	pthread_mutex_unlock(&s->net->lock);
	psock_synchronize(s->net);
}

static bool
type_known(int type)
{
	return type == SOCK_RAW || type == SOCK_DGRAM || type == SOCK_PACKET;
}

int
sl_psock_create(struct sl_psock_net *net, int type, uint16_t protocol, struct sl_psock **out)
{
	struct sl_psock *s;
	int ret;

	if (!type_known(type))
		return -ESOCKTNOSUPPORT;
	s = aligned_alloc(SL_CACHE_LINE, RTE_ALIGN_CEIL(sizeof(*s), (size_t)SL_CACHE_LINE));
	if (s == NULL)
		return -ENOMEM;
	memset(s, 0, sizeof(*s));
	s->net = net;
	s->type = type;
	s->proto = protocol;
	psock_bound_publish(s);
	s->rcvbuf = RCVBUF_DEFAULT;
	rte_spinlock_init(&s->tx_lock);
	ret = queue_create(&s->queue);
	if (ret != 0) {
		free(s);
		return ret;
	}
	pthread_mutex_lock(&net->lock);
	s->id = ++net->next_id;
	TAILQ_INSERT_TAIL(&net->sockets, s, link);
	pthread_mutex_unlock(&net->lock);
	ret = protocol != 0 ? psock_hook(s) : 0;
	if (ret != 0) {
		sl_psock_close(s, SL_PSOCK_NO_WORKER);
		return ret;
	}
	*out = s;
	return 0;
}

void
sl_psock_close(struct sl_psock *s, uint16_t worker)
{
	struct sl_psock_net *net;

	if (s == NULL)
		return;
	net = s->net;
	psock_control(net, worker);
	psock_unhook(s);
	psock_fanout_leave(s);
	psock_members_undo(s, -1);
	pthread_mutex_lock(&net->lock);
	TAILQ_REMOVE(&net->sockets, s, link);
	psock_ring_close(s);
	pthread_mutex_unlock(&net->lock);
	psock_control_end(net, worker);
	sl_bpf_free(s->filter);
	sl_udpq_destroy(s->queue);
	free(s);
}

/* The port's name, as SOCK_PACKET's bind gives it, to its index. */
static int
ifindex_by_name(struct sl_psock_net *net, const char name[14])
{
	char text[RTE_ETH_NAME_MAX_LEN] = {0};
	uint16_t port_id;

	memcpy(text, name, 14); /* not terminated by the caller */
	if (rte_eth_dev_get_port_by_name(text, &port_id) != 0)
		return -ENODEV;
	return psock_port(net, port_id + 1) != NULL ? port_id + 1 : -ENODEV;
}

/* Returns the index that the address names, 0 for all, or the error. */
static int
bind_target(struct sl_psock *s, const void *addr, socklen_t len, uint16_t *proto)
{
	struct sockaddr_pkt pkt;
	struct sockaddr_ll ll;

	if (s->type == SOCK_PACKET) {
		/* struct sockaddr's size, whatever the name has. */
		if (len != sizeof(struct sockaddr))
			return -EINVAL;
		memcpy(&pkt, addr, len);
		*proto = 0;
		return ifindex_by_name(s->net, (const char *)pkt.spkt_device);
	}
	if (len < sizeof(ll))
		return -EINVAL;
	memcpy(&ll, addr, sizeof(ll));
	if (ll.sll_family != AF_PACKET)
		return -EINVAL;
	*proto = ll.sll_protocol;
	if (ll.sll_ifindex == 0)
		return 0;
	return psock_port(s->net, ll.sll_ifindex) != NULL ? ll.sll_ifindex : -ENODEV;
}

/* After the grace period: the port may have gone, or be down. Neither fails the bind. */
static int
hook_again(struct sl_psock *s)
{
	struct psock_port *port = psock_port(s->net, s->ifindex);

	if (s->ifindex != 0 && port == NULL)
		sl_store_relaxed(&s->ifindex, -1);
	if (s->ifindex != 0 && (port == NULL || !sl_load_relaxed(&port->up))) {
		if (s->proto != 0)
			psock_set_error(s, ENETDOWN);
		return 0;
	}
	return s->proto != 0 ? psock_hook(s) : 0;
}

/* What bind finds without a lock: 0 nothing to change, 1 something, or the error. */
static int
bind_needed(const struct sl_psock *s, uint16_t proto, int ifindex)
{
	uint64_t bound = sl_load_acquire(&s->bound); /* PS6 */

	if (bound & BOUND_GROUP)
		return -EINVAL;
	return (bound & BOUND_CHANGING) || ifindex != BOUND_IFINDEX(bound) ||
	       (proto != 0 && proto != BOUND_PROTO(bound));
}

static void
set_target(struct sl_psock *s, uint16_t proto, int ifindex)
{
	sl_store_relaxed(&s->bound, BOUND_CHANGING);
	pthread_mutex_lock(&s->net->lock);
	if (proto != 0)
		sl_store_relaxed(&s->proto, proto);
	sl_store_relaxed(&s->ifindex, ifindex);
	pthread_mutex_unlock(&s->net->lock);
}

int
sl_psock_bind(struct sl_psock *s, const void *addr, socklen_t len, uint16_t worker)
{
	uint16_t proto;
	int ifindex, ret;

	if (len == 0 || len > sizeof(struct sockaddr_storage))
		return -EINVAL;
	if (addr == NULL)
		return -EFAULT;
	ifindex = bind_target(s, addr, len, &proto);
	if (ifindex < 0)
		return ifindex;
	ret = bind_needed(s, proto, ifindex);
	if (ret <= 0)
		return ret;
	psock_control(s->net, worker);
	ret = bind_needed(s, proto, ifindex); /* another call may have been first */
	if (ret > 0) {
		psock_unhook(s);
		set_target(s, proto, ifindex);
		ret = hook_again(s);
		psock_bound_publish(s);
	}
	psock_control_end(s->net, worker);
	return ret;
}

/* The address of a SOCK_PACKET socket has a name in place of an index; returns its length. */
static socklen_t
name_spkt(struct sl_psock *s, struct sockaddr_ll *ll)
{
	char name[RTE_ETH_NAME_MAX_LEN] = {0};
	struct sockaddr sa = {.sa_family = AF_PACKET};

	if (ll->sll_ifindex > 0 && psock_port(s->net, ll->sll_ifindex) != NULL &&
		rte_eth_dev_get_name_by_port((uint16_t)(ll->sll_ifindex - 1), name) == 0)
		memcpy(sa.sa_data, name, sizeof(sa.sa_data) - 1);
	memcpy(ll, &sa, sizeof(sa));
	return sizeof(sa);
}

int
sl_psock_getsockname(struct sl_psock *s, struct sockaddr_ll *addr, socklen_t *len)
{
	struct sockaddr_ll ll = {.sll_family = AF_PACKET};
	struct psock_port *port;
	socklen_t whole;

	if (len == NULL)
		return -EFAULT;
	if ((int)*len < 0)
		return -EINVAL;
	if (addr == NULL && *len != 0)
		return -EFAULT;
	pthread_mutex_lock(&s->net->lock);
	ll.sll_ifindex = s->ifindex;
	ll.sll_protocol = s->proto;
	port = psock_port(s->net, s->ifindex);
	pthread_mutex_unlock(&s->net->lock);
	if (port != NULL) {
		ll.sll_hatype = 1; /* Ethernet */
		ll.sll_halen = MAC_LEN;
		memcpy(ll.sll_addr, &port->mac, MAC_LEN);
	}
	whole = s->type == SOCK_PACKET
			? name_spkt(s, &ll)
			: (socklen_t)(offsetof(struct sockaddr_ll, sll_addr) + ll.sll_halen);
	if (*len != 0)
		memcpy(addr, &ll, RTE_MIN(*len, whole));
	*len = whole;
	return 0;
}

/* Unhook, with the error that says why; the socket keeps its protocol, to be hooked again. */
static void
socket_down(struct sl_psock *s, bool gone)
{
	bool hooked = s->hooked;

	psock_unhook(s);
	if (gone) {
		sl_store_relaxed(&s->ifindex, -1);
		psock_bound_publish(s);
	}
	if (hooked)
		psock_set_error(s, ENETDOWN);
}

/* Under net->control, which keeps every socket from being closed or bound meanwhile; created ones
 * are on no port of their own yet. */
static void
tell_sockets(struct sl_psock_net *net, int ifindex, bool up, bool gone)
{
	struct sl_psock *s, *next;

	pthread_mutex_lock(&net->lock);
	s = TAILQ_FIRST(&net->sockets);
	pthread_mutex_unlock(&net->lock);
	for (; s != NULL; s = next) {
		if (gone)
			psock_members_undo(s, ifindex);
		if (s->ifindex == ifindex && !up)
			socket_down(s, gone);
		else if (s->ifindex == ifindex && !s->hooked && s->proto != 0 && psock_hook(s) != 0)
			psock_set_error(s, ENOBUFS);
		pthread_mutex_lock(&net->lock);
		next = TAILQ_NEXT(s, link);
		pthread_mutex_unlock(&net->lock);
	}
}

void
sl_psock_port_event(
	struct sl_psock_net *net, uint16_t port_id, enum sl_psock_event event, uint16_t worker)
{
	struct psock_port *port;
	bool up = event == SL_PSOCK_PORT_UP;

	psock_control(net, worker);
	port = psock_port(net, port_id + 1);
	if (port != NULL) {
		sl_store_relaxed(&port->up, up);
		tell_sockets(net, port_id + 1, up, false);
	}
	psock_control_end(net, worker);
}

static void
retire_table(struct sl_psock_net *net, struct psock_port *port)
{
	pthread_mutex_lock(&net->lock);
	if (port->table != NULL) {
		struct psock_table *old = port->table;

		sl_store_release(&port->table, NULL); /* PS1 */
		old->token = rte_rcu_qsbr_start(net->rcu);
		old->next = net->retired;
		net->retired = old;
	}
	psock_reap_locked(net);
	pthread_mutex_unlock(&net->lock);
}

void
sl_psock_port_remove(struct sl_psock_net *net, uint16_t port_id, uint16_t worker)
{
	struct psock_port *port;

	psock_control(net, worker);
	port = psock_port(net, port_id + 1);
	if (port == NULL) {
		psock_control_end(net, worker);
		return;
	}
	sl_store_relaxed(&port->up, false);
	sl_store_release(&port->used, false); /* PS2 */
	tell_sockets(net, port_id + 1, false, true);
	/* A sender that found the port used holds one of its locks until its burst is out; one that
	 * comes later finds it gone under the lock. */
	for (int i = 0; i < QUEUES_MAX; i++) {
		rte_spinlock_lock(&port->tx_lock[i]);
		rte_spinlock_unlock(&port->tx_lock[i]);
	}
	retire_table(net, port);
	psock_synchronize(net);
	psock_control_end(net, worker);
}
