/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What becomes of good and bad packets: one outcome each, whichever path they take. */
#include "inet_test.h"

static const uint8_t other_mac[6] = {2, 0, 0, 0, 0, 9};
static const uint8_t all_hosts_mac[6] = {1, 0, 0x5e, 0, 0, 1};
static const uint8_t all_nodes_mac[6] = {0x33, 0x33, 0, 0, 0, 1};

/* Changes one field of a frame after it was made; the IPv4 checksum is put right afterwards. */
struct patch {
	int off; /* from the start of the IP header; below 0 from the start of the frame, less 1 */
	int value;
	bool keep_csum;
};

#define ETH(off) (-(off)-1)

struct rx_case {
	const char *what;
	int outcome;
	struct t_udp u;
	struct patch patch[3];
	int cut; /* frame length at the end; 0 for as made */
};

static const uint8_t nops[] = {1, 1, 1, 0};
static const uint8_t record_route[] = {7, 7, 4, 0, 0, 0, 0, 0};
static const uint8_t lsrr[] = {131, 7, 4, 1, 2, 3, 4, 0};
static const uint8_t ssrr[] = {137, 7, 4, 1, 2, 3, 4, 0};
static const uint8_t opt_len0[] = {7, 0, 0, 0};
static const uint8_t opt_len1[] = {7, 1, 0, 0};
static const uint8_t opt_long[] = {7, 5, 0, 0};
static const uint8_t opt_last[] = {1, 1, 1, 7};
static const uint8_t opt_after_end[] = {0, 131, 9, 9};
static const uint8_t opt_max[40] = {68, 40, 5};

#define V4(...)                                                                                    \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define V6(...)                                                                                    \
	{                                                                                          \
		.v6 = true, __VA_ARGS__                                                            \
	}
#define OPT(o) .options = (o), .options_len = sizeof(o)

