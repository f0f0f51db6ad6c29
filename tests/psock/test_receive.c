/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Receiving: types, addresses, clipping, auxdata, rings, filters, statistics, fanout. */
#include <linux/filter.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <linux/sockios.h>

#include "psock_help.h"

#define NONE SL_PSOCK_NO_WORKER

static void
types_see_their_part(void)
{
	struct sl_psock *raw = sock_bound(SOCK_RAW, ETH_P_ALL);
	struct sl_psock *cooked = sock_bound(SOCK_DGRAM, ETH_P_ALL);
	struct sockaddr_ll from = {0};
	uint8_t buf[100] = {0};

	show(frame(0x0800, 60), 0);
	CHECK_EQ(sock_recv(raw, buf, sizeof(buf), 0, &from), 60);
	CHECK_EQ(buf[59], 59);
	CHECK_EQ(from.sll_family, AF_PACKET);
	CHECK_EQ(from.sll_ifindex, IFINDEX);
	CHECK_EQ(from.sll_protocol, htons(0x0800));
	CHECK_EQ(from.sll_pkttype, PACKET_BROADCAST);
	CHECK_EQ(from.sll_halen, 6);
	CHECK_EQ(from.sll_addr[0], 6); /* where the frame came from */
	CHECK_EQ(sock_recv(cooked, buf, sizeof(buf), 0, &from), 46);
	CHECK_EQ(buf[0], 14);
	sl_psock_close(raw, NONE);
	sl_psock_close(cooked, NONE);
}

static void
packet_types(void)
{
	struct sl_psock *s = sock_bound(SOCK_RAW, ETH_P_ALL);
	struct rte_ether_addr mac;
	struct sockaddr_ll from;
	uint8_t buf[100],
		want[] = {PACKET_HOST, PACKET_OTHERHOST, PACKET_MULTICAST, PACKET_OUTGOING};

	rte_eth_macaddr_get(PORT, &mac);
	for (int i = 0; i < 4; i++) {
		struct rte_mbuf *m = frame(0x0800, 60);
		uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);

		memcpy(p, &mac, 6);
		if (i == 1)
			p[0] = 2, p[5] ^= 1;
		if (i == 2)
			p[0] = 1;
		if (i == 3)
			sl_psock_output_burst(net, 0, PORT, &m, 1);
		else
			sl_psock_input_burst(net, 0, PORT, 0, &m, 1);
		rte_pktmbuf_free(m);
		CHECK_EQ(sock_recv(s, buf, sizeof(buf), 0, &from), 60);
		CHECK_EQ(from.sll_pkttype, want[i]);
	}
	sl_psock_close(s, NONE);
}

static void
lengths_and_flags(void)
{
	struct sl_psock *s = sock_bound(SOCK_RAW, ETH_P_ALL);
	uint8_t buf[10];
	struct iovec v = {buf, sizeof(buf)};
	struct msghdr msg = {.msg_iov = &v, .msg_iovlen = 1};
	int n = 0;

	CHECK_EQ(sl_psock_events(s) & POLLIN, 0);
	show(frame(0x0800, 60), 0);
	CHECK_EQ(sl_psock_events(s) & POLLIN, POLLIN);
	CHECK_EQ(sl_psock_ioctl(s, SIOCINQ, &n), 0);
	CHECK_EQ(n, 60);
	CHECK_EQ(sl_psock_recvmsg(s, &msg, MSG_DONTWAIT | MSG_PEEK), 10);
	CHECK_EQ(msg.msg_flags, MSG_TRUNC);
	CHECK_EQ(sl_psock_recvmsg(s, &msg, MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC), 60);
	CHECK_EQ(sl_psock_recvmsg(s, &msg, MSG_DONTWAIT | MSG_OOB), -EINVAL);
	CHECK_EQ(sl_psock_recvmsg(s, &msg, MSG_ERRQUEUE), -EAGAIN);
	CHECK_EQ(sl_psock_recvmsg(s, &msg, MSG_DONTWAIT), 10);
	CHECK_EQ(sl_psock_recvmsg(s, &msg, MSG_DONTWAIT), -EAGAIN);
	CHECK_EQ(sl_psock_ioctl(s, SIOCINQ, &n), 0);
	CHECK_EQ(n, 0);
	CHECK_EQ(sl_psock_ioctl(s, FIONBIO, &n), -EINVAL);
	sl_psock_close(s, NONE);
}

