/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_hash.h>
#include <rte_ip_frag.h>
#include <rte_jhash.h>
#include <rte_log.h>

#include "cksum.h"
#include "claim.h"
#include "icmp.h"
#include "punt.h"
#include "reasm.h"
#include "seed.h"
#include "sl_errno.h"
#include "sl_udpq_mbuf.h"

#define PACKETS_DEFAULT 256u
#define PACKETS_MAX 65536u
#define BYTES_DEFAULT (1u << 20)
#define TIMEOUT_MS_DEFAULT 30000u
#define TIMEOUT_MS_MAX 120000u
#define NSEC_PER_MSEC UINT64_C(1000000)
/* What the library can join, the first and the last one among them. */
#define PARTS_MAX RTE_LIBRTE_IP_FRAG_MAX_FRAG
#define IP4_HDR 20u
#define IP6_HDR 40u
#define FRAGMENT_HDR 8u
#define ECN_CE 3u

struct reasm_key {
	struct sl_addr src;
	struct sl_addr dst;
	uint32_t id;
	uint16_t port;	/* index */
	uint16_t proto; /* IPv4 alone */
};

struct part {
	uint32_t start;
	uint32_t end;
	bool more;
	struct rte_mbuf *m; /* its data, no headers */
};

/* A datagram that is not whole yet. */
struct reasm {
	struct reasm_key key;
	TAILQ_ENTRY(reasm) link;
	uint64_t due_ns;
	uint32_t bytes; /* of memory, by all parts */
	uint32_t size;	/* sum of the parts' lengths */
	uint32_t reach; /* the highest end */
	uint32_t total; /* where the last part ends; 0 while unknown */
	uint8_t parts;
	uint8_t ecn; /* bit k: a part had k in its ECN field */
	/* Not 0: an outcome. Nothing is held, and all parts that come yet end in it. */
	uint8_t refused;
	/* Of the first part, once it is there: */
	bool l2_group;
	uint8_t proto;
	uint16_t l2_len;
	uint16_t l3_len; /* 0 while it is not */
	uint8_t head[INET_HEAD];
	struct part part[PARTS_MAX];
};

TAILQ_HEAD(reasm_list, reasm);

struct inet_reasm {
	uint32_t packets;
	uint32_t bytes_max;
	uint64_t timeout_ns;
	uint32_t bytes; /* held */
	struct rte_hash *hash;
	struct reasm *entry;
	struct reasm_list held; /* oldest first */
	struct reasm_list free;
	/* The library's side: one datagram at a time passes through. */
	struct rte_ip_frag_tbl *joiner;
	struct rte_ip_frag_death_row row;
};

/* The library tells on standard error how much memory it takes, at a level that is on by default,
 * and in the name of the program (USER1) or, in later releases, its own. */
static struct rte_ip_frag_tbl *
joiner_create(void)
{
	int type[2] = {RTE_LOGTYPE_USER1, rte_log_register("lib.ip_frag")}, level[2] = {-1, -1};
	struct rte_ip_frag_tbl *t;

	for (int i = 0; i < 2; i++) {
		if (type[i] < 0)
			continue;
		level[i] = rte_log_get_level((uint32_t)type[i]);
		rte_log_set_level((uint32_t)type[i], RTE_LOG_WARNING);
	}
	/* Its clock stands still: no entry of its is ever too old. */
	t = rte_ip_frag_table_create(1, 1, 1, UINT64_MAX / 2, SOCKET_ID_ANY);
	for (int i = 0; i < 2; i++) {
		if (level[i] >= 0)
			rte_log_set_level((uint32_t)type[i], (uint32_t)level[i]);
	}
	return t;
}

struct rte_hash *
inet_frag_hash_create(const char *what, uint32_t entries, uint32_t key_len)
{
	static uint32_t serial; /* (a) DPDK wants names that are unique in the process */
	char name[RTE_HASH_NAMESIZE];
	struct rte_hash_parameters params = {.name = name,
		.entries = RTE_MAX(entries, 8u),
		.key_len = key_len,
		.hash_func = rte_jhash,
		.hash_func_init_val = inet_seed(),
		.socket_id = SOCKET_ID_ANY,
		.extra_flag = RTE_HASH_EXTRA_FLAGS_EXT_TABLE};

	snprintf(name, sizeof(name), "sl_%s_%u", what, sl_fetch_add_relaxed(&serial, 1u));
	return rte_hash_create(&params);
}

