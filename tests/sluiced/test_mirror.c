/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Datagrams into a mirror, and what its file has of them. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "mirror.h"
#include "pcapng.h"
#include "sl_inet.h"
#include "sl_test.h"
#include "sl_test_eal.h"
#include "sl_udpq.h"

#define MBUFS 8191u
#define FILE_MAX 300000u

static struct rte_mempool *pool;
static char folder[] = "/tmp/sluice-mirror-XXXXXX", path[64];
static uint8_t file[FILE_MAX];
static size_t file_len;

/* ---- files ---- */

static void
read_file(const char *name)
{
	FILE *f = fopen(name, "rb");

	REQUIRE(f != NULL);
	file_len = fread(file, 1, sizeof(file), f);
	fclose(f);
}

static uint32_t
word(size_t at)
{
	uint32_t v;

	memcpy(&v, file + at, sizeof(v));
	return v;
}

struct packet {
	uint64_t ns;
	uint32_t len;
	const uint8_t *bytes;
};

/* The packets of the file, all of whose blocks must be whole; how many. */
static uint32_t
packets(struct packet *p, uint32_t max)
{
	size_t at = 0;
	uint32_t n = 0, heads = 0;

	while (at < file_len) {
		uint32_t len = word(at + 4);

		REQUIRE(len >= 12 && len % 4 == 0 && at + len <= file_len);
		CHECK_EQ(word(at + len - 4), len);
		if (word(at) == 6 && n < max) {
			CHECK_EQ(word(at + 8), 0);
			p[n].ns = (uint64_t)word(at + 12) << 32 | word(at + 16);
			p[n].len = word(at + 20);
			CHECK_EQ(word(at + 24), p[n].len);
			p[n++].bytes = file + at + 28;
		}
		heads += word(at) != 6;
		at += len;
	}
	CHECK_EQ(heads, 2);
	CHECK_EQ(word(0), 0x0a0d0d0a);
	return n;
}

/* ---- datagrams ---- */

/* How a test's datagram differs from the plain one. */
struct like {
	bool ipv6;
	uint32_t tags;
	uint32_t options; /* bytes of IPv4's */
	uint32_t payload;
	uint32_t spoil; /* this byte in front of the payload is not as it was; 0: none */
};

static uint32_t
build_ip(uint8_t *p, const struct like *l)
{
	if (l->ipv6) {
		memset(p, 0, 40);
		p[0] = 0x60;
		p[4] = (uint8_t)((8 + l->payload) >> 8);
		p[5] = (uint8_t)(8 + l->payload);
		p[6] = IPPROTO_UDP;
		p[7] = 33;
		memset(p + 8, 0x20, 16);
		memset(p + 24, 0x21, 16);
		return 40;
	}
	memset(p, 0, 20 + l->options);
	p[0] = (uint8_t)(0x40 | (5 + l->options / 4));
	p[2] = (uint8_t)((28 + l->options + l->payload) >> 8);
	p[3] = (uint8_t)(28 + l->options + l->payload);
	p[8] = 33;
	p[9] = IPPROTO_UDP;
	memcpy(p + 12, "\x0a\0\0\1\x0a\0\0\2", 8);
	return 20 + l->options;
}

static uint32_t
build_headers(uint8_t *p, const struct like *l)
{
	static const uint8_t macs[12] = {2, 0, 0x81, 0, 0x88, 0xa8, 2, 0, 0x81, 0, 0x81, 0};
	uint8_t *at = p;

	memcpy(at, macs, 12);
	at += 12;
	for (uint32_t i = l->tags; i > 0; i--, at += 4)
		memcpy(at, i == 2 ? "\x88\xa8\0\2" : "\x81\0\0\1", 4);
	memcpy(at, l->ipv6 ? "\x86\xdd" : "\x08\0", 2);
	at += 2;
	at += build_ip(at, l);
	memcpy(at, "\0\1\0\2", 4);
	at[4] = (uint8_t)((8 + l->payload) >> 8);
	at[5] = (uint8_t)(8 + l->payload);
	at[6] = at[7] = 0x77;
	return (uint32_t)(at + 8 - p);
}

