/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* A driver that lies: each lie has its outcome; some cost the chain, the others that ring alone. */
#include "driver.h"

#define SPANS 8

/* One bad chain, then a good one: the bad one is named and used with length 0, the good one served.
 */
static void
expect_spoilt(struct driver *d, enum sl_vring_outcome expected)
{
	struct sl_vring_span span[SPANS];
	struct sl_vring_chain c;
	uint16_t good, used;
	uint32_t len;

	good = driver_put(d, &(struct piece){BASE + 4, 9, false}, 1);
	CHECK_EQ(device_pop(d, &c, span, SPANS), expected);
	CHECK(sl_vring_has_chain(expected));
	sl_vring_push(&d->ring, &c, 0);
	CHECK_EQ(device_pop(d, &c, span, SPANS), SL_VRING_OK);
	CHECK_EQ(c.id, good);
	CHECK(span[0].addr == d->low + 4);
	sl_vring_push(&d->ring, &c, 0);
	CHECK(sl_vring_flush(&d->ring));
	CHECK(driver_used(d, &used, &len) && len == 0);
	CHECK(driver_used(d, &used, &len) && used == good);
	CHECK_EQ(d->ring.outcomes[expected], 1);
	driver_close(d);
}

static void
expect_broken(struct driver *d, enum sl_vring_outcome expected)
{
	struct sl_vring_span span[SPANS];
	struct sl_vring_chain c;

	CHECK_EQ(device_pop(d, &c, span, SPANS), expected);
	CHECK(!sl_vring_has_chain(expected));
	CHECK_EQ(device_pop(d, &c, span, SPANS), SL_VRING_BROKEN);
	CHECK(!sl_vring_ready(&d->ring));
	CHECK_EQ(d->ring.outcomes[expected], 1);
	CHECK_EQ(d->ring.outcomes[SL_VRING_BROKEN], 1);
	driver_close(d);
}

static void
addresses_outside(void)
{
	static const struct piece pieces[] = {
		{0, 1, false},
		{BASE - 1, 1, false},
		{BASE - 1, 2, false},
		{BASE + 2 * HALF, 1, false},
		{BASE + 2 * HALF - 1, 2, false}, /* the end lies outside */
		{BASE + HALF - 1, HALF + 2, true},
		{UINT64_MAX, 1, false},
		{UINT64_MAX - 1, UINT32_MAX, true}, /* wraps round to 0 */
		{BASE, UINT32_MAX, false},
	};

	for (size_t i = 0; i < 2 * SL_COUNT_OF(pieces); i++) {
		struct driver d;

		driver_open(&d, i % 2, 8, 0);
		driver_put(&d, &pieces[i / 2], 1);
		expect_spoilt(&d, SL_VRING_BAD_ADDRESS);
	}
}

static void
lengths(void)
{
	static const struct piece zero[] = {{BASE, 0, false}, {0, 0, false}, {BASE, 0, true}};
	static const struct piece over[] = {{BASE, 60, false}, {BASE, 41, false}};
	static const struct piece exact[] = {{BASE, 60, false}, {BASE, 40, false}};

	for (int packed = 0; packed < 2; packed++) {
		struct sl_vring_span span[SPANS];
		struct sl_vring_chain c;
		struct driver d;

		driver_open(&d, packed, 8, 0);
		driver_put(&d, zero, 3); /* an address without bytes is not looked at */
		expect_spoilt(&d, SL_VRING_ZERO_LENGTH);
		driver_open(&d, packed, 8, 0);
		d.ring.conf.chain_max = 100;
		driver_put(&d, over, 2);
		expect_spoilt(&d, SL_VRING_OVERLONG);
		driver_open(&d, packed, 8, 0);
		d.ring.conf.chain_max = 100;
		driver_put(&d, exact, 2);
		CHECK_EQ(device_pop(&d, &c, span, SPANS), SL_VRING_OK);
		driver_close(&d);
	}
}

static void
more_spans_than_room(void)
{
	for (int packed = 0; packed < 2; packed++) {
		struct piece p[SPANS + 1];
		struct driver d;

		for (int i = 0; i <= SPANS; i++)
			p[i] = (struct piece){BASE + 10u * (uint32_t)i, 5, false};
		driver_open(&d, packed, 16, 0);
		driver_put(&d, p, SPANS + 1);
		expect_spoilt(&d, SL_VRING_MANY_SPANS);
	}
}

static void
readable_behind_writable(void)
{
	static const struct piece p[] = {{BASE, 5, true}, {BASE, 5, false}};

	for (int i = 0; i < 4; i++) {
		struct driver d;

		driver_open(&d, i % 2, 8, SL_VRING_F_INDIRECT);
		if (i / 2)
			driver_put_indirect(&d, p, 2);
		else
			driver_put(&d, p, 2);
		expect_spoilt(&d, SL_VRING_DIRECTION);
	}
}