int
inet_reasm_create(const struct sl_inet_conf *conf, struct inet_reasm **out)
{
	uint32_t packets = conf->frag_packets != 0 ? conf->frag_packets : PACKETS_DEFAULT;
	uint32_t timeout_ms =
		conf->frag_timeout_ms != 0 ? conf->frag_timeout_ms : TIMEOUT_MS_DEFAULT;
	struct inet_reasm *t;
	int ret = -ENOMEM;

	if (packets > PACKETS_MAX || timeout_ms > TIMEOUT_MS_MAX)
		return -EINVAL;
	t = inet_alloc(sizeof(*t));
	if (t == NULL)
		return ret;
	t->packets = packets;
	t->bytes_max = conf->frag_bytes != 0 ? conf->frag_bytes : BYTES_DEFAULT;
	t->timeout_ns = timeout_ms * NSEC_PER_MSEC;
	TAILQ_INIT(&t->held);
	TAILQ_INIT(&t->free);
	t->entry = inet_alloc(packets * sizeof(*t->entry));
	if (t->entry == NULL)
		goto free_table;
	for (uint32_t i = 0; i < packets; i++)
		TAILQ_INSERT_TAIL(&t->free, &t->entry[i], link);
	t->joiner = joiner_create();
	if (t->joiner == NULL)
		goto free_entries;
	t->hash = inet_frag_hash_create("reasm", packets, sizeof(struct reasm_key));
	if (t->hash == NULL) {
		ret = sl_rte_error();
		goto free_joiner;
	}
	*out = t;
	return 0;

free_joiner:
	rte_ip_frag_table_destroy(t->joiner);
free_entries:
	free(t->entry);
free_table:
	free(t);
	return ret;
}

void
inet_reasm_destroy(struct inet_reasm *t)
{
	struct reasm *e;

	if (t == NULL)
		return;
	TAILQ_FOREACH(e, &t->held, link)
	{
		for (uint8_t i = 0; i < e->parts; i++)
			rte_pktmbuf_free(e->part[i].m);
	}
	rte_hash_free(t->hash);
	rte_ip_frag_table_destroy(t->joiner);
	free(t->entry);
	free(t);
}

/* The entry's parts are somebody else's from now on, or freed: it holds nothing. */
static void
let_go(struct inet_worker *w, struct reasm *e)
{
	sl_store_relaxed(&w->held, w->held - e->parts);
	w->reasm->bytes -= e->bytes;
	e->parts = 0;
	e->bytes = 0;
}

static void
free_parts(struct inet_worker *w, struct reasm *e, enum sl_outcome why)
{
	for (uint8_t i = 0; i < e->parts; i++)
		rte_pktmbuf_free(e->part[i].m);
	if (e->parts > 0)
		inet_count(w, why, e->parts);
	let_go(w, e);
}

static void
forget(struct inet_reasm *t, struct reasm *e)
{
	SL_DEBUG_ASSERT(e->parts == 0);
	rte_hash_del_key(t->hash, &e->key);
	TAILQ_REMOVE(&t->held, e, link);
	TAILQ_INSERT_HEAD(&t->free, e, link);
}

static void
drop(struct inet_worker *w, struct reasm *e, enum sl_outcome why)
{
	free_parts(w, e, why);
	forget(w->reasm, e);
}

/* RFC 5722: the whole datagram goes, and what comes of it later. */
static enum sl_outcome
refuse(struct inet_worker *w, struct reasm *e, enum sl_outcome why)
{
	free_parts(w, e, why);
	e->refused = (uint8_t)why;
	return why;
}

static void
expire(struct inet_worker *w)
{
	struct inet_reasm *t = w->reasm;
	struct reasm *e;

	while ((e = TAILQ_FIRST(&t->held)) != NULL && w->now_ns >= e->due_ns)
		drop(w, e, SL_RX_IP_FRAG_TIMEOUT);
	w->reasm_due_ns = e != NULL ? e->due_ns : UINT64_MAX;
}

void
inet_reasm_expire(const struct sl_inet *inet, uint16_t worker)
{
	struct inet_worker *w = &inet->worker[worker];
	uint64_t due;

	expire(w);
	if (inet->claim_worker == NULL)
		return;
	due = inet_claim_frags_expire(inet->claim_worker[worker].frags, w);
	w->reasm_due_ns = RTE_MIN(w->reasm_due_ns, due);
}

void
inet_reasm_bounds(const struct inet_reasm *t, uint32_t *packets, uint64_t *timeout_ns)
{
	*packets = t->packets;
	*timeout_ns = t->timeout_ns;
}

