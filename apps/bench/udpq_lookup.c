/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "sl_inet.h"
#include "sl_udp.h"

#include "udpq_lookup.h"

#define HEADERS 42
#define PREFIX 16
#define WORKER 0
#define DPORT 9u
#define LOCAL 0xc6120002u  /* 198.18.0.2 */
#define REMOTE 0xc6120100u /* 198.18.1.0 and on, a host a flow */
/* A burst is taken before the next one comes. */
#define SLOTS SL_INET_BURST

struct flow {
	struct sl_udp_sock *sock;
	uint8_t headers[HEADERS];
};

struct lookup {
	struct lookup_conf conf;
	struct sl_inet *inet;
	struct sl_udp *udp;
	struct flow flow[]; /* not connected: all have the first one's socket */
};

static struct sockaddr_in
name_make(uint32_t addr, uint32_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = rte_cpu_to_be_16((uint16_t)port),
		.sin_addr.s_addr = rte_cpu_to_be_32(addr)};
}

static void
headers_make(const struct lookup *k, struct flow *f, uint32_t number)
{
	struct rte_ipv4_hdr ip = {
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = rte_cpu_to_be_16((uint16_t)(28 + k->conf.size)),
		.time_to_live = 64,
		.next_proto_id = IPPROTO_UDP,
		.src_addr = rte_cpu_to_be_32(REMOTE + number),
		.dst_addr = rte_cpu_to_be_32(LOCAL),
	};
	/* No checksum, as IPv4 allows: a port that verifies it leaves as little to do. */
	struct rte_udp_hdr udp = {
		.src_port = rte_cpu_to_be_16((uint16_t)(LOOKUP_SPORT + number)),
		.dst_port = RTE_BE16(DPORT),
		.dgram_len = rte_cpu_to_be_16((uint16_t)(8 + k->conf.size)),
	};
	struct rte_ether_hdr eth = {.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4)};

	rte_eth_macaddr_get(k->conf.port, &eth.dst_addr);
	ip.hdr_checksum = rte_ipv4_cksum(&ip);
	memcpy(f->headers, &eth, sizeof(eth));
	memcpy(f->headers + sizeof(eth), &ip, sizeof(ip));
	memcpy(f->headers + sizeof(eth) + sizeof(ip), &udp, sizeof(udp));
}

/* A socket that the producer itself reads. */
static int
sock_make(const struct lookup *k, struct sl_udp_sock **sock)
{
	struct sl_udp_sock_conf conf = {
		.family = AF_INET,
		.worker = WORKER,
		.slots = SLOTS,
		/* Connected ones share the port. */
		.reuse_port = k->conf.connected,
	};
	struct sockaddr_in name = name_make(LOCAL, DPORT);
	int ret = sl_udp_socket(k->udp, &conf, sock);

	return ret == 0 ? sl_udp_bind(*sock, (struct sockaddr *)&name, sizeof(name)) : ret;
}

static int
flow_make(struct lookup *k, uint32_t i)
{
	uint32_t number = k->conf.flow_first + i;
	struct sockaddr_in name = name_make(REMOTE + number, LOOKUP_SPORT + number);
	struct flow *f = &k->flow[i];
	int ret;

	headers_make(k, f, number);
	if (i > 0 && !k->conf.connected) {
		f->sock = k->flow[0].sock;
		return 0;
	}
	ret = sock_make(k, &f->sock);
	if (ret != 0 || !k->conf.connected)
		return ret;
	return sl_udp_connect(f->sock, (struct sockaddr *)&name, sizeof(name));
}

static int
stack_make(struct lookup *k)
{
	struct sl_inet_conf inet = {.workers = 1};
	struct sl_inet_port_conf port = {.port_id = k->conf.port, .pool = k->conf.pool};
	struct sl_udp_conf udp = {.pool = k->conf.pool, .sockets = k->conf.flow_count};
	struct sl_addr addr = sl_addr_v4(rte_cpu_to_be_32(LOCAL));
	int ret = sl_inet_create(&inet, &k->inet);

	if (ret == 0)
		ret = sl_inet_port_add(k->inet, &port);
	if (ret == 0)
		ret = sl_inet_addr_add(k->inet, k->conf.port, &addr, PREFIX);
	return ret == 0 ? sl_udp_create(k->inet, &udp, &k->udp) : ret;
}

int
lookup_create(const struct lookup_conf *conf, struct lookup **out)
{
	struct lookup *k = calloc(1, sizeof(*k) + conf->flow_count * sizeof(k->flow[0]));
	int ret;

	if (k == NULL)
		return -ENOMEM;
	k->conf = *conf;
	ret = stack_make(k);
	for (uint32_t i = 0; i < conf->flow_count && ret == 0; i++)
		ret = flow_make(k, i);
	if (ret != 0) {
		lookup_destroy(k);
		return ret;
	}
	*out = k;
	return 0;
}

void
lookup_destroy(struct lookup *k)
{
	if (k == NULL)
		return;
	for (uint32_t i = 0; i < (k->conf.connected ? k->conf.flow_count : 1); i++) {
		if (k->flow[i].sock != NULL)
			sl_udp_close(k->flow[i].sock, SL_INET_NO_WORKER);
	}
	if (k->udp != NULL)
		sl_udp_destroy(k->udp);
	if (k->inet != NULL)
		sl_inet_destroy(k->inet);
	free(k);
}

uint16_t
lookup_burst(
	struct lookup *k, uint32_t flow, struct rte_mbuf **pkts, uint16_t n, struct sl_dgram *d)
{
	const struct flow *f = &k->flow[flow - k->conf.flow_first];
	uint16_t len = (uint16_t)(HEADERS + k->conf.size);
	int taken;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];

		memcpy(rte_pktmbuf_mtod(m, void *), f->headers, HEADERS);
		m->data_len = len;
		m->pkt_len = len;
		m->port = k->conf.port;
	}
	sl_inet_input_burst(k->inet, WORKER, k->conf.port, pkts, n);
	taken = sl_udp_recv_burst(f->sock, d, n);
	return taken > 0 ? (uint16_t)taken : 0;
}

void
lookup_park(struct lookup *k)
{
	sl_inet_worker_offline(k->inet, WORKER);
}
