/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Two sockets of every kind, bound to the same port in both orders, on the kernel and here: the
 * results of bind must be the same, and where both succeed, datagrams to each of our addresses must
 * reach the same one of the two. The second half does the same with connected sockets.
 */
#include <poll.h>

#include "udp_test.h"

#define PORT 6000
#define NONE (-1)

struct kind {
	int family;
	const char *addr;
	bool v6only, reuse_port;
};

/* A socket of ours and one of the kernel's of the same kind. */
struct pair {
	const struct kind *kind;
	struct sl_udp_sock *ours;
	int kernel;
	int bound; /* result */
};

static const char *const addrs4[] = {"0.0.0.0", TU_US, TU_US2, "203.0.113.7", "224.0.0.9",
	"255.255.255.255"};
static const char *const addrs6[] = {"::", TU_US6, "::ffff:0.0.0.0", ("::ffff:" TU_US),
	"2001:db8:9::9", "::ffff:203.0.113.7"};

static struct kind kinds[64];
static unsigned int kind_count;
static const char *no_kernel;
static int sender4, sender6, other4;

static void
make_kinds(void)
{
	for (unsigned int i = 0; i < SL_COUNT_OF(addrs4); i++) {
		for (int reuse = 0; reuse < 2; reuse++)
			kinds[kind_count++] = (struct kind){AF_INET, addrs4[i], false, reuse};
	}
	for (unsigned int i = 0; i < SL_COUNT_OF(addrs6); i++) {
		for (int bits = 0; bits < 4; bits++)
			kinds[kind_count++] =
				(struct kind){AF_INET6, addrs6[i], bits & 1, bits >> 1};
	}
}

static const char *
describe(const struct kind *k, char *text, size_t size)
{
	snprintf(text, size, "%s%s%s", k->addr, k->v6only ? " v6only" : "",
		k->reuse_port ? " reuse_port" : "");
	return text;
}

static int
kernel_socket(const struct kind *k)
{
	int fd = socket(k->family, SOCK_DGRAM | SOCK_NONBLOCK, 0), one = 1;

	REQUIRE(fd >= 0);
	if (k->v6only)
		REQUIRE(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) == 0);
	if (k->reuse_port)
		REQUIRE(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) == 0);
	return fd;
}

static struct sl_udp_sock *
our_socket(const struct kind *k)
{
	struct sl_udp_sock_conf conf = {.family = k->family, .v6only = k->v6only,
		.reuse_port = k->reuse_port, .slots = 16};
	struct sl_udp_sock *s;

	REQUIRE(sl_udp_socket(tu_udp, &conf, &s) == 0);
	return s;
}

static int
kernel_result(int ret)
{
	return ret < 0 ? -errno : ret;
}

static void
pair_open(struct pair *p, const struct kind *k)
{
	*p = (struct pair){.kind = k, .ours = our_socket(k), .kernel = kernel_socket(k)};
}

static void
pair_close(struct pair *p)
{
	sl_udp_close(p->ours, 0);
	close(p->kernel);
}

static void
pair_bind(struct pair *p, uint16_t port, const char *what)
{
	struct sockaddr_storage ss;
	socklen_t len = tu_sockaddr(p->kind->addr, port, p->kind->family, &ss);
	int kernel = kernel_result(bind(p->kernel, (struct sockaddr *)&ss, len));
	char text[80];

	p->bound = sl_udp_bind(p->ours, (struct sockaddr *)&ss, len);
	if (p->bound != kernel)
		fprintf(stderr, "%s %s: kernel %d, ours %d\n", what,
			describe(p->kind, text, sizeof(text)), kernel, p->bound);
	CHECK_EQ(p->bound, kernel);
}

static bool
ours_has(struct sl_udp_sock *s)
{
	uint8_t b[8];

	return sl_udp_recvfrom(s, b, sizeof(b), MSG_DONTWAIT, NULL, NULL) >= 0;
}

