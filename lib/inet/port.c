/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

#include "icmp.h"
#include "inet_priv.h"

#define VLAN_ID_MAX 4094u

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

struct inet_addr *
inet_port_addr(const struct inet_port *port, const struct sl_addr *addr)
{
	uint32_t n = sl_load_acquire(&port->addr_count); /* IN1 */

	for (uint32_t i = 0; i < n; i++) {
		if (memcmp(&port->addr[i].addr, addr, sizeof(*addr)) == 0)
			return (struct inet_addr *)(uintptr_t)&port->addr[i];
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
		if (!inet_is_v4(&a->addr) || a->prefix > 30 || a->prefix == 0)
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

	port->id = conf->port_id;
	port->pool = conf->pool;
	port->promiscuous = conf->promiscuous;
	port->any_dst = conf->any_dst;
	if (conf->svlan != 0)
		port->vids[port->vids_count++] = conf->svlan;
	if (conf->vlan != 0)
		port->vids[port->vids_count++] = conf->vlan;
	ret = rte_eth_macaddr_get(port->id, &port->mac);
	if (ret == 0)
		ret = rte_eth_dev_get_mtu(port->id, &port->mtu);
	if (ret == 0)
		ret = rte_eth_dev_info_get(port->id, &info);
	if (ret == 0)
		ret = rte_eth_dev_conf_get(port->id, &dev_conf);
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
	for (uint16_t i = 0; i < workers; i++) {
		/* Nothing hit yet: destinations that any port takes, never 0.0.0.0 or ::. */
		port->workers[i].local4 = UINT32_MAX;
		port->workers[i].local6 = inet_all_nodes;
	}
	return 0;
}

void
inet_port_free(struct inet_port *port, uint16_t workers)
{
	for (uint16_t i = 0; i < workers && port->workers != NULL; i++)
		rte_pktmbuf_free_bulk(port->workers[i].tx, port->workers[i].tx_count);
	while (port->retired != NULL) {
		struct inet_retired *r = port->retired;

		port->retired = r->next;
		free(r);
	}
	free(port->workers);
	free(port);
}

int
sl_inet_port_add(struct sl_inet *inet, const struct sl_inet_port_conf *conf)
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
	if (inet->by_id[conf->port_id] != NULL)
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
	inet->port[inet->port_count] = port;
	port->index = (uint16_t)inet->port_count;
	sl_store_release(&inet->by_id[port->id], port);		    /* IN1 */
	sl_store_release(&inet->port_count, inet->port_count + 1u); /* IN1 */
	addr = link_local(&port->mac);
	return sl_inet_addr_add(inet, port->id, &addr, 64);
}

static bool
acceptable4(uint32_t be, uint8_t prefix)
{
	uint32_t first = rte_be_to_cpu_32(be) >> 24, mask;

	if (prefix > 32 || be == UINT32_MAX || first == 0 || first == 127)
		return false;
	if (prefix > 30 || prefix == 0)
		return true; /* no broadcast address, RFC 3021 */
	mask = inet_prefix_mask4(prefix);
	return (be | mask) != UINT32_MAX;
}

/* May a host on a link have that address? What input refuses as a source is refused here too. */
static bool
addr_acceptable(const struct sl_addr *addr, uint8_t prefix)
{
	static const struct sl_addr loopback6 = {{[15] = 1}};

	if (inet_is_multicast(addr) || sl_addr_is_any(addr))
		return false;
	if (inet_is_v4(addr))
		return acceptable4(inet_to_v4(addr), prefix);
	return prefix <= 128 && memcmp(addr, &loopback6, sizeof(*addr)) != 0;
}

int
sl_inet_addr_add(struct sl_inet *inet, uint16_t port_id, const struct sl_addr *addr, uint8_t prefix)
{
	struct inet_port *port = port_id < RTE_MAX_ETHPORTS ? inet->by_id[port_id] : NULL;
	struct inet_addr *a;

	if (port == NULL)
		return -ENODEV;
	if (!addr_acceptable(addr, prefix))
		return -EINVAL;
	for (uint32_t i = 0; i < inet->port_count; i++) {
		/* One link-local address may well be there on two links. */
		bool scoped = inet->port[i] != port && addr->b[0] == 0xfe;

		if (!scoped && inet_port_addr(inet->port[i], addr) != NULL)
			return -EEXIST;
	}
	if (port->addr_count == SL_INET_ADDRS_MAX)
		return -ENOSPC;
	a = &port->addr[port->addr_count];
	a->addr = *addr;
	a->prefix = prefix;
	a->announce = true;
	a->state = inet_is_v4(addr) ? INET_ADDR_READY : INET_ADDR_TENTATIVE;
	if (inet_is_v4(addr))
		sl_store_relaxed(&port->count4, port->count4 + 1);
	sl_store_release(&port->addr_count, port->addr_count + 1u); /* IN1 */
	sl_store_release(&inet->routes, inet->routes + 1u);	    /* IN1 */
	return 0;
}

static const struct inet_addr *
find_addr(const struct sl_inet *inet, const struct sl_addr *addr, uint32_t state)
{
	uint32_t ports = sl_load_acquire(&inet->port_count); /* IN1 */

	for (uint32_t i = 0; i < ports; i++) {
		const struct inet_addr *a = inet_port_addr(inet->port[i], addr);

		if (a != NULL && sl_load_relaxed(&a->state) == state)
			return a;
	}
	return NULL;
}

bool
sl_inet_addr_is_local(const struct sl_inet *inet, const struct sl_addr *addr)
{
	return find_addr(inet, addr, INET_ADDR_READY) != NULL;
}

bool
sl_inet_addr_is_broadcast(const struct sl_inet *inet, const struct sl_addr *addr)
{
	uint32_t ports = sl_load_acquire(&inet->port_count); /* IN1 */

	if (!inet_is_v4(addr))
		return false;
	if (inet_to_v4(addr) == UINT32_MAX)
		return true;
	for (uint32_t i = 0; i < ports; i++) {
		if (inet_port_is_broadcast4(inet->port[i], inet_to_v4(addr)))
			return true;
	}
	return false;
}

bool
sl_inet_addr_is_duplicate(const struct sl_inet *inet, const struct sl_addr *addr)
{
	return find_addr(inet, addr, INET_ADDR_DUPLICATE) != NULL;
}

int
sl_inet_gateway_set(struct sl_inet *inet, uint16_t port_id, const struct sl_addr *gateway)
{
	struct inet_port *port = port_id < RTE_MAX_ETHPORTS ? inet->by_id[port_id] : NULL;
	struct inet_retired *r;

	if (port == NULL)
		return -ENODEV;
	if (!addr_acceptable(gateway, 0) || inet_port_addr(port, gateway) != NULL)
		return -EINVAL;
	if (!inet_is_link_local(gateway) && inet_on_link(port, gateway) < 0)
		return -ENETUNREACH;
	r = inet_alloc(sizeof(*r));
	if (r == NULL)
		return -ENOMEM;
	r->addr = *gateway;
	r->next = port->retired;
	port->retired = r;
	if (inet_is_v4(gateway))
		sl_store_release(&port->gateway4, &r->addr); /* IN1 */
	else
		sl_store_release(&port->gateway6, &r->addr); /* IN1 */
	sl_store_release(&inet->routes, inet->routes + 1u);  /* IN1 */
	return 0;
}
