/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef UDPQ_PCAP_H
#define UDPQ_PCAP_H

/**
 * @file
 * The capture file that net_pcap plays: one frame of a UDP datagram per flow, checksums right.
 */

#include <stddef.h>
#include <stdint.h>

#include "sl_base.h"

#define PCAP_FLOWS 512
#define PCAP_PAYLOAD 22
/** Ethernet, IPv4 and UDP header, payload; without the frame check sequence. */
#define PCAP_FRAME (14 + 20 + 8 + PCAP_PAYLOAD)
/** All go to this address and port. */
#define PCAP_DST "198.18.0.2"
#define PCAP_DST_PORT 9

/**
 * Write the file under a new name in $TMPDIR or /tmp.
 *
 * @param path   receives the name; size at least 64
 * @return       0; -errno. The caller removes the file.
 */
int pcap_file_write(char *path, size_t size) SL_MUST_CHECK;

/** Byte i of a flow's payload. */
static inline uint8_t
pcap_payload_byte(uint32_t flow, uint32_t i)
{
	return (uint8_t)(flow * 7 + i * 13 + 1);
}

#endif
