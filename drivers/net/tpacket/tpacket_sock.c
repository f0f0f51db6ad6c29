/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <numa.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/if_ether.h>

#include "sl_errno.h"
#include "tpacket_priv.h"

/* Copies of frames that do not fit a slot wait in the socket's queue: room for some super-frames.
 */
#define RCVBUF_BYTES (8u << 20)
/* In flight at once: all of a ring, with what the kernel adds to each frame. */
#define SNDBUF_BYTES (8u << 20)
/* Enough that the queue may hold copies at all; the kernel counts in bytes but takes any value. */
#define COPY_THRESH 1

/* Frame headers before the data: version 2 ends them at 66, version 3 at 82, without vnet header.
 */
#define SLOT_HEAD 82
#define LINK_BYTES (14 + 8)
#define TX_HEAD 32
/* Block header of version 3 and the alignment of its first frame. */
#define V3_BLOCK_HEAD 64
#define V3_RETIRE_MS 1

uint32_t
tpacket_slot_bytes(uint32_t mtu, uint32_t vnet_len)
{
	return SLOT_HEAD + vnet_len + mtu + LINK_BYTES;
}

static int
set_int(int fd, int option, int value)
{
	return sl_sys(setsockopt(fd, SOL_PACKET, option, &value, sizeof(value)));
}

static void
set_buffer(struct tpacket_port *port, int fd, int forced, int plain, int bytes)
{
	int ret;

	ret = sl_sys(setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof(bytes)));
	if (ret == 0)
		return;
	if (!port->warned_buffer)
		TPACKET_LOG(NOTICE,
			"%s: socket buffers stay within the system's limit (%s); "
			"super-frames may be lost under load",
			port->args.iface, sl_strerror(ret));
	port->warned_buffer = true;
	(void)sl_sys(setsockopt(fd, SOL_SOCKET, plain, &bytes, sizeof(bytes)));
}

/* Returns the bytes of vnet header that the socket will use. */
static uint32_t
enable_vnet(struct tpacket_port *port, int fd)
{
	int ret;

	if (!port->args.vnet_hdr)
		return 0;
	ret = set_int(fd, PACKET_VNET_HDR, 1);
	if (ret == 0)
		return TPACKET_VNET_LEN;
	if (!port->warned_vnet)
		TPACKET_LOG(NOTICE,
			"%s: no vnet header (%s): checksums are made in software and "
			"there is no segmentation offload",
			port->args.iface, sl_strerror(ret));
	port->warned_vnet = true;
	return 0;
}

static void
enable_bypass(struct tpacket_port *port, int fd)
{
	int ret;

	if (!port->args.qdisc_bypass)
		return;
	ret = set_int(fd, PACKET_QDISC_BYPASS, 1);
	if (ret != 0 && !port->warned_bypass) {
		TPACKET_LOG(NOTICE, "%s: transmit goes through the queueing discipline (%s)",
			port->args.iface, sl_strerror(ret));
		port->warned_bypass = true;
	}
}

static int
open_socket(struct tpacket_port *port)
{
	/* Protocol 0: nothing is received before the bind names protocol and interface. */
	int fd = sl_sys(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));

	if (fd == -EPERM)
		TPACKET_LOG(ERR, "%s: a packet socket needs CAP_NET_RAW", port->args.iface);
	else if (fd < 0)
		TPACKET_LOG(ERR, "%s: no packet socket: %s", port->args.iface, sl_strerror(fd));
	return fd;
}

static int
bind_socket(struct tpacket_port *port, int fd, uint16_t protocol)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(protocol),
		.sll_ifindex = sl_load_relaxed(&port->ifindex),
	};
	socklen_t len = sizeof(int);
	int ret, pending;

	if (address.sll_ifindex <= 0)
		return -ENODEV; /* 0 would mean all interfaces */
	ret = sl_sys(bind(fd, (struct sockaddr *)&address, sizeof(address)));
	if (ret == 0) /* an interface that is down leaves an error for the next call; forget it */
		(void)sl_sys(getsockopt(fd, SOL_SOCKET, SO_ERROR, &pending, &len));
	return ret;
}

