/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The driver as DPDK sees it. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <bus_vdev_driver.h>
#include <ethdev_vdev.h>
#include <rte_interrupts.h>
#include <rte_kvargs.h>
#include <rte_malloc.h>

#include "port.h"
#include "sl_errno.h"
#include "vdev_secondary.h"

RTE_LOG_REGISTER(pktring_logtype, pmd.net.pktring, NOTICE)

#define MTU_MIN 68
#define MTU_MAX 65000
#define OVERHEAD (RTE_ETHER_HDR_LEN + 2 * 4) /* header and two VLAN tags */
#define RING_MOST_MB 256		     /* of a client's ring, by default */
#define PARAMS "path=<string> queues=<1-64> copy=<0|1> mac=<address> ringmb=<1-4096>"

static int
configure(struct rte_eth_dev *dev)
{
	struct pktring_port *port = dev->data->dev_private;

	if (dev->data->dev_conf.intr_conf.rxq == 0)
		return 0;
	if (dev->intr_handle == NULL)
		dev->intr_handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	if (dev->intr_handle == NULL)
		return -ENOMEM;
	rte_intr_vec_list_free(dev->intr_handle);
	if (rte_intr_vec_list_alloc(dev->intr_handle, "pktring", port->queues) != 0)
		return -ENOMEM;
	rte_intr_type_set(dev->intr_handle, RTE_INTR_HANDLE_VDEV);
	rte_intr_nb_efd_set(dev->intr_handle, port->queues);
	rte_intr_max_intr_set(dev->intr_handle, port->queues + RTE_INTR_VEC_RXTX_OFFSET);
	rte_intr_efd_counter_size_set(dev->intr_handle, sizeof(uint64_t));
	for (int i = 0; i < port->queues; i++) {
		struct pktring_queue *q = &port->queue[i];

		if (q->event_fd < 0)
			q->event_fd = sl_sys(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
		if (q->event_fd < 0)
			return q->event_fd;
		rte_intr_vec_list_index_set(dev->intr_handle, i, i + RTE_INTR_VEC_RXTX_OFFSET);
		rte_intr_efds_index_set(dev->intr_handle, i, q->event_fd);
	}
	return 0;
}

static void
intr_close(struct rte_eth_dev *dev)
{
	struct pktring_port *port = dev->data->dev_private;

	for (int i = 0; i < port->queues; i++) {
		if (port->queue[i].event_fd >= 0)
			close(port->queue[i].event_fd);
		port->queue[i].event_fd = -1;
	}
	if (dev->intr_handle != NULL)
		rte_intr_vec_list_free(dev->intr_handle);
	rte_intr_instance_free(dev->intr_handle);
	dev->intr_handle = NULL;
}

static int
intr_enable(struct rte_eth_dev *dev, uint16_t i)
{
	struct pktring_port *port = dev->data->dev_private;

	if (port->queue[i].event_fd < 0)
		return -ENOTSUP;
	pktring_sleep(&port->queue[i], true);
	return 0;
}

static int
intr_disable(struct rte_eth_dev *dev, uint16_t i)
{
	struct pktring_port *port = dev->data->dev_private;

	pktring_sleep(&port->queue[i], false);
	return 0;
}

static int
rx_switch(struct rte_eth_dev *dev, uint16_t i, bool on)
{
	struct pktring_queue *q = dev->data->rx_queues[i];

	rte_spinlock_lock(&q->rx_lock);
	q->rx_on = on;
	if (!on)
		pktring_stash_free(q);
	rte_spinlock_unlock(&q->rx_lock);
	dev->data->rx_queue_state[i] =
		on ? RTE_ETH_QUEUE_STATE_STARTED : RTE_ETH_QUEUE_STATE_STOPPED;
	return 0;
}

static int
tx_switch(struct rte_eth_dev *dev, uint16_t i, bool on)
{
	struct pktring_queue *q = dev->data->tx_queues[i];

	rte_spinlock_lock(&q->tx_lock);
	q->tx_on = on;
	rte_spinlock_unlock(&q->tx_lock);
	dev->data->tx_queue_state[i] =
		on ? RTE_ETH_QUEUE_STATE_STARTED : RTE_ETH_QUEUE_STATE_STOPPED;
	return 0;
}

static int
rx_start(struct rte_eth_dev *dev, uint16_t i)
{
	return rx_switch(dev, i, true);
}

static int
rx_stop(struct rte_eth_dev *dev, uint16_t i)
{
	return rx_switch(dev, i, false);
}

static int
tx_start(struct rte_eth_dev *dev, uint16_t i)
{
	return tx_switch(dev, i, true);
}

static int
tx_stop(struct rte_eth_dev *dev, uint16_t i)
{
	return tx_switch(dev, i, false);
}

static void
switch_all(struct rte_eth_dev *dev, bool on)
{
	for (uint16_t i = 0; i < dev->data->nb_tx_queues; i++)
		tx_switch(dev, i, on);
	for (uint16_t i = 0; i < dev->data->nb_rx_queues; i++)
		rx_switch(dev, i, on);
}

static int
link_update(struct rte_eth_dev *dev, int wait)
{
	const struct pktring_port *port = dev->data->dev_private;
	struct rte_eth_link link = {.link_speed = RTE_ETH_SPEED_NUM_10G,
		.link_duplex = RTE_ETH_LINK_FULL_DUPLEX,
		.link_autoneg = RTE_ETH_LINK_FIXED};

	(void)wait;
	link.link_status = dev->data->dev_started && sl_load_relaxed(&port->connected) > 0;
	return rte_eth_linkstatus_set(dev, &link);
}

static int
start(struct rte_eth_dev *dev)
{
	switch_all(dev, true);
	dev->data->dev_started = 1; /* the link depends on it, and the caller sets it later */
	link_update(dev, 0);
	return 0;
}

static int
stop(struct rte_eth_dev *dev)
{
	switch_all(dev, false);
	dev->data->dev_started = 0;
	link_update(dev, 0);
	return 0;
}

static int
dev_close(struct rte_eth_dev *dev)
{
	struct pktring_port *port = dev->data->dev_private;

	if (rte_eal_process_type() != RTE_PROC_PRIMARY)
		return 0;
	pktring_server_stop(port);
	for (uint16_t i = 0; i < port->queues; i++)
		pktring_stash_free(&port->queue[i]);
	intr_close(dev);
	rte_free(port->queue);
	port->queue = NULL;
	dev->data->mac_addrs = NULL; /* part of the private data */
	return 0;
}

static int
infos_get(struct rte_eth_dev *dev, struct rte_eth_dev_info *info)
{
	const struct pktring_port *port = dev->data->dev_private;

	info->max_mac_addrs = 1;
	info->min_mtu = MTU_MIN;
	info->max_mtu = MTU_MAX;
	info->max_rx_pktlen = MTU_MAX + OVERHEAD;
	info->max_rx_queues = port->queues;
	info->max_tx_queues = port->queues;
	info->rx_offload_capa = port->copy ? RTE_ETH_RX_OFFLOAD_SCATTER : 0;
	info->tx_offload_capa = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	info->tx_queue_offload_capa = 0;
	return 0;
}

static int
rx_setup(struct rte_eth_dev *dev, uint16_t i, uint16_t desc, unsigned int socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *pool)
{
	struct pktring_port *port = dev->data->dev_private;
	struct pktring_queue *q = &port->queue[i];
	bool scatter =
		(conf->offloads | dev->data->dev_conf.rxmode.offloads) & RTE_ETH_RX_OFFLOAD_SCATTER;

	(void)desc; /* rings are as long as clients make them */
	(void)socket;
	q->pool = pool;
	q->port_id = dev->data->port_id;
	q->copy = port->copy;
	q->cap = (uint32_t)port->mtu + OVERHEAD;
	q->room = scatter ? UINT32_MAX
			  : (uint32_t)rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
	if (port->copy && q->room < q->cap) {
		PKTRING_LOG(ERR,
			"copy=1: mbufs of %u bytes do not hold frames of %u, and "
			"RX_OFFLOAD_SCATTER "
			"is off\n",
			q->room, q->cap);
		return -EINVAL;
	}
	dev->data->rx_queues[i] = q;
	return 0;
}

static int
tx_setup(struct rte_eth_dev *dev, uint16_t i, uint16_t desc, unsigned int socket,
	const struct rte_eth_txconf *conf)
{
	struct pktring_port *port = dev->data->dev_private;

	(void)desc;
	(void)socket;
	(void)conf;
	dev->data->tx_queues[i] = &port->queue[i];
	return 0;
}

static int
mtu_set(struct rte_eth_dev *dev, uint16_t mtu)
{
	struct pktring_port *port = dev->data->dev_private;

	port->mtu = mtu;
	for (uint16_t i = 0; i < port->queues; i++)
		sl_store_relaxed(&port->queue[i].cap, (uint32_t)mtu + OVERHEAD);
	return 0;
}

static int
mac_set(struct rte_eth_dev *dev, struct rte_ether_addr *mac)
{
	struct pktring_port *port = dev->data->dev_private;

	rte_ether_addr_copy(mac, &port->mac);
	return 0;
}

/* Clients address whom they like, and everything they send is for the application: nothing is
 * filtered, so there is nothing to switch. */
static int
no_filter(struct rte_eth_dev *dev)
{
	(void)dev;
	return 0;
}

static const struct eth_dev_ops ops = {
	.dev_configure = configure,
	.dev_start = start,
	.dev_stop = stop,
	.dev_close = dev_close,
	.dev_infos_get = infos_get,
	.link_update = link_update,
	.promiscuous_enable = no_filter,
	.promiscuous_disable = no_filter,
	.allmulticast_enable = no_filter,
	.allmulticast_disable = no_filter,
	.mtu_set = mtu_set,
	.mac_addr_set = mac_set,
	.rx_queue_setup = rx_setup,
	.tx_queue_setup = tx_setup,
	.rx_queue_start = rx_start,
	.rx_queue_stop = rx_stop,
	.tx_queue_start = tx_start,
	.tx_queue_stop = tx_stop,
	.rx_queue_intr_enable = intr_enable,
	.rx_queue_intr_disable = intr_disable,
	.stats_get = pktring_stats_get,
	.stats_reset = pktring_stats_reset,
	.xstats_get = pktring_xstats_get,
	.xstats_get_names = pktring_xstats_names,
	.xstats_reset = pktring_stats_reset,
};

/* What works without the primary's rings. */
static const struct eth_dev_ops secondary_ops = {
	.dev_close = dev_close,
	.dev_infos_get = infos_get,
	.stats_get = pktring_stats_get,
	.xstats_get = pktring_xstats_get,
	.xstats_get_names = pktring_xstats_names,
};

static int
arg_number(const char *key, const char *value, unsigned long min, unsigned long max,
	unsigned long *out)
{
	char *end;

	*out = strtoul(value, &end, 10);
	if (*value >= '0' && *value <= '9' && *end == '\0' && *out >= min && *out <= max)
		return 0;
	PKTRING_LOG(ERR, "%s=%s: a number from %lu to %lu is needed\n", key, value, min, max);
	return -EINVAL;
}

static int
arg_take(const char *key, const char *value, void *arg)
{
	struct pktring_port *port = arg;
	unsigned long n = 0;
	int ret = 0;

	if (value == NULL || *value == '\0') {
		PKTRING_LOG(ERR, "%s: a value is needed\n", key);
		return -EINVAL;
	}
	if (strcmp(key, "path") == 0) {
		if (strlen(value) >= sizeof(port->path)) {
			PKTRING_LOG(ERR, "path=%s: longer than %zu bytes\n", value,
				sizeof(port->path) - 1);
			return -EINVAL;
		}
		memcpy(port->path, value, strlen(value) + 1);
	} else if (strcmp(key, "queues") == 0) {
		ret = arg_number(key, value, 1, QUEUES_MAX, &n);
		port->queues = (uint16_t)n;
	} else if (strcmp(key, "copy") == 0) {
		ret = arg_number(key, value, 0, 1, &n);
		port->copy = n == 1;
	} else if (strcmp(key, "ringmb") == 0) {
		ret = arg_number(key, value, 1, 4096, &n);
		port->most = (size_t)n << 20;
	} else if (rte_ether_unformat_addr(value, &port->mac) != 0) {
		PKTRING_LOG(ERR, "mac=%s: not an Ethernet address\n", value);
		ret = -EINVAL;
	}
	return ret;
}

static int
args_parse(struct pktring_port *port, const char *text)
{
	static const char *const keys[] = {"path", "queues", "copy", "mac", "ringmb", NULL};
	struct rte_kvargs *args = rte_kvargs_parse(text, keys);
	int ret;

	if (args == NULL) {
		PKTRING_LOG(ERR, "\"%s\" is not of the form " PARAMS "\n", text);
		return -EINVAL;
	}
	ret = rte_kvargs_process(args, NULL, arg_take, port);
	rte_kvargs_free(args);
	if (ret == 0 && port->path[0] == '\0') {
		PKTRING_LOG(ERR, "path=SOCKET is needed: where clients connect\n");
		ret = -EINVAL;
	}
	return ret;
}

static int
queues_alloc(struct pktring_port *port)
{
	port->queue = rte_zmalloc("pktring", QUEUES_MAX * sizeof(*port->queue), SL_CACHE_LINE);
	if (port->queue == NULL)
		return -ENOMEM;
	for (int i = 0; i < QUEUES_MAX; i++) {
		rte_spinlock_init(&port->queue[i].rx_lock);
		rte_spinlock_init(&port->queue[i].tx_lock);
		port->queue[i].event_fd = -1;
	}
	return 0;
}

static int
attach_secondary(struct rte_vdev_device *vdev, const char *name)
{
	int ret = vdev_secondary_attach(vdev, &secondary_ops);

	if (ret != 0)
		PKTRING_LOG(ERR, "%s: the primary process has no such port\n", name);
	return ret;
}

static int
create(struct rte_vdev_device *vdev, const struct pktring_port *args)
{
	struct rte_eth_dev *dev = rte_eth_vdev_allocate(vdev, sizeof(*args));
	struct pktring_port *port;
	int ret;

	if (dev == NULL)
		return -ENOMEM;
	port = dev->data->dev_private;
	*port = *args;
	port->port_id = dev->data->port_id;
	ret = queues_alloc(port);
	if (ret == 0)
		ret = pktring_server_start(port);
	if (ret != 0) {
		PKTRING_LOG(ERR, "path=%s: %s\n", port->path, sl_strerror(ret));
		rte_free(port->queue);
		rte_eth_dev_release_port(dev);
		return ret;
	}
	dev->data->mac_addrs = &port->mac;
	dev->data->dev_flags = RTE_ETH_DEV_INTR_LSC | RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS;
	dev->dev_ops = &ops;
	dev->rx_pkt_burst = pktring_rx_burst;
	dev->tx_pkt_burst = pktring_tx_burst;
	pktring_telemetry_init();
	rte_eth_dev_probing_finish(dev);
	return 0;
}

static int
probe(struct rte_vdev_device *vdev)
{
	struct pktring_port args = {.queues = 1,
		.mtu = RTE_ETHER_MTU,
		.most = (size_t)RING_MOST_MB << 20,
		.listen_fd = -1,
		.epoll_fd = -1,
		.stop_fd = -1};
	const char *name = rte_vdev_device_name(vdev);
	int ret;

	if (rte_eal_process_type() != RTE_PROC_PRIMARY)
		return attach_secondary(vdev, name);
	rte_eth_random_addr(args.mac.addr_bytes);
	ret = args_parse(&args, rte_vdev_device_args(vdev));
	return ret == 0 ? create(vdev, &args) : ret;
}

static int
remove_port(struct rte_vdev_device *vdev)
{
	struct rte_eth_dev *dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));

	if (dev == NULL)
		return 0;
	if (rte_eal_process_type() != RTE_PROC_PRIMARY)
		return rte_eth_dev_release_port(dev);
	return rte_eth_dev_close(dev->data->port_id);
}

static struct rte_vdev_driver driver = {
	.probe = probe,
	.remove = remove_port,
};

RTE_PMD_REGISTER_VDEV(net_pktring, driver);
RTE_PMD_REGISTER_PARAM_STRING(net_pktring, PARAMS);

/* What DPDK's own build makes of the two lines above for dpdk-pmdinfo.py. */
const char pktring_pmd_info[] __attribute__((used)) =
	"PMD_INFO_STRING= {\"name\": \"net_pktring\", \"params\": \"" PARAMS "\", \"pci_ids\": []}";
