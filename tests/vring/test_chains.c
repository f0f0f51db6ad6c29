/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Chains of an honest driver, in both layouts: what is popped is what was put, in order, for ever.
 */
#include <errno.h>

#include "driver.h"

#define SPANS 64

static void
one_by_one_round_and_round(void)
{
	for (int packed = 0; packed < 2; packed++) {
		struct driver d;

		driver_open(&d, packed, 8, 0);
		/* Beyond 2^16, where a split ring's indexes wrap. */
		for (uint32_t i = 0; i < 70000; i++) {
			struct piece p = {BASE + i % 1000, 1 + i % 60, i % 2 == 0};
			struct sl_vring_span span[SPANS];
			struct sl_vring_chain c;
			uint16_t id = driver_put(&d, &p, 1), used;
			uint32_t len;

			REQUIRE(device_pop(&d, &c, span, SPANS) == SL_VRING_OK);
			REQUIRE(c.id == id && c.readable == i % 2 && c.writable == (i + 1) % 2);
			REQUIRE(span[0].addr == d.low + i % 1000 && span[0].len == 1 + i % 60);
			REQUIRE(c.readable_len + c.writable_len == span[0].len);
			REQUIRE(device_pop(&d, &c, span, SPANS) == SL_VRING_EMPTY);
			c.id = id;
			sl_vring_push(&d.ring, &c, i);
			REQUIRE(!driver_used(&d, &used, &len)); /* not before the flush */
			CHECK(sl_vring_flush(&d.ring));
			REQUIRE(driver_used(&d, &used, &len) && used == id && len == i);
		}
		CHECK_EQ(d.ring.outcomes[SL_VRING_OK], 70000);
		driver_close(&d);
	}
}

static void
mixed_chain(void)
{
	static const struct piece p[] = {{BASE, 12, false}, {BASE + 100, 0, false},
		{BASE + 200, 50, false}, {BASE + 300, 10, true}, {BASE + HALF + 8, 90, true}};

	for (int packed = 0; packed < 2; packed++) {
		for (int indirect = 0; indirect < 2; indirect++) {
			struct sl_vring_span span[SPANS];
			struct sl_vring_chain c;
			struct driver d;

			driver_open(&d, packed, 8, SL_VRING_F_INDIRECT);
			if (indirect)
				driver_put_indirect(&d, p, 5);
			else
				driver_put(&d, p, 5);
			CHECK_EQ(device_pop(&d, &c, span, SPANS), SL_VRING_OK);
			/* A descriptor without bytes is no span. */
			CHECK_EQ(c.readable, 2);
			CHECK_EQ(c.writable, 2);
			CHECK_EQ(c.readable_len, 62);
			CHECK_EQ(c.writable_len, 100);
			CHECK_EQ(c.slots, packed && !indirect ? 5 : 1);
			CHECK(span[1].addr == d.low + 200 && span[1].len == 50);
			CHECK(span[3].addr == d.high + 8 && span[3].len == 90);
			sl_vring_push(&d.ring, &c, 100);
			driver_close(&d);
		}
	}
}

static void
across_regions(void)
{
	static const struct piece p = {BASE + HALF - 10, 30, false};

	for (int packed = 0; packed < 2; packed++) {
		struct sl_vring_span span[SPANS];
		struct sl_vring_chain c;
		struct driver d;
		uint8_t out[30];

		driver_open(&d, packed, 4, 0);
		memset(d.low + HALF - 10, 1, 10);
		memset(d.high, 2, 20);
		driver_put(&d, &p, 1);
		CHECK_EQ(device_pop(&d, &c, span, SPANS), SL_VRING_OK);
		CHECK_EQ(c.readable, 2);
		CHECK_EQ(c.readable_len, 30);
		CHECK_EQ(sl_vring_copy_out(span, c.readable, 0, out, 30), 30);
		CHECK(out[9] == 1 && out[10] == 2 && out[29] == 2);
		sl_vring_push(&d.ring, &c, 0);
		driver_close(&d);
	}
}

/* Also a table, and an entry of it, may lie across two regions. */
static void
table_across_regions(void)
{
	static const struct piece p[] = {{BASE, 10, false}, {BASE + 20, 20, false}};

	for (int packed = 0; packed < 2; packed++) {
		for (uint32_t before = 1; before < 32; before++) {
			struct sl_vring_span span[SPANS];
			struct sl_vring_chain c;
			struct driver d;

			driver_open(&d, packed, 4, SL_VRING_F_INDIRECT);
			d.table = BASE + HALF - before;
			driver_put_indirect(&d, p, 2);
			CHECK_EQ(device_pop(&d, &c, span, SPANS), SL_VRING_OK);
			CHECK_EQ(c.readable_len, 30);
			CHECK(span[1].addr == d.low + 20);
			sl_vring_push(&d.ring, &c, 0);
			driver_close(&d);
		}
	}
}