static bool
kernel_has(int fd)
{
	uint8_t b[8];

	return recv(fd, b, sizeof(b), MSG_DONTWAIT) >= 0;
}

/* The same address, or both forms of "any" that an AF_INET6 socket has. */
static bool
equally_good(const struct kind *a, const struct kind *b)
{
	bool any6_a = strcmp(a->addr, "::") == 0 || strcmp(a->addr, "::ffff:0.0.0.0") == 0;
	bool any6_b = strcmp(b->addr, "::") == 0 || strcmp(b->addr, "::ffff:0.0.0.0") == 0;

	return strcmp(a->addr, b->addr) == 0 || (any6_a && any6_b);
}

/* Which of the two gets a datagram to dst? */
static void
compare_receiver(struct pair *a, struct pair *b, const char *dst, const char *src, int from)
{
	bool share = a->kind->reuse_port && b->kind->reuse_port, v6 = strchr(dst, ':') != NULL;
	struct sockaddr_storage ss;
	socklen_t len = tu_sockaddr(dst, PORT, v6 ? AF_INET6 : AF_INET, &ss);
	int kernel = NONE, ours = NONE;
	struct rte_mbuf *m = tu_frame(src, dst, 7777, PORT, "x", 1);
	char ta[80], tb[80];

	REQUIRE(sendto(from, "x", 1, 0, (struct sockaddr *)&ss, len) == 1);
	tu_input(&m, 1);
	kernel = kernel_has(a->kernel) ? 0 : kernel_has(b->kernel) ? 1 : NONE;
	ours = ours_has(a->ours) ? 0 : ours_has(b->ours) ? 1 : NONE;
	/* Equally good ones: the hash decides, and ours is another. */
	if (share && kernel != NONE && ours != NONE && equally_good(a->kind, b->kind))
		return;
	if (kernel != ours)
		fprintf(stderr, "%s to (0) %s, (1) %s: kernel gives it to %d, we to %d\n", dst,
			describe(a->kind, ta, sizeof(ta)), describe(b->kind, tb, sizeof(tb)), kernel,
			ours);
	CHECK_EQ(kernel, ours);
	tu_drain();
}

static void
test_every_pair(void)
{
	struct pair a, b;

	if (no_kernel != NULL)
		SKIP(no_kernel);
	for (unsigned int i = 0; i < kind_count * kind_count; i++) {
		pair_open(&a, &kinds[i / kind_count]);
		pair_open(&b, &kinds[i % kind_count]);
		pair_bind(&a, PORT, "first");
		pair_bind(&b, PORT, "second");
		if (a.bound == 0 || b.bound == 0) {
			compare_receiver(&a, &b, TU_US, TU_PEER, sender4);
			compare_receiver(&a, &b, TU_US2, TU_PEER, sender4);
			compare_receiver(&a, &b, TU_US6, TU_PEER6, sender6);
		}
		pair_close(&b);
		pair_close(&a);
	}
}

static void
pair_connect(struct pair *p, const char *to, uint16_t port)
{
	struct sockaddr_storage ss;
	socklen_t len = tu_sockaddr(to, port, strchr(to, ':') ? AF_INET6 : AF_INET, &ss);
	int kernel = kernel_result(connect(p->kernel, (struct sockaddr *)&ss, len));
	int ours = sl_udp_connect(p->ours, (struct sockaddr *)&ss, len);
	char text[80];

	if (ours != kernel)
		fprintf(stderr, "connect %s to %s: kernel %d, ours %d\n",
			describe(p->kind, text, sizeof(text)), to, kernel, ours);
	CHECK_EQ(ours, kernel);
}

/* The first is connected to the peer's port 7777; the second is not. Datagrams from there and from
 * elsewhere. The kernel may choose another source on loopback, so both are bound to ours. */
