/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Checksums left to the port, when it has said that it computes them: a tap port does so in
 * software, and the kernel's end of it shows what came out.
 *
 *     stack -> net_tap port -> kernel interface -> AF_PACKET socket here
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include <rte_bus.h>
#include <rte_dev.h>

#include "inet_test.h"

#define OFFLOADS (RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM)

static uint16_t tap;
static char iface[IFNAMSIZ];

static uint64_t seen_flags;
static uint8_t seen[128];

/* What the driver gets, before it computes anything. */
static uint16_t
look(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, void *arg)
{
	(void)port, (void)queue, (void)arg;
	for (uint16_t i = 0; i < n; i++) {
		uint32_t len = RTE_MIN(rte_pktmbuf_pkt_len(pkts[i]), (uint32_t)sizeof(seen));
		const uint8_t *p = rte_pktmbuf_read(pkts[i], 0, len, seen);

		REQUIRE(p != NULL && len >= 42);
		if (p[12] != 0x08 && p[12] != 0x86)
			continue;
		if (p[13] == 0x06)
			continue; /* ARP */
		if (p != seen)
			memcpy(seen, p, len);
		seen_flags = pkts[i]->ol_flags;
		CHECK_EQ(pkts[i]->l2_len, 14);
		CHECK_EQ(pkts[i]->l3_len, seen[12] == 0x08 ? 20 : 40);
	}
	return n;
}

/* NULL, or why there is no tap port. */
static const char *
make_tap(void)
{
	struct rte_eth_conf conf = {.txmode = {.offloads = OFFLOADS}};
	struct rte_eth_dev_info info;
	char args[64];

	snprintf(iface, sizeof(iface), "slo%d", (int)getpid() % 100000);
	snprintf(args, sizeof(args), "iface=%s", iface);
	if (access("/dev/net/tun", W_OK) != 0 || geteuid() != 0)
		return "needs root and /dev/net/tun";
	if (rte_eal_hotplug_add("vdev", "net_tap_offload", args) != 0)
		return "the tap driver makes no interface here";
	REQUIRE(rte_eth_dev_get_port_by_name("net_tap_offload", &tap) == 0);
	REQUIRE(rte_eth_dev_info_get(tap, &info) == 0);
	if ((info.tx_offload_capa & OFFLOADS) != OFFLOADS)
		return "this tap driver computes no checksums";
	REQUIRE(rte_eth_dev_configure(tap, 1, 1, &conf) == 0);
	REQUIRE(rte_eth_rx_queue_setup(tap, 0, 64, 0, NULL, t_pool) == 0);
	REQUIRE(rte_eth_tx_queue_setup(tap, 0, 64, 0, NULL) == 0);
	REQUIRE(rte_eth_dev_start(tap) == 0);
	REQUIRE(rte_eth_add_tx_callback(tap, 0, look, NULL) != NULL);
	return NULL;
}

static int
open_kernel_end(void)
{
	struct sockaddr_ll ll = {.sll_family = AF_PACKET,
		.sll_protocol = htons(0x0003),
		.sll_ifindex = (int)if_nametoindex(iface)};
	int fd = socket(AF_PACKET, SOCK_RAW, htons(0x0003));

	REQUIRE(fd >= 0 && ll.sll_ifindex > 0);
	REQUIRE(bind(fd, (struct sockaddr *)&ll, sizeof(ll)) == 0);
	return fd;
}

/* The next UDP frame to port 2000 that the kernel got; 0 if none comes. */
static size_t
next_frame(int fd, uint8_t *frame, size_t size, size_t hdr)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	while (poll(&pfd, 1, 5000) == 1) {
		ssize_t n = recv(fd, frame, size, 0);

		if (n > (ssize_t)(14 + hdr + 8) && frame[14 + hdr + 2] == 0x07 &&
			frame[14 + hdr + 3] == 0xd0)
			return (size_t)n;
	}
	return 0;
}

static void
send_one(struct sl_inet *inet, bool v6, size_t len)
{
	struct sl_inet_flow flow = {.dst = t_addr(v6 ? "ff02::fb" : "224.0.0.251"),
		.sport = rte_cpu_to_be_16(1000),
		.dport = rte_cpu_to_be_16(2000)};
	struct rte_mbuf *m = rte_pktmbuf_alloc(t_pool);
	uint8_t *p;

	REQUIRE(m != NULL && sl_inet_source(inet, &flow.dst, &flow.src) == 0);
	p = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)len);
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i + 1);
	REQUIRE(sl_inet_udp_output(inet, 0, &flow, m) == 0);
	sl_inet_flush(inet, 0, tap, 0);
}

static uint64_t
clock_of_ours(void *arg)
{
	return *(uint64_t *)arg;
}

static void
checksums_left_to_the_port(void)
{
	struct sl_inet_conf inet_conf = {.workers = 1, .now_ns = clock_of_ours, .now_arg = &t_now};
	struct sl_inet_port_conf conf = {.pool = t_pool};
	struct sl_addr v4 = t_addr("198.18.0.2");
	const char *why = make_tap();
	struct sl_inet *inet;
	char src[46];
	int fd;

	if (why != NULL)
		SKIP(why);
	conf.port_id = tap;
	t_now = T_S;
	REQUIRE(sl_inet_create(&inet_conf, &inet) == 0);
	REQUIRE(sl_inet_port_add(inet, &conf) == 0);
	REQUIRE(sl_inet_addr_add(inet, tap, &v4, 24) == 0);
	fd = open_kernel_end();
	for (int i = 0; i < 3; i++, t_now += T_S)
		sl_inet_timers(inet, 0);
	for (size_t len = 1; len < 60; len++) {
		for (int v6 = 0; v6 < 2; v6++) {
			size_t hdr = v6 ? 40 : 20, n;
			const char *dst = v6 ? "ff02::fb" : "224.0.0.251";
			struct sl_addr to = t_addr(dst), from;
			uint8_t frame[2048];
			uint16_t field;

			REQUIRE(sl_inet_source(inet, &to, &from) == 0);
			sl_addr_format(&from, src, sizeof(src));
			seen_flags = 0;
			send_one(inet, v6 != 0, len);
			CHECK((seen_flags & RTE_MBUF_F_TX_UDP_CKSUM) != 0);
			CHECK((seen_flags & (v6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4)) != 0);
			CHECK_EQ((seen_flags & RTE_MBUF_F_TX_IP_CKSUM) != 0, !v6);
			/* The driver finds the pseudo header's sum, and adds the rest. */
			field = (uint16_t)(seen[14 + hdr + 6] << 8 | seen[14 + hdr + 7]);
			CHECK_EQ(field, t_sum(NULL, 0, t_pseudo(src, dst, 17, len + 8)));
			n = next_frame(fd, frame, sizeof(frame), hdr);
			CHECK_EQ(n, 14 + hdr + 8 + len);
			CHECK_EQ(t_sum(frame + 14 + hdr, 8 + len, t_pseudo(src, dst, 17, 8 + len)),
				0xffff);
			if (!v6)
				CHECK_EQ(t_sum(frame + 14, 20, 0), 0xffff);
		}
	}
	close(fd);
	sl_inet_destroy(inet);
	rte_eth_dev_stop(tap);
	CHECK_EQ(rte_eal_hotplug_remove("vdev", "net_tap_offload"), 0);
}

int
main(int argc, char **argv)
{
	(void)argc;
	t_init(argv[0]);
	SL_TEST_RUN(checksums_left_to_the_port);
	return test_end();
}
