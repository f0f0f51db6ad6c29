/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Filters of traces and captures: many forms of expressions on many packets, each answer compared
 * with what libpcap says of the same bytes by itself. */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "filter.h"
#include "sl_base.h"
#include "sl_test.h"
#include "sl_test_eal.h"

#define FRAME_MAX 200
#define ETH(type) 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, (type) >> 8, (type)&0xff
#define BROADCAST(type) 255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, (type) >> 8, (type)&0xff
#define TAG(id, type) (id) >> 8, (id)&0xff, (type) >> 8, (type)&0xff
#define IP4(proto, frag)                                                                           \
	0x45, 0, 0, 60, 0, 1, (frag) >> 8, (frag)&0xff, 64, proto, 0, 0, 198, 18, 0, 1, 198, 18,   \
		0, 2
#define IP4_OPTIONS(proto)                                                                         \
	0x47, 4, 0, 68, 0, 1, 0, 0, 63, proto, 0, 0, 198, 18, 0, 1, 203, 0, 113, 9, 1, 1, 1, 1, 1, \
		1, 1, 0
#define IP6(next)                                                                                  \
	0x60, 0, 0, 0, 0, 20, next, 64, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,    \
		0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2
#define UDP(from, to) (from) >> 8, (from)&0xff, (to) >> 8, (to)&0xff, 0, 20, 0, 0
#define TCP(flags) 0x30, 0x39, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 4, 0, 0, 0, 0, 0
#define ECHO_REQUEST 8, 0, 0, 0, 0, 7, 0, 1
#define ECHO_REPLY 0, 0, 0, 0, 0, 7, 0, 1
#define DATA 'h', 'e', 'l', 'l', 'o', ' ', 'w', 'o', 'r', 'l', 'd', '!'

static const struct frame {
	uint8_t len;
	uint8_t b[FRAME_MAX];
} frames[] = {
	{54, {ETH(0x800), IP4(17, 0), UDP(12345, 7), DATA}},
	{54, {ETH(0x800), IP4(17, 0), UDP(53, 12345), DATA}},
	{62, {ETH(0x800), IP4_OPTIONS(17), UDP(7, 150), DATA}},
	{54, {ETH(0x800), IP4(17, 0x2000), UDP(12345, 7), DATA}},
	{54, {ETH(0x800), IP4(17, 3), UDP(12345, 7), DATA}},
	{66, {ETH(0x800), IP4(6, 0), TCP(0x02), DATA}},
	{54, {ETH(0x800), IP4(6, 0), TCP(0x12)}},
	{54, {ETH(0x800), IP4(6, 0), TCP(0x11)}},
	{62, {ETH(0x800), IP4_OPTIONS(6), TCP(0x02)}},
	{54, {ETH(0x800), IP4(1, 0), ECHO_REQUEST, DATA}},
	{54, {ETH(0x800), IP4(1, 0), ECHO_REPLY, DATA}},
	{62, {ETH(0x800), IP4_OPTIONS(1), ECHO_REQUEST, DATA}},
	{74, {ETH(0x86dd), IP6(17), UDP(12345, 7), DATA}},
	{86, {ETH(0x86dd), IP6(6), TCP(0x02), DATA}},
	{74, {ETH(0x86dd), IP6(58), 128, 0, 0, 0, 0, 7, 0, 1, DATA}},
	{82, {ETH(0x86dd), IP6(0), 17, 0, 1, 4, 0, 0, 0, 0, UDP(12345, 7), DATA}},
	{42, {BROADCAST(0x806), 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 198, 18, 0, 1, 0, 0, 0, 0,
		     0, 0, 198, 18, 0, 2}},
	{58, {ETH(0x8100), TAG(5, 0x800), IP4(17, 0), UDP(12345, 7), DATA}},
	{58, {ETH(0x8100), TAG(6, 0x800), IP4(1, 0), ECHO_REQUEST, DATA}},
	{62, {ETH(0x88a8), TAG(9, 0x8100), TAG(5, 0x800), IP4(17, 0), UDP(12345, 7), DATA}},
	{60, {ETH(0x88cc), 2, 7, 4}},
	{60, {ETH(46), 0x42, 0x42, 3, 0, 0}},
	{34, {ETH(0x800), IP4(17, 0)}},
	{36, {ETH(0x800), IP4(1, 0), ECHO_REQUEST}},
	{20, {ETH(0x800), 0x45}},
	{12, {ETH(0x800)}},
	{1, {2}},
	{0, {0}},
};