static const struct rx_case cases4[] = {
	{"plain", SL_RX_UDP_QUEUED, V4(.payload = 22), {{0}}, 0},
	{"empty payload", SL_RX_UDP_QUEUED, V4(.payload = 0, .padding = 18), {{0}}, 0},
	{"empty payload without padding", SL_RX_UDP_QUEUED, V4(.payload = 0), {{0}}, 0},
	{"padded", SL_RX_UDP_QUEUED, V4(.payload = 1, .padding = 17), {{0}}, 0},
	{"no checksum", SL_RX_UDP_QUEUED, V4(.payload = 9, .no_csum = true), {{0}}, 0},
	{"1472 bytes", SL_RX_UDP_QUEUED, V4(.payload = 1472), {{0}}, 0},
	{"UDP shorter than IP", SL_RX_UDP_QUEUED, V4(.payload = 8, .udp_len = 12, .no_csum = true),
		{{0}}, 0},
	{"UDP length 7", SL_RX_UDP_LENGTH, V4(.payload = 8, .udp_len = 7), {{0}}, 0},
	{"UDP length beyond IP", SL_RX_UDP_LENGTH, V4(.payload = 8, .udp_len = 17), {{0}}, 0},
	{"UDP length beyond IP, in padding", SL_RX_UDP_LENGTH,
		V4(.payload = 8, .udp_len = 17, .padding = 20), {{0}}, 0},
	{"UDP header cut by IP length", SL_RX_UDP_LENGTH, V4(.payload = 0), {{3, 27, false}}, 0},
	{"broadcast", SL_RX_UDP_QUEUED,
		V4(.payload = 4, .dst = "255.255.255.255", .dst_mac = t_any_mac), {{0}}, 0},
	{"subnet broadcast", SL_RX_UDP_QUEUED,
		V4(.payload = 4, .dst = "198.18.0.255", .dst_mac = t_any_mac), {{0}}, 0},
	{"all hosts", SL_RX_UDP_QUEUED,
		V4(.payload = 4, .dst = "224.0.0.1", .dst_mac = all_hosts_mac), {{0}}, 0},
	{"a group not joined", SL_RX_IP_NOT_LOCAL,
		V4(.payload = 4, .dst = "224.0.0.5", .dst_mac = all_hosts_mac), {{0}}, 0},
	{"somebody else's address", SL_RX_IP_NOT_LOCAL, V4(.payload = 4, .dst = "198.18.0.3"),
		{{0}}, 0},
	{"destination 0.0.0.0", SL_RX_IP_NOT_LOCAL, V4(.payload = 4, .dst = "0.0.0.0"), {{0}}, 0},
	{"destination 127.0.0.1", SL_RX_IP_NOT_LOCAL, V4(.payload = 4, .dst = "127.0.0.1"), {{0}},
		0},
	{"other MAC address", SL_RX_ETH_OTHERHOST, V4(.payload = 4, .dst_mac = other_mac), {{0}},
		0},
	{"unicast address in a broadcast frame", SL_RX_UDP_QUEUED,
		V4(.payload = 4, .dst_mac = t_any_mac), {{0}}, 0},
	{"source 0.0.0.0", SL_RX_IP_SOURCE, V4(.payload = 4, .src = "0.0.0.0"), {{0}}, 0},
	{"source 0.1.2.3", SL_RX_IP_SOURCE, V4(.payload = 4, .src = "0.1.2.3"), {{0}}, 0},
	{"source 127.0.0.1", SL_RX_IP_SOURCE, V4(.payload = 4, .src = "127.0.0.1"), {{0}}, 0},
	{"source group", SL_RX_IP_SOURCE, V4(.payload = 4, .src = "224.0.0.1"), {{0}}, 0},
	{"source 255.255.255.255", SL_RX_IP_SOURCE, V4(.payload = 4, .src = "255.255.255.255"),
		{{0}}, 0},
	{"source subnet broadcast", SL_RX_IP_SOURCE, V4(.payload = 4, .src = "198.18.0.255"), {{0}},
		0},
	{"source equals destination", SL_RX_IP_SOURCE, V4(.payload = 4, .src = "198.18.0.2"), {{0}},
		0},
	{"source in class E", SL_RX_UDP_QUEUED, V4(.payload = 4, .src = "240.0.0.1"), {{0}}, 0},
	{"source 223.255.255.254", SL_RX_UDP_QUEUED, V4(.payload = 4, .src = "223.255.255.254"),
		{{0}}, 0},
	{"IP version 5", SL_RX_IP_VERSION, V4(.payload = 4), {{0, 0x55, false}}, 0},
	{"IP version 6 under 0800", SL_RX_IP_VERSION, V4(.payload = 40), {{0, 0x65, true}}, 0},
	{"header length 16", SL_RX_IP_LENGTH, V4(.payload = 4), {{0, 0x44, false}}, 0},
	{"header length beyond total", SL_RX_IP_LENGTH, V4(.payload = 4), {{0, 0x4f, false}}, 0},
	{"total length 19", SL_RX_IP_LENGTH, V4(.payload = 4), {{3, 19, false}}, 0},
	{"total length beyond the frame", SL_RX_IP_LENGTH, V4(.payload = 4), {{3, 33, false}}, 0},
	{"total length 65535", SL_RX_IP_LENGTH, V4(.payload = 4),
		{{2, 0xff, false}, {3, 0xff, false}}, 0},
	{"header checksum", SL_RX_IP_CSUM, V4(.payload = 4), {{10, 0x12, true}}, 0},
	{"header checksum, by a flipped TTL", SL_RX_IP_CSUM, V4(.payload = 4), {{8, 1, true}}, 0},
	{"header checksum 0", SL_RX_IP_CSUM, V4(.payload = 4), {{10, 0, true}, {11, 0, true}}, 0},
	{"fragment of an odd length", SL_RX_IP_FRAG_BAD, V4(.payload = 9, .frag = 0x2000), {{0}}, 0},
	{"fragment beyond the end", SL_RX_IP_FRAG_BAD, V4(.payload = 8, .frag = 0x1fff), {{0}}, 0},
	{"don't fragment", SL_RX_UDP_QUEUED, V4(.payload = 8, .frag = 0x4000), {{0}}, 0},
	{"reserved flag", SL_RX_UDP_QUEUED, V4(.payload = 8, .frag = 0x8000), {{0}}, 0},
	{"TCP", SL_RX_IP_PROTO, V4(.payload = 20, .proto = 6), {{0}}, 0},
	{"checksum", SL_RX_UDP_CSUM, V4(.payload = 22), {{30, 0xff, true}}, 0},
	{"checksum, by the last payload byte", SL_RX_UDP_CSUM, V4(.payload = 21), {{48, 0, true}},
		0},
	{"options of nothing", SL_RX_UDP_QUEUED, V4(.payload = 5, OPT(nops)), {{0}}, 0},
	{"record route", SL_RX_UDP_QUEUED, V4(.payload = 5, OPT(record_route)), {{0}}, 0},
	{"60 bytes of header", SL_RX_UDP_QUEUED, V4(.payload = 5, OPT(opt_max)), {{0}}, 0},
	{"loose source route", SL_RX_IP_OPTION, V4(.payload = 5, OPT(lsrr)), {{0}}, 0},
	{"strict source route", SL_RX_IP_OPTION, V4(.payload = 5, OPT(ssrr)), {{0}}, 0},
	{"option length 0", SL_RX_IP_OPTION, V4(.payload = 5, OPT(opt_len0)), {{0}}, 0},
	{"option length 1", SL_RX_IP_OPTION, V4(.payload = 5, OPT(opt_len1)), {{0}}, 0},
	{"option beyond the header", SL_RX_IP_OPTION, V4(.payload = 5, OPT(opt_long)), {{0}}, 0},
	{"option without a length", SL_RX_IP_OPTION, V4(.payload = 5, OPT(opt_last)), {{0}}, 0},
	{"rubbish behind the end of options", SL_RX_UDP_QUEUED,
		V4(.payload = 5, OPT(opt_after_end)), {{0}}, 0},
	{"ethertype 1234", SL_RX_ETH_TYPE, V4(.payload = 5), {{ETH(12), 0x12, true}}, 0},
	{"802.3 length", SL_RX_ETH_TYPE, V4(.payload = 5),
		{{ETH(12), 0, true}, {ETH(13), 40, true}}, 0},
	{"IPv6 under 0800's sibling", SL_RX_IP_VERSION, V4(.payload = 40),
		{{ETH(12), 0x86, true}, {ETH(13), 0xdd, true}}, 0},
	{"13 bytes", SL_RX_ETH_SHORT, V4(.payload = 5), {{0, 0x45, false}}, 13},
	{"no IP header", SL_RX_IP_LENGTH, V4(.payload = 5), {{0, 0x45, false}}, 14},
	{"19 bytes of IP header", SL_RX_IP_LENGTH, V4(.payload = 5), {{0, 0x45, false}}, 33},
	{"IP header alone", SL_RX_IP_LENGTH, V4(.payload = 5), {{0, 0x45, false}}, 34},
	{"tagged on an untagged port", SL_RX_VLAN_OTHER, V4(.payload = 5, .vlan = 7), {{0}}, 0},
	{"priority tag on an untagged port", SL_RX_UDP_QUEUED, V4(.payload = 5, .vlan = 0x2000),
		{{0}}, 0},
	{"tag cut off", SL_RX_ETH_SHORT, V4(.payload = 5, .vlan = 7), {{0}}, 15},
	{"type behind the tag cut off", SL_RX_ETH_SHORT, V4(.payload = 5, .vlan = 7), {{0}}, 17},
};

