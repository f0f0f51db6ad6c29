/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The bridge against the kernel's own tap, in a network namespace that ends with the program. */
#include <errno.h>
#include <sys/ioctl.h>

#include <linux/ethtool.h>
#include <linux/sockios.h>

#include "tap_bed.h"

static void
refused_opens(void)
{
	struct sl_tap t, second;

	if (why_not != NULL)
		SKIP(why_not);
	CHECK_EQ(sl_tap_open(&t, "a_name_that_is_too_long", 1), -EINVAL);
	CHECK_EQ(sl_tap_open(&t, "", 0), -EINVAL);
	CHECK_EQ(sl_tap_open(&t, "", SL_TAP_QUEUES_MAX + 1), -EINVAL);
	CHECK_EQ(sl_tap_open(&t, "lo", 1), -EBUSY); /* no tap */
	CHECK_EQ(sl_tap_open(&t, "slx", 1), 0);
	CHECK_EQ(sl_tap_open(&second, "slx", 1), -EBUSY);
	CHECK_EQ(sl_tap_open(&second, "slx", 2), -EBUSY);
	sl_tap_close(&t);
	sl_tap_close(&t); /* twice is once */
	CHECK_EQ(if_nametoindex("slx"), 0);
}

static void
opens_leak_nothing(void)
{
	int before = descriptors();
	struct sl_tap t;

	if (why_not != NULL)
		SKIP(why_not);
	for (uint16_t queues = 1; queues <= 8; queues++) {
		CHECK_EQ(sl_tap_open(&t, "", queues), 0);
		CHECK_EQ(descriptors(), before + queues + 1);
		sl_tap_close(&t);
		(void)!sl_tap_open(&t, "lo", queues);
		CHECK_EQ(descriptors(), before);
	}
}

static void
mtu_carrier_offloads(void)
{
	struct ethtool_value link = {.cmd = ETHTOOL_GLINK};
	struct ifreq r;
	uint16_t mtu = 0;

	if (why_not != NULL)
		SKIP(why_not);
	open_all(1);
	CHECK_EQ(sl_tap_set_mtu(&tap, 9000), 0);
	CHECK(sl_tap_get_mtu(&tap, &mtu) == 0 && mtu == 9000);
	CHECK_EQ(sl_tap_set_mtu(&tap, 10), -EINVAL);
	for (int on = 1; on >= 0; on--) {
		memset(&r, 0, sizeof(r));
		memcpy(r.ifr_name, tap.name, sizeof(tap.name));
		r.ifr_data = (char *)&link;
		CHECK_EQ(sl_tap_set_carrier(&tap, on), 0);
		CHECK_EQ(ioctl(tap.control, SIOCETHTOOL, &r), 0);
		CHECK_EQ(link.data, on);
	}
	CHECK_EQ(sl_tap_set_offloads(&tap, SL_TAPQ_VNET_ACCEPT_TSO4), 0); /* means nothing alone */
	CHECK_EQ(tap.offloads, 0);
	CHECK_EQ(sl_tap_set_offloads(&tap, SL_TAPQ_VNET_ACCEPT_CSUM | SL_TAPQ_VNET_ACCEPT_TSO4), 0);
	CHECK_EQ(tap.offloads, SL_TAPQ_VNET_ACCEPT_CSUM | SL_TAPQ_VNET_ACCEPT_TSO4);
	CHECK_EQ(sl_tap_set_offloads(&tap, 15), 0); /* the newest bit may be unknown */
	CHECK_EQ(tap.offloads & 7, 7);
	close_all();
}

static void
peer_to_kernel(void)
{
	static const uint32_t sizes[] = {14, 60, 1500, 1514};

	if (why_not != NULL)
		SKIP(why_not);
	for (int packed = 0; packed < 2; packed++) {
		struct sl_tap_stats s = {0};
		uint8_t frame[2048], got[2048];
		struct sl_tapq_ring r;
		bool call = false;
		struct driver d;

		open_all(1);
		driver_open(&d, packed, 8, 0);
		r = ring_of(&d);
		for (size_t i = 0; i < SL_COUNT_OF(sizes); i++) {
			make_frame(frame, sizes[i], (uint8_t)i);
			send_chain(&d, BASE + HALF - 700 - 12, frame, 14);
			send_chain(&d, BASE + 2000 * i, frame, sizes[i]);
			CHECK_EQ(sl_tap_from_ring(&tap, 0, &r, 64, &s, &call), 2);
			CHECK_EQ(recv(wire, got, sizeof(got), 0), 14);
			CHECK_EQ(recv(wire, got, sizeof(got), 0), sizes[i]);
			CHECK(memcmp(frame, got, sizes[i]) == 0);
			for (int k = 0; k < 2; k++) {
				uint16_t id;
				uint32_t len;

				CHECK(driver_used(&d, &id, &len) && len == 0);
			}
		}
		CHECK(call);
		CHECK_EQ(s.frames, 2 * SL_COUNT_OF(sizes));
		driver_close(&d);
		close_all();
	}
}