static void
a_wait_ends(void)
{
	struct sl_psock *s = sock_bound(SOCK_RAW, ETH_P_ALL);
	struct timeval tv = {.tv_usec = 1000};
	struct msghdr msg = {0};

	CHECK_EQ(sl_psock_setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv), NONE), 0);
	CHECK_EQ(sl_psock_recvmsg(s, &msg, 0), -EAGAIN);
	sl_psock_close(s, NONE);
}

static void
auxdata_comes_along(void)
{
	struct sl_psock *s = sock_bound(SOCK_DGRAM, ETH_P_ALL);
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	} control;
	uint8_t buf[20];
	struct iovec v = {buf, sizeof(buf)};
	struct msghdr msg = {.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	struct tpacket_auxdata aux;
	struct rte_mbuf *m = frame(0x0800, 60);

	CHECK_EQ(sock_set(s, PACKET_AUXDATA, 1), 0);
	m->ol_flags |=
		RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	m->vlan_tci = 42;
	show(m, 0);
	CHECK_EQ(sl_psock_recvmsg(s, &msg, MSG_DONTWAIT), 20);
	CHECK_EQ(control.align.cmsg_level, SOL_PACKET);
	CHECK_EQ(control.align.cmsg_type, PACKET_AUXDATA);
	memcpy(&aux, CMSG_DATA(&control.align), sizeof(aux));
	CHECK_EQ(aux.tp_status, TP_STATUS_USER | TP_STATUS_CSUM_VALID | TP_STATUS_VLAN_VALID |
					TP_STATUS_VLAN_TPID_VALID);
	CHECK_EQ(aux.tp_len, 46);
	CHECK_EQ(aux.tp_snaplen, 46);
	CHECK_EQ(aux.tp_vlan_tci, 42);
	CHECK_EQ(aux.tp_vlan_tpid, 0x8100);
	show(frame(0x0800, 60), 0);
	msg.msg_controllen = 8; /* too little */
	CHECK_EQ(sl_psock_recvmsg(s, &msg, MSG_DONTWAIT), 20);
	CHECK(msg.msg_flags & MSG_CTRUNC);
	sl_psock_close(s, NONE);
}

static void
vnet_headers_in_front(void)
{
	struct sl_psock *s = sock_bound(SOCK_RAW, ETH_P_ALL);
	struct rte_mbuf *m = frame(0x0800, 60);
	uint8_t buf[100];

	CHECK_EQ(sock_set(s, PACKET_VNET_HDR, 1), 0);
	m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	show(m, 0);
	CHECK_EQ(sock_recv(s, buf, sizeof(buf), 0, NULL), 70);
	CHECK_EQ(buf[0], 2); /* data valid */
	CHECK_EQ(buf[10], 0xff);
	show(frame(0x0800, 60), 0);
	CHECK_EQ(sock_recv(s, buf, 9, 0, NULL), -EINVAL);
	sl_psock_close(s, NONE);
}

static void
statistics_clear_on_read(void)
{
	struct sl_psock *s = sock_bound(SOCK_RAW, ETH_P_ALL);
	struct tpacket_stats stats;
	socklen_t len = sizeof(stats);
	int small = 1000; /* doubled, and never below 2304: one packet, as it turns out */

	CHECK_EQ(sl_psock_setsockopt(s, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small), NONE), 0);
	for (int i = 0; i < 5; i++)
		show(frame(0x0800, 60), 0);
	CHECK_EQ(sl_psock_getsockopt(s, SOL_PACKET, PACKET_STATISTICS, &stats, &len), 0);
	CHECK_EQ(stats.tp_packets, 5);
	CHECK_EQ(stats.tp_drops, 4);
	CHECK_EQ(sl_psock_getsockopt(s, SOL_PACKET, PACKET_STATISTICS, &stats, &len), 0);
	CHECK_EQ(stats.tp_packets + stats.tp_drops, 0);
	sl_psock_close(s, NONE);
}