static const uint8_t hop_pad[] = {17, 0, 1, 4, 0, 0, 0, 0};
static const uint8_t hop_alert[] = {17, 0, 5, 2, 0, 0, 1, 0};
static const uint8_t hop_long[] = {17, 1, 1, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
static const uint8_t hop_beyond[] = {17, 9, 1, 4, 0, 0, 0, 0};
static const uint8_t hop_opt_beyond[] = {17, 0, 5, 5, 0, 0, 0, 0};
static const uint8_t hop_opt_cut[] = {17, 0, 1, 3, 0, 0, 0, 5};
static const uint8_t hop_skip[] = {17, 0, 0x3e, 4, 0, 0, 0, 0};
static const uint8_t hop_discard[] = {17, 0, 0x7e, 4, 0, 0, 0, 0};
static const uint8_t hop_report[] = {17, 0, 0xbe, 4, 0, 0, 0, 0};
static const uint8_t routing_done[] = {
	17, 2, 2, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8};
static const uint8_t routing_left[] = {
	17, 2, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8};
static const uint8_t fragment_first[] = {17, 0, 0, 1, 0, 0, 0, 9};
static const uint8_t fragment_atomic[] = {17, 0, 0, 0, 0, 0, 0, 9};
static const uint8_t hop_twice[] = {0, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0};
static const uint8_t dst_hop[] = {0, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0};
#define PAD(next) (next), 0, 1, 4, 0, 0, 0, 0
static const uint8_t eight[] = {
	PAD(60), PAD(60), PAD(60), PAD(60), PAD(60), PAD(60), PAD(60), PAD(17)};
static const uint8_t nine[] = {
	PAD(60), PAD(60), PAD(60), PAD(60), PAD(60), PAD(60), PAD(60), PAD(60), PAD(17)};

static const struct rx_case cases6[] = {
	{"plain", SL_RX_UDP_QUEUED, V6(.payload = 22), {{0}}, 0},
	{"empty payload", SL_RX_UDP_QUEUED, V6(.payload = 0), {{0}}, 0},
	{"padded", SL_RX_UDP_QUEUED, V6(.payload = 1, .padding = 7), {{0}}, 0},
	{"1452 bytes", SL_RX_UDP_QUEUED, V6(.payload = 1452), {{0}}, 0},
	{"no checksum", SL_RX_UDP_CSUM_ZERO6, V6(.payload = 9, .no_csum = true), {{0}}, 0},
	{"checksum", SL_RX_UDP_CSUM, V6(.payload = 22), {{48, 0xff, true}}, 0},
	{"UDP length 7", SL_RX_UDP_LENGTH, V6(.payload = 8, .udp_len = 7), {{0}}, 0},
	{"UDP length beyond IP", SL_RX_UDP_LENGTH, V6(.payload = 8, .udp_len = 17), {{0}}, 0},
	{"UDP length 0", SL_RX_UDP_LENGTH, V6(.payload = 8), {{44, 0, true}, {45, 0, true}}, 0},
	{"payload length 0", SL_RX_UDP_LENGTH, V6(.payload = 8), {{4, 0, true}, {5, 0, true}}, 0},
	{"payload length beyond the frame", SL_RX_IP_LENGTH, V6(.payload = 8), {{5, 17, true}}, 0},
	{"version 4 under 86dd", SL_RX_IP_VERSION, V6(.payload = 8), {{0, 0x45, true}}, 0},
	{"39 bytes of header", SL_RX_IP_LENGTH, V6(.payload = 8), {{0, 0x60, true}}, 53},
	{"header alone", SL_RX_IP_LENGTH, V6(.payload = 8), {{0, 0x60, true}}, 54},
	{"all nodes", SL_RX_UDP_QUEUED,
		V6(.payload = 8, .dst = "ff02::1", .dst_mac = all_nodes_mac), {{0}}, 0},
	{"solicited-node group of ours", SL_RX_UDP_QUEUED,
		V6(.payload = 8, .dst = "ff02::1:ff00:2", .dst_mac = all_nodes_mac), {{0}}, 0},
	{"a group not joined", SL_RX_IP_NOT_LOCAL,
		V6(.payload = 8, .dst = "ff02::5", .dst_mac = all_nodes_mac), {{0}}, 0},
	{"link-local address of ours", SL_RX_UDP_QUEUED, V6(.payload = 8, .dst = "fe80::ff:fe00:2"),
		{{0}}, 0},
	{"somebody else's address", SL_RX_IP_NOT_LOCAL, V6(.payload = 8, .dst = "2001:db8::3"),
		{{0}}, 0},
	{"destination ::", SL_RX_IP_NOT_LOCAL, V6(.payload = 8, .dst = "::"), {{0}}, 0},
	{"destination ::1", SL_RX_IP_NOT_LOCAL, V6(.payload = 8, .dst = "::1"), {{0}}, 0},
	{"source ::", SL_RX_IP_SOURCE, V6(.payload = 8, .src = "::"), {{0}}, 0},
	{"source ::1", SL_RX_IP_SOURCE, V6(.payload = 8, .src = "::1"), {{0}}, 0},
	{"source group", SL_RX_IP_SOURCE, V6(.payload = 8, .src = "ff02::1"), {{0}}, 0},
	{"source equals destination", SL_RX_IP_SOURCE, V6(.payload = 8, .src = "2001:db8::2"),
		{{0}}, 0},
	{"source is an IPv4 address in disguise", SL_RX_IP_SOURCE, V6(.payload = 8),
		{{0x108, 0, true}}, 0},
	{"source link-local", SL_RX_UDP_QUEUED, V6(.payload = 8, .src = "fe80::1"), {{0}}, 0},
	{"source unique local", SL_RX_UDP_QUEUED, V6(.payload = 8, .src = "fd00::1"), {{0}}, 0},
	{"other MAC address", SL_RX_ETH_OTHERHOST, V6(.payload = 8, .dst_mac = other_mac), {{0}},
		0},
	{"hop-by-hop of padding", SL_RX_UDP_QUEUED, V6(.payload = 5, OPT(hop_pad)), {{0}}, 0},
	{"router alert", SL_RX_UDP_QUEUED, V6(.payload = 5, OPT(hop_alert)), {{0}}, 0},
	{"long hop-by-hop", SL_RX_UDP_QUEUED, V6(.payload = 5, OPT(hop_long)), {{0}}, 0},
	{"hop-by-hop beyond the packet", SL_RX_IP_EXTENSION, V6(.payload = 5, OPT(hop_beyond)),
		{{0}}, 0},
	{"option beyond its header", SL_RX_IP_EXTENSION, V6(.payload = 5, OPT(hop_opt_beyond)),
		{{0}}, 0},
	{"option without a length", SL_RX_IP_EXTENSION, V6(.payload = 5, OPT(hop_opt_cut)), {{0}},
		0},
	{"unknown option to skip", SL_RX_UDP_QUEUED, V6(.payload = 5, OPT(hop_skip)), {{0}}, 0},
	{"unknown option to discard", SL_RX_IP_EXTENSION, V6(.payload = 5, OPT(hop_discard)), {{0}},
		0},
	{"unknown option to report", SL_RX_IP_EXTENSION, V6(.payload = 5, OPT(hop_report)), {{0}},
		0},
	{"hop-by-hop twice", SL_RX_IP_EXTENSION, V6(.payload = 5, OPT(hop_twice)), {{0}}, 0},
	{"destination options", SL_RX_UDP_QUEUED, V6(.payload = 5, OPT(hop_pad), .next = 60), {{0}},
		0},
	{"hop-by-hop second", SL_RX_IP_EXTENSION, V6(.payload = 5, OPT(dst_hop), .next = 60), {{0}},
		0},
	{"routing, none left", SL_RX_UDP_QUEUED, V6(.payload = 5, OPT(routing_done), .next = 43),
		{{0}}, 0},
	{"routing type 0", SL_RX_IP_EXTENSION, V6(.payload = 5, OPT(routing_left), .next = 43),
		{{0}}, 0},
	{"fragment of an odd length", SL_RX_IP_FRAG_BAD,
		V6(.payload = 9, OPT(fragment_first), .next = 44), {{0}}, 0},
	{"atomic fragment", SL_RX_UDP_QUEUED, V6(.payload = 8, OPT(fragment_atomic), .next = 44),
		{{0}}, 0},
	{"eight extension headers", SL_RX_UDP_QUEUED, V6(.payload = 5, OPT(eight), .next = 60),
		{{0}}, 0},
	{"nine extension headers", SL_RX_IP_EXTENSION, V6(.payload = 5, OPT(nine), .next = 60),
		{{0}}, 0},
	{"extension cut off", SL_RX_IP_EXTENSION, V6(.payload = 5, OPT(hop_pad)), {{5, 7, true}},
		61},
	{"no next header", SL_RX_IP_PROTO, V6(.payload = 5, .proto = 59), {{0}}, 0},
	{"ESP", SL_RX_IP_PROTO, V6(.payload = 20, .proto = 50), {{0}}, 0},
};

static void
make_frame(struct t_frame *f, const struct rx_case *c)
{
	size_t l3 = t_l3(&c->u);
	bool fix = false;

	t_udp_frame(f, &c->u);
	for (unsigned int i = 0; i < SL_COUNT_OF(c->patch); i++) {
		const struct patch *p = &c->patch[i];

		if (p->off == 0 && p->value == 0)
			continue;
		if (p->off == 0x108) /* ::ffff:198.18.0.1, which has no text form of its own */
			memcpy(f->b + l3 + 8, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc6\x12\0\1", 16);
		else if (p->off < 0)
			f->b[-p->off - 1] = (uint8_t)p->value;
		else
			f->b[l3 + (size_t)p->off] = (uint8_t)p->value;
		fix = fix || !p->keep_csum;
	}
	if (fix && !c->u.v6 && (f->b[l3] & 0xf) >= 5)
		t_fix_ip4(f, l3);
	if (c->cut != 0)
		f->len = (size_t)c->cut;
}

static void
check_payload(const struct rx_case *c)
{
	const struct sl_dgram *d = &t_in[0];
	struct rte_mbuf *m = d->buf;
	uint8_t bytes[2048];
	size_t want = c->u.udp_len != 0 ? (size_t)c->u.udp_len - 8 : c->u.payload;

	CHECK_EQ(t_ins, 1);
	CHECK_EQ(d->len, want);
	CHECK_EQ(rte_pktmbuf_pkt_len(m), want);
	CHECK_EQ(rte_be_to_cpu_16(d->sport), 4000);
	CHECK_EQ(rte_be_to_cpu_16(d->dport), 9);
	CHECK_EQ(d->port, t_port);
	CHECK_EQ(d->ttl, 64);
	CHECK(rte_mbuf_check(m, 1, &(const char *){NULL}) == 0);
	REQUIRE(rte_pktmbuf_read(m, 0, (uint32_t)want, bytes) != NULL || want == 0);
	for (size_t i = 0; i < want; i++) {
		const uint8_t *b = rte_pktmbuf_read(m, (uint32_t)i, 1, bytes);

		if (*b != (uint8_t)(i + 1)) {
			CHECK_EQ(*b, (uint8_t)(i + 1));
			break;
		}
	}
}

static void
run_case(const struct rx_case *c, struct rte_mbuf *m, const char *how)
{
	int outcome = t_feed_mbuf(m);

	if (outcome != c->outcome)
		fprintf(stderr, "%s %s (%s)\n", c->u.v6 ? "IPv6" : "IPv4", c->what, how);
	CHECK_EQ(outcome, c->outcome);
	if (outcome == SL_RX_UDP_QUEUED)
		check_payload(c);
	else
		CHECK_EQ(t_ins, 0);
	t_drop_in();
	t_flush();
	t_drop_out();
}

/* Every packet, cold and with its destination remembered, then in two segments cut anywhere. */
static void
run_cases(const struct rx_case *cases, size_t n)
{
	struct t_frame f;

	for (size_t i = 0; i < n; i++) {
		t_open(NULL);
		make_frame(&f, &cases[i]);
		run_case(&cases[i], t_mbuf(f.b, f.len), "whole");
		run_case(&cases[i], t_mbuf(f.b, f.len), "again");
		for (size_t at = 0; at <= f.len; at++)
			run_case(&cases[i], t_mbuf_split(f.b, f.len, at), "split");
		t_close();
	}
}

static void
ip4_packets(void)
{
	run_cases(cases4, SL_COUNT_OF(cases4));
}

static void
ip6_packets(void)
{
	run_cases(cases6, SL_COUNT_OF(cases6));
}

/* Good ones make the fast path remember; bad ones behind them must not profit. */
static void
mixed_bursts(void)
{
	struct rte_mbuf *pkts[SL_INET_BURST];
	uint64_t want[SL_OUTCOME_COUNT] = {0}, counts[SL_OUTCOME_COUNT];
	struct t_frame f;
	unsigned int n = 0;

	t_open(NULL);
	for (unsigned int round = 0; round < 7; round++) {
		for (size_t i = 0; i < SL_COUNT_OF(cases4) + SL_COUNT_OF(cases6); i++) {
			size_t k = (i * 31 + round) % (SL_COUNT_OF(cases4) + SL_COUNT_OF(cases6));
			const struct rx_case *c = k < SL_COUNT_OF(cases4)
							  ? &cases4[k]
							  : &cases6[k - SL_COUNT_OF(cases4)];

			make_frame(&f, c);
			pkts[n++] = t_mbuf(f.b, f.len);
			want[c->outcome]++;
			if (n < SL_INET_BURST)
				continue;
			sl_inet_input_burst(t_inet, 0, t_port, pkts, (uint16_t)n);
			n = 0;
			t_drop_in();
			t_flush();
			t_drop_out();
		}
	}
	sl_inet_input_burst(t_inet, 0, t_port, pkts, (uint16_t)n);
	sl_inet_outcomes(t_inet, 0, counts);
	for (int k = 0; k < SL_OUTCOME_TX_FIRST; k++)
		CHECK_EQ(counts[k], want[k]);
	sl_inet_input_burst(t_inet, 0, t_port, pkts, 0);
	t_close();
}

struct vlan_case {
	const char *what;
	uint16_t port_svlan, port_vlan;
	uint16_t svlan, vlan; /* in the frame */
	bool stripped, qinq;  /* by hardware */
	uint16_t tci, tci_outer;
	int outcome;
};

static const struct vlan_case vlans[] = {
	{"untagged where tagged is due", 0, 7, 0, 0, false, false, 0, 0, SL_RX_VLAN_OTHER},
	{"tagged", 0, 7, 0, 7, false, false, 0, 0, SL_RX_UDP_QUEUED},
	{"tagged, priority 5", 0, 7, 0, 0xa007, false, false, 0, 0, SL_RX_UDP_QUEUED},
	{"another tag", 0, 7, 0, 8, false, false, 0, 0, SL_RX_VLAN_OTHER},
	{"two tags for one", 0, 7, 9, 7, false, false, 0, 0, SL_RX_VLAN_OTHER},
	{"stripped", 0, 7, 0, 0, true, false, 7, 0, SL_RX_UDP_QUEUED},
	{"stripped, another", 0, 7, 0, 0, true, false, 8, 0, SL_RX_VLAN_OTHER},
	{"stripped on an untagged port", 0, 0, 0, 0, true, false, 8, 0, SL_RX_VLAN_OTHER},
	{"stripped priority tag", 0, 0, 0, 0, true, false, 0x6000, 0, SL_RX_UDP_QUEUED},
	{"stripped and one in the frame", 9, 7, 0, 7, true, false, 9, 0, SL_RX_UDP_QUEUED},
	{"both stripped", 9, 7, 0, 0, true, true, 7, 9, SL_RX_UDP_QUEUED},
	{"both stripped, outer differs", 9, 7, 0, 0, true, true, 7, 8, SL_RX_VLAN_OTHER},
	{"both stripped and one more", 9, 7, 0, 7, true, true, 7, 9, SL_RX_VLAN_OTHER},
	{"two tags", 9, 7, 9, 7, false, false, 0, 0, SL_RX_UDP_QUEUED},
	{"two tags, inner differs", 9, 7, 9, 6, false, false, 0, 0, SL_RX_VLAN_OTHER},
	{"two tags, outer differs", 9, 7, 6, 7, false, false, 0, 0, SL_RX_VLAN_OTHER},
	{"one tag for two", 9, 7, 0, 7, false, false, 0, 0, SL_RX_VLAN_OTHER},
	{"outer tag alone", 9, 7, 9, 0, false, false, 0, 0, SL_RX_VLAN_OTHER},
	{"802.1ad tag on an 802.1Q port", 0, 7, 7, 0, false, false, 0, 0, SL_RX_VLAN_OTHER},
};

static void
vlan_tags(void)
{
	for (size_t i = 0; i < SL_COUNT_OF(vlans); i++) {
		const struct vlan_case *v = &vlans[i];
		struct sl_inet_port_conf conf = {.vlan = v->port_vlan, .svlan = v->port_svlan};

		t_open(&conf);
		for (int v6 = 0; v6 < 2; v6++) {
			struct t_udp u = {
				.v6 = v6 != 0, .payload = 30, .vlan = v->vlan, .svlan = v->svlan};
			struct t_frame f;
			struct rte_mbuf *m;
			int outcome;

			t_udp_frame(&f, &u);
			m = t_mbuf(f.b, f.len);
			if (v->stripped)
				m->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
			if (v->qinq)
				m->ol_flags |= RTE_MBUF_F_RX_QINQ | RTE_MBUF_F_RX_QINQ_STRIPPED;
			m->vlan_tci = v->tci;
			m->vlan_tci_outer = v->tci_outer;
			outcome = t_feed_mbuf(m);
			if (outcome != v->outcome)
				fprintf(stderr, "%s\n", v->what);
			CHECK_EQ(outcome, v->outcome);
			t_drop_in();
		}
		t_close();
	}
}

static void
three_tags(void)
{
	static const uint8_t tag[] = {0x81, 0, 0, 0};
	struct sl_inet_port_conf conf = {.vlan = 7, .svlan = 9};
	struct t_udp u = {.payload = 30, .vlan = 7, .svlan = 9};
	struct t_frame f, g;

	t_open(&conf);
	t_udp_frame(&f, &u);
	memcpy(g.b, f.b, 12);
	memcpy(g.b + 12, tag, sizeof(tag));
	memcpy(g.b + 16, f.b + 12, f.len - 12);
	CHECK_EQ(t_feed(g.b, f.len + 4), SL_RX_VLAN_OTHER);
	t_close();
}

/* testpmd's txonly sends to a MAC address of its own choice, and perhaps to an IP address too. */
static void
promiscuous_and_any_dst(void)
{
	struct sl_inet_port_conf conf = {.promiscuous = true, .any_dst = true};
	struct t_udp u = {.payload = 22, .dst_mac = other_mac, .dst = "192.0.2.9"};
	struct t_frame f;

	t_open(&conf);
	for (int i = 0; i < 2; i++) {
		t_udp_frame(&f, &u);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_UDP_QUEUED);
	}
	/* The address hit last is not the port's; the port's broadcast address is still nobody's. */
	u.src = "198.18.0.255";
	t_udp_frame(&f, &u);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_IP_SOURCE);
	u.src = NULL;
	u.dst = "127.0.0.1";
	t_udp_frame(&f, &u);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_IP_NOT_LOCAL);
	u.dst = "224.0.0.9";
	t_udp_frame(&f, &u);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_IP_NOT_LOCAL);
	u = (struct t_udp){.v6 = true, .payload = 22, .dst_mac = other_mac, .dst = "2001:db8:1::9"};
	t_udp_frame(&f, &u);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_UDP_QUEUED);
	u.dst = "ff02::9";
	t_udp_frame(&f, &u);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_IP_NOT_LOCAL);
	t_close();
}

