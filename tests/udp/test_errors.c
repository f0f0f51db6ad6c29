/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Errors that come from elsewhere: ICMP's, and those of an earlier call. One thread. */
#include <sys/mman.h>
#include <sys/uio.h>

#include "udp_msgs.h"

static uint8_t *bad; /* memory that nobody may touch */

/* An ICMP error about a datagram that we sent from port `from` to the peer's 7777. */
static void
icmp_error(uint8_t type, uint8_t code, uint16_t from)
{
	/* ICMP header, IP header and UDP header; tu_frame counts eight bytes of its own. */
	struct rte_mbuf *m = tu_frame(TU_PEER, TU_US, 0, 0, (uint8_t[28]){0}, 28);
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, 14);
	uint8_t *icmp = (uint8_t *)(ip + 1);
	struct rte_ipv4_hdr *quoted = (struct rte_ipv4_hdr *)(icmp + 8);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(quoted + 1);
	uint16_t sum;

	ip->next_proto_id = IPPROTO_ICMP;
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	memset(icmp, 0, 36);
	icmp[0] = type;
	icmp[1] = code;
	*quoted = (struct rte_ipv4_hdr){.version_ihl = 0x45, .total_length = htons(32),
		.time_to_live = 64, .next_proto_id = IPPROTO_UDP, .src_addr = ip->dst_addr,
		.dst_addr = ip->src_addr};
	quoted->hdr_checksum = rte_ipv4_cksum(quoted);
	*udp = (struct rte_udp_hdr){.src_port = htons(from), .dst_port = htons(7777),
		.dgram_len = htons(12)};
	sum = (uint16_t)~rte_raw_cksum(icmp, 36);
	memcpy(icmp + 2, &sum, sizeof(sum));
	tu_input(&m, 1);
}

/* A guarded socket writes each message's length through here, when the message is sent: the place for
 * what happens in the middle of a call. */
static int hit_in; /* writes until an ICMP error comes; 0: none does */

ssize_t __real_process_vm_writev(pid_t pid, const struct iovec *from, unsigned long nfrom,
	const struct iovec *to, unsigned long nto, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *from, unsigned long nfrom,
	const struct iovec *to, unsigned long nto, unsigned long flags);

ssize_t
__wrap_process_vm_writev(pid_t pid, const struct iovec *from, unsigned long nfrom,
	const struct iovec *to, unsigned long nto, unsigned long flags)
{
	if (hit_in != 0 && --hit_in == 0)
		icmp_error(3, 3, PORT);
	return __real_process_vm_writev(pid, from, nfrom, to, nto, flags);
}

/* An error that comes between two messages of a call is met by the next call, once. */
static void
test_error_within_sendmmsg(void)
{
	struct sl_udp_sock_conf conf = {.family = AF_INET, .guarded = true, .slots = 16};
	struct sl_udp_sock *s;

	REQUIRE(sl_udp_socket(tu_udp, &conf, &s) == 0);
	REQUIRE(tu_bind(s, TU_US, PORT) == 0);
	REQUIRE(tu_connect(s, TU_PEER, 7777) == 0);
	for (int after = 1; after <= 4; after++) {
		reset();
		hit_in = after;
		CHECK_EQ(sl_udp_sendmmsg(s, 0, msgs, 4, 0), after);
		CHECK_EQ(sl_udp_sendmmsg(s, 0, msgs, 4, 0), -ECONNREFUSED);
		CHECK_EQ(sl_udp_sendmmsg(s, 0, msgs, 4, 0), 4);
		tu_drain();
	}
	sl_udp_close(s, 0);
}

