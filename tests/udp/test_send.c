/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The send calls: what leaves the port, and every refusal, compared with the kernel's where a kernel
 * socket on loopback can be asked the same. */
#include <sys/mman.h>

#include "udp_test.h"

#define PORT 5000

static const char *no_kernel;
static uint8_t *bad; /* memory that nobody may touch */
static struct rte_mbuf *sent[64];

/* Take what the stack has sent. */
static uint16_t
capture(void)
{
	uint16_t n = 0, k;

	sl_inet_flush(tu_inet, 0, 0, 0);
	do {
		k = rte_eth_rx_burst(0, 0, sent + n, (uint16_t)(SL_COUNT_OF(sent) - n));
		n = (uint16_t)(n + k);
	} while (k > 0 && n < SL_COUNT_OF(sent));
	return n;
}

static struct sl_udp_sock *
open_socket(int family, bool guarded)
{
	struct sl_udp_sock_conf conf = {.family = family, .guarded = guarded, .slots = 16};
	struct sl_udp_sock *s;

	REQUIRE(sl_udp_socket(tu_udp, &conf, &s) == 0);
	return s;
}

static ssize_t
send_to(struct sl_udp_sock *s, const void *data, size_t len, const char *to, uint16_t port)
{
	struct sockaddr_storage ss;
	socklen_t salen = tu_sockaddr(to, port, strchr(to, ':') ? AF_INET6 : AF_INET, &ss);

	return sl_udp_sendto(s, 0, data, len, 0, (struct sockaddr *)&ss, salen);
}

/* Check one IPv4 datagram: headers, checksums, payload. Frees it. */
static void
check_frame(struct rte_mbuf *m, const char *dst, uint16_t sport, uint16_t dport, const uint8_t *data,
	uint16_t len)
{
	uint8_t copy[2048];
	const uint8_t *frame = rte_pktmbuf_read(m, 0, m->pkt_len, copy);
	const struct rte_ipv4_hdr *ip;
	const struct rte_udp_hdr *udp;

	CHECK_EQ(m->pkt_len, 14 + 20 + 8 + len);
	if (frame != copy)
		memcpy(copy, frame, m->pkt_len);
	ip = (const struct rte_ipv4_hdr *)(copy + 14);
	udp = (const struct rte_udp_hdr *)(ip + 1);
	CHECK(memcmp(copy, &tu_peer_mac, 6) == 0);
	CHECK_EQ(ip->dst_addr, inet_addr(dst));
	CHECK_EQ(ip->src_addr, inet_addr(TU_US));
	CHECK_EQ(ip->time_to_live, 64);
	CHECK_EQ(udp->src_port, htons(sport));
	CHECK_EQ(udp->dst_port, htons(dport));
	CHECK_EQ(udp->dgram_len, htons((uint16_t)(len + 8)));
	CHECK_EQ(rte_ipv4_udptcp_cksum_verify(ip, udp), 0);
	CHECK(memcmp(udp + 1, data, len) == 0);
	rte_pktmbuf_free(m);
}