/* What was popped and given back is popped again: the same chains, also across the ring's end. */
static void
rewind_across_the_end(void)
{
	for (int packed = 0; packed < 2; packed++) {
		struct driver d;

		driver_open(&d, packed, 8, 0);
		for (int round = 0; round < 40; round++) {
			struct piece p[3] = {
				{BASE, 1, true}, {BASE + 8, 2, true}, {BASE + 16, 3, true}};
			uint16_t n = (uint16_t)(1 + round % 3), id[2], slots = 0;
			struct sl_vring_span span[SPANS];
			struct sl_vring_chain c[2];

			for (int k = 0; k < 2; k++)
				id[k] = driver_put(&d, p, n);
			for (int again = 0; again < 3; again++, slots = 0) {
				for (int k = 0; k < 2; k++) {
					REQUIRE(device_pop(&d, &c[k], span, SPANS) == SL_VRING_OK);
					REQUIRE(c[k].id == id[k]);
					slots += c[k].slots;
				}
				if (again < 2)
					sl_vring_rewind(&d.ring, 2, slots);
			}
			for (int k = 0; k < 2; k++) {
				uint16_t used;
				uint32_t len;

				sl_vring_push(&d.ring, &c[k], 7);
				CHECK(sl_vring_flush(&d.ring));
				REQUIRE(driver_used(&d, &used, &len) && used == id[k] && len == 7);
			}
		}
		CHECK_EQ(d.ring.rewound, 160);
		driver_close(&d);
	}
}

/* A full ring in one batch: visible all at once, in order. */
static void
a_full_ring_in_one_flush(void)
{
	for (int packed = 0; packed < 2; packed++) {
		uint16_t size = packed ? 7 : 8; /* packed rings have any size */
		struct driver d;

		driver_open(&d, packed, size, SL_VRING_F_IN_ORDER);
		for (int round = 0; round < 20; round++) {
			uint16_t id[8], used;
			uint32_t len;

			for (uint16_t k = 0; k < size; k++)
				id[k] = driver_put(&d, &(struct piece){BASE + k, 1, true}, 1);
			for (uint16_t k = 0; k < size; k++) {
				struct sl_vring_span span[SPANS];
				struct sl_vring_chain c;

				REQUIRE(device_pop(&d, &c, span, SPANS) == SL_VRING_OK);
				sl_vring_push(&d.ring, &c, k + 1u);
			}
			CHECK(!driver_used(&d, &used, &len));
			CHECK(sl_vring_flush(&d.ring));
			CHECK(!sl_vring_flush(&d.ring)); /* nothing new */
			for (uint16_t k = 0; k < size; k++)
				REQUIRE(driver_used(&d, &used, &len) && used == id[k] &&
					len == k + 1u);
			CHECK(!driver_used(&d, &used, &len));
		}
		driver_close(&d);
	}
}

static void
resume_where_it_stopped(void)
{
	for (int packed = 0; packed < 2; packed++) {
		struct driver d;

		driver_open(&d, packed, 4, 0);
		for (int i = 0; i < 11; i++) {
			struct sl_vring_span span[SPANS];
			struct sl_vring_chain c;
			uint16_t used;
			uint32_t len;

			driver_put(&d, &(struct piece){BASE, 1, true}, 1);
			REQUIRE(device_pop(&d, &c, span, SPANS) == SL_VRING_OK);
			sl_vring_push(&d.ring, &c, 1);
			CHECK(sl_vring_flush(&d.ring));
			REQUIRE(driver_used(&d, &used, &len));
			/* The device is restarted after every chain. */
			sl_vring_position(&d.ring, &d.conf.next_avail, &d.conf.next_used);
			REQUIRE(sl_vring_init(&d.ring, &d.conf) == 0);
		}
		CHECK_EQ(d.conf.next_avail,
			packed ? (11 % 4) | 0x8000 : 11); /* third round: as the first */
		driver_close(&d);
	}
}

static void
copies_skip_and_stop(void)
{
	uint8_t a[4] = "abc", b[5] = "defg", out[8];
	struct sl_vring_span span[] = {{a, 3}, {b, 4}};

	CHECK_EQ(sl_vring_copy_out(span, 2, 0, out, 7), 7);
	CHECK(memcmp(out, "abcdefg", 7) == 0);
	CHECK_EQ(sl_vring_copy_out(span, 2, 2, out, 3), 3);
	CHECK(memcmp(out, "cde", 3) == 0);
	CHECK_EQ(sl_vring_copy_out(span, 2, 5, out, 8), 2);
	CHECK_EQ(sl_vring_copy_out(span, 2, 7, out, 8), 0);
	CHECK_EQ(sl_vring_copy_out(span, 0, 0, out, 8), 0);
	CHECK_EQ(sl_vring_copy_in(span, 2, 2, "XYZ", 3), 3);
	CHECK(memcmp(a, "abX", 3) == 0 && memcmp(b, "YZfg", 4) == 0);
	CHECK_EQ(sl_vring_copy_in(span, 2, 6, "12345", 5), 1);
	CHECK(b[3] == '1' && b[4] == 0);
}

