/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

#include "icmp.h"
#include "inet_priv.h"
#include "table.h"

#define VLAN_ID_MAX 4094u
/* Handles from here on have the index of the port; below, the number of the DPDK port. */
#define HANDLE_INDEX 0x8000u

bool
inet_prefix_match(const struct sl_addr *a, const struct sl_addr *b, uint8_t prefix)
{
	uint8_t whole, mask;

	if (inet_is_v4(a) != inet_is_v4(b))
		return false;
	if (inet_is_v4(a))
		prefix = (uint8_t)(prefix + 96);
	whole = prefix / 8;
	mask = (uint8_t)(0xff00u >> (prefix % 8));
	if (memcmp(a->b, b->b, whole) != 0)
		return false;
	return mask == 0 || ((a->b[whole] ^ b->b[whole]) & mask) == 0;
}

struct sl_addr
inet_prefix_of(const struct sl_addr *a, uint8_t prefix)
{
	uint32_t bits = prefix + (inet_is_v4(a) ? 96u : 0u), whole = bits / 8;
	struct sl_addr p = {{0}};

	memcpy(p.b, a->b, whole);
	if (bits % 8 != 0)
		p.b[whole] = (uint8_t)(a->b[whole] & (0xff00u >> (bits % 8)));
	return p;
}

void
inet_wport_forget(struct inet_wport *wport)
{
	/* Destinations that any port takes, never 0.0.0.0 or ::. */
	wport->local4 = UINT32_MAX;
	wport->bcast4 = 0;
	wport->local6 = inet_all_nodes;
}

struct inet_addr *
inet_port_addr(const struct inet_port *port, const struct sl_addr *addr)
{
	uint32_t n = sl_load_acquire(&port->addr_count); /* IN1 */

	for (uint32_t i = 0; i < n; i++) {
		const struct inet_addr *a = &port->addr[i];

		if (inet_addr_state(a) != INET_ADDR_NONE && inet_addr_equal(&a->addr, addr))
			return (struct inet_addr *)(uintptr_t)a;
	}
	return NULL;
}

bool
inet_port_is_local(const struct inet_port *port, const struct sl_addr *addr)
{
	const struct inet_addr *a = inet_port_addr(port, addr);

	return a != NULL && sl_load_relaxed(&a->state) == INET_ADDR_READY;
}

bool
inet_port_is_broadcast4(const struct inet_port *port, uint32_t be)
{
	uint32_t n = sl_load_acquire(&port->addr_count); /* IN1 */

	for (uint32_t i = 0; i < n; i++) {
		const struct inet_addr *a = &port->addr[i];
		uint32_t mask;

		/* RFC 3021: a /31 has no broadcast address. */
		if (inet_addr_state(a) == INET_ADDR_NONE || !inet_is_v4(&a->addr) ||
			a->prefix > 30 || a->prefix == 0)
			continue;
		mask = inet_prefix_mask4(a->prefix);
		if (be == ((inet_to_v4(&a->addr) & mask) | ~mask))
			return true;
	}
	return false;
}

/* fe80::/64 with the MAC address, its universal bit turned, around ff:fe (RFC 4291, appendix A). */
static struct sl_addr
link_local(const struct rte_ether_addr *mac)
{
	const uint8_t *m = mac->addr_bytes;

	return (struct sl_addr){
		{0xfe, 0x80, 0, 0, 0, 0, 0, 0, m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}};
}

/* Destination and type are filled in per packet, the rest never changes. */
static void
make_l2(struct inet_port *port)
{
	uint8_t *p = port->l2 + RTE_ETHER_ADDR_LEN;

	memcpy(p, port->mac.addr_bytes, RTE_ETHER_ADDR_LEN);
	p += RTE_ETHER_ADDR_LEN;
	for (uint8_t i = 0; i < port->vids_count; i++, p += 4) {
		bool outer = port->vids_count == 2 && i == 0;

		inet_put16(p, outer ? RTE_ETHER_TYPE_QINQ : RTE_ETHER_TYPE_VLAN);
		inet_put16(p + 2, port->vids[i]);
	}
	port->l2_len = (uint8_t)(p + 2 - port->l2);
}

