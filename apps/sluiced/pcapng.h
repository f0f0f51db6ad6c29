/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_PCAPNG_H
#define SLUICED_PCAPNG_H

/**
 * @file
 * Blocks of a pcapng file, written into memory: the head (a section with one interface of Ethernet:
 * libpcap reads no files with interfaces of several kinds) and one block for each frame. Numbers
 * are in this machine's order, as the format wants it.
 */

#include "sl_base.h"

struct rte_mbuf;

#define PCAPNG_HEAD_MAX 128u
/** Of a block, besides its packet and the 0 to 3 octets that pad that. */
#define PCAPNG_BLOCK 32u

/** Bytes that the block of a packet takes. */
uint32_t pcapng_block_len(uint32_t packet);

/** Write the head. Returns its length. */
uint32_t pcapng_head(uint8_t *to);

/**
 * Write the block of a packet.
 *
 * @param to   pcapng_block_len of the packet's bytes
 * @param ns   since 1970
 * @return     its length
 */
uint32_t pcapng_block(uint8_t *to, const struct rte_mbuf *m, uint64_t ns);

#endif
