/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Ring geometry: the same requests go to the library and to the host kernel's packet sockets, and
 * both must give the errno that the table expects; random requests must agree too. Without the
 * right to open packet sockets the library alone is tried.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <linux/if_ether.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sl_errno.h"
#include "sl_pktring.h"
#include "sl_test.h"

/* What stands before the request: option values and other rings. */
struct request {
	struct sl_pktring_req req;
	int expect;
};

#define GOOD_MAX 100u

static uint64_t rng_state = 20261201;

static uint32_t
rng(void)
{
	rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(rng_state >> 33);
}

/* Both ends of what a backend does with a request on a fresh socket. */
static int
ask_library(const struct sl_pktring_req *req)
{
	struct sl_pktring_state none = {0};
	struct sl_pktring_tx *tx = NULL;
	struct sl_pktring_rx *rx = NULL;
	struct sl_pktring_tx_conf conf = {0};
	struct sl_pktring_geo geo;
	int ret = sl_pktring_geometry(req, &none, &geo);

	if (ret != 0 || geo.bytes == 0)
		return ret;
	if (req->dir == SL_PKTRING_TX) {
		ret = sl_pktring_tx_create(&geo, &conf, 1, &tx);
		if (ret == 0)
			CHECK_EQ(sl_pktring_tx_destroy(tx), 0);
		return ret;
	}
	ret = sl_pktring_rx_create(&geo, 1, &rx);
	if (ret == 0)
		sl_pktring_rx_destroy(rx);
	return ret;
}

static void
kernel_options(int fd, int version, uint32_t reserve)
{
	int ret = sl_sys(setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)));

	REQUIRE(ret == 0);
	ret = sl_sys(setsockopt(fd, SOL_PACKET, PACKET_RESERVE, &reserve, sizeof(reserve)));
	REQUIRE(ret == 0);
}

static int
kernel_socket(int version, uint32_t reserve)
{
	int fd = sl_sys(socket(AF_PACKET, SOCK_RAW, 0));

	if (fd >= 0)
		kernel_options(fd, version, reserve);
	return fd;
}

static int
kernel_set_ring(int fd, const struct sl_pktring_req *req)
{
	int opt = req->dir == SL_PKTRING_TX ? PACKET_TX_RING : PACKET_RX_RING;
	socklen_t len = req->version == TPACKET_V3 ? sizeof(struct tpacket_req3)
						   : sizeof(struct tpacket_req);

	return sl_sys(setsockopt(fd, SOL_PACKET, opt, &req->ask, len));
}

/* One socket for all: closing each would wait for a grace period of the host's. */
static int
ask_kernel(const struct sl_pktring_req *req)
{
	static int fd = -1;
	struct sl_pktring_req none = *req;
	int ret;

	if (fd < 0)
		fd = kernel_socket(req->version, req->reserve);
	REQUIRE(fd >= 0);
	kernel_options(fd, req->version, req->reserve);
	ret = kernel_set_ring(fd, req);
	none.ask.tp_block_nr = 0;
	none.ask.tp_frame_nr = 0;
	if (ret == 0)
		CHECK_EQ(kernel_set_ring(fd, &none), 0);
	return ret;
}