/* Short frames, lying headers, an interface that is down: counted, used up, and the next one goes.
 */
static void
peer_to_kernel_bad(void)
{
	struct sl_tap_stats s = {0};
	struct sl_tapq_vnet_hdr lie = {SL_TAPQ_VNET_NEEDS_CSUM, 0, 0, 0, 65535, 65535, 0};
	uint8_t frame[2048], got[2048];
	struct sl_tapq_ring r;
	bool call = false;
	struct driver d;

	if (why_not != NULL)
		SKIP(why_not);
	open_all(1);
	driver_open(&d, false, 32, 0);
	r = ring_of(&d);
	make_frame(frame, 100, 9);
	for (uint32_t len = 0; len < 14; len++)
		send_chain(&d, BASE + 200 * len, frame, len);
	send_chain(&d, BASE + 4000, frame, 100);
	memcpy(driver_host(&d, BASE + 4000), &lie, SL_TAPQ_VNET_LONG);
	driver_put(&d, &(struct piece){0, 100, false}, 1);
	send_chain(&d, BASE + 5000, frame, 100);
	CHECK_EQ(sl_tap_from_ring(&tap, 0, &r, 64, &s, &call), 17);
	CHECK_EQ(s.no_header, 1);
	CHECK_EQ(s.bad_frame, 14);
	CHECK_EQ(s.bad_chain, 1);
	CHECK_EQ(s.frames, 1);
	CHECK_EQ(recv(wire, got, sizeof(got), 0), 100);
	CHECK_EQ(sl_tap_set_up(&tap, false), 0);
	send_chain(&d, BASE + 6000, frame, 100);
	CHECK_EQ(sl_tap_from_ring(&tap, 0, &r, 64, &s, &call), 1);
	CHECK_EQ(s.down, 1);
	driver_close(&d);
	close_all();
}

/* A frame cut at any place goes as one; what a bare peer's header holds is nobody's business, and
 * what the header of any other peer asks for is. */
static void
pieces_and_headers(void)
{
	const struct sl_tapq_vnet_hdr lie = {SL_TAPQ_VNET_NEEDS_CSUM, 0, 0, 0, 65535, 65535, 0};
	const uint32_t whole = SL_TAPQ_VNET_LONG + 100;
	uint8_t frame[128], got[128];

	if (why_not != NULL)
		SKIP(why_not);
	make_frame(frame, 100, 9);
	open_all(1);
	for (uint32_t cut = 1; cut <= whole; cut++) {
		for (int bits = 0; bits < 4; bits++) {
			bool bare = bits & 1, lies = bits >> 1, call = false;
			struct sl_tap_stats s = {0};
			struct sl_tapq_ring r;
			struct driver d;

			driver_open(&d, cut & 1, 8, 0);
			r = ring_of(&d);
			r.bare = bare;
			memset(driver_host(&d, BASE), 0, SL_TAPQ_VNET_LONG);
			if (lies)
				memcpy(driver_host(&d, BASE), &lie, SL_TAPQ_VNET_LONG);
			memcpy(driver_host(&d, BASE + SL_TAPQ_VNET_LONG), frame, 100);
			driver_put(&d,
				(struct piece[]){
					{BASE, cut, false}, {BASE + cut, whole - cut, false}},
				cut < whole ? 2 : 1);
			CHECK_EQ(sl_tap_from_ring(&tap, 0, &r, 64, &s, &call), 1);
			CHECK_EQ(s.frames, bare || !lies);
			CHECK_EQ(s.bad_frame, !bare && lies);
			CHECK_EQ(recv(wire, got, sizeof(got), 0), s.frames ? 100 : -1);
			CHECK(s.frames == 0 || memcmp(got, frame, 100) == 0);
			driver_close(&d);
		}
	}
	close_all();
}

