/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bus.h>
#include <rte_dev.h>

#include "psock_priv.h"
#include "sl_errno.h"

#define WORKERS_MAX 1024u
/* Up to here a copy costs less than lending a slot does; doc/psock.md has the measurement. */
#define SMALL_MOST 256u

static int
net_alloc(struct sl_psock_net *net)
{
	size_t bytes = rte_rcu_qsbr_get_memsize(net->conf.workers);

	net->rcu = aligned_alloc(SL_CACHE_LINE, RTE_ALIGN_CEIL(bytes, (size_t)SL_CACHE_LINE));
	if (net->rcu == NULL)
		return -ENOMEM;
	rte_rcu_qsbr_init(net->rcu, net->conf.workers);
	for (uint32_t w = 0; w < net->conf.workers; w++)
		rte_rcu_qsbr_thread_register(net->rcu, w);
	net->online = calloc(net->conf.workers, sizeof(*net->online));
	if (net->online == NULL) {
		free(net->rcu);
		return -ENOMEM;
	}
	pthread_mutex_init(&net->control, NULL);
	pthread_mutex_init(&net->lock, NULL);
	return 0;
}

int
sl_psock_net_create(const struct sl_psock_net_conf *conf, struct sl_psock_net **out)
{
	struct sl_psock_net *net;
	int ret;

	if (conf->workers == 0 || conf->workers > WORKERS_MAX || conf->pool == NULL)
		return -EINVAL;
	net = calloc(1, sizeof(*net));
	if (net == NULL)
		return -ENOMEM;
	net->conf = *conf;
	TAILQ_INIT(&net->sockets);
	TAILQ_INIT(&net->groups);
	ret = net_alloc(net);
	if (ret != 0) {
		free(net);
		return ret;
	}
	psock_diag_add(net);
	*out = net;
	return 0;
}

static void
table_free(struct psock_table *t)
{
	if (t == NULL)
		return;
	free(t->hook);
	free(t->member);
	free(t);
}

/* Free what no worker can see any more: old tables, and rings whose last mbuf is gone. */
void
psock_reap_locked(struct sl_psock_net *net)
{
	struct psock_table **t = &net->retired;
	struct psock_dead **d = &net->dead;

	while (*t != NULL) {
		struct psock_table *old = *t;

		if (rte_rcu_qsbr_check(net->rcu, old->token, false) == 1) {
			*t = old->next;
			table_free(old);
		} else {
			t = &old->next;
		}
	}
	while (*d != NULL) {
		struct psock_dead *dead = *d;

		if (sl_pktring_tx_destroy(dead->ring) == 0) {
			*d = dead->next;
			free(dead);
		} else {
			d = &dead->next;
		}
	}
}

int
sl_psock_net_destroy(struct sl_psock_net *net)
{
	if (net == NULL)
		return 0;
	pthread_mutex_lock(&net->lock);
	psock_reap_locked(net);
	if (!TAILQ_EMPTY(&net->sockets) || net->dead != NULL) {
		pthread_mutex_unlock(&net->lock);
		return -EBUSY;
	}
	pthread_mutex_unlock(&net->lock);
	psock_diag_remove(net);
	while (net->retired != NULL) { /* nobody polls any more */
		struct psock_table *old = net->retired;

		net->retired = old->next;
		table_free(old);
	}
	for (int i = 0; i < SL_PSOCK_PORTS_MAX; i++)
		table_free(net->port[i].table);
	pthread_mutex_destroy(&net->control);
	pthread_mutex_destroy(&net->lock);
	free(net->online);
	free(net->rcu);
	free(net);
	return 0;
}

struct psock_port *
psock_port(struct sl_psock_net *net, int ifindex)
{
	struct psock_port *port;

	if (ifindex < 1 || ifindex > SL_PSOCK_PORTS_MAX)
		return NULL;
	port = &net->port[ifindex - 1];
	/* PS2: the port's members are filled in before it counts as used. */
	return sl_load_acquire(&port->used) ? port : NULL;
}