/* As the stack hands it over: the mbuf begins with the payload, the headers are in front. */
static void
datagram(const struct like *l, struct sl_dgram *g)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t headers[128];
	uint32_t n = build_headers(headers, l);
	char *p;

	REQUIRE(m != NULL);
	p = rte_pktmbuf_append(m, (uint16_t)(n + l->payload));
	REQUIRE(p != NULL);
	if (l->spoil != 0)
		headers[n - l->spoil] ^= 0x10;
	memcpy(p, headers, n);
	memset(p + n, 0x5a, l->payload);
	rte_pktmbuf_adj(m, (uint16_t)n);
	memset(g, 0, sizeof(*g));
	g->buf = m;
	g->len = l->payload;
	g->ttl = 33;
	g->tos = 0x12;
	memcpy(&g->sport, "\0\1", 2);
	memcpy(&g->dport, "\0\2", 2);
	if (l->ipv6) {
		memset(g->src, 0x20, 16);
		memset(g->dst, 0x21, 16);
	} else {
		struct sl_addr src = sl_addr_v4(rte_cpu_to_be_32(0x0a000001));
		struct sl_addr dst = sl_addr_v4(rte_cpu_to_be_32(0x0a000002));

		memcpy(g->src, &src, 16);
		memcpy(g->dst, &dst, 16);
	}
}

/* ---- headers ---- */

static void
headers_in_front_are_found(void)
{
	static const struct like cases[] = {{.payload = 3}, {.payload = 0}, {.payload = 1000},
		{.tags = 1, .payload = 3}, {.tags = 2, .payload = 3}, {.options = 4, .payload = 3},
		{.options = 40, .tags = 2, .payload = 3}, {.ipv6 = true, .payload = 3},
		{.ipv6 = true, .tags = 2, .payload = 3}};

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		uint8_t want[128], got[MIRROR_HEADERS_MAX];
		uint32_t n = build_headers(want, &cases[i]);
		struct sl_dgram g;
		bool whole;

		datagram(&cases[i], &g);
		CHECK_EQ(mirror_headers(&g, got, &whole), n);
		CHECK(whole && memcmp(got, want, n) == 0);
		rte_pktmbuf_free(g.buf);
	}
}

static void
check_made4(const uint8_t *p, uint32_t n)
{
	struct rte_ipv4_hdr ip;

	memcpy(&ip, p, sizeof(ip));
	CHECK_EQ(n, 28);
	CHECK(ip.version_ihl == 0x45 && ip.type_of_service == 0x12 && ip.time_to_live == 33);
	CHECK_EQ(rte_be_to_cpu_16(ip.total_length), 31);
	CHECK_EQ(rte_ipv4_cksum(&ip), 0); /* its own included */
	CHECK(memcmp(p + 12, "\x0a\0\0\1\x0a\0\0\2\0\1\0\2\0\x0b\0\0", 16) == 0);
}

/* Any octet that does not fit what the datagram says makes them headers of something else. */
static void
headers_that_do_not_fit_are_made_anew(void)
{
	/* Backwards from the payload: length, ports, addresses, protocol, length, version; type. */
	static const uint32_t spoil4[] = {3, 4, 5, 8, 9, 13, 19, 25, 26, 28, 29, 30};

	for (size_t i = 0; i < SL_COUNT_OF(spoil4); i++) {
		const struct like l = {.payload = 3, .spoil = spoil4[i]};
		uint8_t got[MIRROR_HEADERS_MAX];
		struct sl_dgram g;
		bool whole;
		uint32_t n;

		datagram(&l, &g);
		n = mirror_headers(&g, got, &whole);
		CHECK(!whole);
		if (!whole)
			check_made4(got, n);
		rte_pktmbuf_free(g.buf);
	}
}

static void
made_ipv6_has_a_checksum(void)
{
	for (uint32_t payload = 0; payload < 20; payload++) {
		const struct like l = {.ipv6 = true, .payload = payload, .spoil = 48};
		uint8_t got[MIRROR_HEADERS_MAX + 64];
		struct sl_dgram g;
		bool whole;

		datagram(&l, &g);
		CHECK_EQ(mirror_headers(&g, got, &whole), 48);
		CHECK(!whole && got[0] == 0x61 && got[1] == 0x20);
		memset(got + 48, 0x5a, payload);
		CHECK_EQ(rte_ipv6_udptcp_cksum_verify((struct rte_ipv6_hdr *)got, got + 40), 0);
		rte_pktmbuf_free(g.buf);
	}
}

/* ---- files ---- */

static struct mirror *
open_file(uint64_t size, uint32_t files)
{
	struct mirror_conf conf = {
		.name = "test", .file = path, .file_size = size, .files = files, .pool = pool};
	struct mirror *m;

	REQUIRE(mirror_create(&conf, &m) == 0);
	REQUIRE(mirror_begin(m) == 0);
	return m;
}