static struct reasm *
add_entry(struct inet_worker *w, const struct reasm_key *key)
{
	struct inet_reasm *t = w->reasm;
	struct reasm *e = TAILQ_FIRST(&t->free);

	if (rte_hash_add_key_data(t->hash, key, e) != 0)
		return NULL;
	TAILQ_REMOVE(&t->free, e, link);
	memset(e, 0, offsetof(struct reasm, head));
	e->key = *key;
	e->due_ns = w->now_ns + t->timeout_ns;
	if (TAILQ_EMPTY(&t->held))
		w->reasm_due_ns = RTE_MIN(w->reasm_due_ns, e->due_ns);
	TAILQ_INSERT_TAIL(&t->held, e, link);
	return e;
}

/* Make room for one more part with so much memory: the oldest datagrams go first, so that a flood
 * of parts without their rest does not keep out those whose rest is on its way. False if there is
 * none, and *e NULL if that is what went. */
static bool
make_room(struct inet_worker *w, struct reasm **e, uint32_t bytes)
{
	struct inet_reasm *t = w->reasm;

	if (bytes > t->bytes_max)
		return false;
	while (w->held + 1 > t->packets || bytes > t->bytes_max - t->bytes ||
		(*e == NULL && TAILQ_EMPTY(&t->free))) {
		struct reasm *oldest = TAILQ_FIRST(&t->held);
		bool own = oldest == *e;

		drop(w, oldest, SL_RX_IP_FRAG_FULL);
		if (own) {
			*e = NULL;
			return false;
		}
	}
	return true;
}

/* Can there be such a fragment at all? p->l4_off is where its data starts. */
static enum sl_outcome
check_shape(struct inet_rx *rx, const struct inet_pkt *p, const struct inet_fragment *f)
{
	uint32_t len = p->end - p->l4_off, end = f->start + len;
	bool v4 = inet_is_v4(&p->dst);
	/* IPv6 counts its own header out. */
	uint32_t head = v4 ? (uint32_t)p->l4_off - p->l2_len : 0;

	if (len == 0)
		return SL_RX_IP_FRAG_BAD;
	if (f->more && len % 8 != 0) {
		if (!v4) /* RFC 8200, 4.5: the payload length, */
			inet_icmp_error(rx, p, ICMP6_PARAM, ICMP6_PARAM_FIELD, 4);
		return SL_RX_IP_FRAG_BAD;
	}
	if (end + head > UINT16_MAX) {
		if (!v4) /* or the offset is to blame */
			inet_icmp_error(rx, p, ICMP6_PARAM, ICMP6_PARAM_FIELD,
				p->l4_off - FRAGMENT_HDR + 2 - p->l2_len);
		return SL_RX_IP_FRAG_BAD;
	}
	return INET_PASS;
}

/* Does the part fit those that are held? */
static enum sl_outcome
check_place(const struct reasm *e, const struct part *new)
{
	uint8_t middle = 0;

	for (uint8_t i = 0; i < e->parts; i++) {
		const struct part *old = &e->part[i];

		if (new->start == old->start &&new->end == old->end &&new->more == old->more)
			return SL_RX_IP_FRAG_DUPLICATE;
		if (new->start<old->end &&new->end> old->start)
			return SL_RX_IP_FRAG_OVERLAP;
		middle += old->start != 0 && old->more;
	}
	/* Where the last one ends is where the datagram does. */
	if (e->total != 0 && (new->end > e->total || !new->more))
		return SL_RX_IP_FRAG_OVERLAP;
	if (!new->more &&new->end < e->reach)
		return SL_RX_IP_FRAG_OVERLAP;
	if (new->start != 0 && new->more && middle == PARTS_MAX - 2)
		return SL_RX_IP_FRAG_MANY;
	return INET_PASS;
}

/* Keep the headers of the first part: for IPv6 without extension headers before the fragment
 * header, which have had their effect. */
static void
keep_head(struct reasm *e, const struct inet_pkt *p, uint8_t proto)
{
	bool v4 = inet_is_v4(&p->dst);

	e->l2_group = p->l2_group;
	e->l2_len = p->l2_len;
	e->l3_len = v4 ? (uint16_t)(p->l4_off - p->l2_len) : IP6_HDR + FRAGMENT_HDR;
	e->proto = proto;
	memcpy(e->head, p->head, p->l2_len + (v4 ? e->l3_len : IP6_HDR));
	if (!v4) {
		e->head[p->l2_len + 6] = IPPROTO_FRAGMENT;
		memset(e->head + p->l2_len + IP6_HDR, 0, FRAGMENT_HDR);
		e->head[p->l2_len + IP6_HDR] = proto;
	}
}

