/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Options. SOL_PACKET whole; of SOL_SOCKET what a packet socket needs: timeouts, buffer, filter,
 * pending error. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/time.h>

#include "psock_priv.h"
#include "sl_bpf.h"

#ifndef PACKET_VNET_HDR_SZ
#define PACKET_VNET_HDR_SZ 24 /* newer than the headers of some distributions */
#endif

#define RCVBUF_MIN 2304
#define RCVBUF_MAX (1u << 30)

static int
read_int(const void *value, socklen_t len, bool exact, int *out)
{
	if (exact ? len != sizeof(*out) : len < sizeof(*out))
		return -EINVAL;
	if (value == NULL)
		return -EFAULT;
	memcpy(out, value, sizeof(*out));
	return 0;
}

static bool
has_ring(const struct sl_psock *s)
{
	return s->rx != NULL || s->tx != NULL;
}

static int
set_version(struct sl_psock *s, int v)
{
	if (v < TPACKET_V1 || v > TPACKET_V3)
		return -EINVAL;
	if (has_ring(s))
		return -EBUSY;
	s->version = v;
	return 0;
}

static int
set_reserve(struct sl_psock *s, int v)
{
	if (v < 0)
		return -EINVAL;
	if (has_ring(s))
		return -EBUSY;
	s->reserve = (uint32_t)v;
	return 0;
}

static int
set_loss(struct sl_psock *s, int v)
{
	if (has_ring(s))
		return -EBUSY;
	s->loss = v != 0;
	return 0;
}

static int
set_vnet(struct sl_psock *s, int name, int v)
{
	if (s->type != SOCK_RAW)
		return -EINVAL;
	if (name == PACKET_VNET_HDR_SZ && v != 0 && v != 10 && v != 12)
		return -EINVAL;
	if (has_ring(s))
		return -EBUSY;
	if (name == PACKET_VNET_HDR)
		v = v != 0 ? 10 : 0;
	s->vnet_size = (uint8_t)v;
	return 0;
}

static int
set_timestamp(struct sl_psock *s, int v)
{
	struct sl_pktring_tx_conf conf;

	sl_store_relaxed(&s->timestamp, v);
	rte_spinlock_lock(&s->tx_lock);
	psock_tx_conf(s, &conf);
	if (s->tx != NULL)
		sl_pktring_tx_set(s->tx, &conf);
	rte_spinlock_unlock(&s->tx_lock);
	return 0;
}

static int
set_ignore_outgoing(struct sl_psock *s, int v)
{
	if (v != 0 && v != 1)
		return -EINVAL;
	sl_store_relaxed(&s->ignore_outgoing, v == 1);
	return 0;
}

/* Options that are one int. */
static int
set_word(struct sl_psock *s, int name, int v)
{
	switch (name) {
	case PACKET_COPY_THRESH:
		sl_store_relaxed(&s->copy_thresh, v);
		return 0;
	case PACKET_AUXDATA:
		sl_store_relaxed(&s->auxdata, v != 0);
		return 0;
	case PACKET_ORIGDEV:
		s->origdev = v != 0;
		return 0;
	case PACKET_VERSION:
		return set_version(s, v);
	case PACKET_RESERVE:
		return set_reserve(s, v);
	case PACKET_LOSS:
		return set_loss(s, v);
	case PACKET_VNET_HDR:
	case PACKET_VNET_HDR_SZ:
		return set_vnet(s, name, v);
	case PACKET_TIMESTAMP:
		return set_timestamp(s, v);
	case PACKET_TX_HAS_OFF:
		if (!has_ring(s)) /* ignored otherwise, as on Linux */
			s->has_off = v != 0;
		return 0;
	case PACKET_QDISC_BYPASS:
		s->qdisc_bypass = v != 0;
		return 0;
	case PACKET_IGNORE_OUTGOING:
		return set_ignore_outgoing(s, v);
	default:
		return -ENOPROTOOPT;
	}
}

/* Some options take exactly an int, some at least one. */
static bool
takes_exactly(int name)
{
	return name != PACKET_AUXDATA && name != PACKET_ORIGDEV && name != PACKET_VNET_HDR &&
	       name != PACKET_VNET_HDR_SZ;
}

static bool
is_word(int name)
{
	switch (name) {
	case PACKET_COPY_THRESH:
	case PACKET_AUXDATA:
	case PACKET_ORIGDEV:
	case PACKET_VERSION:
	case PACKET_RESERVE:
	case PACKET_LOSS:
	case PACKET_VNET_HDR:
	case PACKET_VNET_HDR_SZ:
	case PACKET_TIMESTAMP:
	case PACKET_TX_HAS_OFF:
	case PACKET_QDISC_BYPASS:
	case PACKET_IGNORE_OUTGOING:
		return true;
	default:
		return false;
	}
}

