/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The bridge's bursts, through io_uring and through plain calls: what arrives, in what order, and
 * where each frame is counted, also when the kernel takes only some of what it is given. */
#include <errno.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <liburing.h>

#include "tap_bed.h"
#include "tapq_priv.h"

#define RING 128u
#define FRAMES 64u
#define SLOT 512u
#define FIRST (BASE + 4096u) /* frames begin here */

static uint32_t submissions;
static bool refused;			 /* the kernel takes nothing */
static unsigned int part;		 /* it takes so many, 0: all */
static int32_t results[TAP_URING_BATCH]; /* what it says then, where not 0 */
static bool without;			 /* the case runs on plain calls */

int __real_io_uring_submit_and_wait(struct io_uring *ring, unsigned int n);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned int n);

/* As the library hands requests over, but for the last ones. */
static int
submit_part(struct io_uring *ring)
{
	struct io_uring_sq *sq = &ring->sq;

	for (unsigned int tail = *sq->ktail; sq->sqe_head != sq->sqe_tail; sq->sqe_head++) {
		sq->array[tail & *sq->kring_mask] = sq->sqe_head & *sq->kring_mask;
		sl_store_release(sq->ktail, ++tail); /* the kernel's own pair */
	}
	return io_uring_enter((unsigned int)ring->ring_fd, part, 0, 0, NULL);
}

int
__wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned int n)
{
	struct io_uring_cqe *cqe;
	unsigned int head;
	int ret;

	submissions++;
	if (refused)
		return -EAGAIN;
	ret = part > 0 ? submit_part(ring) : __real_io_uring_submit_and_wait(ring, n);
	io_uring_for_each_cqe(ring, head, cqe)
	{
		int32_t lie = results[io_uring_cqe_get_data64(cqe)];

		if (lie != 0)
			cqe->res = lie;
	}
	return ret;
}

static const char *no_uring; /* set when this kernel has none for taps */

static void
bed_open(uint16_t queues)
{
	submissions = part = 0;
	refused = false;
	memset(results, 0, sizeof(results));
	open_all(queues);
	REQUIRE(without || sl_tap_uring_open(&tap) == 0);
	submissions = 0;
}

#define BED_OPEN(queues)                                                                           \
	do {                                                                                       \
		if (why_not != NULL || (no_uring != NULL && !without))                             \
			SKIP(why_not != NULL ? why_not : no_uring);                                \
		bed_open(queues);                                                                  \
	} while (0)

static uint32_t
size_of(uint32_t i)
{
	return 60 + i * 5;
}

static void
make_numbered(uint8_t *frame, uint32_t i)
{
	make_frame(frame, size_of(i), (uint8_t)i);
	memcpy(frame + 14, &i, sizeof(i));
}

/* Frame i, in one to four pieces. */
static void
put_frame(struct driver *d, uint32_t i)
{
	uint64_t at = FIRST + i * SLOT;
	uint32_t whole = SL_TAPQ_VNET_LONG + size_of(i);
	struct piece p[4] = {{at, whole, false}};
	uint16_t n = (uint16_t)(1 + i % 4);

	memset(driver_host(d, at), 0, SL_TAPQ_VNET_LONG);
	make_numbered(driver_host(d, at + SL_TAPQ_VNET_LONG), i);
	for (uint16_t k = 1; k < n; k++) { /* the front one gives 7 bytes each time */
		memmove(&p[1], &p[0], k * sizeof(p[0]));
		p[0] = (struct piece){p[1].addr, 7, false};
		p[1].addr += 7;
		p[1].len -= 7;
	}
	driver_put(d, p, n);
}

static bool
arrives(uint32_t i)
{
	uint8_t frame[SLOT], got[SLOT];

	make_numbered(frame, i);
	return recv(wire, got, sizeof(got), 0) == (ssize_t)size_of(i) &&
	       memcmp(frame, got, size_of(i)) == 0;
}

static uint32_t
used_count(struct driver *d)
{
	uint32_t n = 0, len;
	uint16_t id;

	while (driver_used(d, &id, &len))
		n++;
	return n;
}