/* A socket, and a ring that owns it and has no memory yet. */
static int
open_ring(struct tpacket_port *port, struct tpacket_ring **out)
{
	struct tpacket_ring *ring;
	int fd = open_socket(port);

	if (fd < 0)
		return fd;
	ring = calloc(1, sizeof(*ring));
	if (ring == NULL) {
		close(fd);
		return -ENOMEM;
	}
	ring->fd = fd;
	ring->super_fd = -1;
	*out = ring;
	return 0;
}

void
tpacket_ring_destroy(struct tpacket_ring *ring)
{
	if (ring == NULL)
		return;
	/* The mapping holds the socket: without this the fan-out would keep its member. */
	if (ring->map != NULL)
		munmap(ring->map, ring->map_len);
	if (ring->super_fd >= 0)
		close(ring->super_fd);
	close(ring->fd);
	free(ring);
}

/* The kernel takes ring pages from the node that the caller prefers. */
static void
prefer_node(uint32_t socket_id)
{
	if (socket_id != (uint32_t)SOCKET_ID_ANY && numa_available() >= 0 && numa_max_node() > 0 &&
		(int)socket_id <= numa_max_node())
		numa_set_preferred((int)socket_id);
}

static void
prefer_any(void)
{
	if (numa_available() >= 0 && numa_max_node() > 0)
		numa_set_localalloc();
}

static int
map_ring(struct tpacket_port *port, struct tpacket_ring *ring, int option, uint32_t socket_id,
	uint32_t features)
{
	struct tpacket_req3 req = {
		.tp_block_size = ring->geom.block_size,
		.tp_block_nr = ring->geom.block_nr,
		.tp_frame_size = ring->geom.frame_size,
		.tp_frame_nr = ring->geom.frame_nr,
		.tp_retire_blk_tov = V3_RETIRE_MS,
		.tp_feature_req_word = features,
	};
	socklen_t len =
		ring->version == 3 ? sizeof(struct tpacket_req3) : sizeof(struct tpacket_req);
	void *map;
	int ret;

	prefer_node(socket_id);
	ret = sl_sys(setsockopt(ring->fd, SOL_PACKET, option, &req, len));
	prefer_any();
	if (ret != 0) {
		TPACKET_LOG(ERR, "%s: no ring of %u blocks of %u bytes: %s", port->args.iface,
			req.tp_block_nr, req.tp_block_size, sl_strerror(ret));
		return ret;
	}
	/* Not locked: the kernel's ring pages are never paged out, and a lock would count against
	 * a limit that is 64 KB for many users. */
	ring->map_len = (size_t)ring->geom.block_size * ring->geom.block_nr;
	map = mmap(NULL, ring->map_len, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (map == MAP_FAILED)
		return sl_sys(-1);
	ring->map = map;
	return 0;
}

/* An application that names no MTU is given 1500 by DPDK, whatever the interface has. */
static uint32_t
ring_mtu(const struct tpacket_port *port)
{
	return RTE_MAX((uint32_t)port->data->mtu, sl_load_relaxed(&port->kernel_mtu));
}

/* What was asked for by name and had to be rounded is worth a line; a descriptor count is not. */
static void
tell_geometry(const struct tpacket_port *port, const char *what, const struct tpacket_geom *g,
	bool changed)
{
	const struct tpacket_args *args = &port->args;
	bool asked = args->block_size != 0 || args->frame_size != 0 || args->frame_nr != 0;

	rte_log(changed && asked ? RTE_LOG_NOTICE : RTE_LOG_INFO, tpacket_logtype,
		"net_tpacket: %s: %s ring%s: %u blocks of %u bytes, %u frames of %u bytes\n",
		args->iface, what, changed ? " rounded" : "", g->block_nr, g->block_size,
		g->frame_nr, g->frame_size);
}

static int
derive(struct tpacket_port *port, const char *what, struct tpacket_geom_ask *ask,
	struct tpacket_geom *out)
{
	bool raised = false, changed;
	int ret;

	ask->block_size = port->args.block_size;
	ask->frame_size = port->args.frame_size;
	if (port->args.frame_nr != 0)
		ask->frame_nr = port->args.frame_nr;
	ask->page = (uint32_t)getpagesize();
	/* Larger packets have another way in, but none out. */
	if (ask->fit_slot && ask->frame_size != 0 && ask->frame_size < ask->slot) {
		ask->frame_size = 0;
		raised = true;
	}
	ret = tpacket_geom_derive(ask, out, &changed);
	if (ret != 0) {
		TPACKET_LOG(ERR,
			"%s: no %s ring of %u frames of %u bytes in blocks of %u can be made",
			port->args.iface, what, ask->frame_nr,
			ask->frame_size != 0 ? ask->frame_size : ask->slot, ask->block_size);
		return ret;
	}
	tell_geometry(port, what, out, changed || raised);
	return 0;
}

/* ---- receive -------------------------------------------------------------------------------- */

static bool
wants_fanout(const struct tpacket_port *port)
{
	return port->data->nb_rx_queues > 1 || port->args.fanout_group >= 0;
}

static void
drop_all(int fd, bool on)
{
	static struct sock_filter none[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
	struct sock_fprog program = {.len = 1, .filter = none};
	int unused = 0;

	if (on)
		(void)sl_sys(
			setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
	else
		(void)sl_sys(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused)));
}

static int
join_fanout(struct tpacket_port *port, int fd)
{
	uint32_t id = port->fanout_id;
	uint32_t type = port->args.fanout_mode;
	socklen_t len = sizeof(id);
	int ret, value;

	if (port->args.fanout_group >= 0)
		id = (uint32_t)port->args.fanout_group;
	else if (port->fanout_members == 0) {
		/* The kernel picks a group id that nobody on this machine uses. */
		id = 0;
		type |= PACKET_FANOUT_FLAG_UNIQUEID;
	}
	value = (int)(id | type << 16);
	ret = set_int(fd, PACKET_FANOUT, value);
	if (ret != 0) {
		TPACKET_LOG(ERR, "%s: cannot join fan-out group %u (%s): %s", port->args.iface, id,
			tpacket_fanout_name(port->args.fanout_mode), sl_strerror(ret));
		return ret;
	}
	ret = sl_sys(getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &value, &len));
	if (ret == 0)
		port->fanout_id = (uint32_t)value & UINT16_MAX;
	port->fanout_members++;
	return 0;
}