static int
set_packet(struct sl_psock *s, int name, const void *value, socklen_t len)
{
	int v, ret;

	if (is_word(name)) {
		ret = read_int(value, len, takes_exactly(name), &v);
		return ret == 0 ? set_word(s, name, v) : ret;
	}
	switch (name) {
	case PACKET_ADD_MEMBERSHIP:
		return psock_member_add(s, value, len);
	case PACKET_DROP_MEMBERSHIP:
		return psock_member_drop(s, value, len);
	case PACKET_RX_RING:
		return psock_ring_set(s, SL_PKTRING_RX, value, len);
	case PACKET_TX_RING:
		return psock_ring_set(s, SL_PKTRING_TX, value, len);
	case PACKET_FANOUT:
		return psock_fanout_set(s, value, len);
	case PACKET_FANOUT_DATA:
		return psock_fanout_data(s, value, len);
	default:
		return -ENOPROTOOPT;
	}
}

static int
set_timeout(int64_t *ns, const void *value, socklen_t len)
{
	struct timeval tv;

	if (len < sizeof(tv))
		return -EINVAL;
	if (value == NULL)
		return -EFAULT;
	memcpy(&tv, value, sizeof(tv));
	if (tv.tv_usec < 0 || tv.tv_usec >= 1000000)
		return -EDOM;
	if (tv.tv_sec > INT32_MAX) /* for ever, or as good as */
		tv = (struct timeval){0};
	/* A negative time has passed already; 0 would mean no limit. */
	sl_store_relaxed(ns,
		tv.tv_sec < 0 ? 1 : (int64_t)tv.tv_sec * 1000000000 + tv.tv_usec * INT64_C(1000));
	return 0;
}

static int
set_rcvbuf(struct sl_psock *s, const void *value, socklen_t len)
{
	uint64_t bytes;
	int v, ret = read_int(value, len, false, &v);

	if (ret != 0)
		return ret;
	/* Doubled, for what is not payload, as on Linux. */
	bytes = v < 0 || (uint32_t)v > RCVBUF_MAX / 2 ? RCVBUF_MAX : 2 * (uint64_t)(uint32_t)v;
	bytes = RTE_MAX(bytes, (uint64_t)RCVBUF_MIN);
	sl_store_relaxed(&s->rcvbuf, bytes);
	sl_udpq_set_rcvbuf(s->queue, bytes);
	return 0;
}

/* Caller: in a control call. */
static int
set_filter(struct sl_psock *s, struct sl_bpf *f)
{
	struct sl_bpf *old = sl_exchange_acq_rel(&s->filter, f); /* PS4 */

	if (old != NULL)
		psock_synchronize(s->net);
	sl_bpf_free(old);
	return old == NULL && f == NULL ? -ENOENT : 0;
}

static int
set_socket(struct sl_psock *s, int name, const void *value, socklen_t len)
{
	struct sl_bpf *f;
	int ret;

	switch (name) {
	case SO_ATTACH_FILTER:
		ret = psock_filter_load(value, len, &f);
		return ret == 0 ? set_filter(s, f) : ret;
	case SO_DETACH_FILTER:
		return set_filter(s, NULL);
	case SO_RCVBUF:
		return set_rcvbuf(s, value, len);
	case SO_SNDTIMEO:
		return set_timeout(&s->sndtimeo_ns, value, len);
	case SO_RCVTIMEO:
		return set_timeout(&s->rcvtimeo_ns, value, len);
	default:
		return -ENOPROTOOPT;
	}
}

int
sl_psock_setsockopt(
	struct sl_psock *s, int level, int name, const void *value, socklen_t len, uint16_t worker)
{
	int ret;

	if (level != SOL_PACKET && level != SOL_SOCKET)
		return -ENOPROTOOPT;
	psock_control(s->net, worker);
	ret = level == SOL_PACKET ? set_packet(s, name, value, len)
				  : set_socket(s, name, value, len);
	psock_control_end(s->net, worker);
	return ret;
}

/* Since the last time, and cleared; drops count as packets too. */
static socklen_t
take_statistics(struct sl_psock *s, struct tpacket_stats_v3 *out)
{
	uint64_t packets = sl_load_relaxed(&s->stats.packets);
	uint64_t drops = sl_load_relaxed(&s->stats.drops);
	struct sl_pktring_rx_stats ring = {0};

	if (s->rx != NULL)
		sl_pktring_rx_stats_take(s->rx, &ring);
	packets -= s->taken.packets;
	drops -= s->taken.drops;
	s->taken.packets += packets;
	s->taken.drops += drops;
	*out = (struct tpacket_stats_v3){.tp_packets = (uint32_t)(packets + drops + ring.packets),
		.tp_drops = (uint32_t)(drops + ring.drops),
		.tp_freeze_q_cnt = (uint32_t)ring.freezes};
	return s->version == TPACKET_V3 ? sizeof(struct tpacket_stats_v3)
					: sizeof(struct tpacket_stats);
}

