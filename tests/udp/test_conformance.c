/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * The same receive call, with the same datagrams queued and the same good and bad memory, on a kernel
 * UDP socket and on ours; everything that a program can see afterwards must be the same: result,
 * errno, each message's length, flags, name, control messages and bytes, the error and the datagrams
 * that the next calls find, and that messages beyond the result were not touched.
 */
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "conformance_cases.h"
#include "udp_test.h"

/* What a program can see after a call. */
struct seen {
	long ret;
	long next;    /* result of the next call, which may be a deferred error */
	int left;     /* datagrams after that, and their lengths */
	int length[8];
	bool timeout_written; /* and sane */
	struct {
		struct mmsghdr hdr;
		struct iovec iov[IOVS];
		uint8_t buf[IOVS][BUF];
		uint8_t name[NAME];
		uint8_t ctl[CTL];
	} e[ENTRIES];
	struct timespec ts;
};

/* One of the two sockets compared. */
struct side {
	struct sl_udp_sock *sock; /* NULL: the kernel's */
	int fd;
	int sender;
};

struct setup {
	const char *what;
	int family;       /* of the socket */
	bool v6;          /* datagrams */
	bool options;     /* all control messages */
	bool guarded;
};

static uint8_t *page; /* a good page, a page without access behind it */
static size_t page_size;
static const char *no_kernel;

static void *
place(enum ptr where, void *good)
{
	switch (where) {
	case GOOD:
		return good;
	case NIL:
		return NULL;
	case BAD:
		return page + page_size + 64;
	case KERNEL:
		return (void *)(uintptr_t)0xffffffffffff0000;
	case STRADDLE:
		return page + page_size - 8;
	}
	return NULL;
}

static void
prepare(const struct testcase *c, struct seen *r)
{
	memset(r, 0, sizeof(*r));
	memset(page, UNTOUCHED, page_size);
	for (int i = 0; i < ENTRIES; i++) {
		const struct entry *e = &c->e[i];
		struct msghdr *m = &r->e[i].hdr.msg_hdr;

		memset(&r->e[i], UNTOUCHED, sizeof(r->e[i]));
		memset(m, 0, sizeof(*m));
		for (int k = 0; k < e->iovs; k++) {
			r->e[i].iov[k].iov_base = place(e->base[k], r->e[i].buf[k]);
			r->e[i].iov[k].iov_len = (size_t)e->len[k];
		}
		m->msg_iov = place(e->iov, r->e[i].iov);
		m->msg_iovlen = e->huge_iovlen ? 1025 : (size_t)e->iovs;
		m->msg_name = place(e->name, r->e[i].name);
		m->msg_namelen = (socklen_t)e->namelen;
		m->msg_control = place(e->ctl, r->e[i].ctl);
		m->msg_controllen = (size_t)e->ctllen;
		m->msg_flags = 0x5a5a;
		r->e[i].hdr.msg_len = 0xdead;
	}
	r->ts = (struct timespec){.tv_sec = c->sec, .tv_nsec = c->nsec};
}

/* The system call, with its error as -errno. */
static long
kernel(long ret)
{
	return ret < 0 ? -errno : ret;
}

static long
call(const struct side *s, const struct testcase *c, struct seen *r)
{
	struct timespec *ts = c->timeout ? place(c->timeout_at, &r->ts) : NULL;
	struct msghdr *m = &r->e[0].hdr.msg_hdr;
	struct mmsghdr packed[ENTRIES], *msgs = place(c->msgs, packed);
	long ret = 0;

	switch (c->call) {
	case MMSG:
		for (int i = 0; i < ENTRIES; i++)
			packed[i] = r->e[i].hdr;
		ret = s->sock ? sl_udp_recvmmsg(s->sock, msgs, c->vlen, c->flags, ts) :
				kernel(syscall(SYS_recvmmsg, s->fd, msgs, c->vlen, c->flags, ts));
		for (int i = 0; i < ENTRIES; i++)
			r->e[i].hdr = packed[i];
		break;
	case MSG:
		m = place(c->msgs, m);
		ret = s->sock ? sl_udp_recvmsg(s->sock, m, c->flags) :
				kernel(syscall(SYS_recvmsg, s->fd, m, c->flags));
		break;
	case FROM:
		ret = s->sock ? sl_udp_recvfrom(s->sock, r->e[0].iov[0].iov_base,
					r->e[0].iov[0].iov_len, c->flags, m->msg_name,
					&m->msg_namelen) :
				kernel(syscall(SYS_recvfrom, s->fd, r->e[0].iov[0].iov_base,
					r->e[0].iov[0].iov_len, c->flags, m->msg_name,
					&m->msg_namelen));
		break;
	case READ:
		ret = s->sock ? sl_udp_read(s->sock, r->e[0].iov[0].iov_base,
					r->e[0].iov[0].iov_len) :
				kernel(syscall(SYS_read, s->fd, r->e[0].iov[0].iov_base,
					r->e[0].iov[0].iov_len));
		break;
	}
	return ret;
}