static void
test_sendto(void)
{
	struct sl_udp_sock *s = open_socket(AF_INET, false);
	uint8_t data[1473];

	for (unsigned int i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	REQUIRE(tu_bind(s, TU_US, PORT) == 0);
	/* The first waits for the neighbour, and asks for it. */
	CHECK_EQ(send_to(s, data, 22, TU_PEER, 7777), 22);
	tu_drain();
	tu_arp_reply(TU_PEER, TU_US);
	CHECK_EQ(capture(), 1);
	check_frame(sent[0], TU_PEER, PORT, 7777, data, 22);
	for (uint16_t len = 0; len <= 1472; len = (uint16_t)(len + 368)) {
		CHECK_EQ(send_to(s, data, len, TU_PEER, 7777), len);
		CHECK_EQ(capture(), 1);
		check_frame(sent[0], TU_PEER, PORT, 7777, data, len);
	}
	CHECK_EQ(send_to(s, data, 1473, TU_PEER, 7777), -EMSGSIZE);
	CHECK_EQ(capture(), 0);
	sl_udp_close(s, 0);
}

/* The peer answers, and the answer comes back: both directions at once. */
static void
test_autobind_and_answer(void)
{
	struct sl_udp_sock *s = open_socket(AF_INET, false);
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	struct rte_mbuf *m;
	char b[8];

	CHECK_EQ(send_to(s, "ping", 4, TU_PEER, 7777), 4);
	CHECK_EQ(sl_udp_getsockname(s, (struct sockaddr *)&name, &len), 0);
	CHECK(name.sin_port != 0 && name.sin_addr.s_addr == 0);
	CHECK_EQ(capture(), 1);
	check_frame(sent[0], TU_PEER, ntohs(name.sin_port), 7777, (const uint8_t *)"ping", 4);
	m = tu_frame(TU_PEER, TU_US, 7777, ntohs(name.sin_port), "pong", 4);
	tu_input(&m, 1);
	CHECK_EQ(sl_udp_recvfrom(s, b, sizeof(b), MSG_DONTWAIT, NULL, NULL), 4);
	CHECK(memcmp(b, "pong", 4) == 0);
	sl_udp_close(s, 0);
}

static void
test_sendmmsg(void)
{
	static struct mmsghdr msgs[2000];
	static const uint8_t data[] = "0123456789abcdef";
	struct sl_udp_sock *s = open_socket(AF_INET, true);
	struct iovec iov[3] = {{(void *)(uintptr_t)data, 5}, {NULL, 0},
		{(void *)(uintptr_t)(data + 5), 11}};
	struct iovec fault = {bad, 4};

	REQUIRE(tu_bind(s, TU_US, PORT) == 0);
	REQUIRE(tu_connect(s, TU_PEER, 7777) == 0);
	for (unsigned int i = 0; i < SL_COUNT_OF(msgs); i++)
		msgs[i].msg_hdr = (struct msghdr){.msg_iov = iov, .msg_iovlen = 3};
	CHECK_EQ(sl_udp_sendmmsg(s, 0, msgs, 3, 0), 3);
	CHECK_EQ(capture(), 3);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(msgs[i].msg_len, 16);
		check_frame(sent[i], TU_PEER, PORT, 7777, data, 16);
	}
	CHECK_EQ(sl_udp_sendmmsg(s, 0, msgs, 0, 0), 0);
	CHECK_EQ(sl_udp_sendmmsg(s, 0, msgs, 2000, 0), 1024);
	tu_drain();
	/* An error after the first ends the call; the next one meets it. */
	msgs[2].msg_hdr.msg_iov = &fault;
	msgs[2].msg_hdr.msg_iovlen = 1;
	CHECK_EQ(sl_udp_sendmmsg(s, 0, msgs, 5, 0), 2);
	CHECK_EQ(capture(), 2);
	rte_pktmbuf_free_bulk(sent, 2);
	CHECK_EQ(sl_udp_sendmmsg(s, 0, msgs + 2, 3, 0), -EFAULT);
	msgs[2].msg_hdr.msg_iovlen = 1025;
	CHECK_EQ(sl_udp_sendmmsg(s, 0, msgs + 2, 3, 0), -EMSGSIZE);
	msgs[2].msg_hdr = (struct msghdr){.msg_iov = iov, .msg_iovlen = 3, .msg_control = iov,
		.msg_controllen = sizeof(iov)};
	CHECK_EQ(sl_udp_sendmmsg(s, 0, msgs + 2, 3, 0), -EINVAL);
	CHECK_EQ(sl_udp_sendmmsg(s, 0, (struct mmsghdr *)(void *)bad, 3, 0), -EFAULT);
	CHECK_EQ(capture(), 0);
	sl_udp_close(s, 0);
}

/* The same calls on the kernel and here. */
struct refusal {
	const char *what;
	int family;      /* of the socket */
	int sa_family;   /* of the address; 0: none given */
	const char *addr;
	uint16_t port;
	socklen_t len;   /* 0: right */
	size_t size;
	int flags;
	bool bad_buffer, bad_name;
};

