/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The driver as DPDK sees it: probe and remove, configure, start, stop, close, what it can do. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bus_vdev_driver.h>
#include <ethdev_vdev.h>
#include <rte_interrupts.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include "sl_errno.h"
#include "tpacket_priv.h"
#include "vdev_secondary.h"

RTE_LOG_REGISTER(tpacket_logtype, pmd.net.tpacket, NOTICE)

#define RX_OFFLOADS                                                                                \
	(RTE_ETH_RX_OFFLOAD_VLAN_STRIP | RTE_ETH_RX_OFFLOAD_IPV4_CKSUM |                           \
		RTE_ETH_RX_OFFLOAD_UDP_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM |                      \
		RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_TIMESTAMP)
#define TX_OFFLOADS                                                                                \
	(RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_VLAN_INSERT |                          \
		RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM |                     \
		RTE_ETH_TX_OFFLOAD_TCP_CKSUM)
#define HASH_TYPES (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP)

#define MTU_MIN 68
#define MTU_MAX (UINT16_MAX - 22)
#define SEGMENTS_MAX 128

#define TPACKET_PARAMS                                                                             \
	"iface=<string> qpairs=<1-64> tpver=<2|3> blocksz=<bytes> framesz=<bytes> "                \
	"framecnt=<frames> qdisc_bypass=<0|1> fanout_mode=<hash|lb|cpu|rollover|rnd|qm> "          \
	"fanout_group=<0-65535> vnet_hdr=<0|1> ignore_outgoing=<0|1> promisc=<0|1> "               \
	"busy_poll=<microseconds>"

/* ---- what it can do ---------------------------------------------------------------------------
 */

/* Datagram segmentation over packet sockets came with Linux 6.2. */
static bool
kernel_has_udp_gso(void)
{
	unsigned long major, minor;
	struct utsname name;
	char *end;

	if (uname(&name) != 0)
		return false;
	major = strtoul(name.release, &end, 10);
	minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
	return major > 6 || (major == 6 && minor >= 2);
}

static int
infos_get(struct rte_eth_dev *dev, struct rte_eth_dev_info *info)
{
	const struct tpacket_port *port = dev->data->dev_private;
	bool vnet = port->args.vnet_hdr && !port->warned_vnet;

	info->if_index = (unsigned int)sl_load_relaxed(&port->ifindex);
	info->min_mtu = MTU_MIN;
	info->max_mtu = MTU_MAX;
	info->min_rx_bufsize = 128;
	info->max_rx_pktlen = MTU_MAX + 22;
	info->max_lro_pkt_size = UINT16_MAX;
	info->max_rx_queues = (uint16_t)port->args.qpairs;
	info->max_tx_queues = (uint16_t)port->args.qpairs;
	info->max_mac_addrs = TPACKET_MACS_MAX;
	info->rx_offload_capa = RX_OFFLOADS | (vnet ? RTE_ETH_RX_OFFLOAD_TCP_LRO : 0) |
				(port->args.version == 3 ? RTE_ETH_RX_OFFLOAD_RSS_HASH : 0);
	info->tx_offload_capa = TX_OFFLOADS | (vnet ? RTE_ETH_TX_OFFLOAD_TCP_TSO : 0) |
				(vnet && kernel_has_udp_gso() ? RTE_ETH_TX_OFFLOAD_UDP_TSO : 0);
	info->rx_queue_offload_capa = info->rx_offload_capa;
	info->tx_queue_offload_capa = info->tx_offload_capa;
	if (port->args.fanout_mode == PACKET_FANOUT_HASH)
		info->flow_type_rss_offloads = HASH_TYPES;
	info->speed_capa = RTE_ETH_LINK_SPEED_AUTONEG;
	info->dev_capa =
		RTE_ETH_DEV_CAPA_RUNTIME_RX_QUEUE_SETUP | RTE_ETH_DEV_CAPA_RUNTIME_TX_QUEUE_SETUP;
	info->rx_desc_lim = (struct rte_eth_desc_lim){.nb_max = 32768, .nb_min = 2, .nb_align = 1};
	info->tx_desc_lim = (struct rte_eth_desc_lim){.nb_max = 32768,
		.nb_min = 2,
		.nb_align = 1,
		.nb_seg_max = SEGMENTS_MAX,
		.nb_mtu_seg_max = SEGMENTS_MAX};
	info->default_rxportconf = (struct rte_eth_dev_portconf){
		.burst_size = 32, .ring_size = TPACKET_RX_DESC_DEFAULT, .nb_queues = 1};
	/* The kernel is done with most frames when the call returns: a short ring stays in the
	 * cache. */
	info->default_txportconf = (struct rte_eth_dev_portconf){
		.burst_size = 32, .ring_size = TPACKET_TX_DESC_DEFAULT, .nb_queues = 1};
	return 0;
}

