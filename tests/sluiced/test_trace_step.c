/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Steps of a trace: what they say of a packet, and how they read. */
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_mbuf.h>

#include "bridge.h"
#include "sl_test.h"
#include "trace_step.h"

#define ETH(type) 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, (type) >> 8, (type)&0xff
#define IP4(proto, frag)                                                                           \
	0x45, 0, 0, 60, 0, 1, (frag) >> 8, (frag)&0xff, 64, proto, 0, 0, 198, 18, 0, 1, 198, 18,   \
		0, 2
#define IP6(next)                                                                                  \
	0x60, 0, 0, 0, 0, 20, next, 64, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,    \
		0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2
#define PORTS 0x30, 0x39, 0, 7, 0, 20, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12

static const struct frame {
	const char *what;
	const char *protocol, *from, *to;
	bool udp;
	uint8_t len;
	uint8_t b[90];
} frames[] = {
	{"UDP", "UDP", "198.18.0.1:12345", "198.18.0.2:7", true, 54,
		{ETH(0x800), IP4(17, 0), PORTS}},
	{"TCP", "TCP", "198.18.0.1:12345", "198.18.0.2:7", false, 54,
		{ETH(0x800), IP4(6, 0), PORTS}},
	{"UDP over IPv6", "UDP", "[2001:db8::1]:12345", "[2001:db8::2]:7", true, 74,
		{ETH(0x86dd), IP6(17), PORTS}},
	{"in a VLAN", "UDP", "198.18.0.1:12345", "198.18.0.2:7", true, 58,
		{ETH(0x8100), 0, 5, 8, 0, IP4(17, 0), PORTS}},
	{"ICMP has no ports", "ICMP", "198.18.0.1", "198.18.0.2", false, 54,
		{ETH(0x800), IP4(1, 0), PORTS}},
	{"a later fragment has no ports", "FRAG", "198.18.0.1", "198.18.0.2", false, 54,
		{ETH(0x800), IP4(17, 1), PORTS}},
	{"cut in the ports", "UDP", "198.18.0.1:12345", "198.18.0.2", false, 36,
		{ETH(0x800), IP4(17, 0), PORTS}},
	{"cut in the addresses", "ETHER", "", "", false, 30, {ETH(0x800), IP4(17, 0)}},
	{"another type", "ETHER", "", "", false, 20, {ETH(0x9999)}},
	{"no header", "UNKNOWN", "", "", false, 5, {1, 2, 3, 4, 5}},
	{"nothing", "UNKNOWN", "", "", false, 0, {0}},
};

/* A step about a frame whose first segment ends at `cut`. */
static void
describe(const struct frame *f, uint8_t cut, struct trace_step *s)
{
	struct rte_mbuf first = {.nb_segs = 2}, second = {.nb_segs = 1};
	char data[2][sizeof(f->b)];

	cut = cut < f->len ? cut : f->len;
	memcpy(data[0], f->b, cut);
	memcpy(data[1], f->b + cut, (size_t)(f->len - cut));
	first.buf_addr = data[0];
	first.data_len = cut;
	first.pkt_len = f->len;
	first.next = &second;
	second.buf_addr = data[1];
	second.data_len = (uint16_t)(f->len - cut);
	memset(s, 0, sizeof(*s));
	trace_step_describe(s, &first);
}

static const char *
text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text != NULL ? text : "none";
}

static void
frames_are_described(void)
{
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		const struct frame *f = &frames[i];

		for (uint8_t cut = 0; cut <= f->len; cut = (uint8_t)(cut + 1)) {
			struct trace_step s;
			struct sl_addr dst;
			uint16_t port = 0;
			json_t *o;
			int before = test_bad;

			describe(f, cut, &s);
			o = trace_step_json(&s, "wan", 0, 1);
			CHECK_EQ(json_integer_value(json_object_get(o, "length")), f->len);
			CHECK(strcmp(text_of(o, "protocol"), f->protocol) == 0);
			CHECK(strcmp(text_of(o, "source"), f->from) == 0);
			CHECK(strcmp(text_of(o, "destination"), f->to) == 0);
			CHECK_EQ(trace_step_udp(&s, &dst, &port), f->udp);
			CHECK(!f->udp || port == rte_cpu_to_be_16(7));
			if (test_bad != before)
				fprintf(stderr, "%s, cut at %u: %s %s %s\n", f->what, cut,
					text_of(o, "protocol"), text_of(o, "source"),
					text_of(o, "destination"));
			json_decref(o);
		}
	}
}

/* A step as text, which must be that. */
static void
reads(const struct trace_step *s, const char *want)
{
	json_t *o = trace_step_json(s, "wan", 1000, 2000);
	char *text = json_dumps(o, JSON_COMPACT);

	if (strcmp(text, want) != 0) {
		test_bad++;
		fprintf(stderr, "reads %s\nnot   %s\n", text, want);
	}
	free(text);
	json_decref(o);
}

