/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_mbuf.h>
#include <rte_net.h>

#include "bridge.h"
#include "trace_step.h"

#define MICRO UINT64_C(1000000)

void
trace_step_describe(struct trace_step *s, const struct rte_mbuf *m)
{
	struct rte_net_hdr_lens lens = {0};
	uint32_t at = 0;

	s->len = m->pkt_len;
	s->ptype = rte_net_get_ptype(m, &lens, RTE_PTYPE_ALL_MASK);
	s->l3_off = lens.l2_len;
	s->l4_off = (uint16_t)(lens.l2_len + lens.l3_len);
	for (; m != NULL && at < sizeof(s->head); m = m->next) {
		uint32_t part = RTE_MIN((uint32_t)m->data_len, (uint32_t)sizeof(s->head) - at);

		memcpy(s->head + at, rte_pktmbuf_mtod(m, const void *), part);
		at += part;
	}
	s->head_len = (uint16_t)at;
}

/* Bytes off..off+len of the head; false if they are not all there. */
static bool
head_read(const struct trace_step *s, uint32_t off, void *to, uint32_t len)
{
	if (off + len > s->head_len || s->head_len > sizeof(s->head))
		return false;
	memcpy(to, s->head + off, len);
	return true;
}

/* The source or the destination address. */
static bool
read_addr(const struct trace_step *s, bool dst, struct sl_addr *addr)
{
	uint32_t be;

	if (RTE_ETH_IS_IPV4_HDR(s->ptype)) {
		if (!head_read(s, s->l3_off + (dst ? 16u : 12u), &be, sizeof(be)))
			return false;
		*addr = sl_addr_v4(be);
		return true;
	}
	return RTE_ETH_IS_IPV6_HDR(s->ptype) &&
	       head_read(s, s->l3_off + (dst ? 24u : 8u), addr->b, sizeof(addr->b));
}

static bool
has_ports(uint32_t ptype)
{
	uint32_t l4 = ptype & RTE_PTYPE_L4_MASK;

	return l4 == RTE_PTYPE_L4_UDP || l4 == RTE_PTYPE_L4_TCP || l4 == RTE_PTYPE_L4_SCTP;
}

static bool
read_port(const struct trace_step *s, bool dst, uint16_t *port)
{
	return has_ports(s->ptype) &&
	       head_read(s, s->l4_off + (dst ? 2u : 0u), port, sizeof(*port));
}

const char *
trace_step_end(const struct trace_step *s, bool dst, char *text, size_t size)
{
	char host[INET6_ADDRSTRLEN];
	struct sl_addr addr;
	uint16_t port;
	bool v4;

	text[0] = '\0';
	if (!read_addr(s, dst, &addr))
		return text;
	v4 = sl_addr_is_v4(&addr);
	sl_addr_format(&addr, host, sizeof(host));
	if (read_port(s, dst, &port))
		snprintf(text, size, v4 ? "%s:%u" : "[%s]:%u", host, rte_be_to_cpu_16(port));
	else
		snprintf(text, size, "%s", host);
	return text;
}

bool
trace_step_udp(const struct trace_step *s, struct sl_addr *dst, uint16_t *port)
{
	return (s->ptype & RTE_PTYPE_L4_MASK) == RTE_PTYPE_L4_UDP && read_addr(s, true, dst) &&
	       read_port(s, true, port);
}

bool
trace_step_dst(const struct trace_step *s, struct sl_addr *dst)
{
	return read_addr(s, true, dst);
}

bool
trace_step_flow(const struct trace_step *s, struct sl_addr *src, struct sl_addr *dst,
	uint16_t *sport, uint16_t *dport)
{
	return trace_step_udp(s, dst, dport) && read_addr(s, false, src) &&
	       read_port(s, false, sport);
}

/* ICMP, which packet types do not tell from other protocols behind an IP header. */
static const char *
icmp(const struct trace_step *s)
{
	uint8_t proto;

	if (RTE_ETH_IS_IPV4_HDR(s->ptype) && head_read(s, s->l3_off + 9u, &proto, 1) &&
		proto == IPPROTO_ICMP)
		return "ICMP";
	if (RTE_ETH_IS_IPV6_HDR(s->ptype) && head_read(s, s->l3_off + 6u, &proto, 1) &&
		proto == IPPROTO_ICMPV6)
		return "ICMPV6";
	return NULL;
}