static bool
have_kernel(void)
{
	int fd = kernel_socket(TPACKET_V2, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

#define V1 TPACKET_V1
#define V2 TPACKET_V2
#define V3 TPACKET_V3
#define RX SL_PKTRING_RX
#define TX SL_PKTRING_TX
#define REQ(d, v, r, ...) .req = {.dir = d, .version = v, .reserve = r, .ask = {__VA_ARGS__}}

static const struct request table[] = {
	{REQ(TX, V1, 0, 4096, 4, 2048, 8, 0, 0, 0), 0},
	{REQ(TX, V2, 0, 4096, 4, 2048, 8, 0, 0, 0), 0},
	{REQ(TX, V3, 0, 4096, 4, 2048, 8, 0, 0, 0), 0},
	{REQ(RX, V1, 0, 4096, 4, 2048, 8, 0, 0, 0), 0},
	{REQ(RX, V2, 0, 4096, 4, 2048, 8, 0, 0, 0), 0},
	{REQ(RX, V3, 0, 4096, 4, 2048, 8, 10, 64, 1), 0},
	/* nothing asked, nothing freed */
	{REQ(TX, V2, 0, 0, 0, 0, 0, 0, 0, 0), 0},
	{REQ(RX, V2, 0, 0, 0, 0, 1, 0, 0, 0), -EINVAL},
	{REQ(RX, V2, 0, 4096, 0, 2048, 2, 0, 0, 0), -EINVAL},
	{REQ(RX, V2, 0, 7, 0, 7, 0, 0, 0, 0), 0},
	/* blocks: whole pages, any number of them, sign included */
	{REQ(RX, V2, 0, 0, 1, 2048, 2, 0, 0, 0), -EINVAL},
	{REQ(RX, V2, 0, 4095, 1, 2048, 1, 0, 0, 0), -EINVAL},
	{REQ(RX, V2, 0, 2048, 2, 2048, 2, 0, 0, 0), -EINVAL},
	{REQ(RX, V2, 0, 3 * 4096, 2, 4096, 6, 0, 0, 0), 0},
	{REQ(RX, V2, 0, 0x80000000u, 1, 2048, 1048576, 0, 0, 0), -EINVAL},
	/* frames: 16 byte steps, no smaller than header and address, no larger than a block */
	{REQ(RX, V1, 0, 4096, 1, 48, 85, 0, 0, 0), -EINVAL},
	{REQ(RX, V1, 0, 4096, 1, 64, 64, 0, 0, 0), 0},
	{REQ(RX, V2, 0, 4096, 1, 48, 85, 0, 0, 0), -EINVAL},
	{REQ(RX, V2, 0, 4096, 1, 52, 78, 0, 0, 0), -EINVAL},
	{REQ(RX, V2, 0, 4096, 1, 64, 64, 0, 0, 0), 0},
	{REQ(RX, V3, 0, 4096, 1, 64, 64, 0, 0, 0), -EINVAL},
	{REQ(RX, V3, 0, 4096, 1, 80, 51, 0, 0, 0), 0},
	{REQ(RX, V2, 0, 4096, 1, 1000, 4, 0, 0, 0), -EINVAL},
	{REQ(RX, V2, 0, 4096, 1, 1008, 4, 0, 0, 0), 0},
	{REQ(RX, V2, 0, 4096, 1, 0, 0, 0, 0, 0), -EINVAL},
	{REQ(RX, V2, 0, 4096, 1, 8192, 0, 0, 0, 0), -EINVAL},
	/* the reserve counts as header */
	{REQ(RX, V2, 12, 4096, 1, 64, 64, 0, 0, 0), 0},
	{REQ(RX, V2, 13, 4096, 1, 64, 64, 0, 0, 0), -EINVAL},
	{REQ(TX, V2, 13, 4096, 1, 64, 64, 0, 0, 0), -EINVAL},
	{REQ(RX, V2, INT_MAX, 4096, 1, 2048, 2, 0, 0, 0), -EINVAL},
	/* the number of frames is not a choice */
	{REQ(RX, V2, 0, 4096, 2, 2048, 3, 0, 0, 0), -EINVAL},
	{REQ(RX, V2, 0, 4096, 2, 2048, 5, 0, 0, 0), -EINVAL},
	{REQ(RX, V2, 0, 4096, 2, 1600, 4, 0, 0, 0), 0},
	{REQ(RX, V2, 0, 4096, 0x10000000, 64, 0, 0, 0, 0), -EINVAL},
	{REQ(RX, V2, 0, 4096, UINT_MAX, 64, 64, 0, 0, 0), -EINVAL},
	{REQ(RX, V2, 0, 4096, UINT_MAX, 4096, UINT_MAX, 0, 0, 0), -ENOMEM},
	{REQ(TX, V2, 0, 4096, UINT_MAX, 4096, UINT_MAX, 0, 0, 0), -ENOMEM},
	/* V3: the private area, up to sizes whose rounding would wrap 32 bits (CVE-2017-7308) */
	{REQ(RX, V3, 0, 4096, 1, 2048, 2, 0, 4096 - 48 - 68, 0), -EINVAL},
	{REQ(RX, V3, 0, 4096, 1, 2048, 2, 0, 4096 - 48 - 68 - 4, 0), 0},
	{REQ(RX, V3, 0, 4096, 1, 2048, 2, 0, 0x80000000u, 0), -EINVAL},
	{REQ(RX, V3, 0, 4096, 1, 2048, 2, 0, 0x80000001u, 0), -EINVAL},
	{REQ(RX, V3, 0, 4096, 1, 2048, 2, 0, 0xfffffff8u, 0), -EINVAL},
	{REQ(RX, V3, 0, 4096, 1, 2048, 2, 0, UINT_MAX, 0), -EINVAL},
	{REQ(RX, V3, 16, 4096, 1, 2048, 2, 0, 4096 - 48 - 68 - 12, 0), -EINVAL},
	/* V3 transmit has none of the three */
	{REQ(TX, V3, 0, 4096, 1, 2048, 2, 1, 0, 0), -EINVAL},
	{REQ(TX, V3, 0, 4096, 1, 2048, 2, 0, 8, 0), -EINVAL},
	{REQ(TX, V3, 0, 4096, 1, 2048, 2, 0, 0, 1), -EINVAL},
	{REQ(TX, V3, 0, 4096, 1, 2048, 3, 1, 0, 0), -EINVAL},
};

static void
check_table(int (*ask)(const struct sl_pktring_req *))
{
	for (size_t i = 0; i < SL_COUNT_OF(table); i++) {
		int ret = ask(&table[i].req);

		if (ret != table[i].expect)
			fprintf(stderr, "row %zu: block %u * %u\n", i,
				table[i].req.ask.tp_block_size, table[i].req.ask.tp_block_nr);
		CHECK_EQ(ret, table[i].expect);
	}
}

static void
library_keeps_the_table(void)
{
	check_table(ask_library);
}

static void
kernel_keeps_the_table(void)
{
	if (!have_kernel())
		SKIP("packet sockets of the host kernel need CAP_NET_RAW");
	check_table(ask_kernel);
}

/* Edges on both sides of every rule, and noise. */
static uint32_t
pick(const uint32_t *of, size_t n)
{
	uint32_t v = of[rng() % n];

	return rng() % 4 == 0 ? v + 1 - rng() % 3 : v;
}

static void
random_request(struct sl_pktring_req *req)
{
	static const uint32_t block[] = {0, 4096, 8192, 12288, 65536, 2048, 0x7ffff000, 0x80000000};
	static const uint32_t nr[] = {0, 1, 2, 3, 16, UINT_MAX, 0x80000000, 0x4000000};
	static const uint32_t frame[] = {0, 48, 64, 80, 96, 112, 2048, 4096, 1008, 65536, 12288};
	static const uint32_t reserve[] = {0, 0, 0, 4, 12, 16, 2000, 65535};
	static const uint32_t priv[] = {
		0, 0, 0, 8, 100, 3980, 3984, 4096, 0x80000000, UINT_MAX - 7};

	*req = (struct sl_pktring_req){.dir = rng() % 2 ? RX : TX, .version = (int)(rng() % 3)};
	req->reserve = reserve[rng() % SL_COUNT_OF(reserve)];
	req->ask.tp_block_size = pick(block, SL_COUNT_OF(block));
	req->ask.tp_block_nr = pick(nr, SL_COUNT_OF(nr));
	req->ask.tp_frame_size = pick(frame, SL_COUNT_OF(frame));
	if (req->ask.tp_frame_size != 0)
		req->ask.tp_frame_nr =
			req->ask.tp_block_size / req->ask.tp_frame_size * req->ask.tp_block_nr;
	if (rng() % 8 == 0)
		req->ask.tp_frame_nr += 1 - rng() % 3;
	req->ask.tp_sizeof_priv = pick(priv, SL_COUNT_OF(priv));
	req->ask.tp_retire_blk_tov = rng() % 3;
	req->ask.tp_feature_req_word = rng() % 2;
}

static void
random_requests_agree(void)
{
	uint32_t asked = 0, good = 0;

	if (!have_kernel())
		SKIP("packet sockets of the host kernel need CAP_NET_RAW");
	while (asked < 10000) {
		struct sl_pktring_state none = {0};
		struct sl_pktring_req req;
		struct sl_pktring_geo geo;
		int ours, theirs;

		random_request(&req);
		if (sl_pktring_geometry(&req, &none, &geo) == 0 && geo.bytes > 256 << 10)
			continue; /* would only show who has how much memory */
		asked++;
		ours = ask_library(&req);
		/* Each ring that comes to be costs two grace periods of the host's. */
		if (ours == 0 && good++ >= GOOD_MAX)
			continue;
		theirs = ask_kernel(&req);
		if (ours == theirs)
			continue;
		fprintf(stderr,
			"v%d dir %d reserve %u: %u*%u frames %u*%u priv %u tov %u feat %u\n",
			req.version + 1, req.dir, req.reserve, req.ask.tp_block_size,
			req.ask.tp_block_nr, req.ask.tp_frame_size, req.ask.tp_frame_nr,
			req.ask.tp_sizeof_priv, req.ask.tp_retire_blk_tov,
			req.ask.tp_feature_req_word);
		CHECK_EQ(ours, theirs);
	}
	CHECK(good >= GOOD_MAX);
}

static const struct request plain = {REQ(RX, V2, 0, 4096, 2, 2048, 4, 0, 0, 0), 0};

static const struct {
	struct sl_pktring_state state;
	uint32_t block_nr, frame_nr;
	int expect;
} states[] = {
	{{.mapped = true}, 2, 4, -EBUSY},
	{{.mapped = true}, 0, 0, -EBUSY},
	{{.mapped = true, .exists = true}, 0, 1, -EBUSY},
	{{.pending = true, .exists = true}, 0, 0, -EBUSY},
	{{.exists = true}, 2, 4, -EBUSY},
	{{.exists = true}, 2, 5, -EBUSY}, /* before any number is looked at */
	{{.exists = true}, 0, 1, -EINVAL},
	{{.exists = true}, 0, 0, 0},
	{{0}, 0, 0, 0},
};

static void
states_come_first(void)
{
	for (size_t i = 0; i < SL_COUNT_OF(states); i++) {
		struct sl_pktring_req req = plain.req;
		struct sl_pktring_geo geo = {.bytes = 1};

		req.ask.tp_block_nr = states[i].block_nr;
		req.ask.tp_frame_nr = states[i].frame_nr;
		CHECK_EQ(sl_pktring_geometry(&req, &states[i].state, &geo), states[i].expect);
		CHECK_EQ(geo.bytes, states[i].expect == 0 && states[i].block_nr == 0 ? 0 : 1);
	}
}

static void
kernel_states_come_first(void)
{
	int fd = kernel_socket(TPACKET_V2, 0);
	struct sl_pktring_req req = plain.req;
	void *map;

	if (fd < 0)
		SKIP("packet sockets of the host kernel need CAP_NET_RAW");
	CHECK_EQ(kernel_set_ring(fd, &req), 0);
	req.ask.tp_frame_nr = 5;
	CHECK_EQ(kernel_set_ring(fd, &req), -EBUSY);
	map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REQUIRE(map != MAP_FAILED);
	req.ask.tp_block_nr = 0;
	CHECK_EQ(kernel_set_ring(fd, &req), -EBUSY);
	munmap(map, 8192);
	CHECK_EQ(kernel_set_ring(fd, &req), -EINVAL);
	req.ask.tp_frame_nr = 0;
	CHECK_EQ(kernel_set_ring(fd, &req), 0);
	close(fd);
}

static void
frames_do_not_straddle_blocks(void)
{
	struct request r = {REQ(RX, V2, 0, 4096, 3, 1600, 6, 0, 0, 0), 0};
	struct sl_pktring_state none = {0};
	struct sl_pktring_geo geo;
	static const size_t at[] = {0, 1600, 4096, 5696, 8192, 9792};

	REQUIRE(sl_pktring_geometry(&r.req, &none, &geo) == 0);
	CHECK_EQ(geo.frames_per_block, 2);
	CHECK_EQ(geo.bytes, 12288);
	for (uint32_t i = 0; i < SL_COUNT_OF(at); i++)
		CHECK_EQ(sl_pktring_offset(&geo, i), at[i]);
}

static void
header_sizes(void)
{
	static const uint32_t data[] = {32, 32, 48}, hdrlen[] = {52, 52, 68};

	for (int v = TPACKET_V1; v <= TPACKET_V3; v++) {
		int asked = v;
		socklen_t len = sizeof(asked);
		int fd = kernel_socket(TPACKET_V2, 0);

		CHECK_EQ(sl_pktring_data(v), data[v]);
		CHECK_EQ(sl_pktring_hdrlen(v), hdrlen[v]);
		if (fd < 0)
			continue;
		CHECK_EQ(getsockopt(fd, SOL_PACKET, PACKET_HDRLEN, &asked, &len), 0);
		CHECK_EQ(sl_pktring_header(v), asked);
		close(fd);
	}
}

int
main(void)
{
	SL_TEST_RUN(library_keeps_the_table);
	SL_TEST_RUN(kernel_keeps_the_table);
	SL_TEST_RUN(random_requests_agree);
	SL_TEST_RUN(states_come_first);
	SL_TEST_RUN(kernel_states_come_first);
	SL_TEST_RUN(frames_do_not_straddle_blocks);
	SL_TEST_RUN(header_sizes);
	return test_end();
}