static const uint32_t *
ptypes_get(struct rte_eth_dev *dev)
{
	static const uint32_t types[] = {
		RTE_PTYPE_L2_ETHER,
		RTE_PTYPE_L2_ETHER_ARP,
		RTE_PTYPE_L2_ETHER_VLAN,
		RTE_PTYPE_L2_ETHER_QINQ,
		RTE_PTYPE_L3_IPV4,
		RTE_PTYPE_L3_IPV4_EXT,
		RTE_PTYPE_L3_IPV6,
		RTE_PTYPE_L3_IPV6_EXT,
		RTE_PTYPE_L4_TCP,
		RTE_PTYPE_L4_UDP,
		RTE_PTYPE_L4_SCTP,
		RTE_PTYPE_L4_ICMP,
		RTE_PTYPE_L4_FRAG,
		RTE_PTYPE_L4_NONFRAG,
		RTE_PTYPE_UNKNOWN,
	};

	(void)dev;
	return types;
}

static int
ptypes_set(struct rte_eth_dev *dev, uint32_t mask)
{
	struct tpacket_rxq *q;
	uint16_t i;

	for (i = 0; i < dev->data->nb_rx_queues; i++) {
		q = dev->data->rx_queues[i];
		if (q != NULL)
			sl_store_relaxed(&q->ptypes, mask);
	}
	return 0;
}

/* ---- interrupt mode
 * ------------------------------------------------------------------------------ */

/* Each queue is an epoll instance of its own, so that the application's registration outlives the
 * queue's socket. */
static int
intr_open(struct rte_eth_dev *dev)
{
	struct tpacket_port *port = dev->data->dev_private;
	uint16_t n = dev->data->nb_rx_queues;
	int i;

	if (dev->intr_handle == NULL)
		dev->intr_handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	if (dev->intr_handle == NULL ||
		rte_intr_vec_list_alloc(dev->intr_handle, "tpacket", n) != 0)
		return -ENOMEM;
	rte_intr_type_set(dev->intr_handle, RTE_INTR_HANDLE_VDEV);
	rte_intr_nb_efd_set(dev->intr_handle, n);
	rte_intr_max_intr_set(dev->intr_handle, n + RTE_INTR_VEC_RXTX_OFFSET);
	rte_intr_efd_counter_size_set(dev->intr_handle, 0); /* there is nothing to read */
	for (i = 0; i < n; i++) {
		if (port->epoll_fd[i] < 0)
			port->epoll_fd[i] = sl_sys(epoll_create1(EPOLL_CLOEXEC));
		if (port->epoll_fd[i] < 0)
			return port->epoll_fd[i];
		rte_intr_vec_list_index_set(dev->intr_handle, i, i + RTE_INTR_VEC_RXTX_OFFSET);
		rte_intr_efds_index_set(dev->intr_handle, i, port->epoll_fd[i]);
	}
	return 0;
}

static void
intr_close(struct rte_eth_dev *dev)
{
	struct tpacket_port *port = dev->data->dev_private;
	size_t i;

	for (i = 0; i < SL_COUNT_OF(port->epoll_fd); i++) {
		if (port->epoll_fd[i] >= 0)
			close(port->epoll_fd[i]);
		port->epoll_fd[i] = -1;
	}
	if (dev->intr_handle != NULL)
		rte_intr_vec_list_free(dev->intr_handle);
	rte_intr_instance_free(dev->intr_handle);
	dev->intr_handle = NULL;
}

/* The socket is always armed; the application's epoll decides whether it looks. */
static int
intr_switch(struct rte_eth_dev *dev, uint16_t queue)
{
	const struct tpacket_port *port = dev->data->dev_private;

	return port->epoll_fd[queue] >= 0 ? 0 : -ENOTSUP;
}

/* ---- life --------------------------------------------------------------------------------------
 */

