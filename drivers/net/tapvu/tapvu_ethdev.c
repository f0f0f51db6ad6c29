/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The driver as DPDK sees it: probe and remove, configure, start, stop, close, what it can do. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bus_vdev_driver.h>
#include <ethdev_vdev.h>
#include <rte_malloc.h>

#include "sl_errno.h"
#include "tapvu_priv.h"
#include "vdev_secondary.h"

#define RX_OFFLOADS                                                                                \
	(RTE_ETH_RX_OFFLOAD_UDP_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM | RTE_ETH_RX_OFFLOAD_SCATTER)
#define TX_OFFLOADS                                                                                \
	(RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM |                           \
		RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM |                      \
		RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_MT_LOCKFREE)

/* Counters that statistics keep: more than there will be. */
#define BASE_WORDS 128u

static int
infos_get(struct rte_eth_dev *dev, struct rte_eth_dev_info *info)
{
	const struct tapvu_port *port = dev->data->dev_private;

	info->min_mtu = TAPVU_MTU_MIN;
	info->max_mtu = TAPVU_MTU_MAX;
	info->min_rx_bufsize = 128;
	info->max_rx_pktlen = SL_TAPQ_FRAME_MAX;
	info->max_rx_queues = (uint16_t)port->args.taps;
	info->max_tx_queues = TAPVU_TXQ_MAX;
	info->max_mac_addrs = 1;
	info->rx_offload_capa = RX_OFFLOADS;
	info->tx_offload_capa = TX_OFFLOADS;
	info->rx_queue_offload_capa = RX_OFFLOADS;
	info->tx_queue_offload_capa = TX_OFFLOADS;
	info->speed_capa = RTE_ETH_LINK_SPEED_10G;
	info->rx_desc_lim = (struct rte_eth_desc_lim){.nb_max = 32768, .nb_min = 1, .nb_align = 1};
	info->tx_desc_lim = (struct rte_eth_desc_lim){.nb_max = 32768, .nb_min = 1, .nb_align = 1};
	info->default_rxportconf =
		(struct rte_eth_dev_portconf){.burst_size = 32, .ring_size = 1024, .nb_queues = 1};
	info->default_txportconf = info->default_rxportconf;
	return 0;
}

static int
configure(struct rte_eth_dev *dev)
{
	tapvu_intr_close(dev);
	return dev->data->dev_conf.intr_conf.rxq != 0 ? tapvu_intr_open(dev) : 0;
}

/* Frontends are never asked: the link is what we make of them. */
static int
link_update(struct rte_eth_dev *dev, int wait)
{
	(void)dev;
	(void)wait;
	return 0;
}

static bool
frontend_runs(const struct tapvu_port *port)
{
	for (uint32_t i = 0; i < TAPVU_FRONTENDS_MAX; i++)
		if (port->frontend[i].running)
			return true;
	return false;
}

void
tapvu_link_refresh(struct tapvu_port *port)
{
	struct rte_eth_dev *dev = &rte_eth_devices[port->data->port_id];
	bool up, changed;

	pthread_mutex_lock(&port->lock);
	up = port->started && frontend_runs(port);
	changed = dev->data->dev_link.link_status != up;
	dev->data->dev_link.link_status = up;
	if (port->tap.queues > 0 && changed)
		(void)!sl_tap_set_carrier(&port->tap, up);
	pthread_mutex_unlock(&port->lock);
	if (changed)
		rte_eth_dev_callback_process(dev, RTE_ETH_EVENT_INTR_LSC, NULL);
}

static void
started_set(struct rte_eth_dev *dev, bool started)
{
	struct tapvu_port *port = dev->data->dev_private;

	sl_store_relaxed(&port->started, started);
	for (uint16_t i = 0; i < dev->data->nb_rx_queues; i++)
		dev->data->rx_queue_state[i] =
			started ? RTE_ETH_QUEUE_STATE_STARTED : RTE_ETH_QUEUE_STATE_STOPPED;
	for (uint16_t i = 0; i < dev->data->nb_tx_queues; i++)
		dev->data->tx_queue_state[i] =
			started ? RTE_ETH_QUEUE_STATE_STARTED : RTE_ETH_QUEUE_STATE_STOPPED;
	tapvu_link_refresh(port);
}

static int
start(struct rte_eth_dev *dev)
{
	struct tapvu_port *port = dev->data->dev_private;
	int ret = port->tap.queues > 0 ? sl_tap_set_up(&port->tap, true) : 0;

	if (ret == 0)
		started_set(dev, true);
	return ret;
}

static int
stop(struct rte_eth_dev *dev)
{
	dev->data->dev_started = 0;
	started_set(dev, false);
	return 0;
}

