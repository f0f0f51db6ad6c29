/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * A backend process that is killed while it echoes frames, again and again, under a frontend that
 * keeps its rings and connects anew, as a guest's does: what it sends goes on being echoed, in
 * order, nothing twice, and little is lost.
 *
 * usage: test_killed PLUGIN [KILLS]
 */
#include <signal.h>
#include <sys/wait.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "hostile_peer.h"
#include "sl_test_eal.h"

#define KILLS 2u /* of each layout's backends; another number as an argument */
#define BURST 32u
#define HEADER 12u
#define FRAME 60u
#define ROOM 256u /* bytes of a buffer */
#define SEQ_AT 20u
#define USED (1u << 15)
#define WORK 2000u	       /* looks with traffic before a kill, at most */
#define PATIENCE 2000000u      /* looks; limits hanging, not time */
#define LISTENS_PATIENCE 4000u /* of 5 ms */

enum { TO_US, TO_BACKEND, RINGS };

static char socket_path[64];
static const char *plugin, *self;
static uint32_t kills = KILLS;

/* ---- the backend, in a process of its own ---- */

static void
echo_for_ever(uint16_t port)
{
	for (;;) {
		struct rte_mbuf *m[BURST];
		uint16_t n = rte_eth_rx_burst(port, 0, m, BURST);
		uint16_t sent = rte_eth_tx_burst(port, 0, m, n);

		rte_pktmbuf_free_bulk(m + sent, n - sent);
	}
}