static void
out_in_order(void)
{
	for (int packed = 0; packed < 2; packed++) {
		struct sl_tap_stats s = {0};
		struct sl_tapq_ring r;
		bool call = false;
		struct driver d;

		BED_OPEN(1);
		driver_open(&d, packed, 256, 0);
		r = ring_of(&d);
		for (uint32_t i = 0; i < FRAMES; i++)
			put_frame(&d, i);
		CHECK_EQ(sl_tap_from_ring(&tap, 0, &r, 40, &s, &call), 40);
		CHECK_EQ(used_count(&d), 40);
		CHECK_EQ(sl_tap_from_ring(&tap, 0, &r, 64, &s, &call), FRAMES - 40);
		CHECK_EQ(used_count(&d), FRAMES - 40);
		CHECK_EQ(submissions, without ? 0 : 3); /* 32, 8, 24 */
		CHECK_EQ(s.frames, FRAMES);
		for (uint32_t i = 0; i < FRAMES; i++)
			CHECK(arrives(i));
		CHECK_EQ(recv(wire, &d, 0, 0), -1);
		driver_close(&d);
		close_all();
	}
}

/* What never gets to the kernel, and what it refuses, among what it takes. */
static void
out_with_bad_ones(void)
{
	struct sl_tap_stats s = {0};
	struct sl_tapq_ring r;
	bool call = false;
	struct driver d;

	BED_OPEN(1);
	driver_open(&d, true, RING, 0);
	r = ring_of(&d);
	for (uint32_t i = 0; i < 8; i++) {
		put_frame(&d, 4 * i);
		driver_put(&d, &(struct piece){0, 100, false}, 1);
		driver_put(&d, &(struct piece){FIRST, SL_TAPQ_VNET_LONG, false}, 1);
		driver_put(&d, &(struct piece){FIRST, SL_TAPQ_VNET_LONG + 5, false}, 1);
	}
	CHECK_EQ(sl_tap_from_ring(&tap, 0, &r, 64, &s, &call), 32);
	CHECK(s.frames == 8 && s.bad_chain == 8 && s.no_header == 8 && s.bad_frame == 8);
	CHECK_EQ(submissions, !without);
	CHECK_EQ(used_count(&d), 32);
	for (uint32_t i = 0; i < 8; i++)
		CHECK(arrives(4 * i));
	driver_close(&d);
	close_all();
}

/* The kernel has no room for the end of a burst: that stays where it was, bad chains as well, and
 * goes with the next call. */
static void
out_no_room_at_the_end(void)
{
	struct sl_tap_stats s = {0};
	struct sl_tapq_ring r;
	bool call = false;
	struct driver d;

	BED_OPEN(1);
	driver_open(&d, false, RING, 0);
	r = ring_of(&d);
	for (uint32_t i = 0; i < 12; i++)
		put_frame(&d, 4 * i);
	driver_put(&d, &(struct piece){0, 100, false}, 1);
	for (int i = 10; i < 12; i++)
		results[i] = -ENOBUFS;
	CHECK_EQ(sl_tap_from_ring(&tap, 0, &r, 64, &s, &call), 10);
	CHECK(s.frames == 10 && s.full == 1 && s.bad_chain == 0 && s.failed == 0);
	CHECK_EQ(used_count(&d), 10);
	memset(results, 0, sizeof(results));
	CHECK_EQ(sl_tap_from_ring(&tap, 0, &r, 64, &s, &call), 3);
	CHECK(s.frames == 12 && s.full == 1 && s.bad_chain == 1 && s.failed == 0);
	CHECK_EQ(used_count(&d), 3);
	driver_close(&d);
	close_all();
}