/* Ends it; every packet is back, and what was taken is accounted for. */
static void
close_mirror(struct mirror *m, uint64_t taken, uint64_t *counts)
{
	memset(counts, 0, MIRROR_OUTCOMES * sizeof(*counts));
	mirror_destroy(m, counts);
	CHECK_EQ(counts[MIRROR_WRITTEN] + counts[MIRROR_FILE_FULL] + counts[MIRROR_FAILED], taken);
	CHECK_EQ(rte_mempool_avail_count(pool), MBUFS);
}

static void
a_file_has_what_was_put(void)
{
	static const struct like like[] = {{.payload = 3},
		{.ipv6 = true, .tags = 1, .payload = 100}, {.payload = 3, .spoil = 9},
		{.payload = 0}};
	struct mirror *m = open_file(MIRROR_FILE_MIN, 1);
	uint64_t counts[MIRROR_OUTCOMES];
	struct packet p[8];
	struct stat st;
	struct sl_dgram g;

	for (size_t i = 0; i < SL_COUNT_OF(like); i++) {
		datagram(&like[i], &g);
		if (i == 1) /* shared: it is copied, with its headers */
			rte_mbuf_refcnt_update(g.buf, 1);
		CHECK_EQ(mirror_put(m, &g, UINT64_C(1700000000123456789) + i), MIRROR_TAKEN);
		if (i == 1)
			rte_pktmbuf_free(g.buf);
	}
	close_mirror(m, SL_COUNT_OF(like), counts);
	CHECK_EQ(counts[MIRROR_WRITTEN], SL_COUNT_OF(like));
	read_file(path);
	REQUIRE(packets(p, 8) == SL_COUNT_OF(like));
	for (size_t i = 0; i < SL_COUNT_OF(like); i++) {
		uint8_t want[128];
		uint32_t n = build_headers(want, &like[i]);

		CHECK(p[i].ns == UINT64_C(1700000000123456789) + i);
		n = like[i].spoil != 0 ? 42 : n;
		REQUIRE(p[i].len == n + like[i].payload);
		if (like[i].spoil != 0)
			memset(want, 0, 12);
		CHECK(memcmp(p[i].bytes, want, like[i].spoil != 0 ? 15 : n) == 0);
		for (uint32_t k = n; k < p[i].len; k++)
			CHECK_EQ(p[i].bytes[k], 0x5a);
	}
	CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
	unlink(path);
}

static void
put_many(struct mirror *m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct like l = {.payload = 958}; /* a block of 1032 bytes */
		uint64_t counts[MIRROR_OUTCOMES];
		struct sl_dgram g;

		datagram(&l, &g);
		CHECK_EQ(mirror_put(m, &g, i), MIRROR_TAKEN);
		while (mirror_counts(m, counts) > MIRROR_DEPTH / 2)
			usleep(100);
	}
}

static void
a_file_stays_below_its_size(void)
{
	struct mirror *m = open_file(MIRROR_FILE_MIN, 1);
	uint64_t counts[MIRROR_OUTCOMES];
	struct packet p[100];

	put_many(m, 100);
	close_mirror(m, 100, counts);
	CHECK_EQ(counts[MIRROR_FAILED], 0);
	read_file(path);
	CHECK_EQ(packets(p, 100), counts[MIRROR_WRITTEN]);
	CHECK(file_len <= MIRROR_FILE_MIN && file_len + 1032 > MIRROR_FILE_MIN);
	/* The next one begins anew. */
	m = open_file(MIRROR_FILE_MIN, 1);
	close_mirror(m, 0, counts);
	read_file(path);
	CHECK_EQ(packets(p, 100), 0);
	unlink(path);
}

static void
files_rotate(void)
{
	struct mirror *m = open_file(MIRROR_FILE_MIN, 3);
	uint64_t counts[MIRROR_OUTCOMES];
	struct packet p[100];
	char name[80];
	uint32_t n = 0;

	put_many(m, 300);
	close_mirror(m, 300, counts);
	CHECK_EQ(counts[MIRROR_WRITTEN], 300);
	/* The oldest are gone, the newest is without a number, none is missing in between. */
	for (int i = 2; i >= 0; i--) {
		uint32_t k;

		snprintf(name, sizeof(name), i > 0 ? "%s.%d" : "%s", path, i);
		read_file(name);
		k = packets(p, 100);
		CHECK(k > 0 && file_len <= MIRROR_FILE_MIN);
		for (uint32_t j = 0; j < k; j++)
			CHECK_EQ(p[j].ns, 300 - (300 % 63 + 2 * 63) + n++);
		unlink(name);
	}
	snprintf(name, sizeof(name), "%s.3", path);
	CHECK(access(name, F_OK) != 0);
}

