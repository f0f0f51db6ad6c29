/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What one value alone does not show. A value that was a mistake by itself is absent here, and what
 * depends on it is not looked at, so that one mistake is told once. */
#include <stdio.h>
#include <string.h>

#include <rte_common.h>
#include <rte_mbuf.h>

#include "conf_priv.h"
#include "spread.h"

#define MEMORY_DEFAULT_MB 256
/* EAL's own, tables of the stack, slots of queues. */
#define MEMORY_BASE_MB 48
#define RING_DEFAULT 1024
/* net_tpacket's ring has its own memory, and takes what comes while we are not on the processor. */
#define RING_TPACKET 8192
#define TX_RING 1024
#define RCVBUF_DEFAULT 4000000
/* Datagrams that the queues of services may hold at least, so that a reload can add some. */
#define QUEUED_MIN 16384
#define CACHE 512
#define MBUF_OVERHEAD 256
#define IPV6_MTU 1280
/* Sessions of a stateful reflector, rounded up. */
#define SESSIONS_MB 10

uint16_t
conf_ring(const struct conf_port *port)
{
	if (port->ring != 0)
		return port->ring;
	return strncmp(port->device, "net_tpacket", 11) == 0 ? RING_TPACKET : RING_DEFAULT;
}

bool
conf_spread(const struct conf_port *port)
{
	return port->queues == 1 && port->lcores.n > 1;
}

uint16_t
conf_tx_queues(const struct conf *conf, const struct conf_port *port)
{
	uint16_t receive = RTE_MIN(port->queues, port->lcores.n);

	return (uint16_t)(port->queues + conf->lcores.n - receive);
}

uint16_t
conf_mbuf_size(const struct conf *conf)
{
	uint32_t size = RTE_MBUF_DEFAULT_BUF_SIZE;

	/* Ethernet, two tags. */
	for (uint16_t i = 0; i < conf->nports; i++)
		size = RTE_MAX(size, conf->port[i].mtu + 22u + RTE_PKTMBUF_HEADROOM);
	return (uint16_t)RTE_ALIGN_CEIL(size, 64u);
}

const struct conf_port *
conf_nth_port(const struct conf *conf, uint16_t i)
{
	return i < conf->nports ? &conf->port[i] : &conf->vlan[i - conf->nports];
}

const struct conf_port *
conf_find_port(const struct conf *conf, const char *name)
{
	for (uint16_t i = 0; i < conf->nports; i++)
		if (strcmp(conf->port[i].name, name) == 0)
			return &conf->port[i];
	for (uint16_t i = 0; i < conf->nvlans; i++)
		if (strcmp(conf->vlan[i].name, name) == 0)
			return &conf->vlan[i];
	return NULL;
}

static uint32_t
queued(const struct conf *conf)
{
	uint32_t truesize = conf_mbuf_size(conf);
	uint64_t n = 0;

	for (uint16_t i = 0; i < conf->nservices; i++) {
		const struct conf_service *s = &conf->service[i];
		const struct conf_port *p = conf_find_port(conf, s->port);
		uint64_t rcvbuf = s->rcvbuf != 0 ? s->rcvbuf : RCVBUF_DEFAULT;

		if (s->kind == CONF_FORWARD)
			continue;
		n += rcvbuf / truesize * (s->has_address || p == NULL ? 1 : p->naddrs);
		if (s->kind == CONF_MIRROR)
			n += MIRROR_DEPTH;
	}
	return (uint32_t)RTE_MIN(RTE_MAX(n, (uint64_t)QUEUED_MIN), (uint64_t)UINT32_MAX / 4);
}

uint32_t
conf_mbufs(const struct conf *conf)
{
	uint32_t n = queued(conf) + (conf->lcores.n + 1u) * CACHE;

	for (uint16_t i = 0; i < conf->nports; i++) {
		const struct conf_port *p = &conf->port[i];

		n += (uint32_t)p->queues * (conf_ring(p) + SL_INET_BURST) +
		     (uint32_t)conf_tx_queues(conf, p) * TX_RING;
		if (conf_spread(p))
			n += p->lcores.n * SPREAD_RING;
	}
	return n;
}

uint32_t
conf_memory_needed_mb(const struct conf *conf)
{
	uint64_t bytes = (uint64_t)conf_mbufs(conf) * (conf_mbuf_size(conf) + MBUF_OVERHEAD) +
			 conf_bridge_bytes(conf);

	for (uint16_t i = 0; i < conf->nservices; i++) {
		const struct conf_service *s = &conf->service[i];

		if (s->kind == CONF_REFLECT && s->sequence == STAMP_STATEFUL)
			bytes += (uint64_t)SESSIONS_MB << 20;
		bytes += conf_forward_bytes(conf, s);
	}
	return MEMORY_BASE_MB + (uint32_t)(bytes >> 20);
}