/* An application that configures a larger MTU than the interface has wants it raised. 1500 says
 * nothing: DPDK puts it in for applications that name none. */
static int
raise_mtu(struct rte_eth_dev *dev)
{
	struct tpacket_port *port = dev->data->dev_private;
	uint32_t now = sl_load_relaxed(&port->kernel_mtu);
	int ret;

	if (dev->data->mtu <= now || dev->data->mtu <= RTE_ETHER_MTU)
		return 0;
	ret = tpacket_if_set_mtu(port->control_fd, port->args.iface, dev->data->mtu);
	if (ret == 0)
		sl_store_relaxed(&port->kernel_mtu, dev->data->mtu);
	else
		TPACKET_LOG(ERR, "%s: cannot raise the MTU from %u to %u: %s", port->args.iface,
			now, dev->data->mtu, sl_strerror(ret));
	return ret;
}

static int
configure(struct rte_eth_dev *dev)
{
	struct tpacket_port *port = dev->data->dev_private;
	const struct rte_eth_conf *conf = &dev->data->dev_conf;
	int ret;

	if ((conf->rxmode.offloads & RTE_ETH_RX_OFFLOAD_TIMESTAMP) != 0) {
		ret = rte_mbuf_dyn_rx_timestamp_register(
			&port->timestamp_offset, &port->timestamp_flag);
		if (ret != 0)
			return sl_rte_error();
	}
	ret = raise_mtu(dev);
	if (ret != 0)
		return ret;
	intr_close(dev);
	return conf->intr_conf.rxq != 0 ? intr_open(dev) : 0;
}

static int
stop(struct rte_eth_dev *dev)
{
	struct tpacket_port *port = dev->data->dev_private;
	uint16_t i;

	for (i = 0; i < dev->data->nb_rx_queues; i++)
		if (dev->data->rx_queues[i] != NULL)
			(void)tpacket_rx_stop(dev, i);
	for (i = 0; i < dev->data->nb_tx_queues; i++)
		if (dev->data->tx_queues[i] != NULL)
			(void)tpacket_tx_stop(dev, i);
	pthread_mutex_lock(&port->lock);
	port->started = false;
	pthread_mutex_unlock(&port->lock);
	return 0;
}

static bool
deferred(const struct rte_eth_dev *dev, bool rx, uint16_t i)
{
	if (rx)
		return ((struct tpacket_rxq *)dev->data->rx_queues[i])->deferred;
	return ((struct tpacket_txq *)dev->data->tx_queues[i])->deferred;
}

static int
start(struct rte_eth_dev *dev)
{
	struct tpacket_port *port = dev->data->dev_private;
	int ret = 0;
	uint16_t i;

	pthread_mutex_lock(&port->lock);
	port->device_tso = tpacket_if_tso(port->control_fd, port->args.iface);
	port->started = true;
	pthread_mutex_unlock(&port->lock);
	/* Transmit first: what arrives in the meantime would wait for a port that is not ready. */
	for (i = 0; i < dev->data->nb_tx_queues && ret == 0; i++)
		if (!deferred(dev, false, i))
			ret = tpacket_tx_start(dev, i);
	for (i = 0; i < dev->data->nb_rx_queues && ret == 0; i++)
		if (!deferred(dev, true, i))
			ret = tpacket_rx_start(dev, i);
	if (ret != 0)
		(void)stop(dev);
	return ret;
}

static int
is_removed(struct rte_eth_dev *dev)
{
	const struct tpacket_port *port = dev->data->dev_private;

	return sl_load_relaxed(&port->ifindex) == 0;
}