/* Packets in the file of that number, 0 for none. */
static uint32_t
packets_of(int i)
{
	struct packet p[100];
	char name[80];

	snprintf(name, sizeof(name), i > 0 ? "%s.%d" : "%s", path, i);
	if (access(name, F_OK) != 0)
		return 0;
	read_file(name);
	return packets(p, 100);
}

/* No file may grow meanwhile, as on a full disk. */
static void
put_to_full_disk(struct mirror *m, uint32_t n)
{
	uint64_t counts[MIRROR_OUTCOMES];
	struct rlimit before, none;

	REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	REQUIRE(setrlimit(RLIMIT_FSIZE, &none) == 0);
	put_many(m, n);
	while (mirror_counts(m, counts) > 0)
		usleep(100);
	REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
	signal(SIGXFSZ, SIG_DFL);
}

/* 63 to a file; the 64th begins the next one, if it can. */
static void
a_full_disk_costs_no_file(void)
{
	struct mirror *m = open_file(MIRROR_FILE_MIN, 3);
	uint64_t counts[MIRROR_OUTCOMES];
	char name[80];

	put_many(m, 4 * 63);
	while (mirror_counts(m, counts) > 0)
		usleep(100);
	put_to_full_disk(m, 100);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(packets_of(i), 63);
	put_many(m, 10);
	close_mirror(m, 4 * 63 + 110, counts);
	CHECK_EQ(counts[MIRROR_FAILED], 100);
	CHECK_EQ(counts[MIRROR_WRITTEN], 4 * 63 + 10);
	CHECK_EQ(packets_of(0), 10);
	CHECK_EQ(packets_of(1), 63);
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), i > 0 ? "%s.%d" : "%s", path, i);
		unlink(name);
	}
	snprintf(name, sizeof(name), "%s.next", path);
	CHECK(access(name, F_OK) != 0);
}

static bool
is_there(const char *suffix)
{
	char name[80];

	snprintf(name, sizeof(name), "%s%s", path, suffix);
	return access(name, F_OK) == 0;
}

static void
unlink_all(void)
{
	static const char *const suffix[] = {"", ".1", ".new"};
	char name[80];

	for (size_t i = 0; i < SL_COUNT_OF(suffix); i++) {
		snprintf(name, sizeof(name), "%s%s", path, suffix[i]);
		unlink(name);
	}
}

/* A reload that is refused opens a mirror, and drops it again. */
static void
one_that_is_not_begun_touches_no_file(void)
{
	for (uint32_t files = 1; files <= 2; files++) {
		struct mirror_conf conf = {.name = "test",
			.file = path,
			.file_size = MIRROR_FILE_MIN,
			.files = files,
			.pool = pool};
		struct mirror *first = open_file(MIRROR_FILE_MIN, files), *second = NULL;
		uint64_t counts[MIRROR_OUTCOMES];
		struct packet p[8];

		put_many(first, 3);
		REQUIRE(mirror_create(&conf, &second) == 0);
		CHECK(is_there(".new") && !is_there(".1"));
		put_many(first, 2);
		mirror_destroy(second, NULL); /* the first may still have packets */
		CHECK(!is_there(".new"));
		close_mirror(first, 5, counts);
		CHECK_EQ(counts[MIRROR_WRITTEN], 5);
		read_file(path);
		CHECK_EQ(packets(p, 8), 5);
		CHECK(!is_there(".1"));
		unlink_all();
	}
}

/* More than its file takes may come before the other one is closed. */
static void
one_that_is_begun_late_loses_nothing(void)
{
	struct mirror_conf conf = {.name = "test",
		.file = path,
		.file_size = MIRROR_FILE_MIN,
		.files = 3,
		.pool = pool};
	struct mirror *m;
	uint64_t counts[MIRROR_OUTCOMES];
	struct packet p[100];
	char name[80];

	snprintf(name, sizeof(name), "%s.new", path);
	fclose(fopen(name, "w")); /* of a daemon that was killed */
	REQUIRE(mirror_create(&conf, &m) == 0);
	put_many(m, 100);
	REQUIRE(mirror_begin(m) == 0);
	close_mirror(m, 100, counts);
	CHECK_EQ(counts[MIRROR_WRITTEN], 100);
	read_file(path);
	CHECK_EQ(packets(p, 100), 100 % 63);
	CHECK(is_there(".1") && !is_there(".2") && !is_there(".new"));
	unlink_all();
	/* One that ends before it is begun: what its file does not take is counted. */
	REQUIRE(mirror_create(&conf, &m) == 0);
	put_many(m, 100);
	close_mirror(m, 100, counts);
	CHECK(counts[MIRROR_WRITTEN] >= 63 &&
		counts[MIRROR_FAILED] == 100 - counts[MIRROR_WRITTEN]);
	CHECK(!is_there("") && !is_there(".new"));
}

