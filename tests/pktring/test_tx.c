/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Transmit rings, every rule of a request in each version. */
#include "ring_help.h"

#define EACH_VERSION(v) for (int v = TPACKET_V1; v <= TPACKET_V3; v++)

static void
requests_come_in_order(void)
{
	EACH_VERSION(v)
	{
		struct sl_pktring_tx *ring = ring_tx(v, (struct sl_pktring_tx_conf){0});
		struct sl_pktring_frame f;

		CHECK_EQ(sl_pktring_tx_peek(ring, UINT32_MAX, &f), 0);
		sl_pktring_request(v, tx_slot(ring, 1), 60);
		CHECK_EQ(sl_pktring_tx_peek(ring, UINT32_MAX, &f), 0); /* not at the head */
		/* Twice around, so that the index wraps. */
		for (uint32_t i = 0; i < 2 * FRAMES; i++) {
			uint32_t n = i % FRAMES;

			sl_pktring_request(v, tx_slot(ring, n), 60 + i);
			REQUIRE(sl_pktring_tx_peek(ring, UINT32_MAX, &f) == 1);
			CHECK_EQ(f.slot, n);
			CHECK_EQ(f.len, 60 + i);
			CHECK_EQ(f.offset, sl_pktring_data(v));
			CHECK(sl_pktring_tx_bytes(ring, &f) == tx_slot(ring, n) + f.offset);
			sl_pktring_tx_take(ring, i % 3); /* 2 is no worker: the shared cell */
			CHECK_EQ(sl_pktring_status(v, tx_slot(ring, n)), TP_STATUS_SENDING);
			CHECK(!sl_pktring_is_available(v, tx_slot(ring, n)));
			CHECK_EQ(sl_pktring_tx_pending(ring), 1);
			CHECK_EQ(sl_pktring_tx_destroy(ring), -EBUSY);
			sl_pktring_tx_complete(ring, n, (i + 1) % 3);
			CHECK_EQ(sl_pktring_status(v, tx_slot(ring, n)), TP_STATUS_AVAILABLE);
			CHECK_EQ(sl_pktring_tx_pending(ring), 0);
		}
		CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
	}
}

static void
status_is_compared_whole(void)
{
	static const uint32_t none[] = {TP_STATUS_AVAILABLE, TP_STATUS_SENDING,
		TP_STATUS_WRONG_FORMAT, TP_STATUS_SEND_REQUEST | TP_STATUS_SENDING,
		TP_STATUS_SEND_REQUEST | TP_STATUS_TS_SOFTWARE,
		TP_STATUS_SEND_REQUEST | TP_STATUS_TS_RAW_HARDWARE, 0x101, UINT32_MAX};

	EACH_VERSION(v)
	{
		struct sl_pktring_tx *ring = ring_tx(v, (struct sl_pktring_tx_conf){0});
		struct sl_pktring_frame f;

		sl_pktring_request(v, tx_slot(ring, 0), 60);
		for (size_t i = 0; i < SL_COUNT_OF(none); i++) {
			sl_pktring_status_set(v, tx_slot(ring, 0), none[i]);
			CHECK_EQ(sl_pktring_tx_peek(ring, UINT32_MAX, &f), 0);
		}
		if (v == TPACKET_V1) { /* the word is a long */
			((struct tpacket_hdr *)tx_slot(ring, 0))->tp_status = 1ul << 32 | 1;
			CHECK_EQ(sl_pktring_tx_peek(ring, UINT32_MAX, &f), 0);
		}
		sl_pktring_status_set(v, tx_slot(ring, 0), TP_STATUS_SEND_REQUEST);
		CHECK_EQ(sl_pktring_tx_peek(ring, UINT32_MAX, &f), 1);
		CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
	}
}

static void
lengths(void)
{
	EACH_VERSION(v)
	{
		uint32_t most = FRAME - sl_pktring_data(v);
		const struct {
			uint32_t len, cap;
			int expect;
		} rows[] = {
			{0, 1518, 1},
			{1518, 1518, 1},
			{1519, 1518, -EMSGSIZE},
			{most, UINT32_MAX, 1},
			{most + 1, UINT32_MAX, -EMSGSIZE},
			{UINT32_MAX, UINT32_MAX, -EMSGSIZE},
			{0x80000000u, 1518, -EMSGSIZE},
		};
		struct sl_pktring_tx *ring = ring_tx(v, (struct sl_pktring_tx_conf){0});
		struct sl_pktring_frame f;

		for (size_t i = 0; i < SL_COUNT_OF(rows); i++) {
			sl_pktring_request(v, tx_slot(ring, 0), rows[i].len);
			CHECK_EQ(sl_pktring_tx_peek(ring, rows[i].cap, &f), rows[i].expect);
		}
		CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
	}
}

