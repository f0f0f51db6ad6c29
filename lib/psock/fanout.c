/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Fanout groups: sockets on the same port and protocol that share its packets. A group is a row of
 * the port's table, so that members come and go as tables do; what a group counts is its own.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_jhash.h>
#include <rte_random.h>

#include "psock_priv.h"
#include "sl_bpf.h"

#define MEMBERS_DEFAULT 256u
#define MEMBERS_MAX 65536u
#define FLAGS_KNOWN                                                                                \
	(PACKET_FANOUT_FLAG_ROLLOVER | PACKET_FANOUT_FLAG_UNIQUEID | PACKET_FANOUT_FLAG_DEFRAG)

struct psock_fanout {
	TAILQ_ENTRY(psock_fanout) link; /* (l) net->lock, as members */
	uint16_t id, type, flags;	/* (c) */
	uint16_t proto;
	int ifindex;
	uint32_t max, members;
	uint32_t turn;		       /* (a) relaxed */
	struct sl_bpf *filter;	       /* (a) PS4 */
	uint64_t rolled, huge, failed; /* (a) relaxed */
};

/* What a packet's flow is told by: addresses and ports, the smaller end first, so that both
 * directions meet. From private copies of the headers. */
struct flow {
	uint8_t end[2][18];
};

static uint32_t
flow_hash(struct flow *f)
{
	uint8_t swap[sizeof(f->end[0])];

	if (memcmp(f->end[0], f->end[1], sizeof(f->end[0])) > 0) {
		memcpy(swap, f->end[0], sizeof(swap));
		memcpy(f->end[0], f->end[1], sizeof(swap));
		memcpy(f->end[1], swap, sizeof(swap));
	}
	return rte_jhash(f, sizeof(*f), 0);
}

static void
flow_ports(struct flow *f, const uint8_t *l4, uint8_t proto)
{
	if (proto != IPPROTO_TCP && proto != IPPROTO_UDP && proto != IPPROTO_SCTP)
		return;
	memcpy(f->end[0] + 16, l4, 2);
	memcpy(f->end[1] + 16, l4 + 2, 2);
}

static uint32_t
packet_hash(const struct psock_packet *p)
{
	uint8_t h[HEADER_LEN + 60 + 4] = {0};
	const uint8_t *ip = h + HEADER_LEN;
	struct flow f = {0};

	if (p->m->ol_flags & RTE_MBUF_F_RX_RSS_HASH)
		return p->m->hash.rss;
	sl_pktring_mbuf_read(p->m, 0, h, RTE_MIN(p->m->pkt_len, (uint32_t)sizeof(h)));
	if (p->proto == RTE_BE16(RTE_ETHER_TYPE_IPV4)) {
		memcpy(f.end[0], ip + 12, 4);
		memcpy(f.end[1], ip + 16, 4);
		/* Ports are in the first fragment alone: fragments go by their addresses. */
		if ((ip[6] & 0x3f) == 0 && ip[7] == 0)
			flow_ports(&f, ip + (ip[0] & 0x0f) * 4, ip[9]);
	} else if (p->proto == RTE_BE16(RTE_ETHER_TYPE_IPV6)) {
		memcpy(f.end[0], ip + 8, 16);
		memcpy(f.end[1], ip + 24, 16);
		flow_ports(&f, ip + 40, ip[6]);
	} else {
		memcpy(f.end[0], h, MAC_LEN);
		memcpy(f.end[1], h + MAC_LEN, MAC_LEN);
	}
	return flow_hash(&f);
}

/* The first member with room from `from` on; `from` itself when none has. */
static uint32_t
roll(struct psock_fanout *g, const struct psock_hook *hook, uint32_t from, bool skip_first)
{
	for (uint32_t i = skip_first; i < hook->members; i++) {
		uint32_t k = (from + i) % hook->members;

		if (psock_has_room(hook->member[k])) {
			if (i > 0)
				sl_fetch_add_relaxed(&g->rolled, UINT64_C(1));
			return k;
		}
	}
	sl_fetch_add_relaxed(&g->failed, UINT64_C(1));
	return from;
}

