/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_BPF_H
#define SL_BPF_H

/**
 * @file
 * Classic BPF on packets: checked by DPDK and libpcap, run by libpcap.
 *
 * DPDK would compile a program to machine code. But 22.11, and later ones as far as they were read,
 * take the wrong register for the index of a byte or a word at a place that was computed
 * ("icmp[0] == 8"), and 22.11 reads outside of the packet where such a place is just below zero. The
 * place may come from the packet.
 *
 * Stability: experimental (doc/api.md).
 */

#include <rte_mbuf.h>

#include "sl_base.h"

SL_BEGIN_DECLS

struct bpf_program; /* of <pcap/bpf.h> */
struct sl_bpf;

/**
 * Check a program and copy it.
 *
 * @param program   the caller's; loops, loads of ancillary data and reads of unwritten memory are
 *                  refused
 * @param out       set on success only; freed by sl_bpf_free
 * @return          0; -EINVAL: it cannot be run on any packet without harm; -ENOMEM
 * Caller: control path; EAL is there.
 */
int sl_bpf_create(const struct bpf_program *program, struct sl_bpf **out) SL_MUST_CHECK;

/** NULL is allowed. Caller: when nobody runs it any more. */
void sl_bpf_free(struct sl_bpf *f);

/**
 * Run it on a packet.
 *
 * @param m   from its first byte on; in several segments it is copied to the stack first, the first
 *            64 KB of it at most, behind which the program finds nothing
 * @return    bytes to keep; 0 also if the program reads behind the packet's end
 * Caller: any thread; never blocks.
 */
uint32_t sl_bpf_run(const struct sl_bpf *f, const struct rte_mbuf *m);

SL_END_DECLS

#endif