static long
simple(const struct side *s, void *buf, size_t len)
{
	if (s->sock)
		return sl_udp_recvfrom(s->sock, buf, len, MSG_DONTWAIT, NULL, NULL);
	return kernel(recv(s->fd, buf, len, MSG_DONTWAIT));
}

static void
feed(const struct side *s, const struct setup *setup, const struct testcase *c)
{
	uint8_t payload[128];

	for (unsigned int i = 0; i < SL_COUNT_OF(c->dgram) && c->dgram[i] != 0; i++) {
		uint16_t len = (uint16_t)(c->dgram[i] - 1);
		struct sockaddr_storage to;
		socklen_t tolen;

		for (unsigned int k = 0; k < len; k++)
			payload[k] = (uint8_t)(k * 3 + i + 1);
		if (s->sock) {
			tu_datagram(setup->v6 ? TU_US6 : TU_US, 5000, payload, len);
			continue;
		}
		tolen = tu_sockaddr(setup->v6 ? TU_US6 : TU_US, 5000, setup->v6 ? AF_INET6 : AF_INET,
			&to);
		REQUIRE(sendto(s->sender, payload, len, 0, (struct sockaddr *)&to, tolen) == len);
	}
}

/* Pointers and interface numbers differ by nature. */
static void
normalise(const struct testcase *c, struct seen *r)
{
	for (int i = 0; i < ENTRIES; i++) {
		struct msghdr *m = &r->e[i].hdr.msg_hdr;
		struct cmsghdr *h;

		if (c->call == MMSG && i < r->ret && m->msg_control == r->e[i].ctl) {
			for (h = CMSG_FIRSTHDR(m); h != NULL; h = CMSG_NXTHDR(m, h)) {
				if (h->cmsg_level == IPPROTO_IP && h->cmsg_type == IP_PKTINFO)
					memset(CMSG_DATA(h), 0, RTE_MIN(4u, h->cmsg_len - CMSG_LEN(0)));
				if (h->cmsg_level == IPPROTO_IPV6 && h->cmsg_type == IPV6_PKTINFO &&
					h->cmsg_len == CMSG_LEN(sizeof(struct in6_pktinfo)))
					memset(CMSG_DATA(h) + 16, 0, 4);
			}
		}
		if (c->call == MSG && r->ret >= 0 && i == 0 && m->msg_control == r->e[i].ctl) {
			h = CMSG_FIRSTHDR(m);
			if (h != NULL && (h->cmsg_type == IP_PKTINFO || h->cmsg_type == IPV6_PKTINFO))
				memset(CMSG_DATA(h) + (h->cmsg_level == IPPROTO_IP ? 0 : 16), 0, 4);
		}
		m->msg_control = m->msg_name = NULL;
		m->msg_iov = NULL;
		memset(r->e[i].iov, 0, sizeof(r->e[i].iov));
	}
}