/* The kernel may send frames of its own; ours are known by their type. */
static uint32_t
collect_ours(struct driver *d, uint8_t *to)
{
	uint16_t id, buffers = 1;
	uint32_t len, total = 0;

	for (uint16_t i = 0; i < buffers; i++) {
		if (!driver_used(d, &id, &len))
			return 0;
		memcpy(to + total, driver_host(d, BASE + id * 1000u), len);
		total += len;
		if (i == 0)
			memcpy(&buffers, to + 10, 2);
	}
	memmove(to, to + SL_TAPQ_VNET_LONG, total - SL_TAPQ_VNET_LONG);
	return to[12] == 0x88 && to[13] == 0xb5 ? total - SL_TAPQ_VNET_LONG : 0;
}

static void
buffers_put(struct driver *d)
{
	while (d->free_count > 0) {
		uint16_t id = d->free[d->free_count - 1];

		driver_put(d, &(struct piece){BASE + id * 1000u, 1000, true}, 1);
	}
}

static void
kernel_to_peer(void)
{
	static const uint32_t sizes[] = {60, 988, 989, 1514};

	if (why_not != NULL)
		SKIP(why_not);
	for (int packed = 0; packed < 2; packed++) {
		struct sl_tap_stats s = {0};
		uint8_t frame[4096], got[8192];
		struct sl_tapq_ring r;
		struct driver d;

		open_all(1);
		driver_open(&d, packed, 16, 0);
		r = ring_of(&d);
		for (size_t i = 0; i < SL_COUNT_OF(sizes); i++) {
			bool call = false;
			uint32_t len = 0;

			buffers_put(&d);
			make_frame(frame, sizes[i], (uint8_t)(i + 1));
			CHECK_EQ(send(wire, frame, sizes[i], 0), sizes[i]);
			CHECK(sl_tap_to_ring(&tap, 0, &r, 64, 2000, &s, &call) >= 1);
			CHECK(call);
			while (d.ring.pushed > 0 && len == 0 && d.free_count < 16) {
				uint16_t before = d.free_count;

				len = collect_ours(&d, got);
				if (d.free_count == before)
					break;
			}
			CHECK_EQ(len, sizes[i]);
			CHECK(memcmp(frame, got, sizes[i]) == 0);
		}
		CHECK_EQ(d.ring.out, 0);
		driver_close(&d);
		close_all();
	}
}

static void
kernel_to_peer_short_of_buffers(void)
{
	struct sl_tap_stats s = {0};
	uint8_t frame[4096];
	struct sl_tapq_ring r;
	bool call = false;
	struct driver d;

	if (why_not != NULL)
		SKIP(why_not);
	open_all(1);
	driver_open(&d, false, 16, 0);
	r = ring_of(&d);
	make_frame(frame, 1400, 3);
	CHECK_EQ(send(wire, frame, 1400, 0), 1400);
	CHECK_EQ(sl_tap_to_ring(&tap, 0, &r, 64, 2000, &s, &call), 0);
	CHECK_EQ(s.full, 1); /* not even asked for */
	r.mergeable = false;
	buffers_put(&d);
	while (s.too_big == 0 && sl_tap_to_ring(&tap, 0, &r, 1, 2000, &s, &call) > 0)
		;
	CHECK_EQ(s.too_big, 1); /* one buffer of 1000 */
	CHECK_EQ(d.ring.out, 0);
	driver_close(&d);
	close_all();
}

static void
two_queues(void)
{
	struct sl_tap_stats s = {0};
	uint8_t frame[100], got[200];
	struct sl_tapq_ring r;
	bool call = false;
	struct driver d;

	if (why_not != NULL)
		SKIP(why_not);
	open_all(2);
	driver_open(&d, true, 8, 0);
	r = ring_of(&d);
	make_frame(frame, 100, 1);
	for (int i = 0; i < 2; i++) {
		send_chain(&d, BASE, frame, 100);
		CHECK_EQ(sl_tap_from_ring(&tap, (uint16_t)i, &r, 1, &s, &call), 1);
		CHECK_EQ(recv(wire, got, sizeof(got), 0), 100);
	}
	driver_close(&d);
	close_all();
}

int
main(void)
{
	bed_init();
	SL_TEST_RUN(refused_opens);
	SL_TEST_RUN(opens_leak_nothing);
	SL_TEST_RUN(mtu_carrier_offloads);
	SL_TEST_RUN(peer_to_kernel);
	SL_TEST_RUN(peer_to_kernel_bad);
	SL_TEST_RUN(pieces_and_headers);
	SL_TEST_RUN(kernel_to_peer);
	SL_TEST_RUN(kernel_to_peer_short_of_buffers);
	SL_TEST_RUN(two_queues);
	return test_end();
}