static void
offsets(void)
{
	EACH_VERSION(v)
	{
		uint16_t first = (uint16_t)sl_pktring_data(v);
		const struct {
			uint16_t offset;
			uint32_t len;
			int expect;
		} rows[] = {
			{first, 60, 1},
			{(uint16_t)(first - 1), 60, -EINVAL},
			{0, 60, -EINVAL},
			{FRAME - 60, 60, 1},
			{FRAME - 59, 60, -EINVAL},
			{UINT16_MAX, 60, -EINVAL},
			{FRAME, 0, 1},
			{FRAME + 1, 0, -EINVAL},
		};
		for (size_t i = 0; i < 2 * SL_COUNT_OF(rows); i++) {
			bool dgram = i % 2;
			struct sl_pktring_tx *ring = ring_tx(v,
				(struct sl_pktring_tx_conf){.has_off = true, .dgram = dgram});
			struct sl_pktring_frame f = {0};
			uint16_t offset = rows[i / 2].offset;

			/* The other field is wrong on purpose. */
			set_offsets(v, tx_slot(ring, 0), dgram ? 1 : offset, dgram ? offset : 1);
			sl_pktring_request(v, tx_slot(ring, 0), rows[i / 2].len);
			CHECK_EQ(sl_pktring_tx_peek(ring, UINT32_MAX, &f), rows[i / 2].expect);
			if (rows[i / 2].expect == 1)
				CHECK_EQ(f.offset, offset);
			CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
		}
	}
}

static void
offsets_are_ignored_without_the_option(void)
{
	EACH_VERSION(v)
	{
		struct sl_pktring_tx *ring = ring_tx(v, (struct sl_pktring_tx_conf){0});
		struct sl_pktring_frame f;

		set_offsets(v, tx_slot(ring, 0), 1, 2);
		sl_pktring_request(v, tx_slot(ring, 0), 60);
		CHECK_EQ(sl_pktring_tx_peek(ring, UINT32_MAX, &f), 1);
		CHECK_EQ(f.offset, sl_pktring_data(v));
		CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
	}
}

static void
v3_has_fixed_slots(void)
{
	struct sl_pktring_tx *ring = ring_tx(TPACKET_V3, (struct sl_pktring_tx_conf){0});
	struct tpacket3_hdr *h = (void *)tx_slot(ring, 0);
	struct sl_pktring_frame f;

	h->tp_len = 1 << 20; /* the offset is looked at first */
	h->tp_next_offset = FRAME;
	sl_pktring_status_set(TPACKET_V3, h, TP_STATUS_SEND_REQUEST);
	CHECK_EQ(sl_pktring_tx_peek(ring, UINT32_MAX, &f), -EINVAL);
	CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
}

static void
vnet_header_is_split_off(void)
{
	static const uint8_t sizes[] = {10, 12};

	EACH_VERSION(v)
	for (size_t i = 0; i < SL_COUNT_OF(sizes); i++) {
		struct sl_pktring_tx *ring = ring_tx(v,
			(struct sl_pktring_tx_conf){.vnet_size = sizes[i]});
		uint8_t *slot = tx_slot(ring, 0), *data = slot + sl_pktring_data(v);
		struct sl_pktring_frame f;
		uint8_t expect[SL_PKTRING_VNET_MAX] = {0};

		for (uint8_t k = 0; k < 14; k++)
			data[k] = k + 1;
		memcpy(expect, data, sizes[i]);
		sl_pktring_request(v, slot, sizes[i] + 60u);
		/* The port's limit does not count: the packet may be segmented. */
		REQUIRE(sl_pktring_tx_peek(ring, 20, &f) == 1);
		CHECK_EQ(f.len, 60);
		CHECK_EQ(f.offset, sl_pktring_data(v) + sizes[i]);
		CHECK(memcmp(f.vnet, expect, sizeof(expect)) == 0);
		sl_pktring_request(v, slot, sizes[i] - 1u);
		CHECK_EQ(sl_pktring_tx_peek(ring, UINT32_MAX, &f), -EINVAL);
		sl_pktring_request(v, slot, sizes[i]);
		CHECK_EQ(sl_pktring_tx_peek(ring, UINT32_MAX, &f), 1);
		CHECK_EQ(f.len, 0);
		CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
	}
}

static void
bad_slots_wait_or_are_passed(void)
{
	EACH_VERSION(v)
	{
		struct sl_pktring_tx *ring = ring_tx(v, (struct sl_pktring_tx_conf){0});
		struct sl_pktring_frame f;

		sl_pktring_request(v, tx_slot(ring, 0), 5000);
		sl_pktring_request(v, tx_slot(ring, 1), 60);
		CHECK_EQ(sl_pktring_tx_peek(ring, UINT32_MAX, &f), -EMSGSIZE);
		sl_pktring_tx_reject(ring);
		CHECK_EQ(sl_pktring_status(v, tx_slot(ring, 0)), TP_STATUS_WRONG_FORMAT);
		CHECK_EQ(sl_pktring_tx_peek(ring, UINT32_MAX, &f), 0); /* head stays */
		/* The client mends the same slot, and gets it wrong once more. */
		sl_pktring_request(v, tx_slot(ring, 0), 4000);
		CHECK_EQ(sl_pktring_tx_peek(ring, UINT32_MAX, &f), -EMSGSIZE);
		sl_pktring_tx_drop(ring);
		CHECK_EQ(sl_pktring_status(v, tx_slot(ring, 0)), TP_STATUS_AVAILABLE);
		CHECK_EQ(sl_pktring_tx_peek(ring, UINT32_MAX, &f), 1);
		CHECK_EQ(f.slot, 1);
		CHECK_EQ(sl_pktring_tx_pending(ring), 0);
		CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
	}
}

