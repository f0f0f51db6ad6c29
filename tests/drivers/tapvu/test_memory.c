/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * A frontend whose memory grows and shrinks while its rings run: one thread tells new memory
 * tables, the other sends and receives all the time, from whatever regions are there. Nothing is
 * lost, and nothing of the regions that went is kept. The application has something of its own in
 * each mbuf, as Open vSwitch has.
 *
 *     regions  0 1 | 2 3 4 5 6 7      0 holds the rings; 2 to 7 come one by one, and go again
 *
 * usage: test_memory PLUGIN
 */
#include <pthread.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "cpus.h"
#include "hostile_peer.h"
#include "sl_test_eal.h"
#include "sl_test_leak.h"

#define REGIONS 8u /* rte_vhost takes no more */
#define FIXED 2u
#define CYCLES 15u
#define ENOUGH 40u /* frames that a new region must have carried */
#define WINDOW 8u  /* frames in flight, each way */
#define HEADER 12u
#define SLOT 2048u /* of a region, for one place in a ring; half of it for each way */
#define OWN 64u	   /* bytes of the application's in each mbuf */
#define MARK 0x5a

/* One way: a ring, and where its chains lie. */
struct lane {
	uint32_t ring;
	uint64_t posted, done;
	uint32_t region[RING_SIZE];
};

static uint16_t ours;
static struct rte_mempool *pool;
static char path[64];
static struct peer peer;
static int extra_fd[REGIONS];
static uint8_t *memory[REGIONS];

/* What both threads know of the regions. */
static struct {
	pthread_mutex_t lock;
	uint32_t usable;	   /* (l) a bit for each */
	uint32_t flying[REGIONS];  /* (l) chains */
	uint64_t carried[REGIONS]; /* (l) frames */
} regions = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint32_t told;	     /* the teller's */
static uint32_t changes;     /* the teller's */
static uint32_t teller_done; /* (a) */

static uint64_t
xstat(const char *name)
{
	uint64_t id, value = UINT64_MAX;

	REQUIRE(rte_eth_xstats_get_id_by_name(ours, name, &id) == 0);
	REQUIRE(rte_eth_xstats_get_by_id(ours, &id, &value, 1) == 1);
	return value;
}

/* ---- the teller ---- */

/* The order changes from table to table: nobody promised one. */
static bool
table_tell(uint32_t mask)
{
	struct peer_message m = {.memory = {.count = 0}};
	int fd[REGIONS];

	for (uint32_t i = 0; i < REGIONS; i++) {
		uint32_t k = (i + changes) % REGIONS, n = m.memory.count;

		if ((mask & 1u << k) == 0)
			continue;
		m.memory.region[n].guest = GUEST + k * REGION;
		m.memory.region[n].size = REGION;
		m.memory.region[n].user = GUEST + k * REGION;
		fd[n] = k < FIXED ? peer.memory_fd[k] : extra_fd[k];
		m.memory.count++;
	}
	changes++;
	told = mask;
	return peer_say(&peer, &m, REQ_SET_MEM_TABLE, 8 + 32 * m.memory.count, fd,
		       (int)m.memory.count) &&
	       peer_settled(&peer);
}

static uint64_t
carried(uint32_t k)
{
	uint64_t n;

	pthread_mutex_lock(&regions.lock);
	n = regions.carried[k];
	pthread_mutex_unlock(&regions.lock);
	return n;
}

static bool
region_add(uint32_t k)
{
	uint64_t before = carried(k);
	struct test_wait w = {0};

	if (!table_tell(told | 1u << k))
		return false;
	pthread_mutex_lock(&regions.lock);
	regions.usable |= 1u << k;
	pthread_mutex_unlock(&regions.lock);
	while (carried(k) < before + ENOUGH && test_patience(&w))
		usleep(20);
	return carried(k) >= before + ENOUGH;
}

static bool
region_remove(uint32_t k)
{
	struct test_wait w = {0};
	bool flying = true;

	while (flying && test_patience(&w)) {
		pthread_mutex_lock(&regions.lock);
		regions.usable &= ~(1u << k);
		flying = regions.flying[k] > 0;
		pthread_mutex_unlock(&regions.lock);
		if (flying)
			usleep(20);
	}
	return !flying && table_tell(told & ~(1u << k));
}

static void *
tell(void *good)
{
	*(bool *)good = true;
	for (uint32_t i = 0; i < CYCLES && *(bool *)good; i++) {
		for (uint32_t k = FIXED; k < REGIONS; k++)
			*(bool *)good = *(bool *)good && region_add(k);
		for (uint32_t k = FIXED; k < REGIONS; k++)
			*(bool *)good = *(bool *)good && region_remove(k);
	}
	sl_store_relaxed(&teller_done, 1u);
	return NULL;
}

/* ---- traffic ---- */

static uint32_t
length_of(uint64_t seq)
{
	return 60 + (uint32_t)(seq * 37 % 900);
}

