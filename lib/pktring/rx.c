/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pktring_priv.h"

/* Where the packet lies in its slot: the network header on a 16-byte boundary behind room for a
 * link header, as Linux lays it out. Above 16 bits there is no way to tell the client. */
static uint32_t
net_offset(const struct sl_pktring_geo *geo, const struct sl_pktring_meta *meta)
{
	uint64_t front = sl_pktring_hdrlen(geo->version);
	uint64_t net = meta->maclen == 0
			       ? TPACKET_ALIGN(front) + 16 + geo->reserve
			       : TPACKET_ALIGN(front + RTE_MAX(meta->maclen, 16u)) + geo->reserve;

	net += meta->vnet_size;
	return net <= UINT16_MAX ? (uint32_t)net : UINT32_MAX;
}

static int
rx_alloc(struct sl_pktring_rx *ring)
{
	bool v3 = ring->geo.version == TPACKET_V3;
	int ret = sl_pktring_mem_alloc(ring->geo.bytes, &ring->mem);

	if (ret != 0)
		return ret;
	if (v3)
		ring->fill = calloc(ring->geo.block_nr, sizeof(*ring->fill));
	else
		ring->busy = calloc(ring->geo.frame_nr, sizeof(*ring->busy));
	return (v3 ? ring->fill == NULL : ring->busy == NULL) ? -ENOMEM : 0;
}

int
sl_pktring_rx_create(const struct sl_pktring_geo *geo, uint64_t now_ns, struct sl_pktring_rx **out)
{
	struct sl_pktring_rx *ring;
	int ret;

	SL_ASSERT(geo->dir == SL_PKTRING_RX && geo->bytes > 0);
	ring = aligned_alloc(SL_CACHE_LINE, RTE_ALIGN_CEIL(sizeof(*ring), (size_t)SL_CACHE_LINE));
	if (ring == NULL)
		return -ENOMEM;
	memset(ring, 0, sizeof(*ring));
	ring->geo = *geo;
	rte_spinlock_init(&ring->lock);
	ret = rx_alloc(ring);
	if (ret != 0) {
		sl_pktring_rx_destroy(ring);
		return ret;
	}
	if (geo->version == TPACKET_V3)
		pktring_block_open(ring, now_ns);
	*out = ring;
	return 0;
}

void
sl_pktring_rx_destroy(struct sl_pktring_rx *ring)
{
	if (ring == NULL)
		return;
	sl_pktring_mem_free(&ring->mem);
	free(ring->busy);
	free(ring->fill);
	free(ring);
}

const struct sl_pktring_mem *
sl_pktring_rx_mem(const struct sl_pktring_rx *ring)
{
	return &ring->mem;
}

const struct sl_pktring_geo *
sl_pktring_rx_geo(const struct sl_pktring_rx *ring)
{
	return &ring->geo;
}

static uint32_t
wire_len(const struct sl_pktring_meta *meta)
{
	return meta->wire_len != 0 ? meta->wire_len : meta->len;
}

static void
header_v1(struct tpacket_hdr *h, const struct sl_pktring_meta *meta, uint32_t snaplen, uint16_t mac,
	uint16_t net)
{
	h->tp_len = wire_len(meta);
	h->tp_snaplen = snaplen;
	h->tp_mac = mac;
	h->tp_net = net;
}

static void
header_v2(struct tpacket2_hdr *h, const struct sl_pktring_meta *meta, uint32_t snaplen,
	uint16_t mac, uint16_t net)
{
	h->tp_len = wire_len(meta);
	h->tp_snaplen = snaplen;
	h->tp_mac = mac;
	h->tp_net = net;
	h->tp_vlan_tci = meta->vlan_tci;
	h->tp_vlan_tpid = meta->vlan_tpid;
	memset(h->tp_padding, 0, sizeof(h->tp_padding));
}

static void
header_v3(struct tpacket3_hdr *h, const struct sl_pktring_meta *meta, uint32_t snaplen,
	uint16_t mac, uint16_t net, bool hash)
{
	h->tp_len = wire_len(meta);
	h->tp_snaplen = snaplen;
	h->tp_mac = mac;
	h->tp_net = net;
	h->hv1.tp_rxhash = hash ? meta->rxhash : 0;
	h->hv1.tp_vlan_tci = meta->vlan_tci;
	h->hv1.tp_vlan_tpid = meta->vlan_tpid;
	h->hv1.tp_padding = 0;
	memset(h->tp_padding, 0, sizeof(h->tp_padding));
}

void
pktring_rx_header(const struct sl_pktring_rx *ring, const struct sl_pktring_meta *meta,
	const struct sl_pktring_room *room)
{
	const struct sl_pktring_geo *geo = &ring->geo;
	uint16_t net = (uint16_t)net_offset(geo, meta);
	uint16_t mac = (uint16_t)(room->data - room->header);
	bool hash = geo->features & TP_FT_REQ_FILL_RXHASH;

	switch (geo->version) {
	case TPACKET_V1:
		header_v1((struct tpacket_hdr *)room->header, meta, room->snaplen, mac, net);
		break;
	case TPACKET_V2:
		header_v2((struct tpacket2_hdr *)room->header, meta, room->snaplen, mac, net);
		break;
	default:
		header_v3((struct tpacket3_hdr *)room->header, meta, room->snaplen, mac, net, hash);
		break;
	}
	pktring_stamp(geo->version, room->header, meta->ns);
	memcpy(room->header + sl_pktring_data(geo->version), &meta->from, sizeof(meta->from));
	/* A frame too small for the packet's start has no room for what goes in front of it. */
	if (meta->vnet_size != 0 && room->snaplen != 0)
		memcpy(room->data - meta->vnet_size, meta->vnet, meta->vnet_size);
}