static void
unsent_slots_are_requests_again(void)
{
	EACH_VERSION(v)
	{
		struct sl_pktring_tx *ring = ring_tx(v, (struct sl_pktring_tx_conf){0});
		struct sl_pktring_frame f;

		for (uint32_t lap = 0; lap < 3; lap++) { /* across the end of the ring, too */
			for (uint32_t i = 0; i < 5; i++) {
				sl_pktring_request(v, tx_slot(ring, (lap * 5 + i) % FRAMES), 60);
				REQUIRE(sl_pktring_tx_peek(ring, UINT32_MAX, &f) == 1);
				sl_pktring_tx_take(ring, 0);
			}
			for (uint32_t i = 0; i < 3; i++)
				sl_pktring_tx_untake(ring, 1);
			CHECK_EQ(sl_pktring_tx_pending(ring), 2);
			for (uint32_t i = 0; i < 5; i++) {
				uint32_t n = (lap * 5 + i) % FRAMES;

				CHECK_EQ(sl_pktring_status(v, tx_slot(ring, n)),
					i < 2 ? TP_STATUS_SENDING : TP_STATUS_SEND_REQUEST);
				if (i >= 2) {
					REQUIRE(sl_pktring_tx_peek(ring, UINT32_MAX, &f) == 1);
					CHECK_EQ(f.slot, n);
					sl_pktring_tx_take(ring, 0);
				}
				sl_pktring_tx_complete(ring, n, 1);
			}
		}
		CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
	}
}

static void
completion_is_stamped_on_request(void)
{
	EACH_VERSION(v)
	{
		struct sl_pktring_tx *ring = ring_tx(v, (struct sl_pktring_tx_conf){0});
		uint8_t *slot = tx_slot(ring, 0);
		const uint32_t *sec = v == TPACKET_V1 ? &((struct tpacket_hdr *)slot)->tp_sec :
			v == TPACKET_V2		      ? &((struct tpacket2_hdr *)slot)->tp_sec :
							&((struct tpacket3_hdr *)slot)->tp_sec;
		struct sl_pktring_frame f;

		sl_pktring_tx_set(ring, &(struct sl_pktring_tx_conf){.timestamp = true});
		sl_pktring_request(v, slot, 60);
		REQUIRE(sl_pktring_tx_peek(ring, UINT32_MAX, &f) == 1);
		sl_pktring_tx_take(ring, 0);
		CHECK_EQ(*sec, 0);
		sl_pktring_tx_complete(ring, 0, 0);
		CHECK_EQ(sl_pktring_status(v, slot), TP_STATUS_TS_SOFTWARE);
		CHECK(sl_pktring_is_available(v, slot));
		CHECK(*sec > 1700000000);
		CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
	}
}

static void
writable_follows_the_head(void)
{
	struct sl_pktring_tx *ring = ring_tx(TPACKET_V2, (struct sl_pktring_tx_conf){0});
	struct sl_pktring_frame f;

	CHECK(sl_pktring_tx_writable(ring));
	for (uint32_t i = 0; i < FRAMES; i++)
		sl_pktring_request(TPACKET_V2, tx_slot(ring, i), 60);
	CHECK(!sl_pktring_tx_writable(ring));
	for (uint32_t i = 0; i < FRAMES; i++) {
		CHECK_EQ(sl_pktring_tx_peek(ring, UINT32_MAX, &f), 1);
		sl_pktring_tx_take(ring, 0);
		CHECK(!sl_pktring_tx_writable(ring));
	}
	sl_pktring_tx_complete(ring, 1, 0);
	CHECK(!sl_pktring_tx_writable(ring));
	sl_pktring_tx_complete(ring, 0, 0);
	CHECK(sl_pktring_tx_writable(ring));
	for (uint32_t i = 2; i < FRAMES; i++)
		sl_pktring_tx_complete(ring, i, 0);
	CHECK_EQ(sl_pktring_tx_destroy(ring), 0);
}

int
main(void)
{
	SL_TEST_RUN(requests_come_in_order);
	SL_TEST_RUN(status_is_compared_whole);
	SL_TEST_RUN(lengths);
	SL_TEST_RUN(offsets);
	SL_TEST_RUN(offsets_are_ignored_without_the_option);
	SL_TEST_RUN(v3_has_fixed_slots);
	SL_TEST_RUN(vnet_header_is_split_off);
	SL_TEST_RUN(bad_slots_wait_or_are_passed);
	SL_TEST_RUN(unsent_slots_are_requests_again);
	SL_TEST_RUN(completion_is_stamped_on_request);
	SL_TEST_RUN(writable_follows_the_head);
	return test_end();
}
