/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * An honest driver on a thread of its own, for ThreadSanitizer and for lost wake-ups: both sides
 * sleep whenever the event index lets them, so a missing fence ends in a hang.
 */
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "driver.h"
#include "vring_priv.h"

#define CHAINS 200000u
#define SLOT 64u /* bytes of driver memory per chain */

struct run {
	struct driver d;
	int kick, call; /* eventfds */
	uint64_t kicks, calls;
};

static void
signal_fd(int fd)
{
	uint64_t one = 1;

	REQUIRE(write(fd, &one, sizeof(one)) == sizeof(one));
}

static void
wait_fd(int fd)
{
	uint64_t n;

	REQUIRE(read(fd, &n, sizeof(n)) ==
		sizeof(n)); /* blocks; the runner's time limit ends a hang */
}

/* Does the device want to know that the driver moved from old to now? */
static bool
wants_kick(struct driver *d, uint16_t old, uint16_t now, uint16_t moved)
{
	uint16_t event, flags;

	sl_fence_seq_cst(); /* VR4, the driver's half */
	if (!d->packed)
		return vring_passed(
			sl_load_relaxed((uint16_t *)&d->conf.used->ring[d->size]), now, old);
	flags = sl_load_acquire(&d->conf.device_event->flags);
	if (flags != VRING_PACKED_EVENT_FLAG_DESC)
		return flags == VRING_PACKED_EVENT_FLAG_ENABLE;
	event = sl_load_relaxed(&d->conf.device_event->off_wrap);
	if ((event >> 15) != d->avail_wrap)
		return vring_passed(
			(uint16_t)((event & 0x7fff) - d->size), now, (uint16_t)(now - moved));
	return vring_passed(event & 0x7fff, now, (uint16_t)(now - moved));
}

/* Ask for a call at the next used chain; false if it is there already. */
static bool
may_sleep(struct driver *d)
{
	uint16_t flags;

	if (d->packed) {
		sl_store_relaxed(
			&d->conf.driver_event->off_wrap, (uint16_t)(d->used | d->used_wrap << 15));
		sl_store_release(
			&d->conf.driver_event->flags, (uint16_t)VRING_PACKED_EVENT_FLAG_DESC);
	} else {
		sl_store_relaxed(&d->conf.avail->ring[d->size], d->used);
	}
	sl_fence_seq_cst(); /* VR3, the driver's half */
	if (!d->packed)
		return sl_load_acquire(&d->conf.used->idx) == d->used; /* VR2 */
	flags = sl_load_acquire(&d->conf.packed[d->used].flags);       /* VR2 */
	return !(((flags >> VRING_PACKED_DESC_F_USED) & 1) == d->used_wrap &&
		 ((flags >> VRING_PACKED_DESC_F_AVAIL) & 1) == d->used_wrap);
}

static void *
drive(void *arg)
{
	struct run *r = arg;
	struct driver *d = &r->d;
	uint32_t put = 0, got = 0;
	unsigned int seed = 3;

	while (got < CHAINS) {
		uint16_t old = d->avail, n = (uint16_t)(1 + rand_r(&seed) % 8), moved = 0, id;
		uint32_t len;

		while (n-- > 0 && put < CHAINS && put - got < d->size) {
			uint64_t addr = BASE + (put % d->size) * SLOT;

			memcpy(driver_host(d, addr), &put, sizeof(put));
			driver_put(d, &(struct piece){addr, SLOT, true}, 1);
			put++;
			moved++;
		}
		if (moved > 0 && wants_kick(d, old, d->avail, moved)) {
			r->kicks++;
			signal_fd(r->kick);
		}
		while (driver_used(d, &id, &len)) {
			uint32_t value[2];

			memcpy(value, driver_host(d, BASE + (got % d->size) * SLOT), sizeof(value));
			/* The device answers with the complement. */
			CHECK(len == SLOT && value[0] == got && value[1] == ~got);
			got++;
		}
		if ((put == CHAINS || put - got == d->size) && got < CHAINS && may_sleep(d))
			wait_fd(r->call);
	}
	return NULL;
}

static void
serve_all(struct run *r)
{
	for (uint32_t done = 0; done < CHAINS;) {
		struct sl_vring_span span[4];
		struct sl_vring_chain c;
		enum sl_vring_outcome o = device_pop(&r->d, &c, span, 4);
		uint32_t value;

		if (o == SL_VRING_OK) {
			REQUIRE(sl_vring_copy_out(span, 1, 0, &value, 4) == 4);
			value = ~value;
			REQUIRE(sl_vring_copy_in(span, 1, 4, &value, 4) == 4);
			sl_vring_push(&r->d.ring, &c, c.writable_len);
			done++;
			if (done % 5 != 0)
				continue;
		}
		REQUIRE(o == SL_VRING_OK || o == SL_VRING_EMPTY);
		if (sl_vring_flush(&r->d.ring)) {
			r->calls++;
			signal_fd(r->call);
		}
		if (o == SL_VRING_EMPTY && !sl_vring_want_kicks(&r->d.ring, true))
			wait_fd(r->kick);
	}
	if (sl_vring_flush(&r->d.ring)) {
		r->calls++;
		signal_fd(r->call);
	}
}

static void
run_all(bool packed, uint16_t size)
{
	static struct run r;
	pthread_t thread;

	memset(&r, 0, sizeof(r));
	driver_open(&r.d, packed, size, SL_VRING_F_EVENT_IDX);
	if (packed) /* the driver must not sleep before it has asked */
		r.d.conf.driver_event->flags = VRING_PACKED_EVENT_FLAG_DISABLE;
	r.kick = eventfd(0, 0);
	r.call = eventfd(0, 0);
	REQUIRE(r.kick >= 0 && r.call >= 0);
	REQUIRE(pthread_create(&thread, NULL, drive, &r) == 0);
	serve_all(&r);
	pthread_join(thread, NULL);
	CHECK_EQ(r.d.ring.outcomes[SL_VRING_OK], CHAINS);
	CHECK_EQ(r.d.ring.pushed, CHAINS);
	CHECK(r.kicks > 0 && r.kicks < CHAINS);
	CHECK(r.calls > 0 && r.calls < CHAINS);
	printf("     %u chains, %llu kicks, %llu calls\n", CHAINS, (unsigned long long)r.kicks,
		(unsigned long long)r.calls);
	close(r.kick);
	close(r.call);
	driver_close(&r.d);
}

static void
split_with_event_index(void)
{
	run_all(false, 64);
}

static void
packed_with_event_index(void)
{
	run_all(true, 61);
}

int
main(void)
{
	printf("seed: 3\n");
	SL_TEST_RUN(split_with_event_index);
	SL_TEST_RUN(packed_with_event_index);
	return test_end();
}