/* "UDP", "IPV4", "ETHER_ARP": the innermost header that is known. */
static const char *
protocol(const struct trace_step *s)
{
	const char *name = NULL;

	if ((s->ptype & RTE_PTYPE_L4_MASK) != 0)
		name = rte_get_ptype_l4_name(s->ptype);
	else if ((s->ptype & RTE_PTYPE_L3_MASK) != 0)
		name = icmp(s) != NULL ? icmp(s) : rte_get_ptype_l3_name(s->ptype);
	else
		name = rte_get_ptype_l2_name(s->ptype);
	return name[0] == 'L' && name[2] == '_' ? name + 3 : name;
}

static void
add_received(json_t *o, const struct trace_step *s, const char *port)
{
	char from[64], to[64];

	json_object_set_new(o, "port", json_string(port));
	json_object_set_new(o, "queue", json_integer(s->queue));
	json_object_set_new(o, "length", json_integer(s->len));
	json_object_set_new(o, "protocol", json_string(protocol(s)));
	json_object_set_new(o, "source", json_string(trace_step_end(s, false, from, sizeof(from))));
	json_object_set_new(o, "destination", json_string(trace_step_end(s, true, to, sizeof(to))));
}

static void
add_counters(json_t *o, const struct trace_step *s)
{
	json_t *counters = json_object();

	for (uint16_t i = 0; i < s->ncounters && i < TRACE_COUNTERS_MAX; i++)
		json_object_set_new(counters,
			sl_outcome_info((enum sl_outcome)s->counter[i].outcome)->name,
			json_integer(s->counter[i].by));
	json_object_set_new(o, "stack", counters);
	if (s->service[0] != '\0')
		json_object_set_new(o, "service", json_string(s->service));
	if (s->outcome != NULL)
		json_object_set_new(o, "outcome", json_string(s->outcome));
	if (s->held)
		json_object_set_new(o, "held", json_true());
}

static void
add_text(json_t *o, const char *name, const char *text)
{
	if (text != NULL && text[0] != '\0')
		json_object_set_new(o, name, json_string(text));
}

static void
add_forward(json_t *o, const struct trace_step *s)
{
	add_counters(o, s);
	add_text(o, "reason", s->reason);
	if (s->has_slot)
		json_object_set_new(o, "slot", json_integer(s->slot));
	add_text(o, s->back ? "from" : "backend", s->to);
	if (s->packets > 1)
		json_object_set_new(o, "packets", json_integer(s->packets));
	if (s->waits)
		json_object_set_new(o, "waits", json_true());
}

static void
add_bridge(json_t *o, const struct trace_step *s)
{
	json_t *copies = json_object();

	add_text(o, "bridge", s->service);
	add_text(o, "outcome", s->outcome);
	add_text(o, "to", s->to);
	add_text(o, "source", s->reason);
	for (uint16_t i = 0; i < s->ncounters && i < TRACE_COUNTERS_MAX; i++)
		json_object_set_new(copies, bridge_outcome_info[s->counter[i].outcome].name,
			json_integer(s->counter[i].by));
	json_object_set_new(o, "copies", copies);
}

static void
add_kernel(json_t *o, const struct trace_step *s)
{
	add_text(o, "interface", s->to);
	add_text(o, "outcome", s->outcome);
}

json_t *
trace_step_json(const struct trace_step *s, const char *port, uint64_t t0, uint64_t hz)
{
	static const char *const names[] = {
		"received", "stack", "service", "forward", "bridge", "kernel"};
	__extension__ unsigned __int128 cycles = s->tsc - t0;
	json_t *o = json_object();

	if (o == NULL)
		return NULL;
	json_object_set_new(o, "packet", json_integer(s->id));
	json_object_set_new(o, "step", json_string(names[s->kind]));
	json_object_set_new(o, "time_us", json_integer((json_int_t)(cycles * MICRO / hz)));
	json_object_set_new(o, "lcore", json_integer(s->cpu));
	if (s->kind == TRACE_RECEIVED)
		add_received(o, s, port);
	else if (s->kind == TRACE_FORWARD)
		add_forward(o, s);
	else if (s->kind == TRACE_BRIDGE)
		add_bridge(o, s);
	else if (s->kind == TRACE_KERNEL)
		add_kernel(o, s);
	else
		add_counters(o, s);
	return o;
}
