/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Frames between a port and the kernel's tap. From the kernel: any header before any frame is
 * refused, or becomes packets that hold its payload once, in order, and ask the port for no more
 * than it does. To the kernel: what is said of a frame is within what is there of it.
 *
 * Input: what the port does, or has done (below), then
 *   from the kernel   the vnet header (12), the frame
 *   to the kernel     bytes of link header above 14, segment size (16 bits), the frame
 */
#include "fuzz_frames.h"

#include "exception_priv.h"

enum {
	F_TCP = 1,
	F_UDP = 2,
	F_TSO = 4,
	F_TO_KERNEL = 8,
	F_GOOD = 16,
	F_NONE = 32,
	F_LRO = 64,
};

#define TX_ASKS                                                                                    \
	(RTE_MBUF_F_TX_UDP_CKSUM | RTE_MBUF_F_TX_TCP_CKSUM | RTE_MBUF_F_TX_IP_CKSUM |              \
		RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_TCP_SEG)
#define FRAME_MAX 60000u
#define HEAD_MAX 128u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_flags(const struct exception_packets *p, const struct rte_mbuf *m)
{
	uint64_t sum = m->ol_flags & RTE_MBUF_F_TX_L4_MASK, flags = m->ol_flags;
	uint32_t l4 = (uint32_t)m->l2_len + m->l3_len;

	REQUIRE((flags & ~TX_ASKS) == 0);
	if (sum == 0) {
		REQUIRE(flags == 0);
		return;
	}
	REQUIRE(sum == RTE_MBUF_F_TX_TCP_CKSUM ? p->port->tcp_cksum : p->port->udp_cksum);
	REQUIRE(l4 + (sum == RTE_MBUF_F_TX_TCP_CKSUM ? 20u : 8u) <= m->pkt_len);
	REQUIRE(((flags & RTE_MBUF_F_TX_IPV4) != 0) != ((flags & RTE_MBUF_F_TX_IPV6) != 0));
	if ((flags & RTE_MBUF_F_TX_TCP_SEG) != 0)
		REQUIRE(p->port->tso && m->tso_segsz != 0 && m->l4_len >= 20 &&
			l4 + m->l4_len <= m->pkt_len);
}

static void
check_packet(const struct exception_packets *p, const struct rte_mbuf *m, const uint8_t *frame)
{
	uint32_t at = p->segments > 1 ? (p->next - 1) * p->v.gso_size : 0;
	uint32_t front = p->segments > 1 ? p->cut.front_len : 0;
	static uint8_t copy[FRAME_MAX];
	const uint8_t *bytes;
	const char *why;

	REQUIRE(rte_mbuf_check(m, 1, &why) == 0 && m->pkt_len >= front);
	check_flags(p, m);
	REQUIRE(front + at + (m->pkt_len - front) <= p->len);
	bytes = rte_pktmbuf_read(m, 0, m->pkt_len, copy);
	if (p->segments > 1)
		REQUIRE(memcmp(bytes + front, frame + front + at, m->pkt_len - front) == 0);
	else
		REQUIRE(m->pkt_len == p->len);
}

static void
from_kernel(
	const struct exception_port *port, const uint8_t *header, const uint8_t *data, size_t len)
{
	uint8_t *frame = malloc(len > 0 ? len : 1);
	struct exception_packets p = {.port = port, .frame = frame, .len = (uint32_t)len};
	uint32_t payload = 0;
	struct rte_mbuf *m;
	bool lost = false;

	REQUIRE(frame != NULL);
	memcpy(frame, data, len);
	if (exception_begin(&p, header) == 0) {
		REQUIRE(p.segments > 0);
		while ((m = exception_next(&p)) != NULL) {
			check_packet(&p, m, data);
			payload += m->pkt_len - (p.segments > 1 ? p.cut.front_len : 0);
			rte_pktmbuf_free(m);
		}
		/* Segments that fit into no packet there are none of, as segments have MTU size. */
		lost = p.next != p.segments;
		REQUIRE(lost || payload == len - (p.segments > 1 ? p.cut.front_len : 0));
		REQUIRE(!lost || p.v.gso_size > RTE_MBUF_DEFAULT_DATAROOM - SL_VNET_HEAD);
	}
	free(frame);
}

static void
to_kernel(uint8_t flags, const uint8_t *data, size_t size)
{
	struct rte_mbuf m = {.ol_flags = 0};
	struct sl_inet_frame f = {.m = &m};
	struct sl_tapq_vnet_hdr h;
	uint8_t *head;
	uint32_t len;

	if (size < 3 + RTE_ETHER_HDR_LEN)
		return;
	f.l2_len = (uint16_t)(RTE_ETHER_HDR_LEN + 4 * (data[0] % 3));
	m.tso_segsz = (uint16_t)(data[1] | data[2] << 8);
	m.ol_flags = ((flags & F_GOOD) != 0	     ? RTE_MBUF_F_RX_L4_CKSUM_GOOD
			     : (flags & F_NONE) != 0 ? RTE_MBUF_F_RX_L4_CKSUM_NONE
						     : 0) |
		     ((flags & F_LRO) != 0 ? RTE_MBUF_F_RX_LRO : 0);
	f.head_len = (uint32_t)RTE_MIN(size - 3, (size_t)HEAD_MAX);
	if (f.head_len < f.l2_len)
		return;
	/* Just as large, so that a sanitizer sees what is read beyond. */
	head = malloc(f.head_len);
	REQUIRE(head != NULL);
	memcpy(head, data + 3, f.head_len);
	f.head = head;
	exception_to_kernel(&f, &h);
	len = f.head_len - f.l2_len + RTE_ETHER_HDR_LEN;
	if ((h.flags & SL_TAPQ_VNET_NEEDS_CSUM) != 0)
		REQUIRE((flags & F_NONE) != 0 && h.csum_start >= 34 &&
			(uint32_t)h.csum_start + h.csum_offset + 2 <= len);
	REQUIRE(h.gso_type == 0 || ((flags & F_LRO) != 0 && h.gso_size != 0 && h.hdr_len >= 34));
	free(head);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct exception_port port = {0};
	static bool ready;

	if (!ready)
		t_init("fuzz_exception");
	ready = true;
	if (size < 1 + SL_TAPQ_VNET_LONG || size > FRAME_MAX)
		return 0;
	port.pool = t_pool;
	port.tcp_cksum = (data[0] & F_TCP) != 0;
	port.udp_cksum = (data[0] & F_UDP) != 0;
	port.tso = (data[0] & F_TSO) != 0 && port.tcp_cksum;
	if ((data[0] & F_TO_KERNEL) != 0)
		to_kernel(data[0], data + 1, size - 1);
	else
		from_kernel(&port, data + 1, data + 1 + SL_TAPQ_VNET_LONG,
			size - 1 - SL_TAPQ_VNET_LONG);
	REQUIRE(rte_mempool_avail_count(t_pool) == T_POOL);
	return 0;
}
