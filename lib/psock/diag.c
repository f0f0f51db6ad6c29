/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Telemetry: /sluice/packet lists the sockets of every net with what they are set to and have
 * counted. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "psock_priv.h"
#include "sl_dpdk.h"

/* (l) nets_lock */
static struct sl_psock_net *nets;
static pthread_mutex_t nets_lock = PTHREAD_MUTEX_INITIALIZER;

static const char *
type_name(int type)
{
	switch (type) {
	case SOCK_RAW:
		return "raw";
	case SOCK_DGRAM:
		return "dgram";
	default:
		return "packet";
	}
}

static void
add_geo(struct rte_tel_data *d, const char *which, const struct sl_pktring_geo *geo)
{
	struct rte_tel_data *ring = rte_tel_data_alloc();

	if (ring == NULL)
		return;
	rte_tel_data_start_dict(ring);
	rte_tel_data_add_dict_int(ring, "version", geo->version + 1);
	sl_tel_dict_u64(ring, "block_size", geo->block_size);
	sl_tel_dict_u64(ring, "block_nr", geo->block_nr);
	sl_tel_dict_u64(ring, "frame_size", geo->frame_size);
	sl_tel_dict_u64(ring, "frame_nr", geo->frame_nr);
	if (geo->version == TPACKET_V3) {
		sl_tel_dict_u64(ring, "retire_ms", geo->retire_ms);
		sl_tel_dict_u64(ring, "sizeof_priv", geo->priv_size);
		sl_tel_dict_u64(ring, "features", geo->features);
	}
	rte_tel_data_add_dict_container(d, which, ring, 0);
}

static void
add_counters(struct rte_tel_data *d, struct sl_psock *s)
{
	struct sl_pktring_rx_stats ring = {0};
	uint64_t drops = sl_load_relaxed(&s->stats.drops);

	if (s->rx != NULL)
		sl_pktring_rx_stats(s->rx, &ring);
	sl_tel_dict_u64(d, "rx_packets", sl_load_relaxed(&s->stats.packets) + drops + ring.packets);
	sl_tel_dict_u64(d, "rx_drops", drops + ring.drops);
	sl_tel_dict_u64(d, "rx_freezes", ring.freezes);
	sl_tel_dict_u64(d, "tx_packets", sl_load_relaxed(&s->tx_packets));
	sl_tel_dict_u64(d, "tx_bytes", sl_load_relaxed(&s->tx_bytes));
	sl_tel_dict_u64(d, "tx_bad", sl_load_relaxed(&s->tx_bad));
	sl_tel_dict_u64(d, "tx_segments", sl_load_relaxed(&s->tx_segments));
	sl_tel_dict_u64(d, "tx_dropped", sl_load_relaxed(&s->tx_dropped));
	if (s->tx != NULL)
		sl_tel_dict_u64(d, "tx_pending", sl_pktring_tx_pending(s->tx));
}

static void
add_flags(struct rte_tel_data *d, const struct sl_psock *s)
{
	uint32_t id, type;

	rte_tel_data_add_dict_int(d, "running", s->hooked);
	rte_tel_data_add_dict_int(d, "auxdata", s->auxdata);
	rte_tel_data_add_dict_int(d, "origdev", s->origdev);
	rte_tel_data_add_dict_int(d, "vnet_hdr", s->vnet_size);
	rte_tel_data_add_dict_int(d, "loss", s->loss);
	rte_tel_data_add_dict_int(d, "has_off", s->has_off);
	rte_tel_data_add_dict_int(d, "filter", sl_load_relaxed(&s->filter) != NULL);
	if (s->group == NULL)
		return;
	psock_fanout_describe(s, &id, &type);
	sl_tel_dict_u64(d, "fanout_id", id);
	sl_tel_dict_u64(d, "fanout_type", type);
}

static struct rte_tel_data *
describe(struct sl_psock *s)
{
	struct rte_tel_data *d = rte_tel_data_alloc();

	if (d == NULL)
		return NULL;
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "type", type_name(s->type));
	rte_tel_data_add_dict_int(d, "protocol", rte_be_to_cpu_16(s->proto));
	rte_tel_data_add_dict_int(d, "ifindex", s->ifindex);
	sl_tel_dict_u64(d, "reserve", s->reserve);
	rte_tel_data_add_dict_int(d, "copy_thresh", s->copy_thresh);
	rte_tel_data_add_dict_int(d, "timestamp", s->timestamp);
	add_flags(d, s);
	add_counters(d, s);
	if (s->rx != NULL)
		add_geo(d, "rx_ring", sl_pktring_rx_geo(s->rx));
	if (s->tx != NULL)
		add_geo(d, "tx_ring", sl_pktring_tx_geo(s->tx));
	return d;
}

static void
describe_net(struct sl_psock_net *net, struct rte_tel_data *d)
{
	char name[RTE_TEL_MAX_STRING_LEN];
	struct sl_psock *s;

	pthread_mutex_lock(&net->control); /* rings stay while they are looked at */
	pthread_mutex_lock(&net->lock);
	TAILQ_FOREACH(s, &net->sockets, link)
	{
		struct rte_tel_data *one = describe(s);

		snprintf(name, sizeof(name), "socket_%" PRIu32, s->id);
		if (one != NULL)
			rte_tel_data_add_dict_container(d, name, one, 0);
	}
	pthread_mutex_unlock(&net->lock);
	pthread_mutex_unlock(&net->control);
}

static int
list_sockets(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	(void)params;
	rte_tel_data_start_dict(d);
	pthread_mutex_lock(&nets_lock);
	for (struct sl_psock_net *net = nets; net != NULL; net = net->next)
		describe_net(net, d);
	pthread_mutex_unlock(&nets_lock);
	return 0;
}

void
psock_diag_add(struct sl_psock_net *net)
{
	static bool registered;

	pthread_mutex_lock(&nets_lock);
	if (!registered)
		registered =
			rte_telemetry_register_cmd("/sluice/packet", list_sockets,
				"Packet sockets: settings, rings, counters. No parameters") == 0;
	net->next = nets;
	nets = net;
	pthread_mutex_unlock(&nets_lock);
}

void
psock_diag_remove(struct sl_psock_net *net)
{
	struct sl_psock_net **at = &nets;

	pthread_mutex_lock(&nets_lock);
	while (*at != net)
		at = &(*at)->next;
	*at = net->next;
	pthread_mutex_unlock(&nets_lock);
}
