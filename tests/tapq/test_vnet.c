/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The virtio-net header: each rule by a frame that keeps it and one that breaks it by one. */
#include <string.h>

#include "sl_test.h"
#include "sl_tapq_vnet.h"

#define N SL_TAPQ_VNET_NEEDS_CSUM
#define ECN SL_TAPQ_VNET_GSO_ECN

enum frame {
	TCP4, /* transport header at 34 */
	UDP4,
	TCP6, /* at 54 */
	UDP6,
	TCP4VLAN, /* at 38 */
	TCP6EXT,  /* at 62: hop-by-hop options */
	ARP,
};

static void
make(enum frame f, uint8_t *b)
{
	uint32_t l3 = f == TCP4VLAN ? 18 : 14;
	bool six = f == TCP6 || f == UDP6 || f == TCP6EXT;

	memset(b, 0, 2048);
	if (f == TCP4VLAN)
		b[12] = 0x81;
	b[l3 - 2] = six ? 0x86 : 0x08;
	b[l3 - 1] = six ? 0xdd : f == ARP ? 0x06 : 0x00;
	if (six) {
		b[l3] = 0x60;
		b[l3 + 6] = f == TCP6EXT ? 0 : f == UDP6 ? 17 : 6;
		b[l3 + 40] = 6; /* next of the options, for TCP6EXT */
	} else {
		b[l3] = 0x45;
		b[l3 + 9] = f == UDP4 ? 17 : 6;
	}
}

static const struct {
	enum frame frame;
	uint32_t len;
	struct sl_tapq_vnet_hdr h; /* flags, gso_type, hdr_len, gso_size, csum_start, csum_offset */
	enum sl_tapq_vnet_error expected;
} cases[] = {
	{ARP, 60, {0, 0, 0, 0, 0, 0, 0}, SL_TAPQ_VNET_OK},
	{ARP, 60, {SL_TAPQ_VNET_DATA_VALID, 0, 0, 0, 0, 0, 0}, SL_TAPQ_VNET_OK},
	/* Types. */
	{TCP4, 1514, {N, 1, 54, 500, 34, 16, 0}, SL_TAPQ_VNET_OK},
	{TCP4, 1514, {N, 1 | ECN, 54, 500, 34, 16, 0}, SL_TAPQ_VNET_OK},
	{TCP4, 1514, {N, 2, 54, 500, 34, 16, 0}, SL_TAPQ_VNET_BAD_GSO_TYPE},
	{TCP4, 1514, {N, 6, 54, 500, 34, 16, 0}, SL_TAPQ_VNET_BAD_GSO_TYPE},
	{TCP4, 1514, {N, 0x7f, 54, 500, 34, 16, 0}, SL_TAPQ_VNET_BAD_GSO_TYPE},
	{TCP4, 1514, {N, ECN, 54, 500, 34, 16, 0}, SL_TAPQ_VNET_BAD_GSO_TYPE},
	{UDP4, 1514, {N, 5 | ECN, 42, 500, 34, 6, 0}, SL_TAPQ_VNET_BAD_GSO_TYPE},
	/* Sizes. */
	{TCP4, 1514, {N, 1, 54, 0, 34, 16, 0}, SL_TAPQ_VNET_BAD_GSO_SIZE},
	{TCP4, 1514, {N, 1, 54, 0xffff, 34, 16, 0}, SL_TAPQ_VNET_BAD_GSO_SIZE},
	{UDP4, 42 + 128 * 10, {N, 5, 42, 10, 34, 6, 0}, SL_TAPQ_VNET_OK},
	{UDP4, 42 + 128 * 10 + 1, {N, 5, 42, 10, 34, 6, 0}, SL_TAPQ_VNET_BAD_GSO_SIZE},
	/* Checksum field: inside the frame, behind the least network header. */
	{UDP4, 60, {N, 0, 0, 0, 34, 6, 0}, SL_TAPQ_VNET_OK},
	{UDP4, 60, {N, 0, 0, 0, 33, 6, 0}, SL_TAPQ_VNET_BAD_CSUM},
	{UDP4, 60, {N, 0, 0, 0, 0, 0, 0}, SL_TAPQ_VNET_BAD_CSUM},
	{UDP4, 60, {N, 0, 0, 0, 34, 24, 0}, SL_TAPQ_VNET_OK},
	{UDP4, 60, {N, 0, 0, 0, 34, 25, 0}, SL_TAPQ_VNET_BAD_CSUM},
	{UDP4, 60, {N, 0, 0, 0, 58, 0, 0}, SL_TAPQ_VNET_OK},
	{UDP4, 60, {N, 0, 0, 0, 59, 0, 0}, SL_TAPQ_VNET_BAD_CSUM},
	{UDP4, 60, {N, 0, 0, 0, 65535, 65535, 0}, SL_TAPQ_VNET_BAD_CSUM},
	{UDP4, 60, {N, 0, 0, 0, 65535, 2, 0}, SL_TAPQ_VNET_BAD_CSUM}, /* 16 bits would wrap */
	{TCP4, 53, {N, 1, 0, 500, 34, 16, 0}, SL_TAPQ_VNET_BAD_CSUM}, /* no whole TCP header */
	{TCP4, 1514, {N, 1, 54, 500, 34, 15, 0}, SL_TAPQ_VNET_BAD_CSUM},
	{UDP4, 1514, {N, 5, 42, 500, 34, 16, 0}, SL_TAPQ_VNET_BAD_CSUM},
	{UDP4, 1514, {0, 5, 42, 500, 0, 0, 0}, SL_TAPQ_VNET_BAD_CSUM}, /* needs a partial one */
	{TCP6, 1514, {N, 4, 74, 500, 54, 16, 0}, SL_TAPQ_VNET_OK},
	{TCP6, 1514, {N, 4, 74, 500, 53, 16, 0}, SL_TAPQ_VNET_BAD_CSUM},
	/* Header length. */
	{ARP, 60, {0, 0, 13, 0, 0, 0, 0}, SL_TAPQ_VNET_BAD_HDR_LEN},
	{ARP, 60, {0, 0, 14, 0, 0, 0, 0}, SL_TAPQ_VNET_OK},
	{ARP, 60, {0, 0, 60, 0, 0, 0, 0}, SL_TAPQ_VNET_OK},
	{ARP, 60, {0, 0, 61, 0, 0, 0, 0}, SL_TAPQ_VNET_BAD_HDR_LEN},
	{ARP, 60, {0, 0, 65535, 0, 0, 0, 0}, SL_TAPQ_VNET_BAD_HDR_LEN},
	{UDP4, 60, {N, 0, 1, 0, 34, 6, 0}, SL_TAPQ_VNET_OK}, /* raised over the checksum */
	/* The frame is what the type says. */
	{TCP4, 1514, {0, 1, 54, 500, 0, 0, 0}, SL_TAPQ_VNET_OK},
	{UDP4, 1514, {0, 1, 54, 500, 0, 0, 0}, SL_TAPQ_VNET_BAD_PROTOCOL},
	{TCP6, 1514, {0, 1, 54, 500, 0, 0, 0}, SL_TAPQ_VNET_BAD_PROTOCOL},
	{TCP4, 1514, {0, 4, 74, 500, 0, 0, 0}, SL_TAPQ_VNET_BAD_PROTOCOL},
	{ARP, 1514, {0, 1, 54, 500, 0, 0, 0}, SL_TAPQ_VNET_BAD_PROTOCOL},
	{TCP4, 1514, {N, 1, 54, 500, 38, 16, 0}, SL_TAPQ_VNET_BAD_PROTOCOL}, /* not its header */
	{TCP4VLAN, 1514, {N, 1, 58, 500, 38, 16, 0}, SL_TAPQ_VNET_OK},
	{TCP6EXT, 1514, {N, 4, 82, 500, 62, 16, 0}, SL_TAPQ_VNET_OK},
	{UDP4, 1514, {0, 3, 42, 500, 0, 0, 0}, SL_TAPQ_VNET_OK},
	{UDP6, 1514, {N, 5, 62, 500, 54, 6, 0}, SL_TAPQ_VNET_OK},
	{TCP4, 53, {0, 1, 0, 500, 0, 0, 0}, SL_TAPQ_VNET_BAD_PROTOCOL},
	{TCP4, 30, {0, 1, 0, 500, 0, 0, 0}, SL_TAPQ_VNET_BAD_PROTOCOL},
};