/* No room in the middle, while later ones went: order forbids another try. */
static void
out_no_room_in_the_middle(void)
{
	struct sl_tap_stats s = {0};
	struct sl_tapq_ring r;
	bool call = false;
	struct driver d;

	BED_OPEN(1);
	driver_open(&d, true, RING, 0);
	r = ring_of(&d);
	for (uint32_t i = 0; i < 12; i++)
		put_frame(&d, 4 * i);
	results[3] = -ENOBUFS;
	results[4] = -EAGAIN;
	CHECK_EQ(sl_tap_from_ring(&tap, 0, &r, 64, &s, &call), 12);
	CHECK(s.frames == 10 && s.full == 0 && s.failed == 2);
	CHECK_EQ(used_count(&d), 12);
	driver_close(&d);
	close_all();
}

/* The kernel takes no requests, or not all: nothing is lost, and from then on calls are plain. */
static void
out_not_taken(void)
{
	for (unsigned int taken = 0; taken < 8; taken += 7) {
		struct sl_tap_stats s = {0};
		struct sl_tapq_ring r;
		bool call = false;
		struct driver d;

		BED_OPEN(1);
		driver_open(&d, false, RING, 0);
		r = ring_of(&d);
		for (uint32_t i = 0; i < 20; i++)
			put_frame(&d, 4 * (i % 8));
		refused = taken == 0;
		part = taken;
		CHECK_EQ(sl_tap_from_ring(&tap, 0, &r, 64, &s, &call), taken);
		CHECK_EQ(s.full, 1);
		CHECK_EQ(used_count(&d), taken);
		CHECK_EQ(sl_tap_from_ring(&tap, 0, &r, 64, &s, &call), 20 - taken);
		CHECK_EQ(submissions, 1);
		CHECK(s.frames == 20 && s.failed == 0);
		for (uint32_t i = 0; i < 20; i++)
			CHECK(arrives(4 * (i % 8)));
		CHECK_EQ(recv(wire, &d, 0, 0), -1);
		driver_close(&d);
		close_all();
	}
}

/* Somebody else has the queue's io_uring: no waiting. */
static void
out_while_taken(void)
{
	struct sl_tap_stats s = {0};
	struct sl_tapq_ring r;
	bool call = false;
	struct driver d;

	BED_OPEN(2);
	driver_open(&d, true, RING, 0);
	r = ring_of(&d);
	REQUIRE(tap_uring_take(tap.from[1]) == tap.from[1]);
	for (uint16_t queue = 0; queue < 2; queue++) {
		for (uint32_t i = 0; i < 8; i++)
			put_frame(&d, i);
		CHECK_EQ(sl_tap_from_ring(&tap, queue, &r, 64, &s, &call), 8);
		CHECK_EQ(used_count(&d), 8);
		CHECK_EQ(submissions, 1); /* of the first queue alone */
	}
	CHECK_EQ(s.frames, 16);
	tap_uring_release(tap.from[1]);
	driver_close(&d);
	close_all();
}

static void
put_buffers(struct driver *d, uint32_t size)
{
	while (d->free_count > 0) {
		uint16_t id = d->free[d->free_count - 1];

		driver_put(d, &(struct piece){BASE + id * 1000u, size, true}, 1);
	}
}

/* From the wire into the kernel. */
static void
send_frames(uint32_t first, uint32_t end)
{
	uint8_t frame[SLOT];

	for (uint32_t i = first; i < end; i++) {
		make_numbered(frame, i);
		CHECK_EQ(send(wire, frame, size_of(i), 0), size_of(i));
	}
}

/* The next buffer that is used holds frame i. */
static void
check_used(struct driver *d, uint32_t i)
{
	uint8_t frame[SLOT];
	const uint8_t *got;
	uint16_t id = 0, buffers;
	uint32_t len = 0;

	CHECK(driver_used(d, &id, &len));
	CHECK_EQ(len, SL_TAPQ_VNET_LONG + size_of(i));
	got = driver_host(d, BASE + id * 1000u);
	memcpy(&buffers, got + 10, sizeof(buffers));
	CHECK_EQ(buffers, 1);
	make_numbered(frame, i);
	CHECK(memcmp(got + SL_TAPQ_VNET_LONG, frame, size_of(i)) == 0);
}

static uint16_t
poll_in(const struct sl_tapq_ring *r, struct sl_tap_stats *s)
{
	bool call = false;

	return sl_tap_to_ring(&tap, 0, r, 64, 600, s, &call);
}