static void
test_icmp_errors(void)
{
	struct sl_udp_sock *s = plain_socket(PORT), *other = plain_socket(PORT + 1);
	uint64_t errors = tu_outcome(SL_RX_ICMP_ERROR);

	/* Not connected: heard by nobody. */
	icmp_error(3, 3, PORT);
	CHECK_EQ(sl_udp_take_error(s), 0);
	CHECK_EQ(tu_connect(s, TU_PEER, 7777), 0);
	/* Of another port, and a soft one: host unreachable. */
	icmp_error(3, 3, PORT + 1);
	icmp_error(3, 1, PORT);
	CHECK_EQ(sl_udp_take_error(s), 0);
	CHECK_EQ(sl_udp_take_error(other), 0);
	icmp_error(3, 3, PORT);
	CHECK_EQ(tu_outcome(SL_RX_ICMP_ERROR) - errors, 4);
	CHECK_EQ(sl_udp_take_error(s), -ECONNREFUSED);
	CHECK_EQ(sl_udp_take_error(s), 0);
	/* It comes before what is queued, once, from each kind of call. */
	feed(PORT, 5, 1);
	reset();
	icmp_error(3, 3, PORT);
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, 1, 0, NULL), -ECONNREFUSED);
	icmp_error(3, 3, PORT);
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, 0, 0, NULL), -ECONNREFUSED);
	icmp_error(3, 3, PORT);
	CHECK_EQ(sl_udp_recvfrom(s, bufs[0], 64, 0, NULL, NULL), -ECONNREFUSED);
	icmp_error(3, 3, PORT);
	CHECK_EQ(sl_udp_recv_burst(s, &(struct sl_dgram){0}, 1), -ECONNREFUSED);
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, 1, 0, NULL), 1);
	sl_udp_close(other, 0);
	sl_udp_close(s, 0);
}

/* k good ones, a fault, an ICMP error, more datagrams: the fault's slot and ICMP's are two. */
static void
test_error_slots(void)
{
	struct sl_udp_sock_conf conf = {.worker = 0, .guarded = true};
	struct sl_udp_sock *s = tu_bound(&conf, "0.0.0.0", PORT);
	struct sl_udp_sock_stats stats;

	CHECK_EQ(tu_connect(s, TU_PEER, 7777), 0);
	for (int good = 1; good <= 5; good++) {
		feed(PORT, 0, 8);
		reset();
		iovs[good].iov_base = bad;
		CHECK_EQ(sl_udp_recvmmsg(s, msgs, 8, 0, NULL), good);
		for (int i = 0; i < good; i++)
			CHECK_EQ(number_in(i), i);
		icmp_error(3, 3, PORT);
		reset();
		CHECK_EQ(sl_udp_recvmmsg(s, msgs, 8, 0, NULL), -EFAULT);
		CHECK_EQ(sl_udp_recvmmsg(s, msgs, 8, 0, NULL), -ECONNREFUSED);
		/* Only the one that faulted is gone. */
		CHECK_EQ(sl_udp_recvmmsg(s, msgs, 8, MSG_DONTWAIT, NULL), 7 - good);
		for (int i = 0; i < 7 - good; i++)
			CHECK_EQ(number_in(i), good + 1 + i);
		CHECK_EQ(sl_udp_recvmmsg(s, msgs, 8, MSG_DONTWAIT, NULL), -EAGAIN);
	}
	/* The fault's slot is not SO_ERROR's. */
	feed(PORT, 0, 2);
	reset();
	iovs[1].iov_base = bad;
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, 8, 0, NULL), 1);
	CHECK_EQ(sl_udp_take_error(s), 0);
	CHECK_EQ(sl_udp_recvfrom(s, bufs[0], 64, MSG_DONTWAIT, NULL, NULL), -EFAULT);
	/* A refused header costs nothing. */
	feed(PORT, 0, 3);
	reset();
	msgs[1].msg_hdr.msg_iovlen = 1025;
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, 8, 0, NULL), 1);
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, 8, 0, NULL), -EMSGSIZE);
	reset();
	CHECK_EQ(sl_udp_recvmmsg(s, msgs, 8, MSG_DONTWAIT, NULL), 2);
	CHECK_EQ(number_in(1), 2);
	sl_udp_sock_stats(s, &stats);
	CHECK_EQ(stats.queue.appended, 5 * 8 + 2 + 3);
	CHECK_EQ(stats.faults, 5 + 1);
	CHECK_EQ(stats.datagrams, stats.queue.appended - stats.faults);
	CHECK_EQ(stats.bytes, stats.datagrams * 4);
	CHECK_EQ(stats.queue.rmem, 0);
	sl_udp_close(s, 0);
}

static void
all(uint16_t workers)
{
	tu_stack(workers, tu_pool);
	SL_TEST_RUN(test_icmp_errors);
	SL_TEST_RUN(test_error_slots);
	SL_TEST_RUN(test_error_within_sendmmsg);
	SL_TEST_RUN(tu_stack_end);
}

int
main(int argc, char **argv)
{
	(void)argc;
	bad = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(bad != MAP_FAILED);
	tu_eal(argv[0]);
	tu_port();
	all(1); /* SL_UDPQ_LOCAL */
	all(2); /* SL_UDPQ_SPLIT */
	return test_end();
}