static void
rules(void)
{
	uint8_t frame[2048];

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct sl_tapq_vnet_hdr h = cases[i].h;
		enum sl_tapq_vnet_error e;

		make(cases[i].frame, frame);
		e = sl_tapq_vnet_check(&h, frame, cases[i].len, cases[i].len);
		if (e != cases[i].expected)
			fprintf(stderr, "case %zu: %s\n", i, sl_tapq_vnet_error_name(e));
		CHECK_EQ(e, cases[i].expected);
	}
}

static void
made_plain(void)
{
	struct sl_tapq_vnet_hdr h = {N, 1, 54, 500, 34, 16, 0};
	uint8_t frame[2048];

	make(TCP4, frame);
	CHECK_EQ(sl_tapq_vnet_check(&h, frame, 554, 554),
		SL_TAPQ_VNET_OK); /* one segment: no segmentation */
	CHECK_EQ(h.gso_type, SL_TAPQ_VNET_GSO_NONE);
	CHECK_EQ(h.gso_size, 0);
	h = (struct sl_tapq_vnet_hdr){N, 1, 54, 500, 34, 16, 0};
	CHECK_EQ(sl_tapq_vnet_check(&h, frame, 555, 555), SL_TAPQ_VNET_OK);
	CHECK_EQ(h.gso_type, SL_TAPQ_VNET_GSO_TCPV4);
	h = (struct sl_tapq_vnet_hdr){N, 1, 54, 1, 34, 16, 0};
	CHECK_EQ(sl_tapq_vnet_check(&h, frame, 555, 555), SL_TAPQ_VNET_OK);
	CHECK_EQ(h.gso_size, 8);
}

/* Only the first bytes are at hand: what is needed and not there is no reason to read on. */
static void
short_heads(void)
{
	uint8_t frame[2048];

	for (int f = TCP4; f <= TCP6EXT; f++) {
		make((enum frame)f, frame);
		for (uint32_t have = 0; have < 70; have++) {
			struct sl_tapq_vnet_hdr h = {
				0, (f == TCP6 || f == TCP6EXT) ? 4 : 1, 0, 500, 0, 0, 0};
			uint8_t *exact = malloc(have > 0 ? have : 1);
			enum sl_tapq_vnet_error e;

			REQUIRE(exact != NULL);
			memcpy(exact, frame, have);
			e = sl_tapq_vnet_check(
				&h, exact, have, 1514); /* a sanitizer watches the edge */
			CHECK(e == SL_TAPQ_VNET_OK || e == SL_TAPQ_VNET_BAD_PROTOCOL);
			CHECK(have >= 34 || e == SL_TAPQ_VNET_BAD_PROTOCOL);
			free(exact);
		}
	}
}

int
main(void)
{
	SL_TEST_RUN(rules);
	SL_TEST_RUN(made_plain);
	SL_TEST_RUN(short_heads);
	return test_end();
}