static int
mtu_set(struct rte_eth_dev *dev, uint16_t mtu)
{
	struct tapvu_port *port = dev->data->dev_private;

	if (port->tap.queues == 0)
		return 0;
	if (sl_load_relaxed(&port->bridge_max) < SL_TAPQ_FRAME_MAX)
		sl_store_relaxed(&port->bridge_max, mtu + 18u);
	return sl_tap_set_mtu(&port->tap, mtu);
}

/* A virtual wire brings everything there is. */
static int
promiscuous(struct rte_eth_dev *dev)
{
	(void)dev;
	return 0;
}

static int
mac_set(struct rte_eth_dev *dev, struct rte_ether_addr *mac)
{
	(void)dev;
	(void)mac;
	return 0;
}

static const uint32_t *
ptypes_get(struct rte_eth_dev *dev)
{
	(void)dev;
	return NULL; /* only frames with offloads are parsed */
}

static void
close_port(struct rte_eth_dev *dev)
{
	struct tapvu_port *port = dev->data->dev_private;

	tapvu_frontend_close(port); /* from here on nobody is in a ring */
	tapvu_intr_close(dev);
	for (uint16_t i = 0; i < dev->data->nb_rx_queues; i++)
		tapvu_rx_release(dev, i);
	for (uint16_t i = 0; i < dev->data->nb_tx_queues; i++)
		tapvu_tx_release(dev, i);
	if (port->tap.queues > 0) /* else it was never opened */
		sl_tap_close(&port->tap);
	for (uint32_t i = 0; i < TAPVU_FRONTENDS_MAX; i++)
		rte_free(port->frontend[i].ring);
	rte_free(port->base);
	rte_free(port->gone);
	pthread_mutex_destroy(&port->lock);
	dev->data->mac_addrs = NULL; /* lies in the port */
}

static int
dev_close(struct rte_eth_dev *dev)
{
	if (rte_eal_process_type() == RTE_PROC_PRIMARY)
		close_port(dev);
	return 0;
}

static const struct eth_dev_ops ops = {
	.dev_configure = configure,
	.dev_start = start,
	.dev_stop = stop,
	.dev_close = dev_close,
	.dev_infos_get = infos_get,
	.dev_supported_ptypes_get = ptypes_get,
	.link_update = link_update,
	.mtu_set = mtu_set,
	.mac_addr_set = mac_set,
	.promiscuous_enable = promiscuous,
	.promiscuous_disable = promiscuous,
	.allmulticast_enable = promiscuous,
	.allmulticast_disable = promiscuous,
	.rx_queue_setup = tapvu_rx_setup,
	.rx_queue_release = tapvu_rx_release,
	.rx_queue_intr_enable = tapvu_intr_enable,
	.rx_queue_intr_disable = tapvu_intr_disable,
	.tx_queue_setup = tapvu_tx_setup,
	.tx_queue_release = tapvu_tx_release,
	.stats_get = tapvu_stats_get,
	.stats_reset = tapvu_stats_reset,
	.xstats_get = tapvu_xstats_get,
	.xstats_get_names = tapvu_xstats_names,
	.xstats_reset = tapvu_stats_reset,
};

static const struct eth_dev_ops secondary_ops = {
	.dev_close = dev_close,
	.dev_infos_get = infos_get,
};

static int
rings_create(struct tapvu_port *port)
{
	for (uint32_t f = 0; f < TAPVU_FRONTENDS_MAX; f++) {
		struct tapvu_frontend *front = &port->frontend[f];

		front->port = port;
		front->vid = -1;
		front->ring = rte_zmalloc(
			"tapvu rings", 2 * port->args.queues * sizeof(*front->ring), SL_CACHE_LINE);
		if (front->ring == NULL)
			return -ENOMEM;
		for (uint32_t i = 0; i < 2 * port->args.queues; i++) {
			front->ring[i].index = i;
			front->ring[i].frontend = front;
			front->ring[i].call_fd = -1;
			front->ring[i].kick_fd = -1;
			front->ring[i].kick_epoll = -1;
			rte_spinlock_init(&front->ring[i].lock);
		}
	}
	return 0;
}

/* Where it is switched off the bridge works all the same. */
static void
uring_open(struct tapvu_port *port)
{
	int ret = sl_tap_uring_open(&port->tap);

	if (ret != 0)
		TAPVU_LOG(NOTICE, "tap=%s: no io_uring (%s): one system call for each frame\n",
			port->args.tap, sl_strerror(ret));
}

static int
tap_open(struct tapvu_port *port)
{
	uint16_t mtu;
	int ret;

	if (port->args.tap[0] == '\0')
		return 0;
	ret = sl_tap_open(&port->tap, port->args.tap, (uint16_t)port->args.queues);
	if (ret != 0) {
		TAPVU_LOG(ERR, "tap=%s: %s%s\n", port->args.tap, sl_strerror(ret),
			ret == -EPERM ? " (CAP_NET_ADMIN is needed)" : "");
		return ret;
	}
	if (port->args.uring != 0)
		uring_open(port);
	if (sl_tap_get_mtu(&port->tap, &mtu) == 0)
		port->data->mtu = mtu;
	port->bridge_max = port->data->mtu + 18u;
	return sl_tap_set_carrier(&port->tap, false);
}