static void
in_in_order(void)
{
	for (int packed = 0; packed < 2; packed++) {
		struct sl_tap_stats s = {0};
		struct sl_tapq_ring r;
		struct driver d;

		BED_OPEN(1);
		driver_open(&d, packed, FRAMES, 0);
		r = ring_of(&d);
		for (int times = 0; times < 3; times++) {
			put_buffers(&d, 1000);
			send_frames(0, FRAMES);
			CHECK_EQ(poll_in(&r, &s), FRAMES);
			for (uint32_t i = 0; i < FRAMES; i++)
				check_used(&d, i);
			CHECK_EQ(used_count(&d), 0);
		}
		put_buffers(&d, 1000);
		CHECK_EQ(poll_in(&r, &s), 0);
		CHECK(without ? submissions == 0 : submissions > 3);
		CHECK(s.frames == 3 * FRAMES && s.full == 0 && s.too_big == 0 && s.failed == 0);
		CHECK_EQ(d.ring.out, 0);
		driver_close(&d);
		close_all();
	}
}

/* A row of reads that found something makes the next one a batch of half as many. */
static void
in_batches_end(void)
{
	struct sl_tap_stats s = {0};
	struct sl_tapq_ring r;
	struct driver d;

	BED_OPEN(1);
	driver_open(&d, false, 16, 0);
	r = ring_of(&d);
	put_buffers(&d, 1000);
	send_frames(0, 10); /* eight alone, then a batch of four, half of which finds none */
	CHECK_EQ(poll_in(&r, &s), 10);
	CHECK_EQ(submissions, 1);
	for (uint32_t i = 0; i < 10; i++)
		check_used(&d, i);
	put_buffers(&d, 1000);
	send_frames(10, 14); /* the row has ended */
	CHECK_EQ(poll_in(&r, &s), 4);
	CHECK_EQ(submissions, 1);
	for (uint32_t i = 10; i < 14; i++)
		check_used(&d, i);
	CHECK_EQ(s.frames, 14);
	driver_close(&d);
	close_all();
}

/* A read that finds nothing before one that does, and one that fails: buffers are used in order. */
static void
in_with_holes(void)
{
	struct sl_tap_stats s = {0};
	struct sl_tapq_ring r;
	struct driver d;

	BED_OPEN(1);
	driver_open(&d, true, 32, 0);
	r = ring_of(&d);
	put_buffers(&d, 1000);
	send_frames(0, 12);
	results[0] = -EAGAIN; /* of the batch: frames 8 to 11. The first is lost by the lie. */
	results[2] = -EIO;
	CHECK_EQ(poll_in(&r, &s), 11);
	for (uint32_t i = 0; i < 8; i++)
		check_used(&d, i);
	check_used(&d, 9);
	check_used(&d, 11);
	CHECK_EQ(used_count(&d), 0);
	CHECK(s.frames == 10 && s.down == 1 && s.too_big == 0);
	CHECK_EQ(d.ring.out, 0);
	driver_close(&d);
	close_all();
}

/* Longer than anybody said: lost and counted, alone and in a batch, and the buffer serves the next.
 */
static void
in_too_big(void)
{
	struct sl_tap_stats s = {0};
	struct sl_tapq_ring r;
	uint8_t big[1200];
	struct driver d;

	BED_OPEN(1);
	driver_open(&d, false, 32, 0);
	r = ring_of(&d);
	r.mergeable = false;
	put_buffers(&d, 700);
	make_frame(big, sizeof(big), 1);
	send_frames(0, 9);
	CHECK_EQ(send(wire, big, sizeof(big), 0), sizeof(big));
	send_frames(9, 11);
	CHECK_EQ(poll_in(&r, &s), 12);
	CHECK_EQ(submissions, without ? 0 : 2);
	CHECK(s.frames == 11 && s.too_big == 1);
	for (uint32_t i = 0; i < 11; i++)
		check_used(&d, i);
	CHECK_EQ(used_count(&d), 0);
	driver_close(&d);
	close_all();
}