static uint32_t
by_filter(struct psock_fanout *g, struct psock_packet *p, uint32_t n)
{
	const struct sl_bpf *f = sl_load_acquire(&g->filter); /* PS4 */

	return f != NULL ? sl_bpf_run(f, p->m) % n : 0;
}

static uint32_t
pick(struct psock_fanout *g, const struct psock_hook *hook, struct psock_packet *p)
{
	uint32_t n = hook->members;

	switch (g->type) {
	case PACKET_FANOUT_HASH:
		return (uint32_t)((uint64_t)packet_hash(p) * n >> 32);
	case PACKET_FANOUT_LB:
		return sl_fetch_add_relaxed(&g->turn, 1u) % n;
	case PACKET_FANOUT_CPU:
		return p->worker % n;
	case PACKET_FANOUT_RND:
		return (uint32_t)rte_rand_max(n);
	case PACKET_FANOUT_QM:
		return p->queue % n;
	case PACKET_FANOUT_CBPF:
		return by_filter(g, p, n);
	default: /* ROLLOVER stays with the last one that had room */
		return sl_load_relaxed(&g->turn) % n;
	}
}

struct sl_psock *
psock_fanout_pick(const struct psock_hook *hook, struct psock_packet *p)
{
	struct psock_fanout *g = hook->group;
	uint32_t k = pick(g, hook, p);

	if (g->type == PACKET_FANOUT_ROLLOVER) {
		k = roll(g, hook, k, false);
		sl_store_relaxed(&g->turn, k);
	} else if ((g->flags & PACKET_FANOUT_FLAG_ROLLOVER) && !psock_has_room(hook->member[k])) {
		k = roll(g, hook, k, true);
	}
	return hook->member[k];
}

static struct psock_fanout *
find_locked(struct sl_psock_net *net, uint16_t id)
{
	struct psock_fanout *g;

	TAILQ_FOREACH(g, &net->groups, link)
	{
		if (g->id == id)
			break;
	}
	return g;
}

/* An id that no group has; -ENOMEM (as Linux) when all are taken. */
static int
unique_id_locked(struct sl_psock_net *net)
{
	for (int id = 0; id <= UINT16_MAX; id++)
		if (find_locked(net, (uint16_t)id) == NULL)
			return id;
	return -ENOMEM;
}

static int
read_args(const void *value, socklen_t len, struct fanout_args *args)
{
	uint32_t word;

	memset(args, 0, sizeof(*args));
	if (len != sizeof(word) && len != sizeof(*args))
		return -EINVAL;
	if (value == NULL)
		return -EFAULT;
	memcpy(&word, value, sizeof(word));
	if (len == sizeof(*args))
		memcpy(args, value, sizeof(*args));
	args->id = (uint16_t)word;
	args->type_flags = (uint16_t)(word >> 16);
	return 0;
}

static int
check_args(const struct fanout_args *args)
{
	uint16_t type = args->type_flags & 0xff, flags = args->type_flags & 0xff00;

	if (type > PACKET_FANOUT_CBPF || (flags & ~FLAGS_KNOWN) != 0)
		return -EINVAL;
	if (type == PACKET_FANOUT_ROLLOVER && (flags & PACKET_FANOUT_FLAG_ROLLOVER))
		return -EINVAL;
	if ((flags & PACKET_FANOUT_FLAG_UNIQUEID) && args->id != 0)
		return -EINVAL;
	return args->max_num_members > MEMBERS_MAX ? -EINVAL : 0;
}

static struct psock_fanout *
group_make_locked(struct sl_psock *s, const struct fanout_args *args)
{
	struct psock_fanout *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return NULL;
	g->id = args->id;
	g->type = args->type_flags & 0xff;
	g->flags = args->type_flags & 0xff00 & ~PACKET_FANOUT_FLAG_UNIQUEID;
	g->proto = s->proto;
	g->ifindex = s->ifindex;
	g->max = args->max_num_members != 0 ? args->max_num_members : MEMBERS_DEFAULT;
	TAILQ_INSERT_TAIL(&s->net->groups, g, link);
	return g;
}

