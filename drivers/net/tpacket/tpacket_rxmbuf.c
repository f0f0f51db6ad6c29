/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <string.h>

#include <rte_mbuf.h>
#include <rte_memcpy.h>

#include "tpacket_priv.h"

/* The pool is asked for many at once; close to its end for what is left, one at a time. */
struct rte_mbuf *
tpacket_stash_get(struct tpacket_rxq *q)
{
	if (SL_UNLIKELY(q->stashed == 0)) {
		if (rte_pktmbuf_alloc_bulk(q->pool, q->stash, TPACKET_STASH) == 0) {
			q->stashed = TPACKET_STASH;
		} else {
			q->stash[0] = rte_pktmbuf_alloc(q->pool);
			q->stashed = q->stash[0] != NULL;
		}
		if (q->stashed == 0) {
			sl_counter_add(&q->stats[TPACKET_RX_NO_MBUF], 1);
			return NULL;
		}
	}
	return q->stash[--q->stashed];
}

struct rte_mbuf *
tpacket_chain_get(struct tpacket_rxq *q, uint32_t len)
{
	struct rte_mbuf *head, *last, *m;

	head = tpacket_stash_get(q);
	if (SL_UNLIKELY(head == NULL))
		return NULL;
	head->pkt_len = len;
	head->data_len = (uint16_t)(len < q->room ? len : q->room);
	len -= head->data_len;
	for (last = head; len > 0; last = m) {
		m = tpacket_stash_get(q);
		if (m == NULL) {
			rte_pktmbuf_free(head);
			return NULL;
		}
		m->data_len = (uint16_t)(len < q->room ? len : q->room);
		len -= m->data_len;
		last->next = m;
		head->nb_segs++;
	}
	return head;
}

void
tpacket_chain_write(struct rte_mbuf *m, uint32_t at, const uint8_t *from, uint32_t len)
{
	uint32_t part;

	while (at >= m->data_len && m->next != NULL) {
		at -= m->data_len;
		m = m->next;
	}
	while (len > 0 && m != NULL) {
		part = m->data_len - at;
		part = len < part ? len : part;
		rte_memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, at), from, part);
		from += part;
		len -= part;
		at = 0;
		m = m->next;
	}
}
