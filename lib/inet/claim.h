/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef INET_CLAIM_H
#define INET_CLAIM_H

/*
 * How claimed packets find their owner.
 *
 *   burst --> inet_claim_take: plain UDP in one segment that a claim names ---> claimed
 *               |                                 of these, what looks odd --> general path
 *               +-> all else: the usual way; what the general path meets:
 *                     inet_claim_ip: UDP, fragments, ICMP errors ------------> claimed
 *
 * So whatever is refused is refused by the general path, with its outcome, and the common case
 * costs a copy of 64 bytes and a look at what the worker remembers.
 */
#include "inet_priv.h"
#include "sl_inet_claim.h"

/* A claim as a worker remembers it (o). Good while the set is the one of that serial number. */
struct claim_memo {
	struct sl_addr addr;
	uint16_t udp_port;
	uint16_t kind;
	uint32_t serial; /* 0: nothing remembered */
	const struct sl_inet_claim *claim;
};

#define CLAIM_MEMOS 64u

struct claim_frags;

/* What one worker has of its own, whatever the set (o). */
struct inet_claim_worker {
	struct claim_memo memo[CLAIM_MEMOS];
	struct claim_frags *frags;
	uint8_t guard[SL_CACHE_GUARD];
};

struct sl_inet_claims {
	/* (c) */
	const struct sl_inet_claim_ops *ops;
	void *arg;
	uint32_t serial; /* not 0; no other set of the process has it */
	uint32_t n;
	struct sl_inet_claim *claim;
	/* Kind, address and port, or port 0 for any of that address -> claim. */
	struct rte_hash *hash;
	uint64_t ports[2][65536 / 64]; /* by kind: some claim has that port (network order) */
};

/* Claimed packets of a burst; lives on the stack. */
struct inet_claim_rx {
	const struct sl_inet_claims *set;
	struct inet_claim_worker *cw;
	uint16_t n;
	struct sl_inet_claimed c[SL_INET_BURST];
	uint8_t head[SL_INET_BURST][SL_INET_CLAIM_HEAD] SL_CACHE_ALIGNED;
};

/** What of a fragment is known when it comes: see inet_fragment. */
struct inet_fragment;

/** The same as inet_claim_find, from the set. */
const struct sl_inet_claim *inet_claim_find_slow(struct inet_claim_rx *crx,
	enum sl_inet_claim_kind kind, const struct sl_addr *addr, uint16_t udp_port,
	struct claim_memo *memo);

/** The claim of that kind for an address and port, or NULL. */
static inline const struct sl_inet_claim *
inet_claim_find(struct inet_claim_rx *crx, enum sl_inet_claim_kind kind, const struct sl_addr *addr,
	uint16_t udp_port)
{
	uint32_t place = addr->b[15] ^ (udp_port >> 8) ^ udp_port ^ (uint32_t)kind << 5;
	struct claim_memo *memo = &crx->cw->memo[place % CLAIM_MEMOS];

	if ((crx->set->ports[kind][udp_port / 64] >> udp_port % 64 & 1) == 0)
		return NULL;
	if (SL_LIKELY(memo->serial == crx->set->serial && memo->udp_port == udp_port &&
		      memo->kind == (uint16_t)kind && inet_addr_equal(&memo->addr, addr)))
		return memo->claim;
	return inet_claim_find_slow(crx, kind, addr, udp_port, memo);
}

/** Has some claim of that kind the address? */
bool inet_claim_has_addr(
	const struct sl_inet_claims *set, enum sl_inet_claim_kind kind, const struct sl_addr *addr);
/** May a datagram or quote from a FROM claim's place be the owner's, though it is one of our
 * addresses? */
static inline bool
inet_claim_own(const struct sl_inet_claim *c, uint16_t udp_port)
{
	uint16_t port = rte_be_to_cpu_16(udp_port);

	return c->own_last != 0 && c->own_first <= port && port <= c->own_last;
}

/** The claim that a datagram falls under, which is to an address of ours or not; NULL for none. */
static inline const struct sl_inet_claim *
inet_claim_match(struct inet_claim_rx *crx, const struct sl_addr *src, const struct sl_addr *dst,
	uint16_t sport, uint16_t dport, bool local)
{
	const struct sl_inet_claim *c;

	if (local) {
		c = inet_claim_find(crx, SL_CLAIM_TO, dst, dport);
		if (c != NULL)
			return c;
	}
	c = inet_claim_find(crx, SL_CLAIM_FROM, src, sport);
	if (c == NULL || !local)
		return c;
	return inet_claim_own(c, dport) ? c : NULL;
}

/** Free what workers have of their own. */
void inet_claim_workers_destroy(struct sl_inet *inet);
void inet_claim_begin(
	struct inet_rx *rx, struct inet_claim_rx *crx, const struct sl_inet_claims *set);
/**
 * Take the plain datagrams that are claimed out of a burst.
 *
 * @param pkts   n of them, at least one, and room for INET_AHEAD behind them, which are written;
 * what is left goes to the front; returns how many
 * @param odd    gets those that are claimed and for the general path to look at
 */
uint16_t inet_claim_take(struct inet_rx *rx, struct rte_mbuf **pkts, uint16_t n,
	struct rte_mbuf **odd, uint16_t *odds);
/** Hand over what is there. */
void inet_claim_deliver(struct inet_rx *rx);

/**
 * The general path has a packet with good headers up to the transport, or to a fragment's data.
 *
 * @param proto   of the transport
 * @param f       NULL unless it is a fragment
 * @param local   it is for us
 * @return        INET_PASS: nobody's; else as of a handler
 */
unsigned int inet_claim_ip(struct inet_rx *rx, const struct inet_pkt *p, uint8_t proto,
	const struct inet_fragment *f, bool local);
/** A place for a claimed packet, filled in as far as p says. */
struct sl_inet_claimed *inet_claim_add(
	struct inet_rx *rx, const struct inet_pkt *p, const struct sl_inet_claim *claim);

/* claim_icmp.c */
unsigned int inet_claim_icmp(struct inet_rx *rx, const struct inet_pkt *p, bool local);

/* claim_frag.c */
int inet_claim_frags_create(const struct sl_inet *inet, struct claim_frags **out) SL_MUST_CHECK;
void inet_claim_frags_destroy(struct claim_frags *t);
unsigned int inet_claim_fragment(
	struct inet_rx *rx, const struct inet_pkt *p, const struct inet_fragment *f, bool local);
/** Drop what is too old; the time when that is to be done next. */
uint64_t inet_claim_frags_expire(struct claim_frags *t, struct inet_worker *w);

#endif