static int
get_hdrlen(const void *value, socklen_t len, int *out)
{
	int version;

	if (len < sizeof(version))
		return -EINVAL;
	memcpy(&version, value, sizeof(version));
	if (version < TPACKET_V1 || version > TPACKET_V3)
		return -EINVAL;
	*out = (int)sl_pktring_header(version);
	return 0;
}

/* Options whose value is one int. */
static int
get_word(struct sl_psock *s, int name, const void *value, socklen_t len, int *out)
{
	switch (name) {
	case PACKET_AUXDATA:
		*out = s->auxdata;
		return 0;
	case PACKET_ORIGDEV:
		*out = s->origdev;
		return 0;
	case PACKET_VNET_HDR:
		*out = s->vnet_size != 0;
		return 0;
	case PACKET_VNET_HDR_SZ:
		*out = s->vnet_size;
		return 0;
	case PACKET_VERSION:
		*out = s->version;
		return 0;
	case PACKET_HDRLEN:
		return get_hdrlen(value, len, out);
	case PACKET_RESERVE:
		*out = (int)s->reserve;
		return 0;
	case PACKET_LOSS:
		*out = s->loss;
		return 0;
	case PACKET_TIMESTAMP:
		*out = s->timestamp;
		return 0;
	case PACKET_FANOUT:
		return psock_fanout_get(s, out);
	case PACKET_IGNORE_OUTGOING:
		*out = s->ignore_outgoing;
		return 0;
	case PACKET_TX_HAS_OFF:
		*out = s->has_off;
		return 0;
	case PACKET_QDISC_BYPASS:
		*out = s->qdisc_bypass;
		return 0;
	case PACKET_COPY_THRESH:
		*out = s->copy_thresh;
		return 0;
	default:
		return -ENOPROTOOPT;
	}
}

/* No more than what there is room for, and no more than what there is. */
static int
give(void *value, socklen_t *len, const void *from, socklen_t size)
{
	*len = RTE_MIN(*len, size);
	memcpy(value, from, *len);
	return 0;
}

static int
get_packet(struct sl_psock *s, int name, void *value, socklen_t *len)
{
	struct tpacket_rollover_stats rollover;
	struct tpacket_stats_v3 stats;
	socklen_t size;
	int word, ret;

	switch (name) {
	case PACKET_STATISTICS:
		size = take_statistics(s, &stats);
		return give(value, len, &stats, size);
	case PACKET_ROLLOVER_STATS:
		ret = psock_rollover_get(s, &rollover);
		return ret == 0 ? give(value, len, &rollover, sizeof(rollover)) : ret;
	default:
		ret = get_word(s, name, value, *len, &word);
		return ret == 0 ? give(value, len, &word, sizeof(word)) : ret;
	}
}

static int
give_timeout(int64_t ns, void *value, socklen_t *len)
{
	struct timeval tv = {.tv_sec = ns / 1000000000, .tv_usec = ns % 1000000000 / 1000};

	return give(value, len, &tv, sizeof(tv));
}

static int
get_socket(struct sl_psock *s, int name, void *value, socklen_t *len)
{
	int word;

	switch (name) {
	case SO_ERROR:
		word = sl_exchange_acq_rel(&s->error, 0); /* PS3 */
		break;
	case SO_TYPE:
		word = s->type;
		break;
	case SO_RCVBUF:
		word = (int)s->rcvbuf;
		break;
	case SO_SNDTIMEO:
		return give_timeout(s->sndtimeo_ns, value, len);
	case SO_RCVTIMEO:
		return give_timeout(s->rcvtimeo_ns, value, len);
	default:
		return -ENOPROTOOPT;
	}
	return give(value, len, &word, sizeof(word));
}

int
sl_psock_getsockopt(struct sl_psock *s, int level, int name, void *value, socklen_t *len)
{
	int ret;

	if (level != SOL_PACKET && level != SOL_SOCKET)
		return -ENOPROTOOPT;
	if (value == NULL || len == NULL)
		return -EFAULT;
	if (*len > INT_MAX)
		return -EINVAL;
	psock_control(s->net, SL_PSOCK_NO_WORKER);
	ret = level == SOL_PACKET ? get_packet(s, name, value, len)
				  : get_socket(s, name, value, len);
	psock_control_end(s->net, SL_PSOCK_NO_WORKER);
	return ret;
}