static int
init_port(struct rte_eth_dev *dev, struct tapvu_port *port)
{
	int ret;

	port->data = dev->data;
	for (uint32_t i = 0; i < TAPVU_QUEUES_MAX; i++)
		port->intr[i].epoll_fd = port->intr[i].wake_fd = -1;
	pthread_mutex_init(&port->lock, NULL);
	rte_eth_random_addr(port->mac.addr_bytes);
	dev->data->mac_addrs = &port->mac;
	dev->data->dev_link = (struct rte_eth_link){.link_speed = RTE_ETH_SPEED_NUM_10G,
		.link_duplex = RTE_ETH_LINK_FULL_DUPLEX,
		.link_status = RTE_ETH_LINK_DOWN,
		.link_autoneg = RTE_ETH_LINK_FIXED};
	dev->data->dev_flags = RTE_ETH_DEV_INTR_LSC;
	dev->data->promiscuous = 1;
	dev->data->all_multicast = 1;
	port->base = rte_zmalloc("tapvu base", BASE_WORDS * sizeof(uint64_t), 0);
	port->gone = rte_zmalloc("tapvu gone", BASE_WORDS * sizeof(uint64_t), 0);
	if (port->base == NULL || port->gone == NULL)
		return -ENOMEM;
	ret = rings_create(port);
	if (ret == 0)
		ret = tap_open(port);
	if (ret == 0)
		ret = tapvu_frontend_open(port);
	return ret;
}

static int
attach_secondary(struct rte_vdev_device *vdev, const char *name)
{
	int ret = vdev_secondary_attach(vdev, &secondary_ops);

	if (ret != 0)
		TAPVU_LOG(ERR, "%s: the primary process has no such port\n", name);
	return ret;
}

static int
probe(struct rte_vdev_device *vdev)
{
	const char *name = rte_vdev_device_name(vdev);
	struct tapvu_port *port;
	struct tapvu_args args;
	struct rte_eth_dev *dev;
	int ret;

	if (rte_eal_process_type() == RTE_PROC_SECONDARY)
		return attach_secondary(vdev, name);
	ret = tapvu_args_parse(rte_vdev_device_args(vdev), &args);
	if (ret != 0)
		return ret;
	if (vdev->device.numa_node == SOCKET_ID_ANY)
		vdev->device.numa_node = (int)rte_socket_id();
	dev = rte_eth_vdev_allocate(vdev, sizeof(*port));
	if (dev == NULL)
		return -ENOMEM;
	port = dev->data->dev_private;
	port->args = args;
	dev->dev_ops = &ops;
	dev->rx_pkt_burst = args.tap[0] != '\0' ? tapvu_bridge_burst : tapvu_rx_burst;
	dev->tx_pkt_burst = tapvu_tx_burst;
	ret = init_port(dev, port);
	if (ret != 0) {
		close_port(dev);
		rte_eth_dev_release_port(dev);
		return ret;
	}
	rte_eth_dev_probing_finish(dev);
	return 0;
}

static int
remove_port(struct rte_vdev_device *vdev)
{
	struct rte_eth_dev *dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));

	if (dev == NULL) /* closed already */
		return 0;
	(void)dev_close(dev);
	return rte_eth_dev_release_port(dev);
}

static struct rte_vdev_driver driver = {
	.probe = probe,
	.remove = remove_port,
};

RTE_INIT(tapvu_telemetry)
{
	tapvu_telemetry_init();
}

RTE_PMD_REGISTER_VDEV(net_tapvu, driver);

RTE_TAILQ_HEAD(driver_list, rte_vdev_driver);

/*
 * DPDK gives a device to the first driver whose name the device's name begins with, and "net_tapvu0"
 * begins with "net_tap", too. Which of these plugins is loaded first is the folder's order: so
 * drivers with such names go behind ours.
 */
RTE_INIT(tapvu_before_net_tap)
{
	struct rte_vdev_driver *d, *before;

	for (d = TAILQ_PREV(&driver, driver_list, next); d != NULL; d = before) {
		before = TAILQ_PREV(d, driver_list, next);
		if (strncmp(driver.driver.name, d->driver.name, strlen(d->driver.name)) != 0)
			continue;
		rte_vdev_unregister(d);
		rte_vdev_register(d);
	}
}

RTE_PMD_REGISTER_PARAM_STRING(net_tapvu, "path=<socket> "
					 "queues=<1-32> "
					 "taps=<1-32> "
					 "tap=<name> "
					 "client=<0|1> "
					 "frag=<lock|lcore|page> "
					 "uring=<0|1>");