static int
backend(const char *plugin_path, const char *path)
{
	struct rte_eth_conf conf = {0};
	struct rte_mempool *pool;
	char text[256];
	uint16_t port;

	snprintf(text, sizeof(text),
		"-l 0 -d %s --log-level=3 --no-shconf --vdev=net_tapvu0,path=%s", plugin_path,
		path);
	REQUIRE(test_eal_start("tapvu_killed", text) >= 0);
	test_eal_remove(); /* later it cannot */
	pool = rte_pktmbuf_pool_create("packets", 2047, 64, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	REQUIRE(pool != NULL);
	REQUIRE(rte_eth_dev_get_port_by_name("net_tapvu0", &port) == 0);
	REQUIRE(rte_eth_dev_configure(port, 1, 1, &conf) == 0);
	REQUIRE(rte_eth_rx_queue_setup(port, 0, 256, 0, NULL, pool) == 0);
	REQUIRE(rte_eth_tx_queue_setup(port, 0, 256, 0, NULL) == 0);
	REQUIRE(rte_eth_dev_start(port) == 0);
	echo_for_ever(port);
	return 1;
}

static pid_t
backend_start(void)
{
	pid_t child = fork();

	REQUIRE(child >= 0);
	if (child == 0) {
		execl(self, self, "backend", plugin, socket_path, (char *)NULL);
		_exit(1);
	}
	return child;
}

static void
backend_kill(pid_t child)
{
	int status;

	REQUIRE(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
	CHECK(WIFSIGNALED(status)); /* it was there until then */
}

/* ---- the frontend's driver ---- */

/* One ring as its driver sees it. A frame's chain has one or two descriptors; buffer k of a ring
 * belongs to descriptor k while it is in use. */
struct front {
	struct peer *peer;
	uint32_t ring;
	uint16_t avail, used;	    /* packed: slots; split: indices */
	bool avail_wrap, used_wrap; /* packed */
	uint32_t left;		    /* descriptors that are free */
	uint16_t slots[RING_SIZE];  /* of the chain with this id or head */
};

static uint64_t
buffer_guest(const struct front *f, uint32_t k)
{
	return GUEST + DATA + (f->ring * RING_SIZE + k) * ROOM;
}

static uint8_t *
buffer(const struct front *f, uint32_t k)
{
	return f->peer->memory[0] + DATA + (f->ring * RING_SIZE + k) * ROOM;
}

static void
put_packed(struct front *f, const uint32_t *len, uint16_t n, uint16_t flags)
{
	struct vring_packed_desc *ring = peer_part(f->peer, f->ring, 0);
	uint16_t first = f->avail, first_flags = 0;

	for (uint16_t i = 0; i < n; i++) {
		uint16_t all = (uint16_t)(flags | (f->avail_wrap ? AVAIL : USED) |
					  (i + 1 < n ? VRING_DESC_F_NEXT : 0));

		sl_store_relaxed(&ring[f->avail].addr, buffer_guest(f, f->avail));
		sl_store_relaxed(&ring[f->avail].len, len[i]);
		sl_store_relaxed(&ring[f->avail].id, first);
		if (i == 0)
			first_flags = all;
		else
			sl_store_relaxed(&ring[f->avail].flags, all);
		f->avail = (uint16_t)((f->avail + 1) % RING_SIZE);
		f->avail_wrap ^= f->avail == 0;
	}
	f->slots[first] = n;
	sl_store_release(&ring[first].flags, first_flags); /* VR1 */
}

/* Descriptors are used in turn here, as the device gives them back in turn. */
static void
put_split(struct front *f, uint16_t at, const uint32_t *len, uint16_t n, uint16_t flags)
{
	struct vring_desc *desc = peer_part(f->peer, f->ring, 0);
	struct vring_avail *avail = peer_part(f->peer, f->ring, 1);

	for (uint16_t i = 0; i < n; i++) {
		uint16_t k = (uint16_t)((at + i) % RING_SIZE);

		desc[k] = (struct vring_desc){buffer_guest(f, k), len[i],
			(uint16_t)(flags | (i + 1 < n ? VRING_DESC_F_NEXT : 0)),
			(uint16_t)((k + 1) % RING_SIZE)};
	}
	f->slots[at] = n;
	sl_store_relaxed(&avail->ring[f->avail % RING_SIZE], at);
	sl_store_release(&avail->idx, ++f->avail); /* VR1 */
}

/* The next chain that came back: its first descriptor; false if there is none. */
static bool
take(struct front *f, uint16_t *id, uint32_t *len)
{
	if (f->peer->packed) {
		struct vring_packed_desc *d =
			(struct vring_packed_desc *)peer_part(f->peer, f->ring, 0) + f->used;
		uint16_t flags = sl_load_acquire(&d->flags); /* VR2 */

		if (((flags & AVAIL) != 0) != f->used_wrap || ((flags & USED) != 0) != f->used_wrap)
			return false;
		*id = sl_load_relaxed(&d->id);
		*len = sl_load_relaxed(&d->len);
		CHECK_EQ(*id, f->used); /* chains come back in order */
		f->used = (uint16_t)(f->used + f->slots[f->used]);
		if (f->used >= RING_SIZE) {
			f->used = (uint16_t)(f->used - RING_SIZE);
			f->used_wrap = !f->used_wrap;
		}
	} else {
		struct vring_used *used = peer_part(f->peer, f->ring, 2);

		if (sl_load_acquire(&used->idx) == f->used) /* VR2 */
			return false;
		*id = (uint16_t)sl_load_relaxed(&used->ring[f->used % RING_SIZE].id);
		*len = sl_load_relaxed(&used->ring[f->used % RING_SIZE].len);
		f->used++;
	}
	REQUIRE(*id < RING_SIZE);
	f->left += f->slots[*id];
	return true;
}

/* ---- traffic ---- */

struct traffic {
	struct peer peer;
	struct front front[RINGS];
	uint16_t next[RINGS]; /* split: the descriptor that is free next */
	uint32_t sent,
		heard; /* sequence numbers: of the next one sent, and behind the last heard */
	uint32_t came;
};

static void
put(struct traffic *t, uint32_t ring, const uint32_t *len, uint16_t n, uint16_t flags)
{
	struct front *f = &t->front[ring];

	if (f->peer->packed)
		put_packed(f, len, n, flags);
	else
		put_split(f, t->next[ring], len, n, flags);
	t->next[ring] = (uint16_t)((t->next[ring] + n) % RING_SIZE);
	f->left -= n;
}

/* A frame in one piece, or its header in one of its own. */
static void
frame_send(struct traffic *t)
{
	struct front *f = &t->front[TO_BACKEND];
	uint16_t first = f->peer->packed ? f->avail : t->next[TO_BACKEND];
	bool two = t->sent % 3 == 0;
	const uint32_t one_len[] = {HEADER + FRAME}, two_len[] = {HEADER, FRAME};
	uint8_t *head = buffer(f, first), *frame;

	frame = two ? buffer(f, (first + 1) % RING_SIZE) : head + HEADER;
	memset(head, 0, HEADER);
	memset(frame, 0x5a, FRAME);
	memcpy(frame + SEQ_AT, &t->sent, sizeof(t->sent));
	t->sent++;
	put(t, TO_BACKEND, two ? two_len : one_len, two ? 2 : 1, 0);
}

static void
frame_hear(struct traffic *t, uint16_t id, uint32_t len)
{
	const uint8_t *at = buffer(&t->front[TO_US], id);
	uint32_t seq;

	if (len == 0) /* lost by one that was killed */
		return;
	CHECK_EQ(len, HEADER + FRAME);
	memcpy(&seq, at + HEADER + SEQ_AT, sizeof(seq));
	CHECK(seq >= t->heard && seq < t->sent);
	CHECK(at[HEADER] == 0x5a && at[HEADER + FRAME - 1] == 0x5a);
	t->heard = seq + 1;
	t->came++;
}

/* Send what there is room for, hear what is there, give buffers. */
static void
look(struct traffic *t, bool send)
{
	const uint32_t room = ROOM;
	uint32_t len;
	uint16_t id;

	while (t->front[TO_US].left > 0)
		put(t, TO_US, &room, 1, VRING_DESC_F_WRITE);
	while (take(&t->front[TO_US], &id, &len))
		frame_hear(t, id, len);
	while (take(&t->front[TO_BACKEND], &id, &len))
		CHECK_EQ(len, 0);
	/* No more on the way than buffers for their echoes. */
	if (send && t->front[TO_BACKEND].left >= 2)
		frame_send(t);
}

static uint64_t
called(struct traffic *t, uint32_t ring)
{
	uint64_t times = 0;

	return read(t->peer.call[ring], &times, sizeof(times)) == sizeof(times) ? times : 0;
}

static void
join(struct traffic *t)
{
	uint32_t k;

	for (uint32_t i = 0; i < RINGS; i++) {
		const struct vring_used *used = peer_part(&t->peer, i, 2);

		t->peer.used[i] = sl_load_relaxed(&used->idx);
		(void)called(t, i);
	}
	for (k = 0; k < LISTENS_PATIENCE && !peer_connect(&t->peer, socket_path); k++)
		usleep(5000);
	REQUIRE(k < LISTENS_PATIENCE);
	REQUIRE(peer_features(&t->peer) && peer_memory(&t->peer) && peer_rings(&t->peer));
	/* An earlier backend may have been killed before it called. */
	for (uint32_t i = 0; i < RINGS; i++)
		CHECK(called(t, i) > 0);
}

/* Sends until so many have come; those that were on the way at a kill may be lost. */
static void
exchange(struct traffic *t, uint32_t frames)
{
	uint32_t end = t->came + frames;

	for (uint32_t k = 0; k < PATIENCE && t->came < end; k++) {
		look(t, true);
		if (k % 64 == 63)
			sched_yield();
	}
	CHECK(t->came >= end);
}

static void
killed(bool packed)
{
	static struct traffic t;
	uint32_t random = 12345;

	memset(&t, 0, sizeof(t));
	peer_make(&t.peer, packed);
	for (uint32_t i = 0; i < RINGS; i++)
		t.front[i] = (struct front){.peer = &t.peer,
			.ring = i,
			.avail_wrap = true,
			.used_wrap = true,
			.left = RING_SIZE};
	for (uint32_t k = 0; k <= kills; k++) {
		pid_t child = backend_start();
		uint32_t lost;

		join(&t);
		exchange(&t, 100);
		lost = t.sent - t.came;
		(void)test_random(&random);
		for (uint32_t i = random >> 16; i % WORK > 0; i--)
			look(&t, true);
		backend_kill(child);
		close(t.peer.socket);
		CHECK(lost <= (k + 1) * 2 * RING_SIZE);
	}
	t.peer.socket = -1;
	peer_close(&t.peer);
}

static void
killed_with_split_rings(void)
{
	killed(false);
}

static void
killed_with_packed_rings(void)
{
	killed(true);
}

int
main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "backend") == 0)
		return backend(argv[2], argv[3]);
	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: test_killed PLUGIN [KILLS]\n");
		return 2;
	}
	if (argc == 3)
		kills = (uint32_t)strtoul(argv[2], NULL, 10);
	self = argv[0];
	plugin = argv[1];
	snprintf(socket_path, sizeof(socket_path), "/tmp/sl_tapvu_killed_%d.sock", (int)getpid());
	SL_TEST_RUN(killed_with_split_rings);
	SL_TEST_RUN(killed_with_packed_rings);
	unlink(socket_path);
	return test_end();
}