static void
filters_choose_and_clip(void)
{
	/* 30 bytes of every frame whose ethertype is 0x88b5, nothing of others */
	struct sock_filter raw[] = {BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x88b5, 0, 1), BPF_STMT(BPF_RET | BPF_K, 30),
		BPF_STMT(BPF_RET | BPF_K, 0)};
	/* every packet whose first byte, which is behind the link header here, is 14 */
	struct sock_filter cooked[] = {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 14, 0, 1), BPF_STMT(BPF_RET | BPF_K, 0xffff),
		BPF_STMT(BPF_RET | BPF_K, 0)};
	struct sock_fprog p = {SL_COUNT_OF(raw), raw}, q = {SL_COUNT_OF(cooked), cooked};
	struct sock_fprog empty = {0, raw}, open_end = {2, raw};
	struct sl_psock *s = sock_bound(SOCK_RAW, ETH_P_ALL),
			*t = sock_bound(SOCK_DGRAM, ETH_P_ALL);
	struct tpacket_stats stats;
	socklen_t len = sizeof(stats);
	uint8_t buf[100];

	CHECK_EQ(sl_psock_setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &empty, sizeof(p), NONE),
		-EINVAL);
	CHECK_EQ(sl_psock_setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &open_end, sizeof(p), NONE),
		-EINVAL);
	CHECK_EQ(sl_psock_setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &p, 3, NONE), -EINVAL);
	CHECK_EQ(sl_psock_setsockopt(s, SOL_SOCKET, SO_DETACH_FILTER, NULL, 0, NONE), -ENOENT);
	CHECK_EQ(sl_psock_setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof(p), NONE), 0);
	CHECK_EQ(sl_psock_setsockopt(t, SOL_SOCKET, SO_ATTACH_FILTER, &q, sizeof(q), NONE), 0);
	show(frame(0x0800, 60), 0);
	show(frame(0x88b5, 60), 0);
	CHECK_EQ(sock_recv(s, buf, sizeof(buf), MSG_TRUNC, NULL), 30);
	CHECK_EQ(sock_recv(s, buf, sizeof(buf), 0, NULL), -EAGAIN);
	CHECK_EQ(sock_recv(t, buf, sizeof(buf), 0, NULL), 46);
	CHECK_EQ(sock_recv(t, buf, sizeof(buf), 0, NULL), 46);
	/* What a filter leaves out is not counted. */
	CHECK_EQ(sl_psock_getsockopt(s, SOL_PACKET, PACKET_STATISTICS, &stats, &len), 0);
	CHECK_EQ(stats.tp_packets, 1);
	CHECK_EQ(sl_psock_setsockopt(s, SOL_SOCKET, SO_DETACH_FILTER, NULL, 0, NONE), 0);
	show(frame(0x0800, 60), 0);
	CHECK_EQ(sock_recv(s, buf, sizeof(buf), 0, NULL), 60);
	sl_psock_close(s, NONE);
	sl_psock_close(t, NONE);
}

static void
rings_are_filled(void)
{
	for (int v = TPACKET_V1; v <= TPACKET_V3; v++) {
		struct sl_psock *s = sock_bound(SOCK_RAW, ETH_P_ALL);
		struct tpacket_stats_v3 stats;
		socklen_t len = sizeof(stats);
		uint8_t *map, buf[100];

		show(frame(0x0800, 60), 0);
		REQUIRE(sock_ring(s, PACKET_RX_RING, v) == 0);
		CHECK_EQ(sock_recv(s, buf, sizeof(buf), 0, NULL), -EAGAIN); /* purged */
		map = sock_map(s, FRAME * FRAMES);
		for (uint32_t i = 0; i < 100; i++)
			show(frame(0x0800, 1400), 0);
		CHECK_EQ(sl_psock_events(s) & POLLIN, POLLIN);
		CHECK_EQ(sock_recv(s, buf, sizeof(buf), 0, NULL),
			-EAGAIN); /* rings are read in place */
		if (v != TPACKET_V3) {
			CHECK_EQ(sl_pktring_status(v, map), TP_STATUS_USER);
			CHECK_EQ(map[66 + 1399], (uint8_t)1399);
		}
		CHECK_EQ(sl_psock_getsockopt(s, SOL_PACKET, PACKET_STATISTICS, &stats, &len), 0);
		/* One a frame; in V3, two of these to a block of two frames. */
		CHECK_EQ(stats.tp_packets, 101);
		CHECK_EQ(stats.tp_drops, 100 - FRAMES);
		if (v == TPACKET_V3)
			CHECK_EQ(stats.tp_freeze_q_cnt, 1);
		sl_psock_munmap(s, map, FRAME * FRAMES);
		sl_psock_close(s, NONE);
	}
}

