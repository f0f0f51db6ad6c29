/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef UDP_TEST_H
#define UDP_TEST_H

/**
 * @file
 * A stack with one port for the tests of lib/udp: a net_ring device, whose transmit side is its own
 * receive side, so that what the stack sends can be looked at; frames built here go in by
 * sl_inet_input_burst. Time is ours (tu_now), so that duplicate detection and ageing take no time.
 *
 *   us 198.18.0.2, 198.18.0.3, 2001:db8::2     peer 198.18.0.1, 198.18.0.4, 2001:db8::1
 */

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rte_arp.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_icmp.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "sl_inet.h"
#include "sl_test.h"
#include "sl_test_eal.h"
#include "sl_udp.h"

#define TU_US "198.18.0.2"
#define TU_US2 "198.18.0.3"
#define TU_US6 "2001:db8::2"
#define TU_PEER "198.18.0.1"
#define TU_PEER2 "198.18.0.4"
#define TU_PEER6 "2001:db8::1"
#define TU_MBUFS 8191u

static struct rte_mempool *tu_pool, *tu_small;
static struct sl_inet *tu_inet;
static struct sl_udp *tu_udp;
static uint64_t tu_now = 1000000000;
static struct rte_ether_addr tu_mac, tu_peer_mac = {{2, 0, 0, 0, 0, 9}};

static inline uint64_t
tu_clock(void *arg)
{
	(void)arg;
	return tu_now;
}

static inline struct sl_addr
tu_addr(const char *text)
{
	struct sl_addr a;
	uint8_t prefix;

	REQUIRE(sl_addr_parse(text, &a, &prefix) == 0);
	return a;
}

static inline void
tu_eal(const char *path)
{
	REQUIRE(test_eal_start(path, "-l 0 --vdev=net_ring0 --log-level=lib.eal:error") >= 0);
	REQUIRE(rte_eth_dev_count_avail() == 1);
	tu_pool = rte_pktmbuf_pool_create("tu_pool", TU_MBUFS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, -1);
	tu_small = rte_pktmbuf_pool_create("tu_small", 8, 0, 0, 256, -1);
	REQUIRE(tu_pool != NULL && tu_small != NULL);
}

static inline void
tu_port(void)
{
	struct rte_eth_conf conf;

	memset(&conf, 0, sizeof(conf));
	REQUIRE(rte_eth_dev_configure(0, 1, 1, &conf) == 0);
	REQUIRE(rte_eth_rx_queue_setup(0, 0, 512, 0, NULL, tu_pool) == 0);
	REQUIRE(rte_eth_tx_queue_setup(0, 0, 512, 0, NULL) == 0);
	REQUIRE(rte_eth_dev_start(0) == 0);
	REQUIRE(rte_eth_macaddr_get(0, &tu_mac) == 0);
}

/* Throw away what the stack sent: returns how many frames. */
static inline unsigned int
tu_drain(void)
{
	struct rte_mbuf *m[32];
	unsigned int sum = 0;
	uint16_t n;

	sl_inet_flush(tu_inet, 0, 0, 0);
	while ((n = rte_eth_rx_burst(0, 0, m, 32)) != 0) {
		rte_pktmbuf_free_bulk(m, n);
		sum += n;
	}
	return sum;
}

/* Let seconds pass: timers run. */
static inline void
tu_pass(unsigned int seconds)
{
	for (unsigned int i = 0; i < seconds * 10; i++) {
		tu_now += 100000000;
		sl_inet_timers(tu_inet, 0);
		tu_drain();
	}
}

static inline void
tu_stack(uint16_t workers, struct rte_mempool *pool)
{
	struct sl_inet_conf ic = {.workers = workers, .now_ns = tu_clock};
	struct sl_inet_port_conf pc = {.port_id = 0, .pool = tu_pool};
	struct sl_udp_conf uc = {.sockets = 64, .pool = pool};
	struct sl_addr a;

	REQUIRE(sl_inet_create(&ic, &tu_inet) == 0);
	REQUIRE(sl_inet_port_add(tu_inet, &pc) == 0);
	a = tu_addr(TU_US);
	REQUIRE(sl_inet_addr_add(tu_inet, 0, &a, 24) == 0);
	a = tu_addr(TU_US2);
	REQUIRE(sl_inet_addr_add(tu_inet, 0, &a, 24) == 0);
	a = tu_addr(TU_US6);
	REQUIRE(sl_inet_addr_add(tu_inet, 0, &a, 64) == 0);
	REQUIRE(sl_udp_create(tu_inet, &uc, &tu_udp) == 0);
	tu_pass(3);
	REQUIRE(sl_inet_addr_is_local(tu_inet, &a));
}

