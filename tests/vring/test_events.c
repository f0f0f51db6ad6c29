/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Calls and kicks: when a side is told, by flags and by event index, also across the wrap. */
#include "driver.h"

#define SPANS 4

/* n chains put, popped, pushed and flushed at once; does the driver want a call? */
static bool
serve(struct driver *d, uint16_t n)
{
	struct sl_vring_span span[SPANS];
	struct sl_vring_chain c;
	uint16_t used;
	uint32_t len;
	bool call;

	for (uint16_t i = 0; i < n; i++)
		driver_put(d, &(struct piece){BASE, 1, true}, 1);
	for (uint16_t i = 0; i < n; i++) {
		REQUIRE(device_pop(d, &c, span, SPANS) == SL_VRING_OK);
		sl_vring_push(&d->ring, &c, 1);
	}
	call = sl_vring_flush(&d->ring);
	for (uint16_t i = 0; i < n; i++)
		REQUIRE(driver_used(d, &used, &len));
	return call;
}

static void
call_flags(void)
{
	struct driver d;

	driver_open(&d, false, 8, 0);
	CHECK(serve(&d, 1));
	d.conf.avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	CHECK(!serve(&d, 1));
	d.conf.avail->flags = 0;
	CHECK(serve(&d, 1));
	driver_close(&d);
	driver_open(&d, true, 8, 0);
	CHECK(serve(&d, 1));
	d.conf.driver_event->flags = VRING_PACKED_EVENT_FLAG_DISABLE;
	CHECK(!serve(&d, 1));
	d.conf.driver_event->flags = VRING_PACKED_EVENT_FLAG_ENABLE;
	CHECK(serve(&d, 1));
	driver_close(&d);
}

/* The driver asks to be told when the k-th entry from here is used, k = 1..8, from every place. */
static void
call_event_index_split(void)
{
	for (uint32_t start = 65520; start < 65536 + 16; start++) {
		for (uint16_t k = 1; k <= 8; k++) {
			for (uint16_t n = 1; n <= 8; n++) {
				struct driver d;

				driver_open_at(&d, false, 8, SL_VRING_F_EVENT_IDX, (uint16_t)start,
					(uint16_t)start);
				d.conf.avail->ring[8] = (uint16_t)(start + k - 1);
				CHECK_EQ(serve(&d, n), n >= k);
				CHECK_EQ(serve(&d, 8), n < k); /* once */
				driver_close(&d);
			}
		}
	}
}

static void
call_event_index_packed(void)
{
	for (uint16_t start = 0; start < 14; start++) {
		for (uint16_t k = 1; k <= 7; k++) {
			for (uint16_t n = 1; n <= 7; n++) {
				uint16_t at = start % 7, event = (start % 7 + k - 1) % 7;
				bool wrap = start < 7, event_wrap = at + k - 1 < 7 ? wrap : !wrap;
				struct driver d;

				driver_open_at(&d, true, 7, SL_VRING_F_EVENT_IDX,
					(uint16_t)(at | wrap << 15), (uint16_t)(at | wrap << 15));
				d.conf.driver_event->flags = VRING_PACKED_EVENT_FLAG_DESC;
				d.conf.driver_event->off_wrap =
					(uint16_t)(event | event_wrap << 15);
				CHECK_EQ(serve(&d, n), n >= k);
				driver_close(&d);
			}
		}
	}
}

static void
kicks_split(void)
{
	struct driver d;
	uint16_t event;

	driver_open(&d, false, 8, 0);
	CHECK(!sl_vring_want_kicks(&d.ring, false));
	CHECK_EQ(d.conf.used->flags, VRING_USED_F_NO_NOTIFY);
	CHECK(!sl_vring_want_kicks(&d.ring, true));
	CHECK_EQ(d.conf.used->flags, 0);
	driver_put(&d, &(struct piece){BASE, 1, true}, 1);
	CHECK(sl_vring_want_kicks(&d.ring, true)); /* came before the wish: poll again */
	driver_close(&d);
	driver_open_at(&d, false, 8, SL_VRING_F_EVENT_IDX, 7, 7);
	CHECK(!sl_vring_want_kicks(&d.ring, true));
	memcpy(&event, &d.conf.used->ring[8], sizeof(event));
	CHECK_EQ(event, 7);
	driver_close(&d);
}

static void
kicks_packed(void)
{
	struct driver d;

	driver_open(&d, true, 8, 0);
	CHECK(!sl_vring_want_kicks(&d.ring, false));
	CHECK_EQ(d.conf.device_event->flags, VRING_PACKED_EVENT_FLAG_DISABLE);
	CHECK(!sl_vring_want_kicks(&d.ring, true));
	CHECK_EQ(d.conf.device_event->flags, VRING_PACKED_EVENT_FLAG_ENABLE);
	driver_put(&d, &(struct piece){BASE, 1, true}, 1);
	CHECK(sl_vring_want_kicks(&d.ring, true));
	driver_close(&d);
	driver_open_at(&d, true, 8, SL_VRING_F_EVENT_IDX, 0x8003, 0x8003);
	CHECK(!sl_vring_want_kicks(&d.ring, true));
	CHECK_EQ(d.conf.device_event->flags, VRING_PACKED_EVENT_FLAG_DESC);
	CHECK_EQ(d.conf.device_event->off_wrap, 0x8003);
	driver_close(&d);
}

int
main(void)
{
	SL_TEST_RUN(call_flags);
	SL_TEST_RUN(call_event_index_split);
	SL_TEST_RUN(call_event_index_packed);
	SL_TEST_RUN(kicks_split);
	SL_TEST_RUN(kicks_packed);
	return test_end();
}