static void
clipped_packets_are_copied_when_asked(void)
{
	struct sl_psock *s = sock_bound(SOCK_RAW, ETH_P_ALL);
	struct tpacket2_hdr *h;
	uint8_t buf[3000];

	REQUIRE(sock_ring(s, PACKET_RX_RING, TPACKET_V2) == 0);
	CHECK_EQ(sock_set(s, PACKET_COPY_THRESH, 1), 0);
	h = (void *)sock_map(s, FRAME * FRAMES);
	show(frame(0x0800, 2040), 0);
	CHECK_EQ(h->tp_status, TP_STATUS_USER | TP_STATUS_COPY);
	CHECK_EQ(h->tp_len, 2040);
	CHECK_EQ(h->tp_snaplen, FRAME - 66);
	CHECK_EQ(sock_recv(s, buf, sizeof(buf), 0, NULL), 2040);
	CHECK_EQ(buf[2039], (uint8_t)2039);
	sl_psock_munmap(s, h, FRAME * FRAMES);
	sl_psock_close(s, NONE);
}

static void
v3_blocks_retire_by_polling(void)
{
	struct sl_psock *s = sock_bound(SOCK_RAW, ETH_P_ALL);
	struct tpacket_block_desc *b;

	REQUIRE(sock_ring(s, PACKET_RX_RING, TPACKET_V3) == 0);
	b = (void *)sock_map(s, FRAME * FRAMES);
	show(frame(0x0800, 60), 0);
	while (sl_load_acquire(&b->hdr.bh1.block_status) == TP_STATUS_KERNEL)
		sl_psock_tick(net, 0);
	CHECK_EQ(b->hdr.bh1.block_status, TP_STATUS_USER | TP_STATUS_BLK_TMO);
	CHECK_EQ(b->hdr.bh1.num_pkts, 1);
	sl_psock_munmap(s, b, FRAME * FRAMES);
	sl_psock_close(s, NONE);
}

/* A group of three, and how many of 300 packets each of them got. */
static void
fan_out(uint32_t type_flags, bool flows, uint32_t got[3], struct sl_psock *s[3])
{
	for (int i = 0; i < 3; i++) {
		s[i] = sock_bound(SOCK_RAW, ETH_P_ALL);
		REQUIRE(sock_set(s[i], PACKET_FANOUT, (int)(5 | type_flags << 16)) == 0);
		got[i] = 0;
	}
	for (int i = 0; i < 300; i++) {
		struct rte_mbuf *m = frame(0x0800, 60);
		uint8_t buf[100], *p = rte_pktmbuf_mtod(m, uint8_t *);

		p[14] = 0x45;
		p[20] = p[21] = 0;
		p[23] = 17;
		if (flows)
			p[35] = (uint8_t)i;
		sl_psock_input_burst(net, (uint16_t)(i % 2), PORT, (uint16_t)(i % 3), &m, 1);
		rte_pktmbuf_free(m);
		for (int k = 0; k < 3; k++)
			got[k] += sock_recv(s[k], buf, sizeof(buf), 0, NULL) > 0;
	}
}

static void
group_end(struct sl_psock *s[3])
{
	for (int i = 0; i < 3; i++)
		sl_psock_close(s[i], NONE);
}

static void
fanout_shares(void)
{
	struct sl_psock *s[3];
	uint32_t got[3];

	fan_out(PACKET_FANOUT_LB, false, got, s);
	CHECK_EQ(got[0], 100);
	CHECK_EQ(got[1], 100);
	group_end(s);
	fan_out(PACKET_FANOUT_HASH, false, got, s);
	CHECK_EQ(got[0] + got[1] + got[2], 300);
	CHECK(got[0] == 300 || got[1] == 300 || got[2] == 300); /* one flow */
	group_end(s);
	fan_out(PACKET_FANOUT_HASH, true, got, s);
	CHECK_EQ(got[0] + got[1] + got[2], 300);
	CHECK(got[0] > 30 && got[1] > 30 && got[2] > 30);
	group_end(s);
	fan_out(PACKET_FANOUT_CPU, false, got, s);
	CHECK_EQ(got[0], 150);
	CHECK_EQ(got[1], 150);
	group_end(s);
	fan_out(PACKET_FANOUT_QM, false, got, s);
	CHECK_EQ(got[2], 100);
	group_end(s);
	fan_out(PACKET_FANOUT_RND, false, got, s);
	CHECK_EQ(got[0] + got[1] + got[2], 300);
	group_end(s);
	fan_out(PACKET_FANOUT_ROLLOVER, false, got, s);
	CHECK_EQ(got[0], 300); /* it always had room */
	group_end(s);
}