static int
port_init(struct inet_port *port, const struct sl_inet_port_conf *conf, uint16_t workers)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf dev_conf;
	int ret;

	port->dev = conf->port_id;
	port->pool = conf->pool;
	port->promiscuous = conf->promiscuous;
	port->any_dst = conf->any_dst;
	if (conf->svlan != 0)
		port->vids[port->vids_count++] = conf->svlan;
	if (conf->vlan != 0)
		port->vids[port->vids_count++] = conf->vlan;
	ret = rte_eth_macaddr_get(port->dev, &port->mac);
	if (ret == 0)
		ret = rte_eth_dev_get_mtu(port->dev, &port->mtu);
	if (ret == 0)
		ret = rte_eth_dev_info_get(port->dev, &info);
	if (ret == 0)
		ret = rte_eth_dev_conf_get(port->dev, &dev_conf);
	if (ret != 0)
		return ret;
	port->tx_udp_cksum = (dev_conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) != 0;
	port->tx_ip_cksum = (dev_conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) != 0;
	if (port->promiscuous) {
		port->mac_mask = rte_cpu_to_be_64(UINT64_C(0x01) << 56); /* the group bit */
	} else {
		memcpy(&port->mac_want, port->mac.addr_bytes, RTE_ETHER_ADDR_LEN);
		memset(&port->mac_mask, 0xff, RTE_ETHER_ADDR_LEN);
	}
	make_l2(port);
	port->workers = inet_alloc(workers * sizeof(*port->workers));
	if (port->workers == NULL)
		return -ENOMEM;
	for (uint16_t i = 0; i < workers; i++)
		inet_wport_forget(&port->workers[i]); /* nothing hit yet */
	return 0;
}

void
inet_port_free(struct inet_port *port, uint16_t workers)
{
	for (uint16_t i = 0; i < workers && port->workers != NULL; i++)
		rte_pktmbuf_free_bulk(port->workers[i].tx, port->workers[i].tx_count);
	free(port->punt);
	free(port->workers);
	free(port);
}

struct inet_port *
inet_port_find(const struct sl_inet *inet, uint16_t handle)
{
	uint16_t index = handle & (HANDLE_INDEX - 1);

	if (handle < HANDLE_INDEX)
		return handle < RTE_MAX_ETHPORTS ? sl_load_acquire(&inet->by_id[handle]) /* IN1 */
						 : NULL;
	if (index >= sl_load_acquire(&inet->port_count)) /* IN1 */
		return NULL;
	return inet->port[index]->id == handle ? inet->port[index] : NULL;
}

/* The one that has these tags of a DPDK port; NULL for none. */
static struct inet_port *
find_tagged(const struct sl_inet *inet, uint16_t dev, uint16_t svlan, uint16_t vlan)
{
	for (uint32_t i = 0; i < inet->port_count; i++) {
		struct inet_port *port = inet->port[i];
		uint16_t outer = port->vids_count == 2 ? port->vids[0] : 0;
		uint16_t inner = port->vids_count != 0 ? port->vids[port->vids_count - 1] : 0;

		if (port->dev == dev && outer == svlan && inner == vlan)
			return port;
	}
	return NULL;
}

int
sl_inet_port_find(const struct sl_inet *inet, uint16_t port_id, uint16_t svlan, uint16_t vlan,
	uint16_t *handle)
{
	struct inet_port *port;

	inet_table_read(inet);
	port = find_tagged(inet, port_id, svlan, vlan);
	inet_table_unlock(inet);
	if (port == NULL)
		return -ENODEV;
	*handle = port->id;
	return 0;
}

/* Let workers see it: they start to look at the one without tags. */
static void
publish(struct sl_inet *inet, struct inet_port *port)
{
	struct inet_port *first = inet->by_dev[port->dev];

	port->index = (uint16_t)inet->port_count;
	port->id = first == NULL ? port->dev : (uint16_t)(HANDLE_INDEX | port->index);
	inet->port[port->index] = port;
	sl_store_release(&inet->port_count, inet->port_count + 1u); /* IN1 */
	if (first == NULL)
		sl_store_release(&inet->by_id[port->dev], port); /* IN1 */
	if (first != NULL && port->vids_count != 0) {
		port->next = first->next;
		sl_store_release(&first->next, port); /* IN1 */
	} else {
		port->next = first;
		sl_store_release(&inet->by_dev[port->dev], port); /* IN1 */
	}
}

static int
port_add_locked(struct sl_inet *inet, const struct sl_inet_port_conf *conf)
{
	struct inet_port *port;
	struct sl_addr addr;
	int ret;

	if (conf->vlan > VLAN_ID_MAX || conf->svlan > VLAN_ID_MAX || conf->pool == NULL)
		return -EINVAL;
	if (conf->svlan != 0 && conf->vlan == 0)
		return -EINVAL;
	if (!rte_eth_dev_is_valid_port(conf->port_id))
		return -ENODEV;
	if (find_tagged(inet, conf->port_id, conf->svlan, conf->vlan) != NULL)
		return -EEXIST;
	if (inet->port_count == SL_INET_PORTS_MAX)
		return -ENOSPC;
	port = inet_alloc(sizeof(*port));
	if (port == NULL)
		return -ENOMEM;
	ret = port_init(port, conf, inet->workers);
	if (ret != 0) {
		inet_port_free(port, inet->workers);
		return ret;
	}
	publish(inet, port);
	addr = link_local(&port->mac);
	return inet_addr_add_locked(inet, port, &addr, 64);
}

int
sl_inet_port_add(struct sl_inet *inet, const struct sl_inet_port_conf *conf)
{
	int ret;

	inet_table_write(inet);
	ret = port_add_locked(inet, conf);
	inet_table_unlock(inet);
	return ret;
}