/* ... unless nothing is ever written here: then the order does not matter. */
static void
all_is_readable(void)
{
	static const struct piece p[] = {{BASE, 5, true}, {BASE, 7, false}};

	for (int i = 0; i < 4; i++) {
		struct sl_vring_span span[SPANS];
		struct sl_vring_chain c;
		struct driver d;

		driver_open(&d, i % 2, 8, SL_VRING_F_INDIRECT | SL_VRING_F_READ_ALL);
		if (i / 2)
			driver_put_indirect(&d, p, 2);
		else
			driver_put(&d, p, 2);
		CHECK_EQ(device_pop(&d, &c, span, SPANS), SL_VRING_OK);
		CHECK(c.readable == 2 && c.writable == 0 && c.readable_len == 12);
		driver_close(&d);
	}
}

/* Change the indirect descriptor or its table after an honest driver wrote it. */
static void
indirect_tables(void)
{
	static const struct piece p[] = {{BASE, 5, false}, {BASE, 5, false}};
	static const struct {
		uint64_t table;
		uint32_t len;
		uint32_t features;
		uint16_t flags;
	} cases[] = {
		{BASE + 64, 0, SL_VRING_F_INDIRECT, 0}, {BASE + 64, 15, SL_VRING_F_INDIRECT, 0},
		{BASE + 64, 33, SL_VRING_F_INDIRECT, 0},
		{BASE + 64, 9 * 16, SL_VRING_F_INDIRECT, 0}, /* longer than the ring */
		{BASE + 64, 0xfffffff0u, SL_VRING_F_INDIRECT, 0},
		{BASE + 2 * HALF - 16, 32, SL_VRING_F_INDIRECT, 0}, /* second entry outside */
		{0, 32, SL_VRING_F_INDIRECT, 0}, {UINT64_MAX - 7, 32, SL_VRING_F_INDIRECT, 0},
		{BASE + 64, 32, 0, 0},					     /* not negotiated */
		{BASE + 64, 32, SL_VRING_F_INDIRECT, VRING_DESC_F_INDIRECT}, /* nested */
	};

	for (size_t i = 0; i < 2 * SL_COUNT_OF(cases); i++) {
		bool packed = i % 2;
		struct driver d;
		uint8_t *entry;

		driver_open(&d, packed, 8, cases[i / 2].features);
		if (cases[i / 2].table == BASE + 2 * HALF - 16) {
			/* The first entry must be good for the second to be looked at. */
			d.table = BASE + 2 * HALF - 32;
			driver_put_indirect(&d, p, 2);
			memcpy(d.high + HALF - 16, d.high + HALF - 32, 16);
		} else {
			d.table = BASE + 64;
			driver_put_indirect(&d, p, 2);
		}
		entry = d.low + 64;
		entry[packed ? 14 : 12] |= (uint8_t)cases[i / 2].flags;
		if (packed) {
			d.conf.packed[0].addr = cases[i / 2].table;
			d.conf.packed[0].len = cases[i / 2].len;
		} else {
			d.conf.desc[0].addr = cases[i / 2].table;
			d.conf.desc[0].len = cases[i / 2].len;
		}
		expect_spoilt(&d, SL_VRING_BAD_INDIRECT);
	}
}

/* Indirect and continued at once is neither. */
static void
indirect_with_next(void)
{
	static const struct piece p[] = {{BASE, 5, false}};
	struct driver d;

	driver_open(&d, false, 8, SL_VRING_F_INDIRECT);
	driver_put_indirect(&d, p, 1);
	d.conf.desc[0].flags |= VRING_DESC_F_NEXT;
	expect_spoilt(&d, SL_VRING_BAD_INDIRECT);
}

/* Split tables are linked; packed ones are not. */
static void
links_inside_a_table(void)
{
	static const struct piece p[] = {{BASE, 1, false}, {BASE, 1, false}, {BASE, 1, false}};
	static const uint16_t next[] = {3, 4, 65535, 1, 0}; /* of the second entry; 0, 1: circles */

	for (size_t i = 0; i < SL_COUNT_OF(next); i++) {
		struct vring_desc *entry;
		struct driver d;

		driver_open(&d, false, 8, SL_VRING_F_INDIRECT);
		d.table = BASE + 64;
		driver_put_indirect(&d, p, 3);
		entry = (struct vring_desc *)(d.low + 64) + 1;
		entry->next = next[i];
		expect_spoilt(&d, SL_VRING_INDIRECT_NEXT);
	}
}