static void
fanout_rolls_over(void)
{
	struct tpacket_rollover_stats rolled;
	socklen_t len = sizeof(rolled);
	struct sl_psock *s[3];
	uint32_t got[3];
	uint8_t buf[100];
	int small = 1;

	fan_out(PACKET_FANOUT_CPU | PACKET_FANOUT_FLAG_ROLLOVER, false, got, s);
	CHECK_EQ(sl_psock_setsockopt(s[0], SOL_SOCKET, SO_RCVBUF, &small, 4, NONE), 0);
	show(frame(0x0800, 60), 0);
	show(frame(0x0800, 61), 0); /* the first one is full */
	CHECK_EQ(sock_recv(s[0], buf, sizeof(buf), 0, NULL), 60);
	CHECK_EQ(sock_recv(s[1], buf, sizeof(buf), 0, NULL), 61);
	CHECK_EQ(sl_psock_getsockopt(s[2], SOL_PACKET, PACKET_ROLLOVER_STATS, &rolled, &len), 0);
	CHECK_EQ(rolled.tp_all, 1);
	group_end(s);
}

static void
fanout_by_filter(void)
{
	struct sock_filter last[] = {BPF_STMT(BPF_RET | BPF_K, 2)};
	struct sock_fprog p = {1, last};
	struct sl_psock *s[3];
	uint32_t got[3];
	uint8_t buf[100];

	fan_out(PACKET_FANOUT_CBPF, false, got, s);
	CHECK_EQ(got[0], 300); /* no program yet */
	CHECK_EQ(sl_psock_setsockopt(s[1], SOL_PACKET, PACKET_FANOUT_DATA, &p, sizeof(p), NONE), 0);
	show(frame(0x0800, 60), 0);
	CHECK_EQ(sock_recv(s[2], buf, sizeof(buf), 0, NULL), 60);
	/* A member that goes is passed over at once. */
	sl_psock_close(s[2], NONE);
	show(frame(0x0800, 60), 0);
	CHECK_EQ(sock_recv(s[0], buf, sizeof(buf), 0, NULL), 60);
	sl_psock_close(s[0], NONE);
	sl_psock_close(s[1], NONE);
}

static void
promiscuity_undoes_itself(void)
{
	struct packet_mreq m = {.mr_type = PACKET_MR_PROMISC, .mr_ifindex = IFINDEX};
	struct sl_psock *a = sock_open(SOCK_RAW, 0), *b = sock_open(SOCK_RAW, 0);

	CHECK_EQ(sl_psock_setsockopt(a, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof(m), NONE), 0);
	CHECK_EQ(sl_psock_setsockopt(b, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof(m), NONE), 0);
	CHECK_EQ(net->port[PORT].promisc, 2);
	CHECK_EQ(
		sl_psock_setsockopt(a, SOL_PACKET, PACKET_DROP_MEMBERSHIP, &m, sizeof(m), NONE), 0);
	CHECK_EQ(rte_eth_promiscuous_get(PORT), 1);
	sl_psock_close(b, NONE);
	CHECK_EQ(net->port[PORT].promisc, 0);
	CHECK_EQ(rte_eth_promiscuous_get(PORT), 0);
	sl_psock_close(a, NONE);
}

int
main(void)
{
	help_init("receive");
	net_open(NULL, SL_PSOCK_LEND_AUTO);
	SL_TEST_RUN(types_see_their_part);
	SL_TEST_RUN(packet_types);
	SL_TEST_RUN(lengths_and_flags);
	SL_TEST_RUN(a_wait_ends);
	SL_TEST_RUN(auxdata_comes_along);
	SL_TEST_RUN(vnet_headers_in_front);
	SL_TEST_RUN(statistics_clear_on_read);
	SL_TEST_RUN(filters_choose_and_clip);
	SL_TEST_RUN(rings_are_filled);
	SL_TEST_RUN(clipped_packets_are_copied_when_asked);
	SL_TEST_RUN(v3_blocks_retire_by_polling);
	SL_TEST_RUN(fanout_shares);
	SL_TEST_RUN(fanout_rolls_over);
	SL_TEST_RUN(fanout_by_filter);
	SL_TEST_RUN(promiscuity_undoes_itself);
	net_close();
	return help_end();
}
