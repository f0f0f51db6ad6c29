/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * A device that dies at any moment, and the next one, which is told nothing, over the same packed
 * ring: each chain comes back once, in order, and what it lost comes back empty.
 *
 * The device is a process that is stopped after every instruction. Whenever it has written to the
 * ring, the next device takes a copy of it from there.
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

#define SPANS 16
#define RING 32u /* slots: twice those of a flush, and more */
#define CHAINS 6u
#define MARK 1000u /* lengths begin here: nothing that was there before is one */

/* One device's work: chains of so many descriptors each, and after which of them it flushes. */
struct work {
	uint16_t slots[CHAINS];
	bool flush[CHAINS];
};

static const struct work works[] = {
	{{1, 1, 1, 1, 1, 1}, {true, true, true, true, true, true}},
	{{1, 1, 1, 1, 1, 1}, {[3] = true, [5] = true}},
	{{1, 2, 1, 3, 1, 1}, {[2] = true, [5] = true}},
	{{3, 3, 1, 1, 2, 2}, {[5] = true}},
	{{5, 1, 4, 1, 1, 3}, {[1] = true, [3] = true}},
	{{2, 2, 2, 2, 2, 2}, {[1] = true, [2] = true, [4] = true}},
};

static void
put(struct driver *d, uint16_t slots, uint16_t *id)
{
	struct piece p[RING];

	for (uint16_t i = 0; i < slots; i++)
		p[i] = (struct piece){BASE + i * 64u, 64, i > 0 || slots == 1};
	*id = driver_put(d, p, slots);
}

static void
pop_and_push(struct driver *d, uint32_t len)
{
	struct sl_vring_span span[SPANS];
	struct sl_vring_chain c;

	REQUIRE(sl_vring_pop(&d->ring, &d->mem, &c, span, SPANS) == SL_VRING_OK);
	sl_vring_push(&d->ring, &c, len);
}

/* Where rounds differ: single chains until the ring stands at a slot of a round. */
static void
move_on(struct driver *d, uint32_t times)
{
	for (uint32_t i = 0; i < times; i++) {
		uint16_t id, used;
		uint32_t len;

		put(d, 1, &id);
		pop_and_push(d, 1);
		CHECK(sl_vring_flush(&d->ring));
		REQUIRE(driver_used(d, &used, &len) && used == id);
	}
}

static void
work_do(struct driver *d, const struct work *w)
{
	for (uint32_t i = 0; i < CHAINS; i++) {
		pop_and_push(d, MARK + i);
		if (w->flush[i])
			(void)!sl_vring_flush(&d->ring);
	}
	(void)!sl_vring_flush(&d->ring);
}

/* The next device and the driver go on with a copy of the ring. Returns the chains that came empty.
 */
static uint32_t
go_on(const struct driver *before, const uint16_t ids[CHAINS], uint32_t *done)
{
	static struct vring_packed_desc copy[RING] __attribute__((aligned(16)));
	struct driver d = *before;
	uint16_t lost, id;
	uint32_t len, n = 0, empty = 0;

	memcpy(copy, before->conf.packed, sizeof(copy));
	d.conf.packed = copy;
	d.conf.next_avail = d.conf.next_used = 0x8000; /* all that a frontend knows */
	REQUIRE(sl_vring_init(&d.ring, &d.conf) == 0);
	(void)sl_vring_recover(&d.ring, &lost);
	for (; driver_used(&d, &id, &len); n++) {
		REQUIRE(n < CHAINS && id == ids[n]);
		REQUIRE(len == 0 || len == MARK + n);
		REQUIRE(len == 0 || empty == 0); /* what is lost is the last of it */
		empty += len == 0;
	}
	CHECK((empty > 0) == (lost > 0));
	*done = n;
	for (; n < CHAINS; n++) {
		pop_and_push(&d, 7);
		(void)!sl_vring_flush(&d.ring);
		REQUIRE(driver_used(&d, &id, &len) && id == ids[n] && len == 7);
	}
	/* And round again. */
	move_on(&d, 2 * RING);
	CHECK(sl_vring_check(&d.ring));
	return empty;
}

static bool
step(pid_t child)
{
	int status;

	REQUIRE(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0);
	REQUIRE(waitpid(child, &status, 0) == child);
	if (WIFEXITED(status))
		CHECK_EQ(WEXITSTATUS(status), 0);
	else
		REQUIRE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	return WIFSTOPPED(status);
}

