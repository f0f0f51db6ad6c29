/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <string.h>

#include <rte_ethdev.h>

#include "app.h"

static void
port_conf(const struct rte_eth_dev_info *info, const struct app_port_conf *c,
	struct rte_eth_conf *conf)
{
	uint64_t rx_tcp = c->bridge ? RTE_ETH_RX_OFFLOAD_TCP_CKSUM : 0;
	uint64_t tx_tcp = c->bridge ? RTE_ETH_TX_OFFLOAD_TCP_CKSUM : 0;

	memset(conf, 0, sizeof(*conf));
	conf->rxmode.offloads =
		info->rx_offload_capa &
		(RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM | rx_tcp);
	conf->txmode.offloads = info->tx_offload_capa &
				(RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM |
					RTE_ETH_TX_OFFLOAD_MULTI_SEGS | tx_tcp);
	conf->intr_conf.rxq = c->interrupts;
	if (c->tcp) {
		conf->rxmode.offloads |=
			info->rx_offload_capa &
			(RTE_ETH_RX_OFFLOAD_TCP_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_LRO);
		conf->rxmode.max_lro_pkt_size = info->max_lro_pkt_size;
		conf->txmode.offloads |= info->tx_offload_capa & (RTE_ETH_TX_OFFLOAD_TCP_CKSUM |
									 RTE_ETH_TX_OFFLOAD_TCP_TSO);
	}
	if (c->mtu != 0)
		conf->rxmode.mtu = c->mtu;
	if (c->rx_queues > 1 && info->flow_type_rss_offloads != 0) {
		conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf->rx_adv_conf.rss_conf.rss_hf =
			info->flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);
	}
}

static int
queues_setup(uint16_t id, const struct app_port_conf *c)
{
	uint16_t rxd = c->rx_ring;
	uint16_t txd = c->tx_ring;
	int socket = rte_eth_dev_socket_id(id);
	int ret = rte_eth_dev_adjust_nb_rx_tx_desc(id, &rxd, &txd);

	for (uint16_t q = 0; q < c->rx_queues && ret == 0; q++)
		ret = rte_eth_rx_queue_setup(id, q, rxd, (unsigned int)socket, NULL, c->pool);
	for (uint16_t q = 0; q < c->tx_queues && ret == 0; q++)
		ret = rte_eth_tx_queue_setup(id, q, txd, (unsigned int)socket, NULL);
	return ret;
}

int
app_port_start(uint16_t id, const struct app_port_conf *c)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf;
	int ret = rte_eth_dev_info_get(id, &info);

	if (ret == 0) {
		port_conf(&info, c, &conf);
		ret = rte_eth_dev_configure(id, c->rx_queues, c->tx_queues, &conf);
	}
	/* Not every driver takes the MTU from the configuration. */
	if (ret == 0 && c->mtu != 0)
		ret = rte_eth_dev_set_mtu(id, c->mtu);
	if (ret == 0)
		ret = queues_setup(id, c);
	if (ret == 0)
		ret = rte_eth_dev_start(id);
	if (ret != 0)
		return ret;
	/* What a port cannot do here it mostly need not: virtual ones receive everything. */
	if (c->promiscuous)
		(void)rte_eth_promiscuous_enable(id);
	else
		(void)rte_eth_allmulticast_enable(id);
	return 0;
}