static inline void
tu_stack_end(void)
{
	tu_drain();
	sl_udp_destroy(tu_udp);
	sl_inet_destroy(tu_inet);
	/* Every test ends here: no packet is lost or held. */
	CHECK_EQ(rte_mempool_avail_count(tu_pool), TU_MBUFS);
	CHECK_EQ(rte_mempool_avail_count(tu_small), 8);
}

/* A UDP frame; addresses as text, ports in host order. */
static inline struct rte_mbuf *
tu_frame(const char *src, const char *dst, uint16_t sport, uint16_t dport, const void *payload,
	uint16_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(tu_pool);
	bool v6 = strchr(dst, ':') != NULL;
	uint16_t iplen = v6 ? sizeof(struct rte_ipv6_hdr) : sizeof(struct rte_ipv4_hdr);
	uint16_t udplen = (uint16_t)(sizeof(struct rte_udp_hdr) + len);
	struct rte_ether_hdr *eth;
	struct rte_udp_hdr *udp;
	struct sl_addr s = tu_addr(src), d = tu_addr(dst);

	REQUIRE(m != NULL);
	eth = (struct rte_ether_hdr *)rte_pktmbuf_append(m, (uint16_t)(sizeof(*eth) + iplen + udplen));
	REQUIRE(eth != NULL);
	eth->dst_addr = tu_mac;
	eth->src_addr = tu_peer_mac;
	eth->ether_type = htons(v6 ? RTE_ETHER_TYPE_IPV6 : RTE_ETHER_TYPE_IPV4);
	udp = (struct rte_udp_hdr *)((uint8_t *)(eth + 1) + iplen);
	udp->src_port = htons(sport);
	udp->dst_port = htons(dport);
	udp->dgram_len = htons(udplen);
	udp->dgram_cksum = 0;
	if (len > 0)
		memcpy(udp + 1, payload, len);
	if (v6) {
		struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(eth + 1);

		memset(ip, 0, sizeof(*ip));
		ip->vtc_flow = htonl(6u << 28 | 0x10 << 20);
		ip->payload_len = htons(udplen);
		ip->proto = IPPROTO_UDP;
		ip->hop_limits = 64;
		memcpy(ip->src_addr, s.b, 16);
		memcpy(ip->dst_addr, d.b, 16);
		udp->dgram_cksum = rte_ipv6_udptcp_cksum(ip, udp);
	} else {
		struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(eth + 1);

		memset(ip, 0, sizeof(*ip));
		ip->version_ihl = 0x45;
		ip->type_of_service = 0x10;
		ip->total_length = htons((uint16_t)(iplen + udplen));
		ip->time_to_live = 64;
		ip->next_proto_id = IPPROTO_UDP;
		ip->src_addr = sl_addr_to_v4(&s);
		ip->dst_addr = sl_addr_to_v4(&d);
		ip->hdr_checksum = rte_ipv4_cksum(ip);
		udp->dgram_cksum = rte_ipv4_udptcp_cksum(ip, udp);
	}
	return m;
}

static inline void
tu_input(struct rte_mbuf **m, uint16_t n)
{
	sl_inet_input_burst(tu_inet, 0, 0, m, n);
}

/* One datagram from the peer, port 7777. */
static inline void
tu_datagram(const char *dst, uint16_t dport, const void *payload, uint16_t len)
{
	const char *src = strchr(dst, ':') != NULL ? TU_PEER6 : TU_PEER;
	struct rte_mbuf *m = tu_frame(src, dst, 7777, dport, payload, len);

	tu_input(&m, 1);
}

/* The peer tells its MAC address, as answer to a question that the stack may have asked. */
static inline void
tu_arp_reply(const char *from, const char *to)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(tu_pool);
	struct sl_addr s = tu_addr(from), d = tu_addr(to);
	struct rte_ether_hdr *eth;
	struct rte_arp_hdr *arp;

	REQUIRE(m != NULL);
	eth = (struct rte_ether_hdr *)rte_pktmbuf_append(m, 60);
	REQUIRE(eth != NULL);
	memset(eth, 0, 60);
	eth->dst_addr = tu_mac;
	eth->src_addr = tu_peer_mac;
	eth->ether_type = htons(RTE_ETHER_TYPE_ARP);
	arp = (struct rte_arp_hdr *)(eth + 1);
	arp->arp_hardware = htons(RTE_ARP_HRD_ETHER);
	arp->arp_protocol = htons(RTE_ETHER_TYPE_IPV4);
	arp->arp_hlen = 6;
	arp->arp_plen = 4;
	arp->arp_opcode = htons(RTE_ARP_OP_REPLY);
	arp->arp_data.arp_sha = tu_peer_mac;
	arp->arp_data.arp_sip = sl_addr_to_v4(&s);
	arp->arp_data.arp_tha = tu_mac;
	arp->arp_data.arp_tip = sl_addr_to_v4(&d);
	tu_input(&m, 1);
}

