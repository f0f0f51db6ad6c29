/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * The interface's state: asked for when the application asks, and followed by a netlink socket that
 * DPDK's interrupt thread reads. What a message says is not used, only that something happened to
 * the interface; then its state is read, so that a lost message does no harm.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <rte_interrupts.h>

#include "sl_errno.h"
#include "tpacket_priv.h"

#define UNREGISTER_TRIES 1000

int
tpacket_link_update(struct rte_eth_dev *dev, int wait)
{
	struct tpacket_port *port = dev->data->dev_private;
	struct rte_eth_link link = {0};
	uint32_t flags, mbps;
	bool full;

	(void)wait; /* nothing to negotiate here */
	link.link_autoneg = RTE_ETH_LINK_AUTONEG;
	if (tpacket_if_flags(port->control_fd, port->args.iface, &flags) == 0 &&
		(flags & IFF_UP) != 0 && (flags & IFF_RUNNING) != 0)
		link.link_status = RTE_ETH_LINK_UP;
	tpacket_if_speed(port->control_fd, port->args.iface, &mbps, &full);
	link.link_duplex = full ? RTE_ETH_LINK_FULL_DUPLEX : RTE_ETH_LINK_HALF_DUPLEX;
	link.link_speed = link.link_status == RTE_ETH_LINK_UP ? mbps : RTE_ETH_SPEED_NUM_NONE;
	return rte_eth_linkstatus_set(dev, &link);
}

int
tpacket_link_set_up(struct rte_eth_dev *dev)
{
	struct tpacket_port *port = dev->data->dev_private;

	return tpacket_if_set_up(port->control_fd, port->args.iface, true);
}

int
tpacket_link_set_down(struct rte_eth_dev *dev)
{
	struct tpacket_port *port = dev->data->dev_private;

	return tpacket_if_set_up(port->control_fd, port->args.iface, false);
}

static int
check_rooms(struct rte_eth_dev *dev, uint32_t mtu)
{
	struct tpacket_port *port = dev->data->dev_private;
	struct tpacket_rxq *q;
	uint16_t i;

	for (i = 0; i < dev->data->nb_rx_queues; i++) {
		q = dev->data->rx_queues[i];
		if (q != NULL && !q->scatter && mtu + RTE_ETHER_HDR_LEN > q->room) {
			TPACKET_LOG(ERR,
				"%s: MTU %u needs the scatter offload: queue %u has mbufs "
				"with %u bytes of room",
				port->args.iface, mtu, i, q->room);
			return -EINVAL;
		}
	}
	return 0;
}

int
tpacket_mtu_set(struct rte_eth_dev *dev, uint16_t mtu)
{
	struct tpacket_port *port = dev->data->dev_private;
	uint32_t now;
	int ret;

	ret = check_rooms(dev, mtu);
	if (ret == 0)
		ret = tpacket_if_mtu(port->control_fd, port->args.iface, &now);
	if (ret != 0)
		return ret;
	if (now != mtu)
		ret = tpacket_if_set_mtu(port->control_fd, port->args.iface, mtu);
	if (ret == -EPERM && mtu < now) { /* an own limit below the interface's needs no right */
		TPACKET_LOG(NOTICE,
			"%s: the interface keeps its MTU of %u (no CAP_NET_ADMIN); "
			"the port's is %u",
			port->args.iface, now, mtu);
		ret = 0;
	}
	if (ret != 0) {
		TPACKET_LOG(
			ERR, "%s: cannot set MTU %u: %s", port->args.iface, mtu, sl_strerror(ret));
		return ret;
	}
	pthread_mutex_lock(&port->lock);
	sl_store_relaxed(&port->kernel_mtu, mtu);
	if (port->started && dev->data->mtu != mtu) {
		dev->data->mtu = mtu; /* what the new rings are derived from */
		ret = tpacket_queues_remake_locked(port);
	}
	pthread_mutex_unlock(&port->lock);
	return ret;
}

/* ---- netlink
 * -------------------------------------------------------------------------------------- */

/* Has the interface that we are bound to been deleted? */
static bool
is_deletion(const struct tpacket_port *port, const uint8_t *text, ssize_t len)
{
	const struct nlmsghdr *h = (const struct nlmsghdr *)__builtin_assume_aligned(text, 8);
	const struct ifinfomsg *info;

	for (; NLMSG_OK(h, (uint32_t)len); h = NLMSG_NEXT(h, len)) {
		if (h->nlmsg_type != RTM_DELLINK || h->nlmsg_len < NLMSG_LENGTH(sizeof(*info)))
			continue;
		info = NLMSG_DATA(h);
		/* A bridge tells that it lets go of a port in a message of the same type. */
		if (info->ifi_family == AF_UNSPEC &&
			info->ifi_index == sl_load_relaxed(&port->ifindex))
			return true;
	}
	return false;
}

