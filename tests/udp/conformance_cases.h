/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef CONFORMANCE_CASES_H
#define CONFORMANCE_CASES_H

/** @file The receive calls that test_conformance makes on both sides. */

#include <stdbool.h>
#include <sys/socket.h>

#define ENTRIES 4
#define IOVS 4
#define BUF 256
#define NAME 160
#define CTL 256
#define UNTOUCHED 0xa5

enum ptr {
	GOOD,
	NIL,
	BAD,      /* a page without access */
	KERNEL,   /* top of the address space */
	STRADDLE, /* eight good bytes, then a page without access */
};

enum call {
	MMSG,
	MSG,
	FROM,
	READ,
};

/* One message of a call. */
struct entry {
	int iovs;
	long len[IOVS];
	enum ptr base[IOVS];
	enum ptr name;
	long namelen;
	enum ptr ctl;
	long ctllen;
	enum ptr iov;
	bool huge_iovlen;
};

struct testcase {
	const char *what;
	int dgram[6]; /* payload bytes + 1; 0 ends the list */
	enum call call;
	enum ptr msgs; /* the array, or the header */
	unsigned int vlen;
	int flags;
	bool timeout;
	enum ptr timeout_at;
	long sec, nsec;
	bool rcvtimeo;
	struct entry e[ENTRIES];
};

/* Shorthand: a message with one buffer, room for any name and for all control messages. */
#define PLAIN(n) {.iovs = 1, .len = {n}, .namelen = 128, .ctllen = CTL}
#define D(n) ((n) + 1)