static void
test_connected(void)
{
	const struct kind connected[] = {{AF_INET, TU_US, false, true},
		{AF_INET6, "::ffff:" TU_US, false, true}};
	const struct kind others[] = {{AF_INET, TU_US, false, true}, {AF_INET, "0.0.0.0", false, true},
		{AF_INET6, "::", false, true}, {AF_INET6, TU_US6, false, true}};
	struct sockaddr_storage none = {.ss_family = AF_UNSPEC};
	struct pair a, b;

	if (no_kernel != NULL)
		SKIP(no_kernel);
	for (unsigned int i = 0; i < SL_COUNT_OF(connected) * SL_COUNT_OF(others) * 2; i++) {
		bool swap = i & 1;

		pair_open(&a, &connected[i / 2 % 2]);
		pair_open(&b, &others[i / 4]);
		pair_bind(swap ? &b : &a, PORT, "first");
		pair_bind(swap ? &a : &b, PORT, "second");
		pair_connect(&a, i / 2 % 2 ? "::ffff:" TU_PEER : TU_PEER, 7777);
		compare_receiver(&a, &b, TU_US, TU_PEER, sender4);
		compare_receiver(&a, &b, TU_US, TU_PEER2, other4);
		compare_receiver(&a, &b, TU_US6, TU_PEER6, sender6);
		CHECK_EQ(connect(a.kernel, (struct sockaddr *)&none, sizeof(none)), 0);
		CHECK_EQ(sl_udp_connect(a.ours, (struct sockaddr *)&none, sizeof(none)), 0);
		if (others[i / 4].addr == addrs4[0] || others[i / 4].addr == addrs6[0])
			compare_receiver(&a, &b, TU_US, TU_PEER2, other4);
		pair_close(&b);
		pair_close(&a);
	}
}

/* Bad arguments of bind and connect. */
static void
test_bad_addresses(void)
{
	static const struct {
		int family;       /* of the socket */
		bool v6only;
		int sa_family;    /* of the address */
		const char *addr, *peer; /* to bind and to connect to */
		socklen_t len;           /* 0: right */
	} cases[] = {
		{AF_INET, false, AF_INET, TU_US, TU_PEER, 1},
		{AF_INET, false, AF_INET, TU_US, TU_PEER, 8},
		{AF_INET, false, AF_INET, TU_US, TU_PEER, 15},
		{AF_INET, false, AF_INET6, TU_US6, TU_PEER6, 0},
		{AF_INET, false, AF_INET6, "::", "::1", 0},
		{AF_INET, false, AF_INET, "255.255.255.255", TU_PEER, 0},
		{AF_INET6, false, AF_INET6, TU_US6, TU_PEER6, 16},
		{AF_INET6, false, AF_INET6, TU_US6, TU_PEER6, 23},
		{AF_INET6, false, AF_INET6, TU_US6, TU_PEER6, 24},
		{AF_INET6, false, AF_INET, TU_US, TU_PEER, 0},
		{AF_INET6, true, AF_INET, TU_US, TU_PEER, 0},
		{AF_INET6, true, AF_INET6, "::ffff:" TU_US, "::ffff:" TU_PEER, 0},
	};

	if (no_kernel != NULL)
		SKIP(no_kernel);
	for (unsigned int i = 0; i < SL_COUNT_OF(cases) * 2; i++) {
		const struct kind kind = {cases[i / 2].family, cases[i / 2].addr,
			cases[i / 2].v6only, false};
		struct sockaddr_storage ss;
		socklen_t len = tu_sockaddr(i & 1 ? cases[i / 2].peer : cases[i / 2].addr, 0,
			cases[i / 2].sa_family, &ss);
		struct sockaddr *sa = (struct sockaddr *)&ss;
		struct pair p;
		int kernel, ours;

		pair_open(&p, &kind);
		len = cases[i / 2].len != 0 ? cases[i / 2].len : len;
		((struct sockaddr_in *)&ss)->sin_port = htons(i & 1 ? 7777 : 0);
		kernel = kernel_result(i & 1 ? connect(p.kernel, sa, len) : bind(p.kernel, sa, len));
		ours = i & 1 ? sl_udp_connect(p.ours, sa, len) : sl_udp_bind(p.ours, sa, len);
		if (kernel != ours)
			fprintf(stderr, "case %u: kernel %d, ours %d\n", i, kernel, ours);
		CHECK_EQ(ours, kernel);
		pair_close(&p);
	}
}