/* Several addresses: each is local, each prefix's broadcast is no source. */
static void
several_addresses(void)
{
	struct sl_addr second = t_addr("10.1.2.3");
	struct t_udp u = {.payload = 22};
	struct t_frame f;

	t_open(NULL);
	REQUIRE(sl_inet_addr_add(t_inet, t_port, &second, 26) == 0);
	for (int i = 0; i < 4; i++) {
		u.dst = i % 2 ? "10.1.2.3" : NULL;
		t_udp_frame(&f, &u);
		CHECK_EQ(t_feed(f.b, f.len), SL_RX_UDP_QUEUED);
	}
	u.src = "10.1.2.63";
	t_udp_frame(&f, &u);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_IP_SOURCE);
	u.dst = NULL;
	t_udp_frame(&f, &u);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_IP_SOURCE);
	u.src = "198.18.0.255";
	u.dst = "10.1.2.3";
	t_udp_frame(&f, &u);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_IP_SOURCE);
	t_close();
}

/* What descriptors say, for both paths of both families. */
static void
descriptors(void)
{
	static const struct t_udp us[] = {
		{.payload = 30, .sport = 1234, .dport = 53, .ttl = 7, .tos = 0xb8},
		{.payload = 30, .sport = 1234, .dport = 53, .ttl = 7, .tos = 0xb8, OPT(nops)},
		{.v6 = true, .payload = 30, .sport = 1234, .dport = 53, .ttl = 7, .tos = 0xb8},
		{.v6 = true,
			.payload = 30,
			.sport = 1234,
			.dport = 53,
			.ttl = 7,
			.tos = 0xb8,
			OPT(hop_pad)},
	};
	struct t_frame f;

	t_open(NULL);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < SL_COUNT_OF(us); i++) {
			struct sl_addr src = t_addr(us[i].v6 ? "2001:db8::1" : "198.18.0.1");
			struct sl_addr dst = t_addr(us[i].v6 ? "2001:db8::2" : "198.18.0.2");
			const struct sl_dgram *d = &t_in[0];

			t_udp_frame(&f, &us[i]);
			CHECK_EQ(t_feed(f.b, f.len), SL_RX_UDP_QUEUED);
			CHECK_EQ(rte_be_to_cpu_16(d->sport), 1234);
			CHECK_EQ(rte_be_to_cpu_16(d->dport), 53);
			CHECK_EQ(d->ttl, 7);
			CHECK_EQ(d->tos, 0xb8);
			CHECK(memcmp(d->src, &src, 16) == 0);
			CHECK(memcmp(d->dst, &dst, 16) == 0);
			CHECK_EQ(d->truesize, sizeof(struct rte_mbuf) + RTE_MBUF_DEFAULT_BUF_SIZE);
			t_drop_in();
		}
	}
	t_udp_frame(&f, &us[0]);
	CHECK_EQ(t_feed_mbuf(t_mbuf_split(f.b, f.len, 50)), SL_RX_UDP_QUEUED);
	CHECK_EQ(t_in[0].truesize, 2 * (sizeof(struct rte_mbuf) + RTE_MBUF_DEFAULT_BUF_SIZE));
	t_close();
}