static void
steps_read_as_they_should(void)
{
	struct trace_step s;

	describe(&frames[0], 3, &s);
	s.id = 3;
	s.cpu = 1;
	s.queue = 2;
	s.tsc = 2000; /* half a second */
	reads(&s, "{\"packet\":3,\"step\":\"received\",\"time_us\":500000,\"lcore\":1,"
		  "\"port\":\"wan\",\"queue\":2,\"length\":54,\"protocol\":\"UDP\","
		  "\"source\":\"198.18.0.1:12345\",\"destination\":\"198.18.0.2:7\"}");
	s = (struct trace_step){.id = 1,
		.tsc = 1000,
		.kind = TRACE_STACK,
		.ncounters = 2,
		.counter = {{SL_RX_UDP_QUEUED, 1}, {SL_TX_SENT, 2}},
		.service = "echo"};
	reads(&s, "{\"packet\":1,\"step\":\"stack\",\"time_us\":0,\"lcore\":0,\"stack\":"
		  "{\"udp_queued\":1,\"tx_sent\":2},\"service\":\"echo\"}");
	s = (struct trace_step){.id = 1, .tsc = 1000, .kind = TRACE_STACK, .held = true};
	reads(&s, "{\"packet\":1,\"step\":\"stack\",\"time_us\":0,\"lcore\":0,\"stack\":{},"
		  "\"held\":true}");
	s = (struct trace_step){.id = 1,
		.tsc = 1000,
		.kind = TRACE_SERVICE,
		.service = "echo",
		.outcome = "echoed"};
	reads(&s, "{\"packet\":1,\"step\":\"service\",\"time_us\":0,\"lcore\":0,\"stack\":{},"
		  "\"service\":\"echo\",\"outcome\":\"echoed\"}");
}

static void
what_comes_behind_the_stack_reads_too(void)
{
	struct trace_step s = {.id = 1,
		.tsc = 1000,
		.kind = TRACE_FORWARD,
		.service = "lb",
		.outcome = "forwarded",
		.reason = "new",
		.to = "b1",
		.slot = 0,
		.has_slot = true,
		.packets = 3,
		.waits = true};

	reads(&s, "{\"packet\":1,\"step\":\"forward\",\"time_us\":0,\"lcore\":0,\"stack\":{},"
		  "\"service\":\"lb\",\"outcome\":\"forwarded\",\"reason\":\"new\",\"slot\":0,"
		  "\"backend\":\"b1\",\"packets\":3,\"waits\":true}");
	s = (struct trace_step){.id = 1,
		.tsc = 1000,
		.kind = TRACE_FORWARD,
		.service = "lb",
		.outcome = "forward_returned",
		.to = "b1",
		.back = true,
		.packets = 1};
	reads(&s, "{\"packet\":1,\"step\":\"forward\",\"time_us\":0,\"lcore\":0,\"stack\":{},"
		  "\"service\":\"lb\",\"outcome\":\"forward_returned\",\"from\":\"b1\"}");
	s = (struct trace_step){.id = 1,
		.tsc = 1000,
		.kind = TRACE_BRIDGE,
		.service = "lan",
		.outcome = "bridge_flooded",
		.reason = "learned",
		.ncounters = 2,
		.counter = {{BRIDGE_SENT, 2}, {BRIDGE_MTU, 1}}};
	reads(&s, "{\"packet\":1,\"step\":\"bridge\",\"time_us\":0,\"lcore\":0,\"bridge\":\"lan\","
		  "\"outcome\":\"bridge_flooded\",\"source\":\"learned\",\"copies\":"
		  "{\"bridge_sent\":2,\"bridge_mtu\":1}}");
	s = (struct trace_step){
		.id = 1, .tsc = 1000, .kind = TRACE_KERNEL, .to = "ker0", .outcome = "taken"};
	reads(&s, "{\"packet\":1,\"step\":\"kernel\",\"time_us\":0,\"lcore\":0,"
		  "\"interface\":\"ker0\",\"outcome\":\"taken\"}");
}

static void
a_day_of_cycles_does_not_overflow(void)
{
	struct trace_step s = {.tsc = UINT64_C(5000000000) * 86400, .kind = TRACE_SERVICE};
	json_t *o = trace_step_json(&s, "", 0, UINT64_C(5000000000));

	CHECK_EQ(json_integer_value(json_object_get(o, "time_us")), 86400000000ll);
	json_decref(o);
}

int
main(void)
{
	SL_TEST_RUN(frames_are_described);
	SL_TEST_RUN(steps_read_as_they_should);
	SL_TEST_RUN(what_comes_behind_the_stack_reads_too);
	SL_TEST_RUN(a_day_of_cycles_does_not_overflow);
	return test_end();
}