/* The broadcast address of a prefix, which a kernel's loopback does not have. */
static void
test_broadcast(void)
{
	struct sl_udp_sock_conf conf = {.family = AF_INET, .slots = 16};
	struct sl_udp_sock *s;

	REQUIRE(sl_udp_socket(tu_udp, &conf, &s) == 0);
	CHECK_EQ(tu_bind(s, "198.18.1.255", 5000), -EADDRNOTAVAIL);
	CHECK_EQ(tu_bind(s, "198.18.0.255", 5000), 0);
	CHECK_EQ(tu_connect(s, "198.18.0.255", 7777), -EACCES);
	sl_udp_close(s, 0);
}

/* A second bind, an ephemeral port, the name of each state. */
static void
test_names(void)
{
	struct sl_udp_sock *s = our_socket(&(struct kind){AF_INET, "0.0.0.0", false, false});
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);

	CHECK_EQ(sl_udp_getsockname(s, (struct sockaddr *)&sin, &len), 0);
	CHECK(sin.sin_port == 0 && sin.sin_addr.s_addr == 0 && len == sizeof(sin));
	CHECK_EQ(tu_bind(s, "0.0.0.0", 0), 0);
	CHECK_EQ(sl_udp_getsockname(s, (struct sockaddr *)&sin, &len), 0);
	CHECK(ntohs(sin.sin_port) >= 32768 && ntohs(sin.sin_port) <= 60999);
	CHECK_EQ(tu_bind(s, "0.0.0.0", 1234), -EINVAL);
	CHECK_EQ(tu_connect(s, TU_PEER, 7777), 0);
	CHECK_EQ(sl_udp_getsockname(s, (struct sockaddr *)&sin, &len), 0);
	CHECK(sin.sin_addr.s_addr == inet_addr(TU_US) || sin.sin_addr.s_addr == inet_addr(TU_US2));
	CHECK_EQ(sl_udp_connect(s, (struct sockaddr *)&(struct sockaddr){.sa_family = AF_UNSPEC},
			 sizeof(struct sockaddr)), 0);
	len = 4;
	memset(&sin, 0xee, sizeof(sin));
	CHECK_EQ(sl_udp_getsockname(s, (struct sockaddr *)&sin, &len), 0);
	CHECK(len == sizeof(sin) && sin.sin_addr.s_addr == 0xeeeeeeee && sin.sin_port != 0);
	len = (socklen_t)-1;
	CHECK_EQ(sl_udp_getsockname(s, (struct sockaddr *)&sin, &len), -EINVAL);
	sl_udp_close(s, 0);
}

/* Every ephemeral port can be had once; the next one is refused. The table of sockets is smaller, so
 * each is bound to the whole range by hand. */
static void
test_socket_limit(void)
{
	const struct kind kind = {AF_INET, "0.0.0.0", false, false};
	struct sl_udp_sock_conf conf = {.family = AF_INET, .slots = 2};
	struct sl_udp_sock *s[64], *more;

	for (unsigned int i = 0; i < SL_COUNT_OF(s); i++) {
		s[i] = our_socket(&kind);
		CHECK_EQ(tu_bind(s[i], "0.0.0.0", 0), 0);
	}
	CHECK_EQ(sl_udp_socket(tu_udp, &conf, &more), -ENFILE);
	for (unsigned int i = 0; i < SL_COUNT_OF(s); i++)
		sl_udp_close(s[i], 0);
	CHECK_EQ(sl_udp_socket(tu_udp, &conf, &more), 0);
	sl_udp_close(more, 0);
}