bool
conf_on_link(const struct conf_cidr *c, const struct sl_addr *a)
{
	unsigned int bits = c->prefix + (sl_addr_is_v4(&c->addr) ? 96u : 0u);

	if (sl_addr_is_v4(&c->addr) != sl_addr_is_v4(a))
		return false;
	for (unsigned int i = 0; i < bits; i++)
		if (((c->addr.b[i / 8] ^ a->b[i / 8]) >> (7 - i % 8) & 1) != 0)
			return false;
	return true;
}

bool
conf_is_broadcast(const struct conf_port *p, const struct sl_addr *a)
{
	uint32_t be = sl_addr_to_v4(a);

	for (uint16_t i = 0; i < p->naddrs; i++) {
		const struct conf_cidr *c = &p->addrs[i];

		/* RFC 3021: a /31 has none. */
		if (conf_on_link(c, a) && sl_addr_is_v4(a) && c->prefix > 0 && c->prefix < 31 &&
			(rte_be_to_cpu_32(be) | ~(UINT32_MAX >> c->prefix)) == UINT32_MAX)
			return true;
	}
	return false;
}

static bool
is_link_local(const struct sl_addr *a)
{
	return a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

static void
check_gateway(
	const struct conf_port *p, const struct sl_addr *gw, uint32_t line, struct mistakes *m)
{
	bool reached = is_link_local(gw);
	char text[64];

	if (sl_addr_is_any(gw) || p->naddrs == 0)
		return;
	sl_addr_format(gw, text, sizeof(text));
	for (uint16_t i = 0; i < p->naddrs; i++) {
		reached |= conf_on_link(&p->addrs[i], gw);
		if (memcmp(&p->addrs[i].addr, gw, sizeof(*gw)) == 0) {
			mistake(m, line,
				"[%s %s] gateway = %s: is the port's own address; name a router.",
				p->section, p->name, text);
			return;
		}
	}
	if (conf_is_broadcast(p, gw))
		mistake(m, line,
			"[%s %s] gateway = %s: is the broadcast address of its network; name a "
			"router.",
			p->section, p->name, text);
	if (!reached)
		mistake(m, line,
			"[%s %s] gateway = %s: is in none of the networks of \"address\"; name a "
			"router on the link.",
			p->section, p->name, text);
}

/* Lcores and queues of a port, with what was left out filled in. */
static void
check_share(const struct conf *conf, struct conf_port *p, struct mistakes *m)
{
	bool given = p->lcores_line != 0;

	if (conf->lcores.n == 0)
		return;
	for (uint16_t i = 0; i < p->lcores.n; i++)
		if (!conf_lcores_have(&conf->lcores, p->lcores.cpu[i]))
			mistake(m, p->lcores_line,
				"[%s %s] lcores: %u is not among the lcores of [sluiced]; add it "
				"there, or name another.",
				p->section, p->name, p->lcores.cpu[i]);
	if (given && p->lcores.n == 0)
		return;
	if (!given) {
		p->lcores = conf->lcores;
		/* As many as there are queues for. */
		if (p->queues != 0 && p->lcores.n > p->queues)
			p->lcores.n = p->queues;
		if (p->lcores.n > CONF_QUEUES_MAX)
			p->lcores.n = CONF_QUEUES_MAX;
	}
	if (p->queues == 0)
		p->queues = p->lcores.n;
	if (p->queues < p->lcores.n && (!conf_spread(p) || p->bridge != 0))
		mistake(m, p->lcores_line,
			"[%s %s] lcores: %u lcores for %u receive queues; name no more lcores "
			"than \"queues\" has%s.",
			p->section, p->name, p->lcores.n, p->queues,
			p->bridge != 0 ? "" : ", or spread flows in software by \"queues = 1\"");
}

static void
check_addresses(const struct conf_port *p, struct mistakes *m)
{
	check_gateway(p, &p->gateway, p->gateway_line, m);
	check_gateway(p, &p->gateway6, p->gateway6_line, m);
	for (uint16_t i = 0; i < p->naddrs && p->mtu != 0 && p->mtu < IPV6_MTU; i++) {
		if (sl_addr_is_v4(&p->addrs[i].addr))
			continue;
		mistake(m, p->mtu_line,
			"[%s %s] mtu = %u: is too small for the IPv6 address on line %u; %d at "
			"least.",
			p->section, p->name, p->mtu, p->address_line, IPV6_MTU);
		break;
	}
}

static void
check_port(struct conf *conf, struct conf_port *p, struct mistakes *m)
{
	check_share(conf, p, m);
	check_addresses(p, m);
}

static void
check_networks(const struct conf_port *a, const struct conf_port *b, struct mistakes *m)
{
	char text[64];

	for (uint16_t i = 0; i < b->naddrs; i++) {
		for (uint16_t k = 0; k < a->naddrs; k++) {
			const struct conf_cidr *x = &a->addrs[k], *y = &b->addrs[i];

			if (!conf_on_link(x, &y->addr) && !conf_on_link(y, &x->addr))
				continue;
			sl_addr_format(&y->addr, text, sizeof(text));
			mistake(m, b->address_line,
				"[%s %s] address: %s is in a network of [%s %s]; give each port "
				"networks of its own.",
				b->section, b->name, text, a->section, a->name);
		}
	}
}

/* Two ports: what they may not share. */
static void
check_ports(const struct conf_port *a, const struct conf_port *b, struct mistakes *m)
{
	if (a->devargs[0] != '\0' && strcmp(a->device, b->device) == 0)
		mistake(m, b->devargs_line,
			"[port %s] devargs: [port %s] has the device %s already; number them, as "
			"in "
			"net_tpacket0 and net_tpacket1.",
			b->name, a->name, a->device);
	if (a->iface[0] != '\0' && strcmp(a->iface, b->iface) == 0)
		mistake(m, b->devargs_line,
			"[port %s] devargs: [port %s] has the interface %s already; give it to "
			"one.",
			b->name, a->name, a->iface);
	check_networks(a, b, m);
}

const struct conf_port *
conf_port_of(const struct conf *conf, const struct sl_addr *a)
{
	for (uint16_t i = 0; i < conf->nports; i++)
		for (uint16_t k = 0; k < conf->port[i].naddrs; k++)
			if (memcmp(&conf->port[i].addrs[k].addr, a, sizeof(*a)) == 0)
				return &conf->port[i];
	for (uint16_t i = 0; i < conf->nvlans; i++)
		for (uint16_t k = 0; k < conf->vlan[i].naddrs; k++)
			if (memcmp(&conf->vlan[i].addrs[k].addr, a, sizeof(*a)) == 0)
				return &conf->vlan[i];
	return NULL;
}

/* Keys that only a reflector has. */
static void
check_reflect(const struct conf_service *s, struct mistakes *m)
{
	static const char what[] = "is for kind = reflect alone; leave it out.";

	if (!s->has_kind || s->kind == CONF_REFLECT)
		return;
	if (s->sequence_line != 0)
		mistake(m, s->sequence_line, "[service %s] sequence: %s", s->name, what);
	if (s->format_line != 0)
		mistake(m, s->format_line, "[service %s] format: %s", s->name, what);
}

static void
check_service(const struct conf *conf, const struct conf_service *s, struct mistakes *m)
{
	const struct conf_port *p = conf_find_port(conf, s->port), *has;
	char text[64];

	check_reflect(s, m);
	if (s->port[0] != '\0' && p == NULL)
		mistake(m, s->port_line,
			"[service %s] port = %s: there is no [port %s]; name one that there is.",
			s->name, s->port, s->port);
	if (!s->has_address)
		return;
	has = conf_port_of(conf, &s->address);
	sl_addr_format(&s->address, text, sizeof(text));
	if (has == NULL)
		mistake(m, s->address_line,
			"[service %s] address = %s: no port has it; name one of a port's "
			"\"address\".",
			s->name, text);
	else if (p != NULL && has != p)
		mistake(m, s->address_line,
			"[service %s] address = %s: belongs to [%s %s], not to [%s %s]; leave "
			"\"port\" out.",
			s->name, text, has->section, has->name, p->section, p->name);
}

/* Could one datagram be for both? */
static bool
overlap(const struct conf *conf, const struct conf_service *a, const struct conf_service *b)
{
	const struct conf_port *p, *q;

	if (a->udp_port == 0 || a->udp_port != b->udp_port)
		return false;
	if (a->has_address && b->has_address)
		return memcmp(&a->address, &b->address, sizeof(a->address)) == 0;
	p = a->has_address ? conf_port_of(conf, &a->address) : conf_find_port(conf, a->port);
	q = b->has_address ? conf_port_of(conf, &b->address) : conf_find_port(conf, b->port);
	/* A port or address that is not there is a mistake of its own. */
	if ((p == NULL && (a->has_address || a->port[0] != '\0')) ||
		(q == NULL && (b->has_address || b->port[0] != '\0')))
		return false;
	return p == NULL || q == NULL || p == q;
}

static void
check_services(const struct conf *conf, struct mistakes *m)
{
	for (uint16_t i = 0; i < conf->nservices; i++) {
		const struct conf_service *s = &conf->service[i];

		check_service(conf, s, m);
		for (uint16_t k = 0; k < i; k++) {
			if (!overlap(conf, &conf->service[k], s))
				continue;
			mistake(m, s->udp_line,
				"[service %s] udp-port = %u: [service %s] on line %u has it "
				"already; "
				"choose another, or divide them by \"address\" or \"port\".",
				s->name, s->udp_port, conf->service[k].name, conf->service[k].line);
			break;
		}
	}
}

/* Each lcore has something to receive. */
static void
check_lcores(const struct conf *conf, struct mistakes *m)
{
	char list[256] = "";
	size_t at = 0;

	for (uint16_t i = 0; i < conf->lcores.n; i++) {
		bool works = conf->nports == 0;

		for (uint16_t p = 0; p < conf->nports; p++)
			works |= conf_lcores_have(&conf->port[p].lcores, conf->lcores.cpu[i]) ||
				 (conf->port[p].lcores_line != 0 && conf->port[p].lcores.n == 0);
		if (!works && at < sizeof(list))
			at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%u", at ? "," : "",
				conf->lcores.cpu[i]);
	}
	if (at != 0)
		mistake(m, conf->lcores_line,
			"[sluiced] lcores: no port has a receive queue for %s; leave out what has "
			"no "
			"work, or raise \"queues\".",
			list);
}