/* Buffers too small for the longest frame are filled one by one, as ever. */
static void
in_small_buffers(void)
{
	struct sl_tap_stats s = {0};
	struct sl_tapq_ring r;
	struct driver d;

	BED_OPEN(1);
	driver_open(&d, true, FRAMES, 0);
	r = ring_of(&d);
	put_buffers(&d, 500);
	send_frames(0, FRAMES - 1);
	CHECK_EQ(poll_in(&r, &s), FRAMES - 1); /* the longest takes two, and they would be gone */
	CHECK_EQ(submissions, 0);
	for (uint32_t i = 0; i < FRAMES - 1; i++)
		check_used(&d, i);
	driver_close(&d);
	close_all();
}

static void
opens_leak_nothing(void)
{
	int before = descriptors();

	if (why_not != NULL || no_uring != NULL)
		SKIP(why_not != NULL ? why_not : no_uring);
	for (uint16_t queues = 1; queues <= 8; queues++) {
		REQUIRE(sl_tap_open(&tap, "slu", queues) == 0); /* its name is free every time */
		REQUIRE(sl_tap_uring_open(&tap) == 0);
		CHECK_EQ(descriptors(), before + 3 * queues + 1);
		sl_tap_close(&tap);
		CHECK_EQ(descriptors(), before);
		CHECK_EQ(if_nametoindex("slu"), 0);
	}
}

/* From here on the kernel refuses this process every io_uring. */
static bool
forbid(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned int)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog program = {SL_COUNT_OF(code), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void
run_refused(int error)
{
	int before = descriptors();

	REQUIRE(forbid(error));
	REQUIRE(sl_tap_open(&tap, "slu", 3) == 0);
	CHECK_EQ(sl_tap_uring_open(&tap), -error);
	CHECK(tap.from[0] == NULL && tap.to[0] == NULL);
	CHECK_EQ(descriptors(), before + 4);
	sl_tap_close(&tap);
	without = true;
	out_in_order();
	in_in_order();
}

static void
refused_by_the_kernel(void)
{
	static const int errors[] = {EPERM, ENOSYS};

	if (why_not != NULL)
		SKIP(why_not);
	for (size_t i = 0; i < SL_COUNT_OF(errors); i++) {
		int status = -1;
		pid_t child = fork();

		if (child == 0) {
			test_bad = 0;
			run_refused(errors[i]);
			_exit(test_bad != 0);
		}
		REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

static void
uring_init(void)
{
	if (why_not != NULL)
		return;
	REQUIRE(sl_tap_open(&tap, "", 1) == 0);
	if (sl_tap_uring_open(&tap) != 0)
		no_uring = "this kernel has no io_uring for taps";
	sl_tap_close(&tap);
}

/* Neighbour discovery would come between our frames. */
static void
silence(void)
{
	FILE *f = fopen("/proc/sys/net/ipv6/conf/default/disable_ipv6", "w");

	if (f != NULL) {
		fputs("1", f);
		fclose(f);
	}
}

int
main(void)
{
	bed_init();
	silence();
	uring_init();
	SL_TEST_RUN(opens_leak_nothing);
	SL_TEST_RUN(out_in_order);
	SL_TEST_RUN(out_with_bad_ones);
	SL_TEST_RUN(out_no_room_at_the_end);
	SL_TEST_RUN(out_no_room_in_the_middle);
	SL_TEST_RUN(out_not_taken);
	SL_TEST_RUN(out_while_taken);
	SL_TEST_RUN(in_in_order);
	SL_TEST_RUN(in_batches_end);
	SL_TEST_RUN(in_with_holes);
	SL_TEST_RUN(in_too_big);
	SL_TEST_RUN(in_small_buffers);
	without = true;
	SL_TEST_RUN(out_in_order);
	SL_TEST_RUN(out_with_bad_ones);
	SL_TEST_RUN(in_in_order);
	SL_TEST_RUN(in_too_big);
	SL_TEST_RUN(in_small_buffers);
	SL_TEST_RUN(refused_by_the_kernel);
	return test_end();
}