static void
run(const struct side *s, const struct setup *setup, const struct testcase *c, struct seen *r)
{
	uint8_t buf[2048];
	long len;

	prepare(c, r);
	feed(s, setup, c);
	r->ret = call(s, c, r);
	if (c->timeout && c->timeout_at == GOOD && r->ret > 0)
		r->timeout_written = r->ts.tv_nsec >= 0 && r->ts.tv_nsec < 1000000000 &&
			(r->ts.tv_sec < c->sec || (r->ts.tv_sec == c->sec && r->ts.tv_nsec <= c->nsec));
	r->next = simple(s, buf, sizeof(buf));
	while ((len = simple(s, buf, sizeof(buf))) != -EAGAIN && r->left < 8)
		r->length[r->left++] = (int)len;
	normalise(c, r);
	memset(&r->ts, 0, sizeof(r->ts));
}

/* Entry by entry: those received must be equal in all; those beyond the next one untouched. The one
 * at the result may be half written when it failed. */
static int
compare_entries(const struct testcase *c, const struct seen *k, const struct seen *o)
{
	long filled = c->call == MMSG ? k->ret : k->ret >= 0;
	int bad = 0;

	for (int i = 0; i < ENTRIES; i++) {
		const struct msghdr *km = &k->e[i].hdr.msg_hdr, *om = &o->e[i].hdr.msg_hdr;

		if (i == (filled < 0 ? 0 : filled))
			continue;
		bad += km->msg_flags != om->msg_flags;
		bad += km->msg_namelen != om->msg_namelen;
		bad += km->msg_controllen != om->msg_controllen;
		bad += k->e[i].hdr.msg_len != o->e[i].hdr.msg_len;
		bad += memcmp(k->e[i].buf, o->e[i].buf, sizeof(k->e[i].buf)) != 0;
		bad += memcmp(k->e[i].name, o->e[i].name, sizeof(k->e[i].name)) != 0;
		bad += memcmp(k->e[i].ctl, o->e[i].ctl, sizeof(k->e[i].ctl)) != 0;
		if (bad != 0) {
			fprintf(stderr,
				"  entry %d: kernel len %u flags %#x name %u ctl %zu, ours %u %#x %u %zu; "
				"differ in buf %d name %d ctl %d\n",
				i, k->e[i].hdr.msg_len, km->msg_flags, km->msg_namelen,
				km->msg_controllen, o->e[i].hdr.msg_len, om->msg_flags,
				om->msg_namelen, om->msg_controllen,
				memcmp(k->e[i].buf, o->e[i].buf, sizeof(k->e[i].buf)) != 0,
				memcmp(k->e[i].name, o->e[i].name, sizeof(k->e[i].name)) != 0,
				memcmp(k->e[i].ctl, o->e[i].ctl, sizeof(k->e[i].ctl)) != 0);
			return bad;
		}
	}
	return 0;
}

static void
compare(const struct testcase *c, const struct setup *setup, const struct seen *k,
	const struct seen *o)
{
	int bad = compare_entries(c, k, o);

	bad += k->ret != o->ret || k->next != o->next || k->left != o->left;
	bad += memcmp(k->length, o->length, sizeof(k->length)) != 0;
	bad += k->timeout_written != o->timeout_written;
	if (bad != 0)
		fprintf(stderr, "%s / %s: kernel %ld, next %ld, %d left; ours %ld, next %ld, %d left\n",
			c->what, setup->what, k->ret, k->next, k->left, o->ret, o->next, o->left);
	CHECK_EQ(bad, 0);
}