static void
check_memory(struct conf *conf, struct mistakes *m)
{
	uint32_t need = conf_memory_needed_mb(conf);

	if (conf->memory_line == 0)
		conf->memory_mb = RTE_MAX(need, (uint32_t)MEMORY_DEFAULT_MB);
	else if (conf->memory_mb != 0 && conf->memory_mb < need)
		mistake(m, conf->memory_line,
			"[sluiced] memory = %u: is too little for %u packets; %u at least, or "
			"smaller \"ring\", \"queues\", \"rcvbuf\" or \"flows\".",
			conf->memory_mb, conf_mbufs(conf), need);
}

void
conf_cross(struct conf *conf, struct mistakes *m)
{
	bool whole = mistakes_count(m) == 0;

	if (conf->nports == 0 && whole)
		mistake(m, 0, "names no port; add a section [port NAME].");
	conf_bridge_cross(conf, m);
	for (uint16_t i = 0; i < conf->nports; i++) {
		check_port(conf, &conf->port[i], m);
		for (uint16_t k = 0; k < i; k++)
			check_ports(&conf->port[k], &conf->port[i], m);
	}
	for (uint16_t i = 0; i < conf->nvlans; i++) {
		check_addresses(&conf->vlan[i], m);
		for (uint16_t k = 0; k < conf->nports + i; k++)
			check_networks(conf_nth_port(conf, k), &conf->vlan[i], m);
	}
	conf_link_cross(conf, m);
	check_services(conf, m);
	conf_forward_cross(conf, m);
	conf_mirror_cross(conf, m);
	check_lcores(conf, m);
	check_memory(conf, m);
	if (conf->secondary && conf->hugepages == CONF_HUGE_NO)
		mistake(m, conf->secondary_line,
			"[sluiced] secondary = yes: other processes share memory by hugepages, and "
			"\"hugepages = no\" forbids them; write yes or auto there, or no here.");
	for (uint16_t i = 0; i < conf->nservices; i++) {
		if (conf->service[i].rcvbuf == 0)
			conf->service[i].rcvbuf = RCVBUF_DEFAULT;
		if (conf->service[i].format_line == 0)
			conf->service[i].format = STAMP_SENDER;
	}
}

bool
conf_service_equal(const struct conf_service *a, const struct conf_service *b)
{
	return a->kind == b->kind && a->udp_port == b->udp_port &&
	       a->has_address == b->has_address &&
	       memcmp(&a->address, &b->address, sizeof(a->address)) == 0 &&
	       strcmp(a->port, b->port) == 0 && a->rcvbuf == b->rcvbuf &&
	       a->sequence == b->sequence && a->format == b->format && conf_mirror_equal(a, b);
}
