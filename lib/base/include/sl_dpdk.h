/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_DPDK_H
#define SL_DPDK_H

/**
 * @file
 * What differs between the DPDK releases that we build on (22.11 to the newest long-term one).
 * Version tests stand here and nowhere else.
 *
 * Stability: stable (doc/api.md).
 */

#include <string.h>

#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_telemetry.h>
#include <rte_version.h>

#include "sl_base.h"

#if RTE_VERSION < RTE_VERSION_NUM(22, 11, 0, 0)
#error "Sluice needs DPDK 22.11 or newer"
#endif

/* rte_tel_data_add_dict_u64 became _uint in 23.03; the old name left in 25.11. */
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
#define sl_tel_dict_u64(d, name, v) rte_tel_data_add_dict_uint((d), (name), (v))
#else
#define sl_tel_dict_u64(d, name, v) rte_tel_data_add_dict_u64((d), (name), (v))
#endif

/* An IPv6 address, and an array of such, as rte_fib6 takes them: bytes became a struct of them
 * in 24.11. */
#if RTE_VERSION >= RTE_VERSION_NUM(24, 11, 0, 0)
#define sl_fib6_addr(bytes) ((const struct rte_ipv6_addr *)(bytes))
#define sl_fib6_addrs(bytes) ((const struct rte_ipv6_addr *)(bytes))
#else
#define sl_fib6_addr(bytes) (bytes)
#define sl_fib6_addrs(bytes) ((uint8_t(*)[16])(bytes))
#endif

SL_BEGIN_DECLS

/**
 * Sum len bytes of a packet from off on, as rte_raw_cksum_mbuf does, but right: that one loses the
 * carries of a piece that begins at an odd byte of what is summed, and the sum is wrong then.
 *
 * @param sum   folded, not complemented, in the packet's byte order; set on success only
 * @return      0; -1: the packet has less
 */
static inline int
sl_raw_cksum_mbuf(const struct rte_mbuf *m, uint32_t off, uint32_t len, uint16_t *sum)
{
	uint32_t all = 0, done = 0;

	if (off > m->pkt_len || len > m->pkt_len - off)
		return -1;
	for (; m != NULL && done < len; m = m->next) {
		uint32_t skip = RTE_MIN(off, (uint32_t)m->data_len);
		uint32_t part = RTE_MIN(len - done, m->data_len - skip);
		uint16_t piece =
			rte_raw_cksum(rte_pktmbuf_mtod_offset(m, const char *, skip), part);

		all += done % 2 != 0 ? rte_bswap16(piece) : piece;
		off -= skip;
		done += part;
	}
	all = (all & 0xffff) + (all >> 16);
	*sum = (uint16_t)((all & 0xffff) + (all >> 16));
	return 0;
}

SL_END_DECLS

#endif
