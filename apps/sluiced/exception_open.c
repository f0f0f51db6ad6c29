/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Taps come and go with the daemon. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include "../common/app.h"
#include "exception_priv.h"
#include "sl_errno.h"

#define ACCEPT (SL_TAPQ_VNET_ACCEPT_CSUM | SL_TAPQ_VNET_ACCEPT_TSO4 | SL_TAPQ_VNET_ACCEPT_TSO6)

static void __attribute__((noreturn))
fail(const struct daemon *d, const struct conf_port *p, int ret, const char *what)
{
	app_fail("%s:%u: [%s %s] exception = %s: %s: %s.", d->path, p->exception_line, p->section,
		p->name, p->exception, what, sl_strerror(ret));
}

/* What the port can do, of what the kernel asks for. */
static void
port_facts(const struct daemon *d, struct exception *e, uint16_t handle)
{
	struct rte_eth_conf conf = {0};
	uint64_t tx = rte_eth_dev_conf_get(e->port_id, &conf) == 0 ? conf.txmode.offloads : 0;

	e->port = (struct exception_port){.handle = handle,
		.pool = d->pool,
		.tcp_cksum = (tx & RTE_ETH_TX_OFFLOAD_TCP_CKSUM) != 0,
		.udp_cksum = (tx & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) != 0,
		.tso = (tx & RTE_ETH_TX_OFFLOAD_TCP_TSO) != 0 &&
		       (tx & RTE_ETH_TX_OFFLOAD_TCP_CKSUM) != 0 &&
		       (tx & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0};
}

/* MAC address, MTU, addresses: those of the port. */
static void
tap_settings(const struct daemon *d, const struct conf_port *p, struct exception *e)
{
	struct rte_ether_addr mac;
	char text[64];
	uint16_t mtu;
	int ret = rte_eth_macaddr_get(e->port_id, &mac);

	if (ret == 0)
		ret = exception_link_mac(&e->tap, mac.addr_bytes);
	if (ret == 0)
		ret = rte_eth_dev_get_mtu(e->port_id, &mtu);
	if (ret == 0)
		ret = sl_tap_set_mtu(&e->tap, mtu);
	if (ret == 0)
		ret = sl_tap_set_offloads(&e->tap, ACCEPT);
	if (ret == 0)
		ret = sl_tap_set_up(&e->tap, true);
	if (ret != 0)
		fail(d, p, ret, "the tap does not take the port's settings");
	if (mtu + RTE_ETHER_HDR_LEN + 8u + RTE_PKTMBUF_HEADROOM >
		rte_pktmbuf_data_room_size(d->pool))
		app_fail("%s:%u: [%s %s] exception = %s: packets are too small for the device's "
			 "MTU; "
			 "add \"mtu = %u\".",
			d->path, p->exception_line, p->section, p->name, p->exception, mtu);
	for (uint16_t i = 0; i < p->naddrs; i++) {
		ret = exception_link_addr(e->tap.name, &p->addrs[i]);
		if (ret == 0)
			continue;
		sl_addr_format(&p->addrs[i].addr, text, sizeof(text));
		app_fail("%s:%u: [%s %s] exception = %s: the kernel does not take the address %s: "
			 "%s%s.",
			d->path, p->exception_line, p->section, p->name, p->exception, text,
			sl_strerror(ret),
			ret == -EACCES ? "; \"sysctl net.ipv6.conf.default.disable_ipv6=0\" lets it"
				       : "");
	}
}

/* The kernel is to hear of what comes by way of the tap, and by no other. */
static void
quiet(const struct daemon *d, const struct conf_port *p, struct exception *e, const char *owner)
{
	const struct conf_port *on = conf_find_port(&d->conf, owner);
	const char *what = "";
	int ret = 0;

	if (on != NULL && on->iface[0] != '\0')
		ret = exception_quiet(&e->quiet, on->iface, &what);
	if (ret != 0)
		app_note("%s:%u: [%s %s] exception = %s: %s of %s cannot be set (%s): the kernel "
			 "may "
			 "get packets twice",
			d->path, p->exception_line, p->section, p->name, p->exception, what,
			on->iface, sl_strerror(ret));
}

/* Lcores that receive from the port. */
static uint16_t
receivers(const struct daemon *d, const char *owner)
{
	for (uint16_t i = 0; i < d->conf.nports; i++)
		if (strcmp(d->conf.port[i].name, owner) == 0)
			return d->conf.port[i].lcores.n;
	return 1;
}

void
exception_open(struct daemon *d, const struct conf_port *p, uint16_t port_id, uint16_t handle)
{
	const char *owner = p->on[0] != '\0' ? p->on : p->name;
	struct exception *e = calloc(1, sizeof(*e));
	size_t cells = d->nworkers * sizeof(*e->cell);
	int ret;

	if (e != NULL)
		e->cell = aligned_alloc(SL_CACHE_LINE, cells);
	if (e == NULL || e->cell == NULL)
		fail(d, p, -ENOMEM, "cannot be opened");
	memset(e->cell, 0, cells);
	snprintf(e->name, sizeof(e->name), "%s", p->name);
	snprintf(e->owner, sizeof(e->owner), "%s", owner);
	e->port_id = port_id;
	port_facts(d, e, handle);
	ret = sl_tap_open(&e->tap, p->exception, receivers(d, owner));
	if (ret == -EPERM)
		fail(d, p, ret, "a tap needs CAP_NET_ADMIN");
	if (ret == -EBUSY)
		fail(d, p, ret, "an interface of that name is in use, or has other settings");
	if (ret != 0)
		fail(d, p, ret, "the kernel makes no tap");
	quiet(d, p, e, owner);
	tap_settings(d, p, e);
	e->up = true;
	d->exception[d->nexceptions++] = e;
	ret = sl_inet_punt_set(d->inet, handle, &exception_ops, e);
	if (ret != 0)
		fail(d, p, ret, "cannot be connected");
}

/* Does the worker receive from the port of that name? */
static bool
receives(const struct daemon *d, const struct worker *w, const char *owner)
{
	for (uint16_t i = 0; i < w->npairs; i++)
		if (strcmp(d->conf.port[w->pair[i].port_index].name, owner) == 0)
			return true;
	return false;
}

void
exceptions_deal(struct daemon *d)
{
	for (uint16_t i = 0; i < d->nexceptions; i++) {
		struct exception *e = d->exception[i];
		uint16_t next = 0;

		for (uint16_t k = 0; k < d->nworkers; k++) {
			struct worker *w = &d->worker[k];

			/* One that does not receive from the port seldom writes, and may share. */
			e->fd[k] = e->tap.fd[next % e->tap.queues];
			if (!receives(d, w, e->owner) || next == e->tap.queues)
				continue;
			w->tap[w->ntaps++] = (struct worker_tap){.e = e, .fd = e->tap.fd[next++]};
			if (w->tap_room == NULL)
				w->tap_room = malloc(EXCEPTION_FRAME_MAX);
			if (w->tap_room == NULL)
				app_fail("no memory for the exception path.");
		}
	}
}

void
exceptions_close(struct daemon *d)
{
	for (uint16_t i = 0; i < d->nexceptions; i++) {
		struct exception *e = d->exception[i];

		sl_tap_close(&e->tap);
		exception_unquiet(&e->quiet);
		free(e->cell);
		free(e);
	}
	for (uint16_t k = 0; k < d->nworkers; k++)
		free(d->worker[k].tap_room);
	d->nexceptions = 0;
}

void
exceptions_watch(struct daemon *d)
{
	for (uint16_t i = 0; i < d->nexceptions; i++) {
		struct exception *e = d->exception[i];
		struct rte_eth_link link;

		if (rte_eth_link_get_nowait(e->port_id, &link) != 0 ||
			(link.link_status == RTE_ETH_LINK_UP) == e->up)
			continue;
		sl_store_relaxed(&e->up, !e->up);
		if (sl_tap_set_carrier(&e->tap, e->up) != 0)
			app_note("port %s: the carrier of %s cannot be set", e->name, e->tap.name);
	}
}