static const struct testcase cases[] = {
	{"one", {D(22)}, MMSG, .vlen = 1, .e = {PLAIN(100)}},
	{"three", {D(1), D(2), D(3)}, MMSG, .vlen = 3, .e = {PLAIN(100), PLAIN(100), PLAIN(100)}},
	{"nothing", {0}, MMSG, .vlen = 2, .flags = MSG_DONTWAIT, .e = {PLAIN(9), PLAIN(9)}},
	{"fewer than asked", {D(7)}, MMSG, .vlen = 2, .flags = MSG_DONTWAIT,
		.e = {PLAIN(9), PLAIN(9)}},
	{"wait for one", {D(5), D(6)}, MMSG, .vlen = 4, .flags = MSG_WAITFORONE,
		.e = {PLAIN(9), PLAIN(9), PLAIN(9), PLAIN(9)}},
	{"vlen 0", {D(5)}, MMSG, .vlen = 0, .e = {PLAIN(9)}},
	{"zero length", {D(0), D(4), D(0)}, MMSG, .vlen = 3, .e = {PLAIN(9), PLAIN(9), PLAIN(9)}},
	{"truncated", {D(50), D(4)}, MMSG, .vlen = 2, .e = {PLAIN(9), PLAIN(9)}},
	{"truncated, MSG_TRUNC", {D(50), D(4)}, MMSG, .vlen = 2, .flags = MSG_TRUNC,
		.e = {PLAIN(9), PLAIN(9)}},
	{"exact fit", {D(50)}, MMSG, .vlen = 1, .e = {PLAIN(50)}},
	{"one byte short", {D(50)}, MMSG, .vlen = 1, .e = {PLAIN(49)}},
	{"no iovec", {D(50), D(0)}, MMSG, .vlen = 2, .flags = MSG_TRUNC,
		.e = {{.namelen = 128}, {.namelen = 128}}},
	{"empty buffer", {D(50), D(0)}, MMSG, .vlen = 2, .e = {PLAIN(0), PLAIN(0)}},
	{"three buffers", {D(60)}, MMSG, .vlen = 1,
		.e = {{.iovs = 3, .len = {10, 0, 100}, .namelen = 128}}},
	{"four buffers, truncated", {D(60)}, MMSG, .vlen = 1,
		.e = {{.iovs = 4, .len = {7, 8, 9, 10}, .namelen = 128}}},
	{"three buffers, more than needed", {D(12)}, MMSG, .vlen = 1,
		.e = {{.iovs = 3, .len = {10, 10, 10}, .namelen = 128}}},
	{"peek", {D(11), D(12)}, MMSG, .vlen = 2, .flags = MSG_PEEK, .e = {PLAIN(99), PLAIN(99)}},
	{"peek, truncated", {D(60)}, MMSG, .vlen = 2, .flags = MSG_PEEK | MSG_TRUNC,
		.e = {PLAIN(5), PLAIN(50)}},
	{"peek, nothing", {0}, MMSG, .vlen = 2, .flags = MSG_PEEK | MSG_DONTWAIT,
		.e = {PLAIN(5), PLAIN(50)}},
	{"no name", {D(8)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {9}, .name = NIL, .namelen = 77}}},
	{"no name, negative length", {D(8)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {9}, .name = NIL, .namelen = -1}}},
	{"name of 0 bytes", {D(8)}, MMSG, .vlen = 1, .e = {{.iovs = 1, .len = {9}, .namelen = 0}}},
	{"name of 5 bytes", {D(8)}, MMSG, .vlen = 1, .e = {{.iovs = 1, .len = {9}, .namelen = 5}}},
	{"name of 16 bytes", {D(8)}, MMSG, .vlen = 1, .e = {{.iovs = 1, .len = {9}, .namelen = 16}}},
	{"name of 28 bytes", {D(8)}, MMSG, .vlen = 1, .e = {{.iovs = 1, .len = {9}, .namelen = 28}}},
	{"name of 150 bytes", {D(8)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {9}, .namelen = 150}}},
	{"negative namelen", {D(8)}, MMSG, .vlen = 1, .e = {{.iovs = 1, .len = {9}, .namelen = -1}}},
	{"negative namelen second", {D(8), D(9)}, MMSG, .vlen = 2,
		.e = {PLAIN(9), {.iovs = 1, .len = {9}, .namelen = -1}}},
	{"no control", {D(8)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {9}, .namelen = 128, .ctl = NIL}}},
	{"no control, length set", {D(8)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {9}, .namelen = 128, .ctl = NIL, .ctllen = 64}}},
	{"control of 10", {D(8)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {9}, .namelen = 128, .ctllen = 10}}},
	{"control of 16", {D(8)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {9}, .namelen = 128, .ctllen = 16}}},
	{"control of 20", {D(8)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {9}, .namelen = 128, .ctllen = 20}}},
	{"control of 30", {D(8)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {9}, .namelen = 128, .ctllen = 30}}},
	{"control of 50", {D(8)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {9}, .namelen = 128, .ctllen = 50}}},
	{"control of 60", {D(8)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {9}, .namelen = 128, .ctllen = 60}}},
	{"control of 72", {D(8)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {9}, .namelen = 128, .ctllen = 72}}},
	{"huge buffer length", {D(8)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {-1}, .namelen = 128}}},
	{"huge second buffer length", {D(8)}, MMSG, .vlen = 1,
		.e = {{.iovs = 2, .len = {9, -5}, .namelen = 128}}},
	{"too many buffers", {D(8)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {9}, .namelen = 128, .huge_iovlen = true}}},
	{"too many buffers, nothing there", {0}, MMSG, .vlen = 1, .flags = MSG_DONTWAIT,
		.e = {{.iovs = 1, .len = {9}, .namelen = 128, .huge_iovlen = true}}},
	{"negative seconds", {D(8)}, MMSG, .vlen = 1, .timeout = true, .sec = -1, .e = {PLAIN(9)}},
	{"negative nanoseconds", {D(8)}, MMSG, .vlen = 1, .timeout = true, .nsec = -1,
		.e = {PLAIN(9)}},
	{"a second of nanoseconds", {D(8)}, MMSG, .vlen = 1, .timeout = true, .nsec = 1000000000,
		.e = {PLAIN(9)}},
	{"bad timeout, vlen 0", {D(8)}, MMSG, .vlen = 0, .timeout = true, .nsec = -1,
		.e = {PLAIN(9)}},
	{"long timeout", {D(8)}, MMSG, .vlen = 1, .timeout = true, .sec = 1000, .e = {PLAIN(9)}},
	{"endless timeout", {D(8)}, MMSG, .vlen = 1, .timeout = true, .sec = 0x7fffffffffffffff,
		.e = {PLAIN(9)}},
	{"timeout, fewer, DONTWAIT", {D(8)}, MMSG, .vlen = 2, .flags = MSG_DONTWAIT,
		.timeout = true, .sec = 1, .e = {PLAIN(9), PLAIN(9)}},
	{"SO_RCVTIMEO, nothing", {0}, MMSG, .vlen = 2, .rcvtimeo = true, .e = {PLAIN(9), PLAIN(9)}},
	{"SO_RCVTIMEO, one", {D(3)}, MMSG, .vlen = 2, .rcvtimeo = true, .e = {PLAIN(9), PLAIN(9)}},
	{"recvmsg", {D(22)}, MSG, .e = {PLAIN(100)}},
	{"recvmsg, nothing", {0}, MSG, .flags = MSG_DONTWAIT, .e = {PLAIN(100)}},
	{"recvmsg, zero length", {D(0)}, MSG, .e = {PLAIN(100)}},
	{"recvmsg, truncated", {D(22), D(3)}, MSG, .e = {PLAIN(10)}},
	{"recvmsg, MSG_TRUNC", {D(22), D(3)}, MSG, .flags = MSG_TRUNC, .e = {PLAIN(10)}},
	{"recvmsg, peek", {D(22), D(3)}, MSG, .flags = MSG_PEEK, .e = {PLAIN(100)}},
	{"recvmsg, three buffers", {D(60)}, MSG,
		.e = {{.iovs = 3, .len = {10, 0, 100}, .namelen = 128}}},
	{"recvmsg, SO_RCVTIMEO", {0}, MSG, .rcvtimeo = true, .e = {PLAIN(9)}},
	{"recvmsg, negative namelen", {D(8)}, MSG, .e = {{.iovs = 1, .len = {9}, .namelen = -7}}},
	{"recvmsg, control of 50", {D(8)}, MSG,
		.e = {{.iovs = 1, .len = {9}, .namelen = 128, .ctllen = 50}}},
	{"recvfrom", {D(22)}, FROM, .e = {PLAIN(100)}},
	{"recvfrom, nothing", {0}, FROM, .flags = MSG_DONTWAIT, .e = {PLAIN(100)}},
	{"recvfrom, no name", {D(22)}, FROM,
		.e = {{.iovs = 1, .len = {99}, .name = NIL, .namelen = 1}}},
	{"recvfrom, short name", {D(22)}, FROM, .e = {{.iovs = 1, .len = {99}, .namelen = 3}}},
	{"recvfrom, negative namelen", {D(22), D(2)}, FROM,
		.e = {{.iovs = 1, .len = {99}, .namelen = -3}}},
	{"recvfrom, no room", {D(22), D(2)}, FROM, .e = {PLAIN(0)}},
	{"recvfrom, MSG_TRUNC", {D(22), D(2)}, FROM, .flags = MSG_TRUNC, .e = {PLAIN(4)}},
	{"recvfrom, peek", {D(22), D(2)}, FROM, .flags = MSG_PEEK, .e = {PLAIN(40)}},
	{"read", {D(22)}, READ, .e = {PLAIN(100)}},
	{"read, truncated", {D(22), D(1)}, READ, .e = {PLAIN(10)}},
	{"read of nothing", {D(22)}, READ, .e = {PLAIN(0)}},
	{"read, zero length", {D(0), D(1)}, READ, .e = {PLAIN(5)}},
	{"read, huge length", {D(22)}, READ, .e = {PLAIN(-1)}},
};