static uint8_t
content(uint64_t seq, uint32_t b)
{
	return b < 8 ? (uint8_t)(seq >> 8 * b) : (uint8_t)(seq * 29 + b + (b >> 8));
}

static bool
holds(const uint8_t *at, uint64_t seq)
{
	for (uint32_t b = 0; b < length_of(seq); b++)
		if (at[b] != content(seq, b))
			return false;
	return true;
}

/* Where the frame of a place lies, here; the driver's address of it is at the same offset. */
static uint32_t
offset_of(const struct lane *l, uint32_t place)
{
	return DATA + place * SLOT + l->ring * SLOT / 2;
}

/* Make the lane's next chain available, in a region that is there. */
static void
post(struct lane *l)
{
	struct vring_avail *a = peer_part(&peer, l->ring, 1);
	uint32_t place = l->posted % RING_SIZE, k = (uint32_t)(l->posted * 7 % REGIONS), len;
	uint32_t at = offset_of(l, place);
	bool write = l->ring == 0;

	pthread_mutex_lock(&regions.lock);
	while ((regions.usable & 1u << k) == 0)
		k = (k + 1) % REGIONS;
	regions.flying[k]++;
	pthread_mutex_unlock(&regions.lock);
	l->region[place] = k;
	len = write ? SLOT / 2 : HEADER + length_of(l->posted);
	memset(memory[k] + at, 0, len);
	for (uint32_t b = 0; !write && b < length_of(l->posted); b++)
		memory[k][at + HEADER + b] = content(l->posted, b);
	peer_desc(&peer, l->ring, place, GUEST + k * REGION + at, len,
		write ? VRING_DESC_F_WRITE : 0, 0);
	a->ring[place] = (uint16_t)place;
	l->posted++;
	sl_store_release(&a->idx, (uint16_t)l->posted); /* VR1 */
}

/* Chains that came back; what we wrote into them is looked at. Returns those that are spoilt. */
static uint32_t
collect(struct lane *l)
{
	const struct vring_used *u = peer_part(&peer, l->ring, 2);
	uint16_t used = sl_load_acquire(&u->idx); /* VR2 */
	uint32_t bad = 0;

	while ((uint16_t)l->done != used) {
		uint32_t place = l->done % RING_SIZE, k = l->region[place];
		const uint8_t *at = memory[k] + offset_of(l, place);

		if (u->ring[place].id != place)
			bad++;
		if (l->ring == 0 && (u->ring[place].len != HEADER + length_of(l->done) ||
					    !holds(at + HEADER, l->done)))
			bad++;
		pthread_mutex_lock(&regions.lock);
		regions.flying[k]--;
		regions.carried[k]++;
		pthread_mutex_unlock(&regions.lock);
		l->done++;
	}
	return bad;
}

static struct rte_mbuf *
packet_make(uint64_t seq)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *at;

	REQUIRE(m != NULL);
	at = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)length_of(seq));
	for (uint32_t b = 0; b < length_of(seq); b++)
		at[b] = content(seq, b);
	return m;
}

static void
mark(struct rte_mempool *mp, void *arg, void *m, unsigned int i)
{
	(void)mp;
	(void)arg;
	(void)i;
	memset(rte_mbuf_to_priv(m), MARK, OWN);
}

static bool
is_marked(struct rte_mbuf *m)
{
	const uint8_t *own = rte_mbuf_to_priv(m);

	for (uint32_t i = 0; i < OWN; i++)
		if (own[i] != MARK)
			return false;
	return m->pool == pool;
}

/* Receive what there is: in order, and whole. Returns how many, or adds to *bad. */
static uint64_t
receive(uint64_t next, uint32_t *bad)
{
	struct rte_mbuf *m[WINDOW];
	uint16_t n = rte_eth_rx_burst(ours, 0, m, WINDOW);

	for (uint16_t i = 0; i < n; i++)
		if (m[i]->pkt_len != length_of(next + i) || !is_marked(m[i]) ||
			!holds(rte_pktmbuf_mtod(m[i], const uint8_t *), next + i))
			(*bad)++;
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

/* One packet more to the peer if it has room. */
static uint64_t
transmit(uint64_t next)
{
	struct rte_mbuf *m = packet_make(next);

	if (rte_eth_tx_burst(ours, 0, &m, 1) == 1)
		return 1;
	rte_pktmbuf_free(m);
	return 0;
}

static void
carry(struct lane *up, struct lane *down)
{
	uint64_t received = 0, sent = 0;
	struct test_wait w = {0};
	uint32_t bad = 0;
	bool ending = false;

	while (bad == 0 && test_patience(&w)) {
		uint64_t before = received + sent;

		ending = ending || sl_load_relaxed(&teller_done) != 0;
		while (!ending && up->posted - up->done < WINDOW)
			post(up);
		while (!ending && down->posted - down->done < WINDOW)
			post(down);
		received += receive(received, &bad);
		if (sent < down->posted)
			sent += transmit(sent);
		bad += collect(up) + collect(down);
		if (ending && received == up->posted && sent == down->posted &&
			up->done == up->posted && down->done == down->posted)
			break;
		if (received + sent > before)
			w = (struct test_wait){0};
	}
	CHECK_EQ(bad, 0);
	CHECK_EQ(received, up->posted);
	CHECK_EQ(sent, down->posted);
	CHECK_EQ(up->done, up->posted);
	CHECK_EQ(down->done, down->posted);
}

/* ---- cases ---- */

static void
memory_make(void)
{
	for (uint32_t k = 0; k < FIXED; k++)
		memory[k] = peer.memory[k];
	for (uint32_t k = FIXED; k < REGIONS; k++) {
		extra_fd[k] = memfd_create("peer", MFD_CLOEXEC);
		REQUIRE(extra_fd[k] >= 0 && ftruncate(extra_fd[k], REGION) == 0);
		memory[k] = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED, extra_fd[k], 0);
		REQUIRE(memory[k] != MAP_FAILED);
	}
}