static void
split_indexes(void)
{
	static const struct {
		uint16_t start, moved_to;
		enum sl_vring_outcome expected;
	} cases[] = {
		{0, 9, SL_VRING_BAD_INDEX},
		{0, 65535, SL_VRING_BAD_INDEX}, /* backwards */
		{65530, 4, SL_VRING_BAD_INDEX},
		{5, 4, SL_VRING_BAD_INDEX},
	};

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct driver d;

		driver_open_at(&d, false, 8, 0, cases[i].start, cases[i].start);
		d.conf.avail->idx = cases[i].moved_to;
		expect_broken(&d, cases[i].expected);
	}
}

/* 65535 -> 0 is no lie. */
static void
split_honest_wrap(void)
{
	struct driver d;

	driver_open_at(&d, false, 8, 0, 65532, 65532);
	for (int i = 0; i < 8; i++)
		driver_put(&d, &(struct piece){BASE, 1, false}, 1);
	CHECK_EQ(d.conf.avail->idx, 4);
	for (int i = 0; i < 8; i++) {
		struct sl_vring_span span[SPANS];
		struct sl_vring_chain c;

		CHECK_EQ(device_pop(&d, &c, span, SPANS), SL_VRING_OK);
		sl_vring_push(&d.ring, &c, 0);
	}
	CHECK(sl_vring_flush(&d.ring));
	CHECK_EQ(d.conf.used->idx, 4);
	driver_close(&d);
}

static void
split_heads_and_links(void)
{
	static const uint16_t bad[] = {8, 9, 65535};
	static const struct piece p[] = {{BASE, 1, false}, {BASE, 1, false}};

	for (size_t i = 0; i < SL_COUNT_OF(bad); i++) {
		struct driver d;

		driver_open(&d, false, 8, 0);
		driver_put(&d, p, 1);
		d.conf.avail->ring[0] = bad[i];
		expect_broken(&d, SL_VRING_BAD_HEAD);
		driver_open(&d, false, 8, 0);
		driver_put(&d, p, 2);
		d.conf.desc[0].next = bad[i];
		expect_broken(&d, SL_VRING_BAD_NEXT);
	}
	for (uint16_t to = 0; to < 2; to++) { /* to itself, and in a circle of two */
		struct driver d;

		driver_open(&d, false, 8, 0);
		driver_put(&d, p, 2);
		d.conf.desc[1].flags |= VRING_DESC_F_NEXT;
		d.conf.desc[1].next = to;
		expect_broken(&d, SL_VRING_LOOP);
	}
}

static void
packed_ids_and_loops(void)
{
	static const uint16_t bad[] = {7, 8, 65535};
	struct driver d;

	for (size_t i = 0; i < SL_COUNT_OF(bad); i++) {
		driver_open(&d, true, 7, 0);
		driver_put(&d, &(struct piece){BASE, 1, false}, 1);
		d.conf.packed[0].id = bad[i];
		expect_broken(&d, SL_VRING_BAD_ID);
	}
	driver_open(&d, true, 7, 0); /* every slot says that the chain goes on */
	for (int i = 0; i < 7; i++) {
		driver_put(&d, &(struct piece){BASE, 1, false}, 1);
		d.conf.packed[i].flags |= VRING_DESC_F_NEXT;
	}
	expect_broken(&d, SL_VRING_LOOP);
}

/* A spoilt chain in a packed ring is skipped whole: its length says where the next one starts. */
static void
packed_spoilt_chain_is_skipped_whole(void)
{
	static const struct piece p[] = {{0, 1, false}, {BASE, 1, false}, {BASE, 1, false}};
	struct driver d;

	driver_open(&d, true, 5, 0);
	driver_put(&d, p, 3);
	expect_spoilt(&d, SL_VRING_BAD_ADDRESS);
}

static void
every_outcome_has_a_name(void)
{
	for (int a = 0; a < SL_VRING_OUTCOME_COUNT; a++)
		for (int b = 0; b < a; b++)
			CHECK(strcmp(sl_vring_outcome_name((enum sl_vring_outcome)a),
				      sl_vring_outcome_name((enum sl_vring_outcome)b)) != 0);
}

int
main(void)
{
	SL_TEST_RUN(addresses_outside);
	SL_TEST_RUN(lengths);
	SL_TEST_RUN(more_spans_than_room);
	SL_TEST_RUN(readable_behind_writable);
	SL_TEST_RUN(all_is_readable);
	SL_TEST_RUN(indirect_tables);
	SL_TEST_RUN(indirect_with_next);
	SL_TEST_RUN(links_inside_a_table);
	SL_TEST_RUN(split_indexes);
	SL_TEST_RUN(split_honest_wrap);
	SL_TEST_RUN(split_heads_and_links);
	SL_TEST_RUN(packed_ids_and_loops);
	SL_TEST_RUN(packed_spoilt_chain_is_skipped_whole);
	SL_TEST_RUN(every_outcome_has_a_name);
	return test_end();
}