static const char *const expressions[] = {"ip", "ip6", "arp", "udp", "tcp", "icmp", "icmp6", "vlan",
	"vlan 5", "vlan 6 and icmp", "vlan and udp port 7", "vlan 9 and vlan 5", "not vlan",
	"ether multicast", "ether broadcast", "ether host 2:0:0:0:0:1", "ether dst 2:0:0:0:0:2",
	"ether proto 0x88cc", "stp", "llc", "host 198.18.0.2", "src host 198.18.0.1",
	"dst host 203.0.113.9", "net 198.18.0.0/15",
	"src net 203.0.113.0/24 or dst net 203.0.113.0/24", "ip6 host 2001:db8::2",
	"net 2001:db8::/32", "port 7", "udp port 7", "src port 53", "dst port 80", "tcp port 80",
	"portrange 100-200", "udp portrange 1-60", "tcp dst portrange 79-81",
	"port 7 or port 53 or port 80", "not udp", "not port 7", "icmp and src host 198.18.0.1",
	"udp and not (port 53 or dst host 203.0.113.9)", "len > 60", "len <= 54", "greater 62",
	"less 42", "len = 0", "ip[0] = 0x45", "ip[0] & 0xf > 5", "ip[8] < 64", "ip[9] == 17",
	"ip[2:2] = 60", "ip[6:2] & 0x1fff = 0", "ip[6:2] & 0x2000 != 0", "ip[12:4] = 0xc6120001",
	"ip[16:4] != ip[12:4]", "ip[1] & 0xfc != 0", "ip6[6] = 58", "ip6[40] = 128",
	"ip6[40:2] = 12345", "icmp[0] == 8", "icmp[0] = 0", "icmp[icmptype] == icmp-echo",
	"icmp[4:2] = 7", "icmp[4:4] = 0x70001", "icmp[0] == 8 and src host 198.18.0.1",
	"tcp[13] & 2 != 0", "tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn",
	"tcp[tcpflags] & tcp-fin != 0", "tcp[2:2] = 80", "tcp[4:4] = 1", "tcp[12] >> 4 = 5",
	"tcp[((tcp[12] & 0xf0) >> 2):4] = 0x68656c6c", "udp[0:2] = 12345", "udp[2:2] > 100",
	"udp[4:2] = 20", "udp[8] = 0x68", "udp[8:4] = 0x68656c6c", "udp[0] = udp[2]",
	"ether[0] & 1 = 1", "ether[12:2] = 0x800", "ether[14] = 0x45", "ether[6:4] = 0x02000000",
	"ether[20] + ether[21] = 0", "ether[12:2] * 2 = 0x1000", "ether[len - 1] = 33",
	"ether[ether[1]:1] = 2", "udp[(udp[4:2] - 12)] = 0x68",
	/* Places that are below zero, or far behind: no packet matches, and nothing is read there.
	 */
	"ether[(ether[12:2] - 2049):1] = 5", "ether[(ether[12:2] - 2049):2] = 5",
	"ether[(ether[12:2] - 2052):4] = 5", "udp[(udp[4:2] - 20000):4] != 0",
	"ether[ether[0:4]] = 1", "ether[ether[12:2]:2] >= 0", "ip[ip[2:2] * 70000:4] >= 0",
	"udp[4:2] / udp[6:2] = 1", "udp[4:2] % 7 = 6", "ether[0] ^ 2 = 0", "udp[0] | 1 = 0x31"};