static void
memory_free(void)
{
	for (uint32_t k = FIXED; k < REGIONS; k++) {
		munmap(memory[k], REGION);
		close(extra_fd[k]);
	}
}

/* The other side closes in a thread of its own. */
static void
everything_is_back(unsigned int descriptors, unsigned int mappings)
{
	struct test_wait w = {0};

	while ((test_descriptors() != descriptors || test_mappings("memfd:peer") != mappings) &&
		test_patience(&w))
		usleep(1000);
	CHECK_EQ(test_descriptors(), descriptors);
	CHECK_EQ(test_mappings("memfd:peer"), mappings);
}

static void
regions_come_and_go_under_traffic(void)
{
	static const char *const never[] = {"ring_bad_address", "ring_bad_index", "ring_broken",
		"rx_chain_bad_chain", "tx_bad_chains"};
	unsigned int descriptors = test_descriptors(), mappings = test_mappings("memfd:peer");
	struct lane up = {.ring = 1}, down = {.ring = 0};
	bool good = false;
	pthread_t teller;

	peer_start(&peer, path, false);
	memory_make();
	told = regions.usable = (1u << FIXED) - 1;
	REQUIRE(pthread_create(&teller, NULL, tell, &good) == 0);
	carry(&up, &down);
	pthread_join(teller, NULL);
	CHECK(good);
	CHECK_EQ(changes, CYCLES * 2 * (REGIONS - FIXED));
	for (uint32_t k = 0; k < REGIONS; k++)
		CHECK(regions.carried[k] >= CYCLES * ENOUGH);
	for (size_t i = 0; i < SL_COUNT_OF(never); i++)
		CHECK_EQ(xstat(never[i]), 0);
	printf("     %u tables, %llu frames in, %llu out\n", changes, (unsigned long long)up.done,
		(unsigned long long)down.done);
	peer_close(&peer);
	memory_free();
	everything_is_back(descriptors, mappings);
}

static void
port_create(void)
{
	struct rte_eth_conf conf = {0};
	char args[128];

	snprintf(args, sizeof(args), "path=%s", path);
	REQUIRE(rte_eal_hotplug_add("vdev", "net_tapvu0", args) == 0);
	REQUIRE(rte_eth_dev_get_port_by_name("net_tapvu0", &ours) == 0);
	REQUIRE(rte_eth_dev_configure(ours, 1, 1, &conf) == 0);
	REQUIRE(rte_eth_rx_queue_setup(ours, 0, 256, 0, NULL, pool) == 0);
	REQUIRE(rte_eth_tx_queue_setup(ours, 0, 256, 0, NULL) == 0);
	REQUIRE(rte_eth_dev_start(ours) == 0);
}

static void
packets_are_back(void)
{
	CHECK_EQ(rte_eth_dev_stop(ours), 0);
	CHECK_EQ(rte_eth_dev_close(ours), 0);
	CHECK_EQ(rte_mempool_in_use_count(pool), 0);
}

int
main(int argc, char **argv)
{
	char args[512];

	if (argc != 2) {
		fprintf(stderr, "usage: test_memory PLUGIN\n");
		return 2;
	}
	snprintf(args, sizeof(args), "--lcores 0@%u -d %s --log-level=*:1", cpu_nth(0), argv[1]);
	snprintf(path, sizeof(path), "/tmp/sl_tapvum_%d.sock", (int)getpid());
	REQUIRE(test_eal_start("tapvu_memory", args) >= 0);
	pool = rte_pktmbuf_pool_create("packets", 1023, 0, OWN, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	REQUIRE(pool != NULL && rte_mempool_obj_iter(pool, mark, NULL) == 1023);
	port_create();
	SL_TEST_RUN(regions_come_and_go_under_traffic);
	SL_TEST_RUN(packets_are_back);
	unlink(path);
	rte_eal_cleanup();
	return test_end();
}