static void
close_port(struct rte_eth_dev *dev)
{
	struct tpacket_port *port = dev->data->dev_private;
	uint16_t i;

	tpacket_link_close(dev); /* from here on nobody starts queues again */
	for (i = 0; i < dev->data->nb_rx_queues; i++)
		tpacket_rx_release(dev, i);
	for (i = 0; i < dev->data->nb_tx_queues; i++)
		tpacket_tx_release(dev, i);
	intr_close(dev);
	if (port->control_fd >= 0)
		close(port->control_fd); /* takes all memberships back */
	port->control_fd = -1;
	sl_lcount_destroy(port->pending);
	port->pending = NULL;
	pthread_mutex_destroy(&port->lock);
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
	.is_removed = is_removed,
	.dev_set_link_up = tpacket_link_set_up,
	.dev_set_link_down = tpacket_link_set_down,
	.link_update = tpacket_link_update,
	.promiscuous_enable = tpacket_promisc_on,
	.promiscuous_disable = tpacket_promisc_off,
	.allmulticast_enable = tpacket_allmulti_on,
	.allmulticast_disable = tpacket_allmulti_off,
	.mac_addr_add = tpacket_mac_add,
	.mac_addr_remove = tpacket_mac_remove,
	.mac_addr_set = tpacket_mac_set,
	.set_mc_addr_list = tpacket_mcast_set,
	.mtu_set = tpacket_mtu_set,
	.stats_get = tpacket_stats_get,
	.stats_reset = tpacket_stats_reset,
	.xstats_get = tpacket_xstats_get,
	.xstats_reset = tpacket_stats_reset,
	.xstats_get_names = tpacket_xstats_names,
	.dev_infos_get = infos_get,
	.rxq_info_get = tpacket_rxq_info,
	.txq_info_get = tpacket_txq_info,
	.rx_burst_mode_get = tpacket_rx_burst_mode,
	.tx_burst_mode_get = tpacket_tx_burst_mode,
	.dev_supported_ptypes_get = ptypes_get,
	.dev_ptypes_set = ptypes_set,
	.vlan_offload_set = tpacket_vlan_offload_set,
	.vlan_strip_queue_set = tpacket_vlan_strip_set,
	.rx_queue_start = tpacket_rx_start,
	.rx_queue_stop = tpacket_rx_stop,
	.tx_queue_start = tpacket_tx_start,
	.tx_queue_stop = tpacket_tx_stop,
	.rx_queue_setup = tpacket_rx_setup,
	.rx_queue_release = tpacket_rx_release,
	.rx_queue_intr_enable = intr_switch,
	.rx_queue_intr_disable = intr_switch,
	.tx_queue_setup = tpacket_tx_setup,
	.tx_queue_release = tpacket_tx_release,
	.tx_done_cleanup = tpacket_tx_cleanup,
	.get_monitor_addr = tpacket_rx_monitor,
};

/* What works without the primary's sockets. */
static const struct eth_dev_ops secondary_ops = {
	.dev_close = dev_close,
	.stats_get = tpacket_stats_get,
	.stats_reset = tpacket_stats_reset,
	.xstats_get = tpacket_xstats_get,
	.xstats_reset = tpacket_stats_reset,
	.xstats_get_names = tpacket_xstats_names,
	.dev_infos_get = infos_get,
	.rxq_info_get = tpacket_rxq_info,
	.txq_info_get = tpacket_txq_info,
	.rx_burst_mode_get = tpacket_rx_burst_mode,
	.tx_burst_mode_get = tpacket_tx_burst_mode,
	.dev_supported_ptypes_get = ptypes_get,
};

/* ---- probe -------------------------------------------------------------------------------------
 */

static int
attach_secondary(struct rte_vdev_device *vdev, const char *name)
{
	int ret = vdev_secondary_attach(vdev, &secondary_ops);

	if (ret != 0)
		TPACKET_LOG(ERR, "%s: the primary process has no such port", name);
	else
		TPACKET_LOG(NOTICE,
			"%s: rings belong to the primary process; in this one the port has "
			"counters and information, no data path",
			name);
	return ret;
}

static int
init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;
	int ret;

	ret = pthread_mutexattr_init(&attr);
	if (ret != 0)
		return -ret;
	/* Statistics are read in secondary processes too. */
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	ret = pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
	return -ret;
}

/* Does this kernel give packet sockets a vnet header? Asked once, so that capabilities are true. */
static void
probe_vnet(struct tpacket_port *port)
{
	int one = 1, ret, fd;

	if (!port->args.vnet_hdr)
		return;
	fd = sl_sys(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return;
	ret = sl_sys(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)));
	if (ret != 0) {
		TPACKET_LOG(NOTICE,
			"%s: no vnet header (%s): checksums are made in software and "
			"there is no segmentation offload",
			port->args.iface, sl_strerror(ret));
		port->warned_vnet = true;
	}
	close(fd);
}