/* V1, V2: the next slot, if it is the server's and no slower writer is still in it. */
static int
slot_reserve(struct sl_pktring_rx *ring, const struct sl_pktring_meta *meta, uint32_t macoff,
	struct sl_pktring_room *room)
{
	const struct sl_pktring_geo *geo = &ring->geo;
	uint32_t n = ring->head;
	uint32_t start = RTE_MIN(macoff, geo->frame_size);

	room->header = pktring_slot(geo, &ring->mem, n);
	/* PR5, then PR4 */
	if (sl_load_acquire(&ring->busy[n]) != 0 ||
		sl_pktring_status(geo->version, room->header) != TP_STATUS_KERNEL)
		return -ENOBUFS;
	sl_store_relaxed(&ring->busy[n], 1); /* the lock keeps other reservers out */
	ring->head = n + 1 < geo->frame_nr ? n + 1 : 0;
	room->slot = n;
	room->snaplen = RTE_MIN(meta->len, geo->frame_size - start);
	room->data = room->header + macoff;
	room->status = TP_STATUS_USER | meta->status | (ring->losing ? TP_STATUS_LOSING : 0);
	return 0;
}

int
sl_pktring_rx_reserve(struct sl_pktring_rx *ring, const struct sl_pktring_meta *meta,
	struct sl_pktring_room *room)
{
	uint32_t net = net_offset(&ring->geo, meta);
	uint32_t mac = net - meta->maclen;
	int ret;

	rte_spinlock_lock(&ring->lock);
	sl_counter_add(&ring->stats.packets, 1);
	if (net == UINT32_MAX)
		ret = -EMSGSIZE;
	else if (ring->geo.version == TPACKET_V3)
		ret = pktring_block_reserve(ring, meta, mac, room);
	else
		ret = slot_reserve(ring, meta, mac, room);
	if (ret != 0) {
		sl_counter_add(&ring->stats.drops, 1);
		ring->losing = true;
	}
	rte_spinlock_unlock(&ring->lock);
	if (ret == 0)
		pktring_rx_header(ring, meta, room);
	return ret;
}

bool
sl_pktring_rx_commit(
	struct sl_pktring_rx *ring, const struct sl_pktring_room *room, uint32_t status)
{
	bool visible;

	if (ring->geo.version == TPACKET_V3) {
		rte_spinlock_lock(&ring->lock);
		visible = pktring_block_commit(ring, room, status);
		rte_spinlock_unlock(&ring->lock);
		return visible;
	}
	sl_pktring_status_set(ring->geo.version, room->header, room->status | status); /* PR3 */
	/* PR5: whoever finds the slot no longer busy finds it USER, or given back by the client;
	 * without it, the next lap could take the KERNEL from before this packet for free. */
	sl_store_release(&ring->busy[room->slot], 0);
	return true;
}

bool
sl_pktring_rx_tick(struct sl_pktring_rx *ring, uint64_t now_ns)
{
	bool visible;

	if (ring->geo.version != TPACKET_V3 || sl_load_relaxed(&ring->due_ns) == UINT64_MAX)
		return false; /* an empty block is open */
	rte_spinlock_lock(&ring->lock);
	visible = pktring_block_tick(ring, now_ns);
	rte_spinlock_unlock(&ring->lock);
	return visible;
}

void
sl_pktring_rx_stats(const struct sl_pktring_rx *ring, struct sl_pktring_rx_stats *stats)
{
	stats->packets = sl_load_relaxed(&ring->stats.packets);
	stats->drops = sl_load_relaxed(&ring->stats.drops);
	stats->freezes = sl_load_relaxed(&ring->stats.freezes);
}

void
sl_pktring_rx_stats_take(struct sl_pktring_rx *ring, struct sl_pktring_rx_stats *stats)
{
	rte_spinlock_lock(&ring->lock);
	stats->packets = ring->stats.packets - ring->taken.packets;
	stats->drops = ring->stats.drops - ring->taken.drops;
	stats->freezes = ring->stats.freezes - ring->taken.freezes;
	ring->taken = ring->stats;
	ring->losing = false;
	rte_spinlock_unlock(&ring->lock);
}

/* The slot (or block) that was filled last is the client's as long as there is anything to read:
 * clients read in order. */
bool
sl_pktring_rx_readable(struct sl_pktring_rx *ring)
{
	const struct sl_pktring_geo *geo = &ring->geo;
	const struct tpacket_block_desc *block;
	uint32_t n;

	rte_spinlock_lock(&ring->lock);
	n = geo->version == TPACKET_V3 ? ring->block.number : ring->head;
	rte_spinlock_unlock(&ring->lock);
	if (geo->version != TPACKET_V3) {
		n = (n > 0 ? n : geo->frame_nr) - 1;
		return sl_pktring_status(geo->version, pktring_slot(geo, &ring->mem, n)) !=
		       TP_STATUS_KERNEL;
	}
	n = (n > 0 ? n : geo->block_nr) - 1;
	block = (const void *)(ring->mem.addr + (size_t)n * geo->block_size);
	return sl_load_relaxed(&block->hdr.bh1.block_status) != TP_STATUS_KERNEL;
}

bool
sl_pktring_rx_has_room(struct sl_pktring_rx *ring)
{
	const struct sl_pktring_geo *geo = &ring->geo;
	bool room;

	rte_spinlock_lock(&ring->lock);
	if (geo->version == TPACKET_V3)
		room = pktring_block_has_room(ring);
	else
		room = sl_load_relaxed(&ring->busy[ring->head]) == 0 &&
		       sl_pktring_status(geo->version, pktring_slot(geo, &ring->mem, ring->head)) ==
			       TP_STATUS_KERNEL;
	rte_spinlock_unlock(&ring->lock);
	return room;
}