/* RFC 3168, 5.3: congestion that one part has met, the datagram has met. */
static void
mark_congestion(struct reasm *e)
{
	uint8_t *ip = e->head + e->l2_len;

	if ((e->ecn >> ECN_CE & 1) == 0)
		return;
	if (inet_is_v4(&e->key.dst))
		ip[1] |= ECN_CE;
	else
		ip[1] |= ECN_CE << 4;
}

/* Put the head in front of the first part: into the room of its own headers if nobody else can see
 * that, else into an mbuf of ours. NULL if there is none. */
static struct rte_mbuf *
put_head(const struct reasm *e, struct rte_mbuf *m, struct rte_mempool *pool)
{
	uint16_t len = (uint16_t)(e->l2_len + e->l3_len);
	struct rte_mbuf *head = m;
	char *room;

	if (!RTE_MBUF_DIRECT(m) || rte_mbuf_refcnt_read(m) != 1 || rte_pktmbuf_headroom(m) < len) {
		head = rte_pktmbuf_alloc(pool);
		if (head == NULL)
			return NULL;
		head->port = m->port;
		/* Also fails for a pool with buffers too small for any header. */
		if (rte_pktmbuf_tailroom(head) < len || rte_pktmbuf_chain(head, m) != 0) {
			rte_pktmbuf_free(head);
			return NULL;
		}
		room = rte_pktmbuf_mtod(head, char *);
		head->data_len = len;
		head->pkt_len += len;
	} else {
		room = rte_pktmbuf_prepend(m, len);
		head->ol_flags = 0;
	}
	memcpy(room, e->head, len);
	head->l2_len = e->l2_len;
	head->l3_len = e->l3_len;
	return head;
}

/* Give one part to the library; what it returns. */
static struct rte_mbuf *
hand_over(struct inet_reasm *t, const struct reasm *e, const struct part *part)
{
	uint16_t len = (uint16_t)(part->end - part->start);

	if (inet_is_v4(&e->key.dst)) {
		struct rte_ipv4_hdr ip = {
			.total_length = rte_cpu_to_be_16((uint16_t)(len + part->m->l3_len)),
			.fragment_offset = rte_cpu_to_be_16(
				(uint16_t)(part->start / 8 |
					   (part->more ? RTE_IPV4_HDR_MF_FLAG : 0)))};

		return rte_ipv4_frag_reassemble_packet(t->joiner, &t->row, part->m, 1, &ip);
	} else {
		struct {
			struct rte_ipv6_hdr ip;
			struct rte_ipv6_fragment_ext fragment;
		} h = {.ip.payload_len = rte_cpu_to_be_16((uint16_t)(len + FRAGMENT_HDR)),
			.fragment.frag_data =
				rte_cpu_to_be_16((uint16_t)(part->start | (part->more ? 1 : 0)))};

		return rte_ipv6_frag_reassemble_packet(
			t->joiner, &t->row, part->m, 1, &h.ip, &h.fragment);
	}
}

/* All parts are there: make one packet of them. NULL if there is no mbuf; they are freed then. */
static struct rte_mbuf *
join(struct inet_worker *w, struct reasm *e, struct rte_mempool *pool)
{
	struct inet_reasm *t = w->reasm;
	struct rte_mbuf *whole = NULL;

	mark_congestion(e);
	for (uint8_t i = 0; i < e->parts; i++) {
		struct part *part = &e->part[i];
		struct rte_mbuf *head;

		if (part->start != 0) {
			part->m->l2_len = 0;
			part->m->l3_len = 0;
			continue;
		}
		head = put_head(e, part->m, pool);
		if (head == NULL)
			return NULL;
		part->m = head;
	}
	for (uint8_t i = 0; i < e->parts; i++)
		whole = hand_over(t, e, &e->part[i]);
	/* They fit each other, and the table was empty. */
	SL_ASSERT(whole != NULL && t->row.cnt == 0);
	return whole;
}

