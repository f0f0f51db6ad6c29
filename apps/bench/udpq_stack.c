/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "sl_inet.h"
#include "sl_udp.h"

#include "udpq_pcap.h"
#include "udpq_stack.h"

#define WORKER 0
/* The senders' addresses are on the link. */
#define PREFIX 16

struct stack {
	struct sl_inet *inet;
	struct sl_udp *udp;
	struct sl_udp_sock *sock;
	uint16_t port;
	struct mmsghdr msg[LOOP_BURST];
	struct iovec iov[LOOP_BURST];
};

static int
inet_make(struct stack *s, struct rte_mempool *pool)
{
	struct sl_inet_conf conf = {.workers = 1};
	/* Should net_pcap have another MAC address than the capture file's frames. */
	struct sl_inet_port_conf port = {.port_id = s->port, .pool = pool, .promiscuous = true};
	struct sl_addr addr;
	uint8_t prefix;
	int ret = sl_inet_create(&conf, &s->inet);

	if (ret == 0)
		ret = sl_inet_port_add(s->inet, &port);
	if (ret == 0)
		ret = sl_addr_parse(PCAP_DST, &addr, &prefix);
	return ret == 0 ? sl_inet_addr_add(s->inet, s->port, &addr, PREFIX) : ret;
}

static int
socket_make(struct stack *s, struct rte_mempool *pool)
{
	struct sl_udp_conf conf = {.pool = pool};
	struct sl_udp_sock_conf sock = {.family = AF_INET, .worker = WORKER};
	struct sockaddr_in any = {
		.sin_family = AF_INET, .sin_port = rte_cpu_to_be_16(PCAP_DST_PORT)};
	int ret = sl_udp_create(s->inet, &conf, &s->udp);

	if (ret == 0)
		ret = sl_udp_socket(s->udp, &sock, &s->sock);
	return ret == 0 ? sl_udp_bind(s->sock, (struct sockaddr *)&any, sizeof(any)) : ret;
}

int
stack_create(uint16_t port, struct rte_mempool *pool, const struct loop_buffer *buffer,
	struct stack **out)
{
	struct stack *s = calloc(1, sizeof(*s));
	int ret;

	if (s == NULL)
		return -ENOMEM;
	s->port = port;
	for (int i = 0; i < LOOP_BURST; i++) {
		s->iov[i] = (struct iovec){.iov_base = buffer[i].data, .iov_len = buffer[i].size};
		s->msg[i].msg_hdr = (struct msghdr){.msg_iov = &s->iov[i], .msg_iovlen = 1};
	}
	ret = inet_make(s, pool);
	if (ret == 0)
		ret = socket_make(s, pool);
	if (ret != 0) {
		stack_destroy(s);
		return ret;
	}
	*out = s;
	return 0;
}

void
stack_destroy(struct stack *s)
{
	if (s == NULL)
		return;
	if (s->sock != NULL)
		sl_udp_close(s->sock, WORKER);
	if (s->inet != NULL)
		sl_inet_worker_offline(s->inet, WORKER);
	if (s->udp != NULL)
		sl_udp_destroy(s->udp);
	if (s->inet != NULL)
		sl_inet_destroy(s->inet);
	free(s);
}

int
stack_turn(struct stack *s)
{
	if (sl_inet_poll(s->inet, WORKER, s->port, 0) == 0)
		return 0;
	return sl_udp_recvmmsg(s->sock, s->msg, LOOP_BURST, MSG_DONTWAIT, NULL);
}

uint32_t
stack_length(const struct stack *s, int i)
{
	return s->msg[i].msg_len;
}

bool
stack_check(const struct stack *s, uint64_t datagrams)
{
	uint64_t counts[SL_OUTCOME_COUNT];
	struct sl_udp_sock_stats stats;

	sl_inet_outcomes(s->inet, SL_INET_NO_WORKER, counts);
	sl_udp_sock_stats(s->sock, &stats);
	return sl_inet_received(s->inet, SL_INET_NO_WORKER) == datagrams &&
	       counts[SL_RX_UDP_QUEUED] == datagrams && stats.datagrams == datagrams &&
	       stats.bytes == datagrams * PCAP_PAYLOAD && stats.queue.rmem == 0;
}