static void
what_took_the_name_meanwhile_stays(void)
{
	struct mirror_conf conf = {.name = "test",
		.file = path,
		.file_size = MIRROR_FILE_MIN,
		.files = 1,
		.pool = pool};
	uint64_t counts[MIRROR_OUTCOMES];
	struct packet p[4];
	struct mirror *m;
	char name[80];
	struct stat st;

	REQUIRE(mirror_create(&conf, &m) == 0);
	REQUIRE(mkfifo(path, 0600) == 0);
	CHECK_EQ(mirror_begin(m), -EEXIST);
	put_many(m, 2);
	close_mirror(m, 2, counts);
	CHECK(lstat(path, &st) == 0 && S_ISFIFO(st.st_mode));
	snprintf(name, sizeof(name), "%s.new", path);
	read_file(name);
	CHECK_EQ(packets(p, 4), 2);
	unlink_all();
}

/* A second daemon with the same path. */
static void
what_another_process_writes_stays(void)
{
	struct mirror_conf conf = {.name = "test",
		.file = path,
		.file_size = MIRROR_FILE_MIN,
		.files = 2,
		.pool = pool};
	struct mirror *m = NULL;
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);

	REQUIRE(fd >= 0 && flock(fd, LOCK_EX) == 0);
	CHECK_EQ(mirror_create(&conf, &m), -EBUSY);
	CHECK(m == NULL && is_there("") && !is_there(".new"));
	close(fd);
	/* It has ended. */
	REQUIRE(mirror_create(&conf, &m) == 0);
	CHECK_EQ(mirror_begin(m), 0);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0);
	mirror_destroy(m, NULL);
	CHECK_EQ(flock(fd, LOCK_SH | LOCK_NB), 0);
	close(fd);
	unlink_all();
}

static void
what_is_no_place_is_refused(void)
{
	struct mirror_conf conf = {.name = "test", .file_size = MIRROR_FILE_MIN, .files = 1};
	struct mirror *m = NULL;
	char target[80];

	CHECK_EQ(mirror_create(&conf, &m), -EINVAL);
	conf.file = path;
	conf.interface = "lo";
	CHECK_EQ(mirror_create(&conf, &m), -EINVAL);
	conf.interface = NULL;
	conf.file = "/nonexistent/file";
	CHECK_EQ(mirror_create(&conf, &m), -ENOENT);
	conf.file = path;
	conf.file_size--;
	CHECK_EQ(mirror_create(&conf, &m), -EINVAL);
	conf.file_size++;
	REQUIRE(mkfifo(path, 0600) == 0);
	CHECK_EQ(mirror_create(&conf, &m), -EEXIST);
	unlink(path);
	snprintf(target, sizeof(target), "%s.target", path);
	REQUIRE(symlink(target, path) == 0);
	CHECK_EQ(mirror_create(&conf, &m), -EEXIST);
	CHECK(access(target, F_OK) != 0);
	unlink(path);
	conf.file = NULL;
	conf.interface = "no-such-iface";
	CHECK_EQ(mirror_create(&conf, &m), -ENODEV);
	CHECK(m == NULL);
	mirror_destroy(NULL, NULL);
}

int
main(int argc, char **argv)
{
	(void)argc;
	REQUIRE(test_eal_start(argv[0], "-l 0 --log-level=error") >= 0);
	pool = rte_pktmbuf_pool_create("test", MBUFS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	REQUIRE(pool != NULL && mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/m.pcapng", folder);
	SL_TEST_RUN(headers_in_front_are_found);
	SL_TEST_RUN(headers_that_do_not_fit_are_made_anew);
	SL_TEST_RUN(made_ipv6_has_a_checksum);
	SL_TEST_RUN(a_file_has_what_was_put);
	SL_TEST_RUN(a_file_stays_below_its_size);
	SL_TEST_RUN(files_rotate);
	SL_TEST_RUN(a_full_disk_costs_no_file);
	SL_TEST_RUN(one_that_is_not_begun_touches_no_file);
	SL_TEST_RUN(one_that_is_begun_late_loses_nothing);
	SL_TEST_RUN(what_took_the_name_meanwhile_stays);
	SL_TEST_RUN(what_another_process_writes_stays);
	SL_TEST_RUN(what_is_no_place_is_refused);
	rmdir(folder);
	return test_end();
}