static const struct refusal refusals[] = {
	{"no destination", AF_INET, 0, NULL, 0, 0, 4, 0, false, false},
	{"no destination, IPv6", AF_INET6, 0, NULL, 0, 0, 4, 0, false, false},
	{"port 0", AF_INET, AF_INET, TU_PEER, 0, 0, 4, 0, false, false},
	{"port 0, IPv6", AF_INET6, AF_INET6, TU_PEER6, 0, 0, 4, 0, false, false},
	{"short address", AF_INET, AF_INET, TU_PEER, 7777, 15, 4, 0, false, false},
	{"short IPv6 address", AF_INET6, AF_INET6, TU_PEER6, 7777, 23, 4, 0, false, false},
	{"RFC 2133 address", AF_INET6, AF_INET6, TU_PEER6, 7777, 24, 4, 0, false, false},
	{"long address", AF_INET, AF_INET, TU_PEER, 7777, 128, 4, 0, false, false},
	{"too long address", AF_INET, AF_INET, TU_PEER, 7777, 129, 4, 0, false, false},
	{"negative address length", AF_INET, AF_INET, TU_PEER, 7777, (socklen_t)-1, 4, 0, false,
		false},
	{"other family", AF_INET, AF_INET6, TU_PEER6, 7777, 0, 4, 0, false, false},
	{"IPv4 on IPv6", AF_INET6, AF_INET, TU_PEER, 7777, 0, 4, 0, false, false},
	{"mapped", AF_INET6, AF_INET6, "::ffff:" TU_PEER, 7777, 0, 4, 0, false, false},
	{"65507 do not fit the MTU here", AF_INET, AF_INET, TU_PEER, 7777, 0, 65508, 0, false, false},
	{"more than UDP can say", AF_INET, AF_INET, TU_PEER, 7777, 0, 70000, 0, false, false},
	{"broadcast", AF_INET, AF_INET, "255.255.255.255", 7777, 0, 4, 0, false, false},
	{"urgent", AF_INET, AF_INET, TU_PEER, 7777, 0, 4, MSG_OOB, false, false},
	{"bad buffer", AF_INET, AF_INET, TU_PEER, 7777, 0, 4, 0, true, false},
	{"bad name", AF_INET, AF_INET, TU_PEER, 7777, 0, 4, 0, false, true},
	{"nothing", AF_INET, AF_INET, TU_PEER, 7777, 0, 0, 0, false, false},
};

static void
test_refusals(void)
{
	static uint8_t data[70000];

	if (no_kernel != NULL)
		SKIP(no_kernel);
	for (unsigned int i = 0; i < SL_COUNT_OF(refusals); i++) {
		const struct refusal *r = &refusals[i];
		struct sl_udp_sock *s = open_socket(r->family, true);
		int fd = socket(r->family, SOCK_DGRAM, 0);
		struct sockaddr_storage ss[2];
		socklen_t len = r->sa_family ? tu_sockaddr(r->addr, r->port, r->sa_family, ss) : 0;
		void *name = r->sa_family ? (r->bad_name ? (void *)bad : ss) : NULL;
		const void *buf = r->bad_buffer ? bad : data;
		ssize_t kernel, ours;

		len = r->len != 0 ? r->len : len;
		kernel = sendto(fd, buf, r->size, r->flags, name, len);
		kernel = kernel < 0 ? -errno : kernel;
		ours = sl_udp_sendto(s, 0, buf, r->size, r->flags, name, len);
		if (kernel != ours)
			fprintf(stderr, "%s: kernel %zd, ours %zd\n", r->what, kernel, ours);
		CHECK_EQ(ours, kernel);
		close(fd);
		sl_udp_close(s, 0);
		tu_drain();
	}
}

static void
test_no_route(void)
{
	struct sl_udp_sock *s = open_socket(AF_INET, false), *six = open_socket(AF_INET6, false);

	CHECK_EQ(send_to(s, "x", 1, "203.0.113.1", 7777), -ENETUNREACH);
	REQUIRE(tu_bind(six, TU_US6, PORT) == 0);
	CHECK_EQ(send_to(six, "x", 1, "::ffff:" TU_PEER, 7777), -ENETUNREACH);
	CHECK_EQ(tu_connect(six, "::ffff:" TU_PEER, 7777), -ENETUNREACH);
	CHECK_EQ(tu_connect(s, "203.0.113.1", 7777), -ENETUNREACH);
	sl_udp_close(six, 0);
	sl_udp_close(s, 0);
}

/* What connect chose as our end is of the peer's family, and no hindrance to others. */
static void
test_other_family(void)
{
	struct sl_udp_sock *s = open_socket(AF_INET6, false);
	struct sockaddr_in6 name;
	socklen_t len = sizeof(name);

	REQUIRE(tu_connect(s, TU_PEER6, 7777) == 0);
	CHECK_EQ(send_to(s, "four", 4, TU_PEER, 7778), 4);
	CHECK_EQ(send_to(s, "four", 4, "::ffff:" TU_PEER, 7778), 4);
	CHECK_EQ(sl_udp_getsockname(s, (struct sockaddr *)&name, &len), 0);
	CHECK_EQ(capture(), 2);
	for (int i = 0; i < 2; i++)
		check_frame(sent[i], TU_PEER, ntohs(name.sin6_port), 7778,
			(const uint8_t *)"four", 4);
	sl_udp_close(s, 0);
}

