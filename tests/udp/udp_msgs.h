/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef UDP_MSGS_H
#define UDP_MSGS_H

/** @file Numbered datagrams, and messages to receive them into. */

#include "udp_test.h"

#define PORT 5000
#define VLEN 300

/* Messages with a buffer and a name each. */
static struct mmsghdr msgs[VLEN];
static struct iovec iovs[VLEN];
static struct sockaddr_in names[VLEN];
static uint8_t bufs[VLEN][64];

static inline void
reset(void)
{
	memset(bufs, 0, sizeof(bufs));
	for (int i = 0; i < VLEN; i++) {
		iovs[i] = (struct iovec){.iov_base = bufs[i], .iov_len = sizeof(bufs[i])};
		msgs[i].msg_len = 0;
		msgs[i].msg_hdr = (struct msghdr){.msg_iov = &iovs[i], .msg_iovlen = 1,
			.msg_name = &names[i], .msg_namelen = sizeof(names[i])};
	}
}

/* A number as payload. */
static inline struct rte_mbuf *
numbered(const char *dst, uint16_t sport, uint16_t dport, uint32_t number)
{
	return tu_frame(TU_PEER, dst, sport, dport, &number, sizeof(number));
}

static inline uint32_t
number_in(int i)
{
	uint32_t number;

	memcpy(&number, bufs[i], sizeof(number));
	return number;
}

static inline void
feed(uint16_t dport, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct rte_mbuf *m = numbered(TU_US, 7777, dport, first + i);

		tu_input(&m, 1);
	}
}

static inline struct sl_udp_sock *
plain_socket(uint16_t port)
{
	struct sl_udp_sock_conf conf = {.worker = 0};

	return tu_bound(&conf, "0.0.0.0", port);
}

#endif