static bool
is_hooked_on(const struct sl_psock *s, int ifindex)
{
	return s->hooked && (s->ifindex == 0 || s->ifindex == ifindex);
}

/* The row for a socket: its group's, if it has one that is there already, else a new one. */
static void
table_add(struct psock_table *t, struct sl_psock *s, int ifindex)
{
	struct psock_hook *row = &t->hook[t->hooks];
	struct sl_psock *other;

	for (uint32_t i = 0; s->group != NULL && i < t->hooks; i++)
		if (t->hook[i].group == s->group)
			return; /* came with its first member */
	*row = (struct psock_hook){.proto = s->proto, .group = s->group};
	row->member = t->hooks > 0 ? row[-1].member + row[-1].members : t->member;
	t->hooks++;
	if (s->group == NULL) {
		row->member[row->members++] = s;
		return;
	}
	TAILQ_FOREACH(other, &s->net->sockets, link)
	{
		if (other->group == s->group && is_hooked_on(other, ifindex))
			row->member[row->members++] = other;
	}
}

static struct psock_table *
table_build(struct sl_psock_net *net, int ifindex)
{
	struct psock_table *t = calloc(1, sizeof(*t));
	struct sl_psock *s;
	uint32_t n = 0;

	TAILQ_FOREACH(s, &net->sockets, link)
	n += is_hooked_on(s, ifindex);
	if (t == NULL)
		return NULL;
	t->hook = calloc(n + 1, sizeof(*t->hook));
	t->member = calloc(n + 1, sizeof(struct sl_psock *));
	if (t->hook == NULL || t->member == NULL) {
		table_free(t);
		return NULL;
	}
	TAILQ_FOREACH(s, &net->sockets, link)
	{
		if (is_hooked_on(s, ifindex))
			table_add(t, s, ifindex);
	}
	return t;
}

static void
table_publish(struct sl_psock_net *net, struct psock_port *port, struct psock_table *t)
{
	struct psock_table *old = port->table;

	sl_store_release(&port->table, t); /* PS1 */
	if (old == NULL)
		return;
	old->token = rte_rcu_qsbr_start(net->rcu);
	old->next = net->retired;
	net->retired = old;
}

int
psock_rehook_locked(struct sl_psock_net *net, int ifindex)
{
	struct psock_table *t[SL_PSOCK_PORTS_MAX] = {NULL};
	int first = ifindex > 0 ? ifindex : 1;
	int last = ifindex > 0 ? ifindex : SL_PSOCK_PORTS_MAX;
	int ret = 0;

	/* All or none: a socket on every port must not end up on some. */
	for (int i = first; i <= last; i++) {
		if (!net->port[i - 1].used)
			continue;
		t[i - 1] = table_build(net, i);
		if (t[i - 1] == NULL)
			ret = -ENOMEM;
	}
	for (int i = first; i <= last; i++) {
		if (ret != 0)
			table_free(t[i - 1]);
		else if (t[i - 1] != NULL)
			table_publish(net, &net->port[i - 1], t[i - 1]);
	}
	psock_reap_locked(net);
	return ret;
}

void
psock_control(struct sl_psock_net *net, uint16_t worker)
{
	SL_ASSERT(worker == SL_PSOCK_NO_WORKER || worker < net->conf.workers);
	if (worker != SL_PSOCK_NO_WORKER && net->online[worker])
		rte_rcu_qsbr_thread_offline(net->rcu, worker);
	pthread_mutex_lock(&net->control);
}

void
psock_control_end(struct sl_psock_net *net, uint16_t worker)
{
	pthread_mutex_unlock(&net->control);
	if (worker != SL_PSOCK_NO_WORKER && net->online[worker])
		rte_rcu_qsbr_thread_online(net->rcu, worker);
}

void
psock_synchronize(struct sl_psock_net *net)
{
	rte_rcu_qsbr_synchronize(net->rcu, RTE_QSBR_THRID_INVALID);
}

/* Does the port's driver read packets with the CPU, from any address of this process? virtio-user
 * hands addresses to another process, which knows EAL's memory alone. */