/* What a receive outcome counted, so far. */
static inline uint64_t
tu_outcome(enum sl_outcome outcome)
{
	uint64_t counts[SL_OUTCOME_COUNT];

	sl_inet_outcomes(tu_inet, SL_INET_NO_WORKER, counts);
	return counts[outcome];
}

static inline socklen_t
tu_sockaddr(const char *text, uint16_t port, int family, struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *sin = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof(*ss));
	if (family == AF_INET) {
		sin->sin_family = AF_INET;
		sin->sin_port = htons(port);
		REQUIRE(inet_pton(AF_INET, text, &sin->sin_addr) == 1);
		return sizeof(*sin);
	}
	sin6->sin6_family = AF_INET6;
	sin6->sin6_port = htons(port);
	REQUIRE(inet_pton(AF_INET6, text, &sin6->sin6_addr) == 1);
	return sizeof(*sin6);
}

static inline int
tu_bind(struct sl_udp_sock *s, const char *text, uint16_t port)
{
	struct sockaddr_storage ss;
	socklen_t len = tu_sockaddr(text, port, strchr(text, ':') ? AF_INET6 : AF_INET, &ss);

	return sl_udp_bind(s, (struct sockaddr *)&ss, len);
}

static inline int
tu_connect(struct sl_udp_sock *s, const char *text, uint16_t port)
{
	struct sockaddr_storage ss;
	socklen_t len = tu_sockaddr(text, port, strchr(text, ':') ? AF_INET6 : AF_INET, &ss);

	return sl_udp_connect(s, (struct sockaddr *)&ss, len);
}

/* A socket bound to text:port, of the family of text. */
static inline struct sl_udp_sock *
tu_bound(const struct sl_udp_sock_conf *conf, const char *text, uint16_t port)
{
	struct sl_udp_sock_conf c = *conf;
	struct sl_udp_sock *s;

	c.family = strchr(text, ':') ? AF_INET6 : AF_INET;
	REQUIRE(sl_udp_socket(tu_udp, &c, &s) == 0);
	REQUIRE(tu_bind(s, text, port) == 0);
	return s;
}

/* The kernel takes a moment before a new IPv6 address can be used. */
static inline void
tu_kernel_usable(const char *addr)
{
	struct sockaddr_storage ss;
	socklen_t len = tu_sockaddr(addr, 0, AF_INET6, &ss);
	int fd = -1, tries = 0, ret;

	do {
		REQUIRE(tries++ < 10000);
		usleep(1000);
		fd = socket(AF_INET6, SOCK_DGRAM, 0);
		ret = bind(fd, (struct sockaddr *)&ss, len);
		close(fd);
	} while (ret != 0);
}

/* A network namespace whose loopback has our addresses and the peer's, for kernel sockets to compare
 * with. Returns NULL, or why it cannot be. */
static inline const char *
tu_kernel_net(void)
{
	const char *v4[] = {TU_US, TU_US2, TU_PEER, TU_PEER2}, *v6[] = {TU_US6, TU_PEER6};
	struct {
		struct in6_addr addr;
		uint32_t prefix;
		int ifindex;
	} in6 = {.prefix = 128, .ifindex = 1};
	struct ifreq ifr;
	int fd, fd6;

	if (unshare(CLONE_NEWNET) != 0)
		return "no network namespace of our own can be had (needs root)";
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	memset(&ifr, 0, sizeof(ifr));
	strcpy(ifr.ifr_name, "lo");
	ifr.ifr_flags = IFF_UP;
	REQUIRE(ioctl(fd, SIOCSIFFLAGS, &ifr) == 0);
	for (unsigned int i = 0; i < SL_COUNT_OF(v4); i++) {
		struct sockaddr_in *sin = (struct sockaddr_in *)&ifr.ifr_addr;

		memset(&ifr, 0, sizeof(ifr));
		snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "lo:%u", i);
		sin->sin_family = AF_INET;
		REQUIRE(inet_pton(AF_INET, v4[i], &sin->sin_addr) == 1);
		REQUIRE(ioctl(fd, SIOCSIFADDR, &ifr) == 0);
	}
	fd6 = socket(AF_INET6, SOCK_DGRAM, 0);
	for (unsigned int i = 0; fd6 >= 0 && i < SL_COUNT_OF(v6); i++) {
		REQUIRE(inet_pton(AF_INET6, v6[i], &in6.addr) == 1);
		REQUIRE(ioctl(fd6, SIOCSIFADDR, &in6) == 0);
		tu_kernel_usable(v6[i]);
	}
	close(fd);
	if (fd6 < 0)
		return "the kernel has no IPv6";
	close(fd6);
	return NULL;
}

#endif