/* Let the datagram go through IP input. Its mbuf is ours, not that of the fragment that came. */
static unsigned int
deliver(struct inet_rx *rx, const struct reasm *e, struct rte_mbuf *m)
{
	uint8_t *head = rx->head[rx->dgrams];
	struct inet_pkt p = {.m = m,
		.head = head,
		.l2_len = e->l2_len,
		.end = m->pkt_len,
		.l2_group = e->l2_group,
		.whole = true};
	bool v4 = inet_is_v4(&e->key.dst);
	unsigned int result;

	if (v4) {
		uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, e->l2_len);
		uint16_t sum = (uint16_t)~inet_fold(inet_sum(ip, e->l3_len)); /* the field is 0 */

		memcpy(ip + 10, &sum, sizeof(sum));
	}
	p.head_len = (uint16_t)inet_mbuf_read(m, 0, head, INET_HEAD);
	result = inet_punt_result(rx, &p, (v4 ? inet_ip4_input : inet_ip6_input)(rx, &p));
	if ((result & INET_KEPT) == 0)
		rx->free[rx->frees++] = m;
	return result | INET_KEPT;
}

/* The datagram is whole. */
static unsigned int
complete(struct inet_rx *rx, struct reasm *e)
{
	struct inet_worker *w = rx->w;
	struct rte_mbuf *m;
	unsigned int result;

	m = join(w, e, rx->port->pool);
	if (m == NULL) {
		/* The one that came last is among them, and counts by what we return. */
		free_parts(w, e, SL_RX_IP_FRAG_FULL);
		forget(w->reasm, e);
		return INET_HELD;
	}
	inet_count(w, SL_RX_IP_FRAG_MERGED, (uint64_t)e->parts - 1);
	let_go(w, e);
	result = deliver(rx, e, m);
	forget(w->reasm, e);
	return result;
}

static void
hold(struct inet_worker *w, struct reasm *e, const struct part *part, uint32_t bytes)
{
	e->part[e->parts++] = *part;
	e->size += part->end - part->start;
	e->reach = RTE_MAX(e->reach, part->end);
	e->bytes += bytes;
	w->reasm->bytes += bytes;
	sl_counter_add(&w->held, 1);
	if (!part->more)
		e->total = part->end;
}

static unsigned int
take(struct inet_rx *rx, struct inet_pkt *p, const struct inet_fragment *f,
	const struct reasm_key *key, struct reasm *e)
{
	struct part part = {.start = f->start,
		.end = f->start + (p->end - p->l4_off),
		.more = f->more,
		.m = p->m};
	uint32_t bytes = sl_mbuf_truesize(p->m);
	enum sl_outcome outcome = e != NULL ? check_place(e, &part) : INET_PASS;

	if (outcome == SL_RX_IP_FRAG_OVERLAP || outcome == SL_RX_IP_FRAG_MANY)
		return refuse(rx->w, e, outcome);
	if (outcome != INET_PASS)
		return outcome;
	if (!make_room(rx->w, &e, bytes))
		return SL_RX_IP_FRAG_FULL;
	if (e == NULL)
		e = add_entry(rx->w, key);
	if (e == NULL)
		return SL_RX_IP_FRAG_FULL;
	if (f->start == 0)
		keep_head(e, p, f->proto);
	/* A first part with options may leave no room for what fitted before. */
	if (inet_is_v4(&p->dst) && e->l3_len + RTE_MAX(e->reach, part.end) > UINT16_MAX)
		return refuse(rx->w, e, SL_RX_IP_FRAG_BAD);
	e->ecn |= (uint8_t)(1u << (p->tos & 3));
	inet_mbuf_window(p->m, p->l4_off, part.end - part.start);
	hold(rx->w, e, &part, bytes);
	return e->size == e->total ? complete(rx, e) : INET_HELD;
}

unsigned int
inet_reasm_input(struct inet_rx *rx, struct inet_pkt *p, const struct inet_fragment *f)
{
	bool v4 = inet_is_v4(&p->dst);
	struct reasm_key key = {.src = p->src,
		.dst = p->dst,
		.id = f->id,
		.port = rx->port->index,
		.proto = v4 ? f->proto : 0};
	enum sl_outcome outcome = check_shape(rx, p, f);
	struct inet_worker *w = rx->w;
	void *found;

	if (outcome != INET_PASS)
		return outcome;
	if (w->now_ns >= w->reasm_due_ns)
		inet_reasm_expire(rx->inet, rx->worker);
	if (rte_hash_lookup_data(w->reasm->hash, &key, &found) < 0)
		return take(rx, p, f, &key, NULL);
	if (((struct reasm *)found)->refused != 0)
		return ((struct reasm *)found)->refused;
	return take(rx, p, f, &key, found);
}