static void
group_release_locked(struct sl_psock_net *net, struct psock_fanout *g)
{
	if (g->members > 0)
		return;
	TAILQ_REMOVE(&net->groups, g, link);
	sl_bpf_free(g->filter);
	free(g);
}

/* May s be a member of g? */
static int
check_match(const struct sl_psock *s, const struct psock_fanout *g, const struct fanout_args *args)
{
	uint16_t flags = args->type_flags & 0xff00 & ~PACKET_FANOUT_FLAG_UNIQUEID;

	if (g->flags != flags || g->type != (args->type_flags & 0xff))
		return -EINVAL;
	if (args->max_num_members != 0 && args->max_num_members != g->max)
		return -EINVAL;
	if (!s->hooked || s->proto != g->proto || s->ifindex != g->ifindex)
		return -EINVAL;
	return g->members < g->max ? 0 : -ENOSPC;
}

static int
join_locked(struct sl_psock *s, struct fanout_args *args)
{
	struct sl_psock_net *net = s->net;
	struct psock_fanout *g;
	int ret;

	if (s->group != NULL)
		return -EALREADY;
	if (s->proto == 0 || !s->hooked)
		return -EINVAL;
	if (args->type_flags & PACKET_FANOUT_FLAG_UNIQUEID) {
		ret = unique_id_locked(net);
		if (ret < 0)
			return ret;
		args->id = (uint16_t)ret;
	}
	g = find_locked(net, args->id);
	if (g == NULL)
		g = group_make_locked(s, args);
	if (g == NULL)
		return -ENOMEM;
	ret = check_match(s, g, args);
	if (ret == 0) {
		s->group = g;
		ret = psock_rehook_locked(net, s->ifindex);
	}
	if (ret == 0)
		g->members++;
	else
		s->group = NULL;
	group_release_locked(net, g);
	return ret;
}

/* Caller: in a control call. */
int
psock_fanout_set(struct sl_psock *s, const void *value, socklen_t len)
{
	struct fanout_args args;
	int ret = read_args(value, len, &args);

	if (ret == 0)
		ret = check_args(&args);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&s->net->lock);
	ret = join_locked(s, &args);
	psock_bound_publish(s);
	pthread_mutex_unlock(&s->net->lock);
	return ret;
}

/* The socket is unhooked and workers have passed, so no table names the group for its sake. */
void
psock_fanout_leave(struct sl_psock *s)
{
	pthread_mutex_lock(&s->net->lock);
	if (s->group != NULL) {
		s->group->members--;
		group_release_locked(s->net, s->group);
		s->group = NULL;
	}
	pthread_mutex_unlock(&s->net->lock);
}

/* Caller: in a control call. */
int
psock_fanout_data(struct sl_psock *s, const void *value, socklen_t len)
{
	struct sl_bpf *f, *old;
	int ret;

	if (s->group == NULL || s->group->type != PACKET_FANOUT_CBPF)
		return -EINVAL;
	ret = psock_filter_load(value, len, &f);
	if (ret != 0)
		return ret;
	old = sl_exchange_acq_rel(&s->group->filter, f); /* PS4 */
	if (old != NULL)
		psock_synchronize(s->net);
	sl_bpf_free(old);
	return 0;
}

int
psock_fanout_get(struct sl_psock *s, int *value)
{
	const struct psock_fanout *g = s->group;

	*value = g == NULL ? 0 : (int)(g->id | (uint32_t)g->type << 16 | (uint32_t)g->flags << 16);
	return 0;
}

int
psock_rollover_get(struct sl_psock *s, struct tpacket_rollover_stats *stats)
{
	const struct psock_fanout *g = s->group;

	if (g == NULL ||
		(g->type != PACKET_FANOUT_ROLLOVER && !(g->flags & PACKET_FANOUT_FLAG_ROLLOVER)))
		return -EINVAL;
	stats->tp_all = sl_load_relaxed(&g->rolled);
	stats->tp_huge = 0;
	stats->tp_failed = sl_load_relaxed(&g->failed);
	return 0;
}

void
psock_fanout_describe(const struct sl_psock *s, uint32_t *id, uint32_t *type)
{
	*id = s->group->id;
	*type = s->group->type | s->group->flags;
}