static bool
reads_any_memory(uint16_t port_id)
{
	struct rte_eth_dev_info info;
	const struct rte_bus *bus;

	if (rte_eth_dev_info_get(port_id, &info) != 0 || info.device == NULL)
		return false;
	bus = rte_dev_bus(info.device);
	return bus != NULL && strcmp(rte_bus_name(bus), "vdev") == 0 &&
	       strcmp(info.driver_name, "net_virtio_user") != 0;
}

static bool
may_lend(const struct sl_psock_port_conf *conf)
{
	switch (conf->lend) {
	case SL_PSOCK_LEND_AUTO:
		return !(conf->tx_offloads & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) &&
		       reads_any_memory(conf->port_id);
	case SL_PSOCK_LEND_ALWAYS:
		return true;
	default:
		return false;
	}
}

/* Frames up to this length are copied: what fits an mbuf, if slots cannot be lent. */
static uint32_t
small_of(const struct psock_port *port, struct rte_mempool *pool)
{
	uint32_t room = (uint32_t)rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;

	if (port->conf.lend == SL_PSOCK_LEND_ALWAYS)
		return 0;
	return port->lend ? RTE_MIN(room, SMALL_MOST) : room;
}

static int
port_fill(struct psock_port *port, const struct sl_psock_port_conf *conf, struct rte_mempool *pool)
{
	struct rte_eth_link link = {0};
	struct rte_eth_dev_info info;
	uint16_t mtu;
	int ret;

	ret = rte_eth_dev_info_get(conf->port_id, &info);
	if (ret != 0)
		return ret;
	if (conf->tx_queues == 0 || conf->tx_queues > info.nb_tx_queues ||
		conf->tx_queues > QUEUES_MAX)
		return -EINVAL;
	ret = rte_eth_macaddr_get(conf->port_id, &port->mac);
	if (ret == 0)
		ret = rte_eth_dev_get_mtu(conf->port_id, &mtu);
	if (ret != 0)
		return ret;
	port->conf = *conf;
	port->lend = may_lend(conf);
	port->small = small_of(port, pool);
	port->mtu = mtu;
	/* A port that cannot say is up: its driver has no link to lose. */
	port->up = rte_eth_link_get_nowait(conf->port_id, &link) != 0 ||
		   link.link_status == RTE_ETH_LINK_UP;
	for (int i = 0; i < QUEUES_MAX; i++)
		rte_spinlock_init(&port->tx_lock[i]);
	return 0;
}

int
sl_psock_port_add(struct sl_psock_net *net, const struct sl_psock_port_conf *conf)
{
	struct psock_port *port = &net->port[conf->port_id % SL_PSOCK_PORTS_MAX];
	int ret;

	if (!rte_eth_dev_is_valid_port(conf->port_id))
		return -ENODEV;
	if (conf->port_id >= SL_PSOCK_PORTS_MAX)
		return -ENOSPC;
	pthread_mutex_lock(&net->lock);
	ret = port->used ? -EEXIST : port_fill(port, conf, net->conf.pool);
	if (ret == 0) {
		sl_store_release(&port->used, true); /* PS2 */
		ret = psock_rehook_locked(net, conf->port_id + 1);
		if (ret != 0)
			sl_store_release(&port->used, false); /* PS2 */
	}
	pthread_mutex_unlock(&net->lock);
	return ret;
}

void
sl_psock_worker_online(struct sl_psock_net *net, uint16_t worker)
{
	SL_ASSERT(worker < net->conf.workers);
	net->online[worker] = true;
	rte_rcu_qsbr_thread_online(net->rcu, worker);
}

void
sl_psock_worker_offline(struct sl_psock_net *net, uint16_t worker)
{
	SL_ASSERT(worker < net->conf.workers);
	net->online[worker] = false;
	rte_rcu_qsbr_thread_offline(net->rcu, worker);
}

void
sl_psock_quiescent(struct sl_psock_net *net, uint16_t worker)
{
	SL_DEBUG_ASSERT(worker < net->conf.workers);
	rte_rcu_qsbr_quiescent(net->rcu, worker);
}
