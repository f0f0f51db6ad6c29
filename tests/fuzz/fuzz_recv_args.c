/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Receive calls with arbitrary arguments on a guarded socket: flags, vlen, buffers, names, control
 * areas and timeouts that may be short, absent or no memory at all. The input is a script: each step
 * queues some datagrams or makes a call. Whatever the arguments, no call may write outside of what it
 * was given, and every datagram is delivered, lost to a fault, or still queued.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_mbuf.h>

#include "sl_test_eal.h"
#include "udp_priv.h"

#define MBUFS 255u
#define AREA 4096u
#define ENTRIES 6u
#define IOVS 4u
#define FENCE 0xe7

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t left;
};

static struct rte_mempool *pool;
static struct sl_inet *inet;
static struct sl_udp *udp;
static uint8_t *good; /* AREA good bytes, then AREA without access */

/* A broken promise is a crash that the fuzzer sees. */
#define MUST(x)                                                                                    \
	do {                                                                                       \
		if (!(x))                                                                          \
			abort();                                                                   \
	} while (0)

static uint8_t
byte(struct input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->at++;
}

static void
setup(void)
{
	struct sl_inet_conf ic = {.workers = 1};
	struct sl_udp_conf uc = {.sockets = 4};

	MUST(test_eal_start("fuzz-recv", "-l 0 --log-level=lib.eal:error") >= 0);
	pool = rte_pktmbuf_pool_create("fuzz", MBUFS, 0, 0, 512, SOCKET_ID_ANY);
	good = mmap(NULL, 2 * AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(pool != NULL && good != MAP_FAILED);
	MUST(mprotect(good + AREA, AREA, PROT_NONE) == 0);
	MUST(sl_inet_create(&ic, &inet) == 0);
	uc.pool = pool;
	MUST(sl_udp_create(inet, &uc, &udp) == 0);
}

/* Memory of a call: in the good area, across its end, behind it, or nonsense. */
static void *
pointer(struct input *in)
{
	uint8_t how = byte(in);

	switch (how & 7) {
	case 0:
		return NULL;
	case 1:
		return good + AREA - (how >> 3);
	case 2:
		return good + AREA + (how >> 3);
	case 3:
		return (void *)(UINT64_C(0xffffffffffffff00) + how);
	case 4:
		return (void *)(UINT64_C(0x7ffffffffff0) + how);
	default:
		return good + 16 * byte(in);
	}
}

static size_t
length(struct input *in)
{
	uint8_t how = byte(in);

	if (how < 200)
		return how;
	return how < 240 ? (size_t)how << 4 : (size_t)INT64_MAX + (how - 248);
}

/* What the last call may have been told to write to: the good area. Behind it there is a fence, in the
 * shape of pages without access, and around our own arrays bytes that must not change. */
static struct {
	uint8_t before[64];
	struct mmsghdr msgs[ENTRIES];
	uint8_t middle[64];
	struct iovec iov[ENTRIES][IOVS];
	uint8_t behind[64];
} call;

static void
arguments(struct input *in)
{
	memset(&call, FENCE, sizeof(call));
	for (unsigned int i = 0; i < ENTRIES; i++) {
		struct msghdr *m = &call.msgs[i].msg_hdr;
		uint8_t how = byte(in);

		for (unsigned int k = 0; k < IOVS; k++)
			call.iov[i][k] = (struct iovec){.iov_base = pointer(in), .iov_len = length(in)};
		m->msg_iov = how & 1 ? call.iov[i] : pointer(in);
		m->msg_iovlen = how & 2 ? how >> 2 & 3 : m->msg_iov == call.iov[i] ? 1 : length(in);
		m->msg_name = how & 16 ? NULL : pointer(in);
		m->msg_namelen = (socklen_t)length(in);
		m->msg_control = how & 32 ? NULL : pointer(in);
		m->msg_controllen = length(in);
	}
}

static bool
fenced(const uint8_t *p, size_t n)
{
	while (n > 0 && *p == FENCE) {
		p++;
		n--;
	}
	return n == 0;
}

static void
queue(struct input *in, uint64_t *fed)
{
	struct sl_dgram d[8];
	uint8_t outcome[8];
	uint16_t n = byte(in) % 8, k = 0;

	for (; k < n; k++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
		struct sl_addr a = sl_addr_v4(htonl(0xc6120001));

		if (m == NULL)
			break;
		memset(&d[k], 0, sizeof(d[k]));
		d[k] = (struct sl_dgram){.buf = m, .len = byte(in), .truesize = 512, .dport = htons(9),
			.sport = htons(7), .ttl = 3, .tos = 4};
		MUST(rte_pktmbuf_append(m, (uint16_t)d[k].len) != NULL);
		memcpy(d[k].src, a.b, 16);
		memcpy(d[k].dst, a.b, 16);
	}
	if (k == 0)
		return;
	udp_inet_ops.input(udp, 0, d, k, outcome);
	for (uint16_t i = 0; i < k; i++) {
		if (outcome[i] == SL_RX_UDP_QUEUED)
			++*fed;
		else
			rte_pktmbuf_free(d[i].buf);
	}
}

/* DONTWAIT is always there, or a timeout that is over: nobody else queues anything. */
static void
receive(struct sl_udp_sock *s, struct input *in)
{
	static const int flag[] = {MSG_TRUNC, MSG_PEEK, MSG_WAITFORONE, MSG_ERRQUEUE, MSG_OOB,
		MSG_CMSG_CLOEXEC, 1 << 28, 0};
	uint8_t how = byte(in), bits = byte(in), vlen = byte(in) % (ENTRIES + 1);
	int flags = MSG_DONTWAIT | flag[bits & 7] | flag[bits >> 3 & 7] | flag[bits >> 6];
	struct timespec *ts = NULL;
	ssize_t ret = 0;

	arguments(in);
	switch (how & 3) {
	case 0:
		if (how & 4)
			ts = pointer(in);
		ret = sl_udp_recvmmsg(s, how & 8 ? pointer(in) : call.msgs, vlen, flags, ts);
		MUST(ret <= vlen);
		break;
	case 1:
		ret = sl_udp_recvmsg(s, how & 8 ? pointer(in) : &call.msgs[0].msg_hdr, flags);
		break;
	case 2:
		ret = sl_udp_recvfrom(s, pointer(in), length(in), flags, pointer(in), pointer(in));
		break;
	default:
		if (sl_udp_recvfrom(s, good, 1, MSG_DONTWAIT | MSG_PEEK, NULL, NULL) >= 0)
			ret = sl_udp_read(s, pointer(in), length(in));
		break;
	}
	MUST(ret >= 0 || ret == -EAGAIN || ret == -EFAULT || ret == -EINVAL || ret == -EMSGSIZE);
	MUST(fenced(call.before, sizeof(call.before)) && fenced(call.middle, sizeof(call.middle)) &&
		fenced(call.behind, sizeof(call.behind)));
}

static void
conserved(const struct sl_udp_sock *s, uint64_t fed)
{
	struct sl_udp_sock_stats st;

	sl_udp_sock_stats(s, &st);
	MUST(st.queue.appended == fed);
	MUST(st.datagrams + st.faults == st.queue.released);
	MUST(st.purged == 0 || st.datagrams + st.faults + st.purged == fed);
	if (s->queue != NULL)
		MUST(sl_udpq_check(s->queue));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct sl_udp_sock_conf conf = {.guarded = true, .worker = 0, .slots = 32};
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(9)};
	struct sl_udp_sock_stats st;
	struct sl_udp_sock *s;
	uint64_t fed = 0;
	uint8_t options = byte(&in);

	if (udp == NULL)
		setup();
	conf.family = options & 1 ? AF_INET6 : AF_INET;
	conf.recv_ttl = options & 2;
	conf.recv_pktinfo = options & 4;
	conf.recv_tos = options & 8;
	MUST(sl_udp_socket(udp, &conf, &s) == 0);
	if (options & 1)
		MUST(sl_udp_bind(s, (struct sockaddr *)&sin6, sizeof(sin6)) == 0);
	else
		MUST(sl_udp_bind(s, (struct sockaddr *)&sin, sizeof(sin)) == 0);
	while (in.left > 0) {
		if (byte(&in) & 1)
			queue(&in, &fed);
		else
			receive(s, &in);
		conserved(s, fed);
	}
	sl_udp_sock_stats(s, &st);
	fed -= st.datagrams + st.faults;
	sl_udp_close(s, 0);
	sl_udp_sock_stats(s, &st);
	MUST(st.purged == fed);
	MUST(rte_mempool_avail_count(pool) == MBUFS);
	return 0;
}