/* A default route covers broadcast addresses as well: nothing goes to them, by it or by the link, also from
 * a socket that lets the route say where it sends from. */
static void
test_broadcast_with_gateway(void)
{
	struct sl_udp_sock *s = open_socket(AF_INET, false);
	struct sl_addr gw = tu_addr(TU_PEER);

	REQUIRE(sl_inet_gateway_set(tu_inet, 0, &gw) == 0);
	for (int i = 0; i < 2; i++) { /* the second time from what is remembered of it */
		CHECK_EQ(send_to(s, "x", 1, "255.255.255.255", 7777), -EACCES);
		CHECK_EQ(send_to(s, "x", 1, "198.18.0.255", 7777), -EACCES);
		CHECK_EQ(tu_connect(s, "255.255.255.255", 7777), -EACCES);
		CHECK_EQ(send_to(s, "x", 1, "203.0.113.1", 7777), 1);
		CHECK_EQ(capture(), 1);
		rte_pktmbuf_free(sent[0]);
	}
	sl_udp_close(s, 0);
}

/* The pool of the layer has eight small mbufs: some sends succeed, the others say so, and every mbuf
 * comes back; a payload in several segments arrives whole. */
static void
test_small_pool(void)
{
	struct sl_udp_sock *s = open_socket(AF_INET, false);
	uint8_t data[1024];
	uint16_t n, good = 0;
	ssize_t ret;

	for (unsigned int i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 5 + 1);
	REQUIRE(tu_bind(s, TU_US, PORT) == 0);
	REQUIRE(tu_connect(s, TU_PEER, 7777) == 0);
	CHECK_EQ(sl_udp_sendto(s, 0, data, 20, 0, NULL, 0), 20); /* asks for the neighbour */
	tu_drain();
	tu_arp_reply(TU_PEER, TU_US);
	tu_drain();
	for (unsigned int k = 0; k < 3; k++) {
		good = 0;
		while ((ret = sl_udp_sendto(s, 0, data, 20, 0, NULL, 0)) == 20)
			good++;
		CHECK_EQ(ret, -ENOBUFS);
		CHECK_EQ(good, 8);
		CHECK_EQ(sl_udp_sendto(s, 0, data, 500, 0, NULL, 0), -ENOBUFS);
		n = capture();
		CHECK_EQ(n, good);
		for (uint16_t i = 0; i < n; i++)
			check_frame(sent[i], TU_PEER, PORT, 7777, data, 20);
		CHECK_EQ(rte_mempool_avail_count(tu_small), 8);
	}
	/* 128 bytes in the first, 256 in each further one. */
	CHECK_EQ(sl_udp_sendto(s, 0, data, 900, 0, NULL, 0), 900);
	CHECK_EQ(rte_mempool_avail_count(tu_small), 3);
	CHECK_EQ(sl_udp_sendto(s, 0, data, 900, 0, NULL, 0), -ENOBUFS);
	CHECK_EQ(rte_mempool_avail_count(tu_small), 3);
	CHECK_EQ(capture(), 1);
	check_frame(sent[0], TU_PEER, PORT, 7777, data, 900);
	sl_udp_close(s, 0);
}

int
main(int argc, char **argv)
{
	(void)argc;
	bad = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(bad != MAP_FAILED);
	tu_eal(argv[0]);
	tu_port();
	no_kernel = tu_kernel_net();
	tu_stack(1, tu_pool);
	SL_TEST_RUN(test_sendto);
	SL_TEST_RUN(test_autobind_and_answer);
	SL_TEST_RUN(test_sendmmsg);
	SL_TEST_RUN(test_refusals);
	SL_TEST_RUN(test_no_route);
	SL_TEST_RUN(test_other_family);
	SL_TEST_RUN(test_broadcast_with_gateway);
	SL_TEST_RUN(tu_stack_end);
	tu_stack(1, tu_small);
	SL_TEST_RUN(test_small_pool);
	SL_TEST_RUN(tu_stack_end);
	return test_end();
}