/* The frame in pieces of a size; 0: in one. */
static bool
matches(const struct filter *f, const struct frame *frame, uint16_t piece)
{
	struct rte_mbuf m[FRAME_MAX];
	/* Exactly as long, for the sanitizer to see what is read behind it. */
	uint8_t *data[FRAME_MAX];
	uint16_t n = 0, at = 0;
	bool ret;

	memset(m, 0, sizeof(m));
	do {
		uint16_t len = (uint16_t)(frame->len - at);

		len = piece != 0 && piece < len ? piece : len;
		data[n] = malloc(len != 0 ? len : 1);
		REQUIRE(data[n] != NULL);
		memcpy(data[n], frame->b + at, len);
		m[n].buf_addr = data[n];
		m[n].data_len = len;
		if (n > 0)
			m[n - 1].next = &m[n];
		n++;
		at = (uint16_t)(at + len);
	} while (at < frame->len);
	m[0].pkt_len = frame->len;
	m[0].nb_segs = n;
	ret = filter_match(f, m);
	while (n > 0)
		free(data[--n]);
	return ret;
}

static void
filters_say_what_libpcap_says(void)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 65535);
	int both[2] = {0};

	for (size_t e = 0; e < SL_COUNT_OF(expressions); e++) {
		struct bpf_program program;
		struct filter *f;
		char why[256];

		if (pcap_compile(pcap, &program, expressions[e], 1, PCAP_NETMASK_UNKNOWN) != 0 ||
			filter_create(expressions[e], &f, why, sizeof(why)) != 0) {
			CHECK(!"it is compiled");
			printf("%s: %s\n", expressions[e], pcap_geterr(pcap));
			continue;
		}
		for (size_t i = 0; i < SL_COUNT_OF(frames); i++) {
			struct pcap_pkthdr h = {.caplen = frames[i].len, .len = frames[i].len};
			bool want = pcap_offline_filter(&program, &h, frames[i].b) != 0;

			both[want]++;
			for (uint16_t piece = 0; piece < 16; piece = (uint16_t)(piece * 2 + 1))
				if (matches(f, &frames[i], piece) != want) {
					CHECK(!"filters agree");
					printf("%s: frame %zu in pieces of %u: libpcap says %d\n",
						expressions[e], i, piece, want);
				}
		}
		pcap_freecode(&program);
		filter_free(f);
	}
	pcap_close(pcap);
	/* The frames tell the expressions apart. */
	CHECK(both[0] > 1000 && both[1] > 300);
}

/* By hand, not by libpcap. */
static void
echo_requests_are_found(void)
{
	struct filter *f;
	char why[256];
	int n = 0;

	REQUIRE(filter_create("icmp[0] == 8", &f, why, sizeof(why)) == 0);
	for (size_t i = 0; i < SL_COUNT_OF(frames); i++)
		n += matches(f, &frames[i], 0);
	CHECK_EQ(n, 3); /* one has options, one is cut behind its type */
	filter_free(f);
}

static void
no_expression_takes_all(void)
{
	struct filter *f;
	char why[256];

	REQUIRE(filter_create("", &f, why, sizeof(why)) == 0);
	for (size_t i = 0; i < SL_COUNT_OF(frames); i++)
		CHECK(matches(f, &frames[i], 0));
	filter_free(f);
}

static void
what_cannot_be_run_is_told(void)
{
	static const struct {
		const char *expression, *why;
	} bad[] = {{"udp prt 7", "not understood"}, {"port 70000", "not understood"},
		{"host nobody.invalid", "not understood"}, {"(", "not understood"},
		{"ip6 protochain 17", "it has loops"}};
	struct filter *f = NULL;
	char why[256];

	for (size_t i = 0; i < SL_COUNT_OF(bad); i++) {
		CHECK_EQ(filter_create(bad[i].expression, &f, why, sizeof(why)), -EINVAL);
		CHECK(strstr(why, bad[i].why) != NULL);
		CHECK(f == NULL);
	}
	filter_free(NULL);
}

int
main(int argc, char **argv)
{
	(void)argc;
	REQUIRE(test_eal_start(argv[0], "-l 0 --log-level=lib.eal:critical") >= 0);
	SL_TEST_RUN(filters_say_what_libpcap_says);
	SL_TEST_RUN(echo_requests_are_found);
	SL_TEST_RUN(no_expression_takes_all);
	SL_TEST_RUN(what_cannot_be_run_is_told);
	return test_end();
}