static void
receive_options(struct tpacket_port *port, int fd)
{
	int us = (int)port->args.busy_poll_us;
	int ret;

	if (port->args.ignore_outgoing) {
		ret = set_int(fd, PACKET_IGNORE_OUTGOING, 1);
		if (ret != 0)
			TPACKET_LOG(NOTICE, "%s: frames that this host sends are received too: %s",
				port->args.iface, sl_strerror(ret));
	}
	if (us != 0) {
		ret = sl_sys(setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL, &us, sizeof(us)));
		if (ret != 0)
			TPACKET_LOG(NOTICE, "%s: no busy polling in the kernel: %s",
				port->args.iface, sl_strerror(ret));
	}
}

static int
receive_ring(struct tpacket_port *port, struct tpacket_rxq *q, struct tpacket_ring *ring)
{
	struct tpacket_geom_ask ask = {
		.frame_nr = q->desc,
		.slot = tpacket_slot_bytes(ring_mtu(port), TPACKET_VNET_LEN),
	};
	uint32_t features = 0;
	int ret;

	ring->version = port->args.version;
	ret = set_int(ring->fd, PACKET_VERSION, ring->version == 3 ? TPACKET_V3 : TPACKET_V2);
	if (ret != 0)
		return ret;
	ring->vnet_len = enable_vnet(port, ring->fd);
	receive_options(port, ring->fd);
	if (ring->version == 3) {
		ask.whole_blocks = true;
		ask.block_least = V3_BLOCK_HEAD + ask.slot;
		if (ring->vnet_len != 0)
			ask.block_least =
				V3_BLOCK_HEAD + SLOT_HEAD + TPACKET_VNET_LEN + TPACKET_SUPER_MAX;
		if ((q->offloads & RTE_ETH_RX_OFFLOAD_RSS_HASH) != 0)
			features = TP_FT_REQ_FILL_RXHASH;
	} else {
		ret = set_int(ring->fd, PACKET_COPY_THRESH, COPY_THRESH);
		if (ret != 0)
			return ret;
		set_buffer(port, ring->fd, SO_RCVBUFFORCE, SO_RCVBUF, RCVBUF_BYTES);
	}
	ret = derive(port, "receive", &ask, &ring->geom);
	if (ret != 0)
		return ret;
	return map_ring(port, ring, PACKET_RX_RING, q->socket_id, features);
}