static void
kernel_open(const struct setup *setup, struct side *s)
{
	int one = 1, tos = 0x10, family = setup->v6 ? AF_INET6 : AF_INET;
	struct sockaddr_storage ss;
	socklen_t len;

	*s = (struct side){.fd = socket(setup->family, SOCK_DGRAM, 0),
		.sender = socket(family, SOCK_DGRAM, 0)};
	REQUIRE(s->fd >= 0 && s->sender >= 0);
	len = tu_sockaddr(setup->family == AF_INET ? "0.0.0.0" : "::", 5000, setup->family, &ss);
	REQUIRE(bind(s->fd, (struct sockaddr *)&ss, len) == 0);
	len = tu_sockaddr(setup->v6 ? TU_PEER6 : TU_PEER, 7777, family, &ss);
	REQUIRE(bind(s->sender, (struct sockaddr *)&ss, len) == 0);
	setsockopt(s->sender, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
	setsockopt(s->sender, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
	if (!setup->options)
		return;
	if (setup->family == AF_INET)
		REQUIRE(setsockopt(s->fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof(one)) == 0);
	REQUIRE(setsockopt(s->fd, IPPROTO_IP, IP_RECVTTL, &one, sizeof(one)) == 0);
	REQUIRE(setsockopt(s->fd, IPPROTO_IP, IP_RECVTOS, &one, sizeof(one)) == 0);
	if (setup->family == AF_INET)
		return;
	REQUIRE(setsockopt(s->fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, sizeof(one)) == 0);
	REQUIRE(setsockopt(s->fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &one, sizeof(one)) == 0);
	REQUIRE(setsockopt(s->fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &one, sizeof(one)) == 0);
}

static void
ours_open(const struct setup *setup, bool timeo, struct side *s)
{
	struct sl_udp_sock_conf conf = {.guarded = setup->guarded,
		.recv_ttl = setup->options,
		.recv_pktinfo = setup->options,
		.recv_tos = setup->options,
		.rcvtimeo_ns = timeo ? 5000000 : 0};

	*s = (struct side){
		.sock = tu_bound(&conf, setup->family == AF_INET ? "0.0.0.0" : "::", 5000)};
}

static void
run_case(const struct setup *setup, const struct testcase *c)
{
	static struct seen k, o;
	struct side kernel_side, our_side;
	struct timeval tv = {.tv_usec = 5000};

	kernel_open(setup, &kernel_side);
	if (c->rcvtimeo)
		REQUIRE(setsockopt(kernel_side.fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) == 0);
	ours_open(setup, c->rcvtimeo, &our_side);
	run(&kernel_side, setup, c, &k);
	run(&our_side, setup, c, &o);
	compare(c, setup, &k, &o);
	close(kernel_side.fd);
	close(kernel_side.sender);
	sl_udp_close(our_side.sock, 0);
}

static void
run_all(bool options, bool guarded, const struct testcase *list, size_t n)
{
	const struct setup setups[] = {
		{"AF_INET", AF_INET, false, options, guarded},
		{"AF_INET6", AF_INET6, true, options, guarded},
		{"AF_INET6 with IPv4", AF_INET6, false, options, guarded},
	};

	for (size_t s = 0; s < SL_COUNT_OF(setups); s++) {
		for (size_t i = 0; i < n; i++)
			run_case(&setups[s], &list[i]);
	}
}

static void
test_good_memory(void)
{
	if (no_kernel != NULL)
		SKIP(no_kernel);
	run_all(false, false, cases, SL_COUNT_OF(cases));
}

static void
test_good_memory_with_options(void)
{
	if (no_kernel != NULL)
		SKIP(no_kernel);
	run_all(true, false, cases, SL_COUNT_OF(cases));
}

static void
test_good_memory_guarded(void)
{
	if (no_kernel != NULL)
		SKIP(no_kernel);
	run_all(false, true, cases, SL_COUNT_OF(cases));
	run_all(true, true, cases, SL_COUNT_OF(cases));
}

static void
test_bad_memory(void)
{
	if (no_kernel != NULL)
		SKIP(no_kernel);
	run_all(false, true, bad_cases, SL_COUNT_OF(bad_cases));
	run_all(true, true, bad_cases, SL_COUNT_OF(bad_cases));
}

int
main(int argc, char **argv)
{
	(void)argc;
	page_size = (size_t)sysconf(_SC_PAGESIZE);
	page = mmap(NULL, 2 * page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(page != MAP_FAILED && mprotect(page + page_size, page_size, PROT_NONE) == 0);
	tu_eal(argv[0]);
	tu_port();
	no_kernel = tu_kernel_net();
	for (uint16_t workers = 1; workers <= 2; workers++) { /* SL_UDPQ_LOCAL, SL_UDPQ_SPLIT */
		tu_stack(workers, tu_pool);
		SL_TEST_RUN(test_good_memory);
		SL_TEST_RUN(test_good_memory_with_options);
		SL_TEST_RUN(test_good_memory_guarded);
		SL_TEST_RUN(test_bad_memory);
		SL_TEST_RUN(tu_stack_end);
	}
	return test_end();
}