static int
open_interface(struct tpacket_port *port, struct rte_ether_addr *mac)
{
	const char *name = port->args.iface;
	uint32_t mtu = 0;
	int ret;

	port->control_fd = sl_sys(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
	if (port->control_fd < 0) {
		TPACKET_LOG(ERR, "%s: no packet socket: %s%s", name, sl_strerror(port->control_fd),
			port->control_fd == -EPERM ? " (CAP_NET_RAW is needed)" : "");
		return port->control_fd;
	}
	port->ifindex = tpacket_if_index(port->control_fd, name);
	if (port->ifindex < 0) {
		TPACKET_LOG(ERR, "iface=%s: %s", name, sl_strerror(port->ifindex));
		return port->ifindex;
	}
	ret = tpacket_if_mac(port->control_fd, name, mac);
	if (ret != 0) {
		TPACKET_LOG(
			ERR, "iface=%s: not an Ethernet interface (%s)", name, sl_strerror(ret));
		return ret;
	}
	ret = tpacket_if_mtu(port->control_fd, name, &mtu);
	port->kernel_mtu = RTE_MIN(mtu, (uint32_t)MTU_MAX);
	return ret;
}

static int
init_port(struct rte_eth_dev *dev, struct tpacket_port *port)
{
	struct rte_ether_addr *macs;
	size_t i;
	int ret;

	for (i = 0; i < SL_COUNT_OF(port->epoll_fd); i++)
		port->epoll_fd[i] = -1;
	port->netlink_fd = -1;
	port->control_fd = -1;
	port->timestamp_offset = -1;
	port->data = dev->data;
	macs = rte_zmalloc("tpacket macs", TPACKET_MACS_MAX * sizeof(*macs), 0);
	if (macs == NULL)
		return -ENOMEM;
	dev->data->mac_addrs = macs;
	ret = open_interface(port, &macs[0]);
	if (ret == 0)
		ret = init_lock(&port->lock);
	if (ret != 0)
		return ret;
	probe_vnet(port);
	dev->data->mtu = (uint16_t)port->kernel_mtu;
	port->mute_other_host = !port->args.promisc;
	ret = sl_lcount_create(RTE_MAX_LCORE, dev->data->numa_node, &port->pending);
	if (ret == 0)
		ret = tpacket_link_open(dev);
	if (ret == 0 && port->args.promisc)
		ret = tpacket_promisc_on(dev);
	return ret;
}

static void
set_functions(struct rte_eth_dev *dev, const struct tpacket_port *port)
{
	dev->dev_ops = &ops;
	dev->rx_pkt_burst = port->args.version == 3 ? tpacket_rx3_burst : tpacket_rx2_burst;
	dev->tx_pkt_burst = tpacket_tx_burst;
	dev->tx_pkt_prepare = tpacket_tx_prepare;
	dev->rx_queue_count = tpacket_rx_count;
	dev->rx_descriptor_status = tpacket_rx_status;
	dev->tx_descriptor_status = tpacket_tx_status;
}

static int
probe(struct rte_vdev_device *vdev)
{
	const char *name = rte_vdev_device_name(vdev);
	struct tpacket_port *port;
	struct tpacket_args args;
	struct rte_eth_dev *dev;
	int ret;

	if (rte_eal_process_type() == RTE_PROC_SECONDARY)
		return attach_secondary(vdev, name);
	ret = tpacket_args_parse(rte_vdev_device_args(vdev), &args);
	if (ret != 0)
		return ret;
	if (vdev->device.numa_node == SOCKET_ID_ANY)
		vdev->device.numa_node = (int)rte_socket_id();
	dev = rte_eth_vdev_allocate(vdev, sizeof(*port));
	if (dev == NULL)
		return -ENOMEM;
	port = dev->data->dev_private;
	port->args = args;
	ret = init_port(dev, port);
	if (ret != 0) {
		close_port(dev);
		rte_eth_dev_release_port(dev);
		return ret;
	}
	set_functions(dev, port);
	dev->data->dev_flags |= RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS;
	(void)tpacket_link_update(dev, 0);
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

RTE_PMD_REGISTER_VDEV(net_tpacket, driver);
RTE_PMD_REGISTER_PARAM_STRING(net_tpacket, TPACKET_PARAMS);

/* What DPDK's own build makes of the two lines above for dpdk-pmdinfo.py. */
const char tpacket_pmd_info[] __attribute__((used)) =
	"PMD_INFO_STRING= {\"name\": \"net_tpacket\", \"params\": \"" TPACKET_PARAMS
	"\", \"pci_ids\": []}";