static void
interface_changed(struct tpacket_port *port, bool deleted)
{
	int index = tpacket_if_index(port->control_fd, port->args.iface);
	uint32_t mtu;
	int ret;

	index = index < 0 ? 0 : index;
	if (tpacket_if_mtu(port->control_fd, port->args.iface, &mtu) == 0)
		sl_store_relaxed(&port->kernel_mtu, RTE_MIN(mtu, (uint32_t)UINT16_MAX));
	if (index == port->ifindex && !deleted)
		return;
	sl_store_relaxed(&port->ifindex, index);
	if (index == 0) {
		TPACKET_LOG(NOTICE, "%s: the interface is gone", port->args.iface);
		return;
	}
	TPACKET_LOG(NOTICE, "%s: the interface is there again, index %d", port->args.iface, index);
	tpacket_filter_restore_locked(port);
	port->device_tso = tpacket_if_tso(port->control_fd, port->args.iface);
	ret = port->started ? tpacket_queues_remake_locked(port) : 0;
	if (ret != 0)
		TPACKET_LOG(ERR, "%s: not all queues could be started again: %s", port->args.iface,
			sl_strerror(ret));
}

static void
on_netlink(void *arg)
{
	struct rte_eth_dev *dev = arg;
	struct tpacket_port *port = dev->data->dev_private;
	uint8_t text[16384] __attribute__((aligned(8)));
	bool deleted = false;
	ssize_t len;

	for (;;) {
		len = sl_sys((int)recv(port->netlink_fd, text, sizeof(text), MSG_DONTWAIT));
		if (len == -ENOBUFS) /* some were lost: the state is read below anyway */
			continue;
		if (len <= 0)
			break;
		deleted = deleted || is_deletion(port, text, len);
	}
	pthread_mutex_lock(&port->lock);
	interface_changed(port, deleted);
	pthread_mutex_unlock(&port->lock);
	/* Without the lock: the application's callback may call us. */
	if (tpacket_link_update(dev, 0) == 0 && dev->data->dev_conf.intr_conf.lsc != 0)
		rte_eth_dev_callback_process(dev, RTE_ETH_EVENT_INTR_LSC, NULL);
}

static int
open_netlink(void)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
	int fd, ret;

	fd = sl_sys(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
	if (fd < 0)
		return fd;
	ret = sl_sys(bind(fd, (struct sockaddr *)&address, sizeof(address)));
	if (ret != 0) {
		close(fd);
		return ret;
	}
	return fd;
}

int
tpacket_link_open(struct rte_eth_dev *dev)
{
	struct tpacket_port *port = dev->data->dev_private;
	int ret;

	port->netlink_fd = open_netlink();
	if (port->netlink_fd < 0) {
		TPACKET_LOG(NOTICE, "%s: the link is not followed, only asked for (%s)",
			port->args.iface, sl_strerror(port->netlink_fd));
		return 0;
	}
	port->link_intr = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	if (port->link_intr == NULL)
		return -ENOMEM;
	rte_intr_fd_set(port->link_intr, port->netlink_fd);
	rte_intr_type_set(port->link_intr, RTE_INTR_HANDLE_EXT);
	ret = rte_intr_callback_register(port->link_intr, on_netlink, dev);
	if (ret != 0) {
		rte_intr_instance_free(port->link_intr);
		port->link_intr = NULL;
		return ret;
	}
	dev->data->dev_flags |= RTE_ETH_DEV_INTR_LSC;
	return 0;
}

void
tpacket_link_close(struct rte_eth_dev *dev)
{
	struct tpacket_port *port = dev->data->dev_private;
	int i, ret = -EAGAIN;

	for (i = 0; port->link_intr != NULL && ret == -EAGAIN && i < UNREGISTER_TRIES; i++) {
		ret = rte_intr_callback_unregister(port->link_intr, on_netlink, dev);
		if (ret == -EAGAIN) /* it is running now */
			usleep(1000);
	}
	rte_intr_instance_free(port->link_intr);
	port->link_intr = NULL;
	if (port->netlink_fd >= 0)
		close(port->netlink_fd);
	port->netlink_fd = -1;
}
