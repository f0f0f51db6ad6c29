/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * What the interface lets through. Everything is a membership of the control socket: the kernel
 * counts memberships and takes them back when the socket closes, also after a crash, so the
 * interface is left as an administrator set it.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <rte_ether.h>

#include "sl_errno.h"
#include "tpacket_priv.h"

static int
membership(struct tpacket_port *port, bool add, uint16_t type, const struct rte_ether_addr *mac)
{
	struct packet_mreq req = {
		.mr_ifindex = sl_load_relaxed(&port->ifindex),
		.mr_type = type,
		.mr_alen = mac == NULL ? 0 : RTE_ETHER_ADDR_LEN,
	};

	if (req.mr_ifindex == 0)
		return 0; /* gone: asked for again when it comes back */
	if (mac != NULL)
		memcpy(req.mr_address, mac->addr_bytes, RTE_ETHER_ADDR_LEN);
	return sl_sys(setsockopt(port->control_fd, SOL_PACKET,
		add ? PACKET_ADD_MEMBERSHIP : PACKET_DROP_MEMBERSHIP, &req, sizeof(req)));
}

static uint64_t
mac_word(const struct rte_ether_addr *mac)
{
	uint64_t word = 0;

	memcpy(&word, mac->addr_bytes, RTE_ETHER_ADDR_LEN);
	return word;
}

static struct rte_ether_addr
word_mac(uint64_t word)
{
	struct rte_ether_addr mac;

	memcpy(mac.addr_bytes, &word, RTE_ETHER_ADDR_LEN);
	return mac;
}

bool
tpacket_filter_ours(const struct tpacket_port *port, const uint8_t *dst)
{
	uint64_t word = 0;
	size_t i;

	memcpy(&word, dst, RTE_ETHER_ADDR_LEN);
	for (i = 0; i < SL_COUNT_OF(port->extra_mac); i++)
		if (sl_load_relaxed(&port->extra_mac[i]) == word)
			return true;
	return false;
}

/* One switch: remembered as wanted also when the interface is gone. */
static int
toggle(struct rte_eth_dev *dev, uint16_t type, bool on, bool *wanted)
{
	struct tpacket_port *port = dev->data->dev_private;
	int ret = 0;

	pthread_mutex_lock(&port->lock);
	if (*wanted != on) {
		ret = membership(port, on, type, NULL);
		if (ret == -ENODEV)
			ret = 0;
		if (ret == 0)
			*wanted = on;
	}
	sl_store_relaxed(&port->mute_other_host, !port->promisc_on && !port->args.promisc);
	pthread_mutex_unlock(&port->lock);
	return ret;
}

int
tpacket_promisc_on(struct rte_eth_dev *dev)
{
	struct tpacket_port *port = dev->data->dev_private;

	return toggle(dev, PACKET_MR_PROMISC, true, &port->promisc_on);
}

int
tpacket_promisc_off(struct rte_eth_dev *dev)
{
	struct tpacket_port *port = dev->data->dev_private;

	if (port->args.promisc) /* on for the life of the port */
		return 0;
	return toggle(dev, PACKET_MR_PROMISC, false, &port->promisc_on);
}

int
tpacket_allmulti_on(struct rte_eth_dev *dev)
{
	struct tpacket_port *port = dev->data->dev_private;

	return toggle(dev, PACKET_MR_ALLMULTI, true, &port->allmulti_on);
}

int
tpacket_allmulti_off(struct rte_eth_dev *dev)
{
	struct tpacket_port *port = dev->data->dev_private;

	return toggle(dev, PACKET_MR_ALLMULTI, false, &port->allmulti_on);
}

int
tpacket_mac_add(struct rte_eth_dev *dev, struct rte_ether_addr *mac, uint32_t i, uint32_t vmdq)
{
	struct tpacket_port *port = dev->data->dev_private;
	int ret = 0;

	(void)vmdq;
	if (i >= TPACKET_MACS_MAX)
		return -ENOSPC;
	pthread_mutex_lock(&port->lock);
	if (port->extra_mac[i] != mac_word(mac)) /* a start repeats the whole list */
		ret = membership(port, true, PACKET_MR_UNICAST, mac);
	if (ret == 0)
		sl_store_relaxed(&port->extra_mac[i], mac_word(mac));
	pthread_mutex_unlock(&port->lock);
	return ret;
}

void
tpacket_mac_remove(struct rte_eth_dev *dev, uint32_t i)
{
	struct tpacket_port *port = dev->data->dev_private;
	struct rte_ether_addr mac;

	if (i >= TPACKET_MACS_MAX)
		return;
	pthread_mutex_lock(&port->lock);
	if (port->extra_mac[i] != 0) {
		mac = word_mac(port->extra_mac[i]);
		(void)membership(port, false, PACKET_MR_UNICAST, &mac);
		sl_store_relaxed(&port->extra_mac[i], 0);
	}
	pthread_mutex_unlock(&port->lock);
}

int
tpacket_mac_set(struct rte_eth_dev *dev, struct rte_ether_addr *mac)
{
	struct tpacket_port *port = dev->data->dev_private;
	struct rte_ether_addr now;
	int ret;

	ret = tpacket_if_mac(port->control_fd, port->args.iface, &now);
	if (ret != 0 || rte_is_same_ether_addr(&now, mac))
		return ret;
	ret = tpacket_if_set_mac(port->control_fd, port->args.iface, mac);
	if (ret != 0)
		TPACKET_LOG(
			ERR, "%s: cannot set the address: %s", port->args.iface, sl_strerror(ret));
	return ret;
}

int
tpacket_mcast_set(struct rte_eth_dev *dev, struct rte_ether_addr *list, uint32_t n)
{
	struct tpacket_port *port = dev->data->dev_private;
	uint32_t i;
	int ret = 0;

	if (n > TPACKET_MCAST_MAX)
		return -ENOSPC;
	pthread_mutex_lock(&port->lock);
	for (i = 0; i < port->mcast_nr; i++)
		(void)membership(port, false, PACKET_MR_MULTICAST, &port->mcast[i]);
	port->mcast_nr = 0;
	for (i = 0; i < n && ret == 0; i++) {
		ret = membership(port, true, PACKET_MR_MULTICAST, &list[i]);
		if (ret == 0)
			port->mcast[port->mcast_nr++] = list[i];
	}
	pthread_mutex_unlock(&port->lock);
	return ret;
}

void
tpacket_filter_restore_locked(struct tpacket_port *port)
{
	struct rte_ether_addr mac;
	uint32_t i;
	int ret = 0;

	if (port->promisc_on)
		ret |= membership(port, true, PACKET_MR_PROMISC, NULL);
	if (port->allmulti_on)
		ret |= membership(port, true, PACKET_MR_ALLMULTI, NULL);
	for (i = 0; i < port->mcast_nr; i++)
		ret |= membership(port, true, PACKET_MR_MULTICAST, &port->mcast[i]);
	for (i = 0; i < TPACKET_MACS_MAX; i++) {
		if (port->extra_mac[i] == 0)
			continue;
		mac = word_mac(port->extra_mac[i]);
		ret |= membership(port, true, PACKET_MR_UNICAST, &mac);
	}
	if (ret != 0)
		TPACKET_LOG(WARNING, "%s: not all receive filters could be set again",
			port->args.iface);
}