/* The same with memory that faults: for guarded sockets. */
static const struct testcase bad_cases[] = {
	{"bad buffer", {D(22), D(3)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {99}, .base = {BAD}, .namelen = 128}}},
	{"null buffer", {D(22), D(3)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {99}, .base = {NIL}, .namelen = 128}}},
	{"kernel buffer", {D(22), D(3)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {99}, .base = {KERNEL}, .namelen = 128}}},
	{"kernel buffer, nothing there", {0}, MMSG, .vlen = 1, .flags = MSG_DONTWAIT,
		.e = {{.iovs = 1, .len = {99}, .base = {KERNEL}, .namelen = 128}}},
	{"bad buffer, nothing there", {0}, MMSG, .vlen = 1, .flags = MSG_DONTWAIT,
		.e = {{.iovs = 1, .len = {99}, .base = {BAD}, .namelen = 128}}},
	{"bad buffer, empty datagram", {D(0), D(3)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {99}, .base = {BAD}, .namelen = 128}}},
	{"bad buffer of no length", {D(9), D(3)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {0}, .base = {BAD}, .namelen = 128}}},
	{"buffer that ends too early", {D(22), D(3)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {99}, .base = {STRADDLE}, .namelen = 128}}},
	{"buffer that just suffices", {D(8), D(3)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {99}, .base = {STRADDLE}, .namelen = 128}}},
	{"second buffer bad", {D(22), D(3)}, MMSG, .vlen = 1,
		.e = {{.iovs = 2, .len = {9, 99}, .base = {GOOD, BAD}, .namelen = 128}}},
	{"second buffer bad, not needed", {D(9), D(3)}, MMSG, .vlen = 1,
		.e = {{.iovs = 2, .len = {9, 99}, .base = {GOOD, BAD}, .namelen = 128}}},
	{"second buffer in the kernel, not needed", {D(9), D(3)}, MMSG, .vlen = 1,
		.e = {{.iovs = 2, .len = {9, 99}, .base = {GOOD, KERNEL}, .namelen = 128}}},
	{"bad name", {D(22), D(3)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {99}, .name = BAD, .namelen = 128}}},
	{"bad name of no length", {D(22), D(3)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {99}, .name = BAD, .namelen = 0}}},
	{"name that ends too early", {D(22), D(3)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {99}, .name = STRADDLE, .namelen = 128}}},
	{"name that just suffices", {D(22), D(3)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {99}, .name = STRADDLE, .namelen = 8}}},
	{"bad control", {D(22), D(3)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {99}, .namelen = 128, .ctl = BAD, .ctllen = 99}}},
	{"control that ends too early", {D(22), D(3)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {99}, .namelen = 128, .ctl = STRADDLE, .ctllen = 99}}},
	{"bad iovec array", {D(22), D(3)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {99}, .namelen = 128, .iov = BAD}}},
	{"iovec array that ends too early", {D(22), D(3)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {99}, .namelen = 128, .iov = STRADDLE}}},
	{"no iovec array for one", {D(22), D(3)}, MMSG, .vlen = 1,
		.e = {{.iovs = 1, .len = {99}, .namelen = 128, .iov = NIL}}},
	{"bad array", {D(22), D(3)}, MMSG, .msgs = BAD, .vlen = 1, .e = {PLAIN(9)}},
	{"bad array, nothing there", {0}, MMSG, .msgs = BAD, .vlen = 1, .flags = MSG_DONTWAIT,
		.e = {PLAIN(9)}},
	{"bad array, vlen 0", {D(22)}, MMSG, .msgs = BAD, .vlen = 0, .e = {PLAIN(9)}},
	{"bad timeout", {D(22)}, MMSG, .vlen = 1, .timeout = true, .timeout_at = BAD,
		.e = {PLAIN(9)}},
	{"bad timeout in the kernel", {D(22)}, MMSG, .vlen = 1, .timeout = true,
		.timeout_at = KERNEL, .e = {PLAIN(9)}},
	{"good, bad, good", {D(1), D(2), D(3), D(4)}, MMSG, .vlen = 3,
		.e = {PLAIN(9), {.iovs = 1, .len = {9}, .base = {BAD}, .namelen = 128}, PLAIN(9)}},
	{"good, good, bad name", {D(1), D(2), D(3), D(4)}, MMSG, .vlen = 3,
		.e = {PLAIN(9), PLAIN(9), {.iovs = 1, .len = {9}, .name = BAD, .namelen = 128}}},
	{"good, header refused", {D(1), D(2), D(3)}, MMSG, .vlen = 2,
		.e = {PLAIN(9), {.iovs = 1, .len = {9}, .namelen = 128, .huge_iovlen = true}}},
	{"good, bad iovec array", {D(1), D(2), D(3)}, MMSG, .vlen = 2,
		.e = {PLAIN(9), {.iovs = 1, .len = {9}, .namelen = 128, .iov = BAD}}},
	{"good, then nothing for a bad buffer", {D(1)}, MMSG, .vlen = 2, .flags = MSG_DONTWAIT,
		.e = {PLAIN(9), {.iovs = 1, .len = {9}, .base = {BAD}, .namelen = 128}}},
	{"good, then nothing for a bad iovec array", {D(1)}, MMSG, .vlen = 2, .flags = MSG_DONTWAIT,
		.e = {PLAIN(9), {.iovs = 1, .len = {9}, .namelen = 128, .iov = BAD}}},
	{"peek, bad buffer", {D(5), D(6)}, MMSG, .vlen = 1, .flags = MSG_PEEK,
		.e = {{.iovs = 1, .len = {9}, .base = {BAD}, .namelen = 128}}},
	{"peek, good and bad buffer", {D(5), D(6)}, MMSG, .vlen = 2, .flags = MSG_PEEK,
		.e = {PLAIN(9), {.iovs = 1, .len = {9}, .base = {BAD}, .namelen = 128}}},
	{"recvmsg, bad header", {D(22)}, MSG, .msgs = BAD, .e = {PLAIN(9)}},
	{"recvmsg, null header", {D(22)}, MSG, .msgs = NIL, .e = {PLAIN(9)}},
	{"recvmsg, bad buffer", {D(22), D(3)}, MSG,
		.e = {{.iovs = 1, .len = {99}, .base = {BAD}, .namelen = 128}}},
	{"recvmsg, bad name", {D(22), D(3)}, MSG,
		.e = {{.iovs = 1, .len = {99}, .name = BAD, .namelen = 128}}},
	{"recvmsg, bad control", {D(22), D(3)}, MSG,
		.e = {{.iovs = 1, .len = {99}, .namelen = 128, .ctl = BAD, .ctllen = 99}}},
	{"recvfrom, bad buffer", {D(22), D(3)}, FROM,
		.e = {{.iovs = 1, .len = {99}, .base = {BAD}, .namelen = 128}}},
	{"recvfrom, kernel buffer", {D(22), D(3)}, FROM,
		.e = {{.iovs = 1, .len = {99}, .base = {KERNEL}, .namelen = 128}}},
	{"recvfrom, bad name", {D(22), D(3)}, FROM,
		.e = {{.iovs = 1, .len = {99}, .name = BAD, .namelen = 128}}},
	{"recvfrom, buffer ends early", {D(22), D(3)}, FROM,
		.e = {{.iovs = 1, .len = {99}, .base = {STRADDLE}, .namelen = 128}}},
	{"read, bad buffer", {D(22), D(3)}, READ, .e = {{.iovs = 1, .len = {99}, .base = {BAD}}}},
	{"read, bad buffer of no length", {D(22), D(3)}, READ,
		.e = {{.iovs = 1, .len = {0}, .base = {BAD}}}},
};

#undef PLAIN
#undef D

#endif