static void
setups_that_are_refused(void)
{
	struct sl_vring r;
	struct driver s, p;
	struct sl_vring_conf c;

	driver_open(&s, false, 8, 0);
	driver_open(&p, true, 7, 0);
	c = s.conf;
	c.size = 0;
	CHECK_EQ(sl_vring_init(&r, &c), -EINVAL);
	c.size = 7; /* split: a power of two */
	CHECK_EQ(sl_vring_init(&r, &c), -EINVAL);
	c.size = 32769;
	CHECK_EQ(sl_vring_init(&r, &c), -EINVAL);
	c = s.conf;
	c.features = 1u << 5;
	CHECK_EQ(sl_vring_init(&r, &c), -EINVAL);
	c = s.conf;
	c.used = NULL;
	CHECK_EQ(sl_vring_init(&r, &c), -EINVAL);
	c = p.conf;
	c.next_avail = 7;
	CHECK_EQ(sl_vring_init(&r, &c), -EINVAL);
	c = p.conf;
	c.next_used = 0x8007;
	CHECK_EQ(sl_vring_init(&r, &c), -EINVAL);
	c = p.conf;
	c.device_event = NULL;
	CHECK_EQ(sl_vring_init(&r, &c), -EINVAL);
	driver_close(&s);
	driver_close(&p);
}

static void
memory_tables(void)
{
	static uint8_t m[64];
	static const struct {
		uint32_t count;
		struct sl_vmem_region region[2];
		int result;
	} cases[] = {
		{0, {{0, 0, NULL}, {0, 0, NULL}}, 0},
		{1, {{0, 64, m}, {0, 0, NULL}}, 0},
		{1, {{0, 0, m}, {0, 0, NULL}}, -EINVAL},
		{1, {{UINT64_MAX - 63, 64, m}, {0, 0, NULL}}, -EINVAL},
		{1, {{UINT64_MAX - 64, 64, m}, {0, 0, NULL}}, 0},
		{2, {{0, 32, m}, {32, 32, m + 32}}, 0},
		{2, {{0, 33, m}, {32, 32, m + 32}}, -EINVAL},
		{2, {{32, 32, m}, {0, 32, m + 32}}, -EINVAL},
		{SL_VMEM_REGIONS_MAX + 1, {{0, 32, m}, {32, 32, m}}, -EINVAL},
	};

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct sl_vmem mem = {.count = cases[i].count};

		memcpy(mem.region, cases[i].region, sizeof(cases[i].region));
		CHECK_EQ(sl_vmem_check(&mem), cases[i].result);
	}
}

/* A ring's parts end where the memory does, or one byte behind. */
static void
rings_that_are_mapped(void)
{
	static uint8_t m[2][4096] __attribute__((aligned(64)));
	const struct sl_vmem mem = {2, {{0x1000, 4096, m[0]}, {0x2000, 4096, m[1]}}};

	for (uint32_t ring = 0; ring < 2; ring++) {
		for (uint32_t part = 0; part < 3; part++) {
			uint32_t bytes[2][3] = {{16 * 16, 6 + 2 * 16, 6 + 8 * 16}, {16 * 16, 4, 4}};
			uint8_t *end = m[1] + 4096 - bytes[ring][part];
			uint8_t *at[3] = {m[0], m[0] + 1024, m[0] + 2048};
			struct sl_vring_conf c = {
				.size = 16, .features = ring == 1 ? SL_VRING_F_PACKED : 0};

			for (uint32_t k = 0; k < 4; k++) {
				/* At the end; over it; over the end of the other region, which
				 * here nothing follows; before all. */
				uint8_t *const places[] = {
					end, end + 2, m[0] + 4096 - 2, (uint8_t *)16};

				at[part] = places[k];
				c.desc = (struct vring_desc *)at[0];
				c.avail = (struct vring_avail *)at[1];
				c.used = (struct vring_used *)at[2];
				c.packed = (struct vring_packed_desc *)at[0];
				c.driver_event = (struct vring_packed_desc_event *)at[1];
				c.device_event = (struct vring_packed_desc_event *)at[2];
				CHECK_EQ(sl_vring_is_mapped(&c, &mem), k == 0);
			}
		}
	}
}

int
main(void)
{
	SL_TEST_RUN(one_by_one_round_and_round);
	SL_TEST_RUN(mixed_chain);
	SL_TEST_RUN(across_regions);
	SL_TEST_RUN(table_across_regions);
	SL_TEST_RUN(rewind_across_the_end);
	SL_TEST_RUN(a_full_ring_in_one_flush);
	SL_TEST_RUN(resume_where_it_stopped);
	SL_TEST_RUN(copies_skip_and_stop);
	SL_TEST_RUN(setups_that_are_refused);
	SL_TEST_RUN(memory_tables);
	SL_TEST_RUN(rings_that_are_mapped);
	return test_end();
}
