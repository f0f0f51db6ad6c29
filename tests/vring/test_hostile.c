/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * A peer that rewrites descriptors, indexes, flags and tables while they are read. Whatever it
 * does, every span handed out lies inside its memory, each pop has an outcome, and the sums hold.
 */
#include <pthread.h>
#include <sched.h>

#include "driver.h"

#define FOUND 5000u /* pops that found a chain */
#define SIZE 16u
#define SPANS 32

struct run {
	struct driver d;
	uint32_t stop;
};

static uint64_t
random_address(unsigned int *seed)
{
	static const uint64_t at[] = {0, BASE - 8, BASE, BASE + HALF - 16, BASE + HALF,
		BASE + 2 * HALF - 16, BASE + 2 * HALF, UINT64_MAX - 4};

	return at[(unsigned int)rand_r(seed) % SL_COUNT_OF(at)] + (unsigned int)rand_r(seed) % 32;
}

static uint32_t
random_length(unsigned int *seed)
{
	static const uint32_t len[] = {0, 1, 16, 32, 64, 256, 70000, UINT32_MAX};

	return len[(unsigned int)rand_r(seed) % SL_COUNT_OF(len)];
}

static void
scribble_split(struct run *r, unsigned int *seed)
{
	struct vring_desc *desc = &r->d.conf.desc[(unsigned int)rand_r(seed) % SIZE];
	struct vring_avail *avail = r->d.conf.avail;

	switch (rand_r(seed) % 8) {
	case 0:
		sl_store_relaxed(&desc->addr, random_address(seed));
		break;
	case 1:
		sl_store_relaxed(&desc->len, random_length(seed));
		break;
	case 2:
		sl_store_relaxed(&desc->flags, (uint16_t)(rand_r(seed) % 8));
		break;
	case 3:
		sl_store_relaxed(&desc->next, (uint16_t)((unsigned int)rand_r(seed) % (SIZE + 1)));
		break;
	case 4:
		sl_store_relaxed(&avail->ring[(unsigned int)rand_r(seed) % SIZE],
			(uint16_t)((unsigned int)rand_r(seed) % (SIZE + 1)));
		break;
	default:
		/* Mostly a little ahead of the device, else anywhere. */
		sl_store_release(&avail->idx,
			(uint16_t)(sl_load_relaxed(&r->d.conf.used->idx) +
				   (rand_r(seed) % 50 != 0 ? rand_r(seed) % 4 : rand_r(seed))));
	}
}

static void
scribble_packed(struct run *r, unsigned int *seed)
{
	struct vring_packed_desc *desc = &r->d.conf.packed[(unsigned int)rand_r(seed) % SIZE];

	switch (rand_r(seed) % 8) {
	case 0:
		sl_store_relaxed(&desc->addr, random_address(seed));
		break;
	case 1:
		sl_store_relaxed(&desc->len, random_length(seed));
		break;
	case 2:
		sl_store_relaxed(&desc->id, (uint16_t)((unsigned int)rand_r(seed) % (SIZE + 1)));
		break;
	default:
		sl_store_release(
			&desc->flags, (uint16_t)(rand_r(seed) % 8 | (rand_r(seed) % 2) << 7 |
						 (rand_r(seed) % 2) << 15));
	}
}

static void *
scribble(void *arg)
{
	struct run *r = arg;
	unsigned int seed = 99;

	while (sl_load_relaxed(&r->stop) == 0) {
		if (r->d.packed)
			scribble_packed(r, &seed);
		else
			scribble_split(r, &seed);
	}
	return NULL;
}

static bool
inside(const uint8_t *memory, const struct sl_vring_span *s)
{
	return s->addr >= memory && s->len <= HALF && s->addr - memory <= HALF - s->len;
}

static void
check_spans(struct run *r, const struct sl_vring_chain *c, const struct sl_vring_span *span)
{
	uint64_t sum = 0;

	REQUIRE(c->readable + c->writable <= SPANS);
	for (int i = 0; i < c->readable + c->writable; i++) {
		CHECK(inside(r->d.low, &span[i]) || inside(r->d.high, &span[i]));
		sum += span[i].len;
	}
	CHECK_EQ(sum, (uint64_t)c->readable_len + c->writable_len);
}

/* The tables' bytes are plain memory, read by plain copies: written here, between pops, so that
 * ThreadSanitizer has only the races to report that are ours. */
static void
scribble_tables(struct run *r, unsigned int *seed)
{
	struct vring_desc *table = (struct vring_desc *)r->d.low;

	for (int i = 0; i < 4; i++)
		table[(unsigned int)rand_r(seed) % 64] =
			(struct vring_desc){.addr = random_address(seed),
				.len = random_length(seed),
				.flags = (uint16_t)(rand_r(seed) % 8),
				.next = (uint16_t)(rand_r(seed) % 6)};
}

static void
run_all(bool packed)
{
	static struct run r;
	unsigned int seed = 1;
	uint64_t rebuilt = 0;
	pthread_t thread;

	memset(&r, 0, sizeof(r));
	driver_open(&r.d, packed, SIZE, SL_VRING_F_INDIRECT);
	REQUIRE(pthread_create(&thread, NULL, scribble, &r) == 0);
	for (uint32_t found = 0; found < FOUND;) {
		struct sl_vring_span span[SPANS];
		struct sl_vring_chain c;
		enum sl_vring_outcome o;

		scribble_tables(&r, &seed);
		o = device_pop(&r.d, &c, span, SPANS);
		found += sl_vring_has_chain(o);
		if (!sl_vring_has_chain(o))
			sched_yield(); /* until the peer has changed something */
		if (sl_vring_has_chain(o)) {
			CHECK(c.id < SIZE && c.slots >= 1 && c.slots <= SIZE);
			if (o == SL_VRING_OK)
				check_spans(&r, &c, span);
			sl_vring_push(&r.d.ring, &c, 0);
			(void)!sl_vring_flush(&r.d.ring);
		} else if (o != SL_VRING_EMPTY) {
			/* Broken: forgiven at once, so that the run goes on. */
			r.d.ring.broken = false;
			r.d.ring.seen = r.d.ring.next_avail =
				packed ? r.d.ring.next_avail : r.d.ring.next_used;
			rebuilt++;
		}
		(void)!sl_vring_want_kicks(&r.d.ring, found % 2);
	}
	sl_store_relaxed(&r.stop, 1u);
	pthread_join(thread, NULL);
	printf("     ");
	for (int o = 0; o < SL_VRING_OUTCOME_COUNT; o++)
		printf("%s %llu ", sl_vring_outcome_name((enum sl_vring_outcome)o),
			(unsigned long long)r.d.ring.outcomes[o]);
	printf("\n");
	CHECK(r.d.ring.outcomes[SL_VRING_OK] > 0 && rebuilt > 0);
	CHECK(r.d.ring.outcomes[SL_VRING_BAD_ADDRESS] > 0);
	CHECK(r.d.ring.outcomes[SL_VRING_BAD_INDIRECT] > 0);
	driver_close(&r.d);
}

static void
split_under_fire(void)
{
	run_all(false);
}

static void
packed_under_fire(void)
{
	run_all(true);
}

int
main(void)
{
	printf("seeds: 1, 99\n");
	SL_TEST_RUN(split_under_fire);
	SL_TEST_RUN(packed_under_fire);
	return test_end();
}