/* What the UDP layer refuses is counted as it says, and freed. */
static void
refusals(void)
{
	static const uint8_t answers[] = {SL_RX_UDP_RCVBUF, SL_RX_UDP_SLOTS, SL_RX_UDP_NO_SOCKET};
	struct t_udp u = {.payload = 22};
	struct t_frame f;

	t_udp_frame(&f, &u);
	for (size_t i = 0; i < SL_COUNT_OF(answers); i++) {
		t_open(NULL);
		t_udp_answer = answers[i];
		CHECK_EQ(t_feed(f.b, f.len), answers[i]);
		t_close();
	}
	t_open(NULL);
	sl_inet_set_udp(t_inet, NULL, NULL);
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_UDP_NO_SOCKET);
	t_close();
}

/* Segments that do not add up to what the packet says: the segments count. */
static void
wrong_packet_length(void)
{
	static const int wrong[] = {-20, -1, 1, 20, 4000};
	struct t_udp u = {.payload = 30};
	struct t_frame f;

	t_open(NULL);
	t_udp_frame(&f, &u);
	for (size_t i = 0; i < SL_COUNT_OF(wrong); i++) {
		struct rte_mbuf *m = t_mbuf_split(f.b, f.len, 45);

		m->pkt_len = (uint32_t)((int)m->pkt_len + wrong[i]);
		CHECK_EQ(t_feed_mbuf(m), SL_RX_UDP_QUEUED);
		CHECK_EQ(rte_pktmbuf_pkt_len((struct rte_mbuf *)t_in[0].buf), 30);
		t_drop_in();
		m = t_mbuf_split(f.b, f.len - 1, 45);
		m->pkt_len = (uint32_t)((int)m->pkt_len + wrong[i]);
		CHECK_EQ(t_feed_mbuf(m), SL_RX_IP_LENGTH);
	}
	t_close();
}

int
main(int argc, char **argv)
{
	(void)argc;
	t_init(argv[0]);
	SL_TEST_RUN(ip4_packets);
	SL_TEST_RUN(ip6_packets);
	SL_TEST_RUN(mixed_bursts);
	SL_TEST_RUN(vlan_tags);
	SL_TEST_RUN(three_tags);
	SL_TEST_RUN(promiscuous_and_any_dst);
	SL_TEST_RUN(several_addresses);
	SL_TEST_RUN(descriptors);
	SL_TEST_RUN(refusals);
	SL_TEST_RUN(wrong_packet_length);
	return test_end();
}