static void
test_socket_arguments(void)
{
	static const struct {
		struct sl_udp_sock_conf conf;
		int error;
	} cases[] = {
		{{.family = AF_UNIX}, -EAFNOSUPPORT},
		{{.family = AF_INET, .worker = 7}, -EINVAL},
		{{.family = AF_INET, .slots = 1}, -EINVAL},
		{{.family = AF_INET, .slots = (1 << 20) + 1}, -EINVAL},
		{{.family = AF_INET, .rcvtimeo_ns = -1}, -EINVAL},
	};
	struct sl_udp_sock *s;
	struct sl_udp_conf uc = {.sockets = 65537, .pool = tu_pool};
	struct sl_udp *udp;

	for (unsigned int i = 0; i < SL_COUNT_OF(cases); i++)
		CHECK_EQ(sl_udp_socket(tu_udp, &cases[i].conf, &s), cases[i].error);
	CHECK_EQ(sl_udp_create(tu_inet, &uc, &udp), -EINVAL);
	uc.sockets = 8;
	CHECK_EQ(sl_udp_create(tu_inet, &uc, &udp), -EBUSY);
}

/* The same 4-tuple twice; connecting anew, many times over, which uses up what a grace period would
 * give back; and closing gives it back. */
static void
test_reconnect(void)
{
	const struct kind kind = {AF_INET, TU_US, false, true};
	struct sl_udp_sock *a = our_socket(&kind), *b = our_socket(&kind);
	int done = 0, ret = 0;

	CHECK_EQ(tu_bind(a, TU_US, PORT), 0);
	CHECK_EQ(tu_bind(b, TU_US, PORT), 0);
	CHECK_EQ(tu_connect(a, TU_PEER, 7777), 0);
	CHECK_EQ(tu_connect(a, TU_PEER, 7777), 0);
	CHECK_EQ(tu_connect(b, TU_PEER, 7777), -EADDRINUSE);
	CHECK_EQ(tu_connect(b, TU_PEER, 7778), 0);
	for (int round = 0; round < 3; round++) {
		for (done = 0; done < 5000 && ret == 0; done++)
			ret = tu_connect(b, TU_PEER, (uint16_t)(8000 + done));
		CHECK(ret == 0 || ret == -ENOSPC);
		CHECK(done > 1000);
		ret = 0;
		sl_udp_close(b, 0);
		b = our_socket(&kind);
		CHECK_EQ(tu_bind(b, TU_US, PORT), 0);
	}
	tu_datagram(TU_US, PORT, "x", 1);
	CHECK(ours_has(a));
	sl_udp_close(a, 0);
	sl_udp_close(b, 0);
}

static int
kernel_sender(const char *addr)
{
	int family = strchr(addr, ':') ? AF_INET6 : AF_INET;
	struct sockaddr_storage ss;
	socklen_t len = tu_sockaddr(addr, 7777, family, &ss);
	int fd = socket(family, SOCK_DGRAM, 0);

	REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&ss, len) == 0);
	return fd;
}

int
main(int argc, char **argv)
{
	(void)argc;
	tu_eal(argv[0]);
	tu_port();
	no_kernel = tu_kernel_net();
	tu_stack(2, tu_pool);
	make_kinds();
	if (no_kernel == NULL) {
		sender4 = kernel_sender(TU_PEER);
		other4 = kernel_sender(TU_PEER2);
		sender6 = kernel_sender(TU_PEER6);
	}
	SL_TEST_RUN(test_every_pair);
	SL_TEST_RUN(test_connected);
	SL_TEST_RUN(test_bad_addresses);
	SL_TEST_RUN(test_broadcast);
	SL_TEST_RUN(test_names);
	SL_TEST_RUN(test_socket_limit);
	SL_TEST_RUN(test_socket_arguments);
	SL_TEST_RUN(test_reconnect);
	SL_TEST_RUN(tu_stack_end);
	return test_end();
}