int
tpacket_sock_rx(struct tpacket_port *port, struct tpacket_rxq *q, struct tpacket_ring **out)
{
	struct tpacket_ring *ring;
	int ret;

	ret = open_ring(port, &ring);
	if (ret != 0)
		return ret;
	ret = receive_ring(port, q, ring);
	if (ret != 0)
		goto destroy;
	/* Between bind and join the socket would see the frames of all queues once more. */
	if (wants_fanout(port))
		drop_all(ring->fd, true);
	ret = bind_socket(port, ring->fd, ETH_P_ALL);
	if (ret != 0)
		goto destroy;
	if (wants_fanout(port)) {
		ret = join_fanout(port, ring->fd);
		drop_all(ring->fd, false);
	}
	if (ret != 0)
		goto destroy;
	*out = ring;
	return 0;

destroy:
	tpacket_ring_destroy(ring);
	return ret;
}

/* ---- transmit ------------------------------------------------------------------------------- */

static int
super_socket(struct tpacket_port *port, struct tpacket_ring *ring)
{
	int fd, ret;

	fd = open_socket(port);
	if (fd < 0)
		return fd;
	ret = set_int(fd, PACKET_VNET_HDR, 1);
	if (ret == 0)
		ret = bind_socket(port, fd, 0);
	if (ret != 0) {
		close(fd);
		return ret;
	}
	set_buffer(port, fd, SO_SNDBUFFORCE, SO_SNDBUF, SNDBUF_BYTES);
	/* Without the queueing discipline nobody segments for a device that cannot. */
	if (port->device_tso)
		enable_bypass(port, fd);
	ring->super_fd = fd;
	return 0;
}

static int
transmit_ring(struct tpacket_port *port, struct tpacket_txq *q, struct tpacket_ring *ring)
{
	uint64_t tso = RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_UDP_TSO;
	struct tpacket_geom_ask ask = {
		.frame_nr = q->desc,
		.slot = TX_HEAD + TPACKET_VNET_LEN + ring_mtu(port) + LINK_BYTES,
		.fit_slot = true,
	};
	int ret;

	/* One frame a slot, so version 3 would bring nothing but a longer header. */
	ring->version = 2;
	ret = set_int(ring->fd, PACKET_VERSION, TPACKET_V2);
	if (ret != 0)
		return ret;
	ring->vnet_len = enable_vnet(port, ring->fd);
	enable_bypass(port, ring->fd);
	set_buffer(port, ring->fd, SO_SNDBUFFORCE, SO_SNDBUF, SNDBUF_BYTES);
	/* PACKET_LOSS stays off: a frame that the kernel refuses must be seen. */
	ret = derive(port, "transmit", &ask, &ring->geom);
	if (ret == 0)
		ret = map_ring(port, ring, PACKET_TX_RING, q->socket_id, 0);
	if (ret == 0)
		ret = bind_socket(port, ring->fd, 0);
	if (ret == 0 && ring->vnet_len != 0 && (q->offloads & tso) != 0)
		ret = super_socket(port, ring);
	return ret;
}

int
tpacket_sock_tx(struct tpacket_port *port, struct tpacket_txq *q, struct tpacket_ring **out)
{
	struct tpacket_ring *ring;
	int ret;

	ret = open_ring(port, &ring);
	if (ret != 0)
		return ret;
	ret = transmit_ring(port, q, ring);
	if (ret != 0) {
		tpacket_ring_destroy(ring);
		return ret;
	}
	*out = ring;
	return 0;
}
