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
#include "vring/driver.h"
#include "sl_test_eal.h"

#define KILLS 2u /* of each layout's backends; another number as an argument */
#define BURST 32u
#define HEADER 12u
#define FRAME 60u
#define ROOM 256u /* bytes of a buffer */
#define SEQ_AT 20u
#define WORK 2000u /* looks with traffic before a kill, at most */

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

/* A ring, and which buffer each of its chains has: that of its id. They come back in turn. */
struct front {
	struct driver driver;
	uint32_t left; /* descriptors that are free */
	uint16_t order[RING_SIZE];
	uint32_t put, taken;
	uint64_t buffers; /* driver address of the first */
	uint8_t *memory;  /* here */
};

static void
front_open(struct front *f, struct peer *p, uint32_t ring)
{
	uint16_t start = p->packed ? 0x8000 : 0;
	uint32_t at = DATA + ring * RING_SIZE * ROOM;

	memset(f, 0, sizeof(*f));
	driver_init(&f->driver, p->packed, RING_SIZE, start, start);
	f->driver.conf.packed = peer_part(p, ring, 0);
	f->driver.conf.desc = peer_part(p, ring, 0);
	f->driver.conf.avail = peer_part(p, ring, 1);
	f->driver.conf.used = peer_part(p, ring, 2);
	f->left = RING_SIZE;
	f->buffers = GUEST + at;
	f->memory = p->memory[0] + at;
}

/* Id of the chain that is put next. */
static uint16_t
front_next(const struct front *f)
{
	return f->driver.free[f->driver.free_count - 1];
}

static void
front_put(struct front *f, const struct piece *p, uint16_t n)
{
	f->order[f->put++ % RING_SIZE] = driver_put(&f->driver, p, n);
	f->left -= n;
}

/* The next chain that came back; false if there is none. */
static bool
front_take(struct front *f, uint16_t *id, uint32_t *len)
{
	if (!driver_used(&f->driver, id, len))
		return false;
	REQUIRE(*id < RING_SIZE && f->taken != f->put);
	CHECK_EQ(*id, f->order[f->taken++ % RING_SIZE]);
	f->left += f->driver.slots[*id];
	return true;
}

/* ---- traffic ---- */

struct traffic {
	struct peer peer;
	struct front front[RINGS];
	uint32_t sent,
		heard; /* sequence numbers: of the next one sent, and behind the last heard */
	uint32_t came;
};

/* A frame in one piece, or its header in one of its own. */
static void
frame_send(struct traffic *t)
{
	struct front *f = &t->front[TO_BACKEND];
	uint32_t at = front_next(f) * ROOM;
	struct piece one = {f->buffers + at, HEADER + FRAME, false},
		     two[] = {{f->buffers + at, HEADER, false},
			     {f->buffers + at + HEADER, FRAME, false}};
	uint8_t *frame = f->memory + at + HEADER;

	memset(f->memory + at, 0, HEADER);
	memset(frame, 0x5a, FRAME);
	memcpy(frame + SEQ_AT, &t->sent, sizeof(t->sent));
	if (t->sent++ % 3 == 0)
		front_put(f, two, 2);
	else
		front_put(f, &one, 1);
}

static void
frame_hear(struct traffic *t, uint16_t id, uint32_t len)
{
	const uint8_t *at = t->front[TO_US].memory + id * ROOM;
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
	struct front *in = &t->front[TO_US], *out = &t->front[TO_BACKEND];
	uint32_t len;
	uint16_t id;

	while (in->left > 0)
		front_put(in, &(struct piece){in->buffers + front_next(in) * ROOM, ROOM, true}, 1);
	while (front_take(in, &id, &len))
		frame_hear(t, id, len);
	while (front_take(out, &id, &len))
		CHECK_EQ(len, 0);
	/* No more on the way than buffers for their echoes. */
	if (send && out->left >= 2)
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
	struct test_wait w = {0};

	for (uint32_t i = 0; i < RINGS; i++) {
		const struct vring_used *used = peer_part(&t->peer, i, 2);

		t->peer.used[i] = sl_load_relaxed(&used->idx);
		(void)called(t, i);
	}
	while (!peer_connect(&t->peer, socket_path)) {
		REQUIRE(test_patience(&w));
		usleep(1000);
	}
	REQUIRE(peer_features(&t->peer) && peer_memory(&t->peer) && peer_rings(&t->peer));
	/* An earlier backend may have been killed before it called. */
	for (uint32_t i = 0; i < RINGS; i++) {
		w = (struct test_wait){0};
		while (called(t, i) == 0)
			REQUIRE(test_patience(&w));
	}
}

/* Sends until so many have come; those that were on the way at a kill may be lost. */
static void
exchange(struct traffic *t, uint32_t frames)
{
	uint32_t end = t->came + frames;
	struct test_wait w = {0};

	while (t->came < end && test_patience(&w)) {
		look(t, true);
		if (w.turns % 64 == 0)
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
		front_open(&t.front[i], &t.peer, i);
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