/* A child that does the work, stopped before it begins; 0 if the system traces nobody. */
static pid_t
device_start(struct driver *d, const struct work *w)
{
	pid_t child = fork();
	int status;

	REQUIRE(child >= 0);
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
			_exit(1);
		(void)raise(SIGSTOP);
		work_do(d, w);
		_exit(0);
	}
	REQUIRE(waitpid(child, &status, 0) == child);
	return WIFSTOPPED(status) ? child : 0;
}

static bool
killed_at_any_moment(const struct work *w, uint32_t start)
{
	size_t bytes = RING * sizeof(struct vring_packed_desc);
	uint32_t states = 0, lossy = 0, done = 0;
	struct vring_packed_desc last[RING];
	struct vring_packed_desc *shared;
	uint16_t ids[CHAINS];
	struct driver d;
	pid_t child;

	driver_open(&d, true, RING, 0);
	free(d.conf.packed);
	shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(shared != MAP_FAILED);
	d.conf.packed = d.ring.conf.packed = shared;
	move_on(&d, start);
	for (uint32_t i = 0; i < CHAINS; i++)
		put(&d, w->slots[i], &ids[i]);
	child = device_start(&d, w);
	if (child == 0)
		goto unmap;
	memset(last, 0, sizeof(last));
	do {
		if (memcmp(last, shared, bytes) == 0)
			continue;
		memcpy(last, shared, bytes);
		states++;
		lossy += go_on(&d, ids, &done) > 0;
	} while (step(child));
	CHECK_EQ(done, CHAINS);
	CHECK(states > 2 * CHAINS);
	CHECK(lossy > 0 || w == &works[0]); /* each of the others holds something back */
unmap:
	d.conf.packed = NULL;
	REQUIRE(munmap(shared, bytes) == 0);
	d.ring.out = 0;
	driver_close(&d);
	return child != 0;
}

/* In the middle of a round, and where a chain or a flush runs into the next one. */
static void
a_device_that_dies_at_any_moment(void)
{
	static const uint32_t starts[] = {0, RING - 13, RING - 8, RING - 3, RING - 1, 2 * RING - 10,
		2 * RING - 5, 2 * RING - 2};

	for (uint32_t i = 0; i < SL_COUNT_OF(works); i++)
		for (uint32_t k = 0; k < SL_COUNT_OF(starts); k++)
			if (!killed_at_any_moment(&works[i], starts[k]))
				SKIP("the system lets no process be traced");
}

static void
a_ring_that_stands_where_it_was_told(void)
{
	for (int packed = 0; packed < 2; packed++) {
		struct driver d;
		uint16_t lost = 1;

		driver_open(&d, packed, RING, 0);
		for (uint32_t i = 0; i < 5 * RING; i++) {
			sl_vring_position(&d.ring, &d.conf.next_avail, &d.conf.next_used);
			REQUIRE(sl_vring_init(&d.ring, &d.conf) == 0);
			CHECK(!sl_vring_recover(&d.ring, &lost));
			CHECK_EQ(lost, 0);
			move_on(&d, 1);
		}
		driver_close(&d);
	}
}

/* As a device leaves it that marks the first slot of a chain only. */
static void
a_ring_that_cannot_be_read(void)
{
	struct vring_packed_desc before[RING];
	struct driver d;
	uint16_t id, used, lost;
	uint32_t len;

	driver_open(&d, true, RING, 0);
	for (uint32_t i = 0; i < 4; i++) {
		uint16_t at = d.avail;

		put(&d, 3, &id);
		pop_and_push(&d, 1);
		CHECK(sl_vring_flush(&d.ring));
		for (uint16_t k = 1; k < 3; k++)
			d.conf.packed[at + k].flags = 1u << VRING_PACKED_DESC_F_AVAIL;
		REQUIRE(driver_used(&d, &used, &len) && used == id);
	}
	memcpy(before, d.conf.packed, sizeof(before));
	sl_vring_position(&d.ring, &d.conf.next_avail, &d.conf.next_used);
	REQUIRE(sl_vring_init(&d.ring, &d.conf) == 0);
	CHECK(!sl_vring_recover(&d.ring, &lost));
	CHECK_EQ(lost, 0);
	CHECK(memcmp(before, d.conf.packed, sizeof(before)) == 0);
	move_on(&d, 1);
	driver_close(&d);
}

int
main(void)
{
	SL_TEST_RUN(a_device_that_dies_at_any_moment);
	SL_TEST_RUN(a_ring_that_stands_where_it_was_told);
	SL_TEST_RUN(a_ring_that_cannot_be_read);
	return test_end();
}
