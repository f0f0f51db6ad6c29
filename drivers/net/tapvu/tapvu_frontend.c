/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Frontends: rte_vhost speaks with them and keeps their memory mapped; their rings are ours. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <linux/virtio_ring.h>

#include <rte_vhost.h>

#include "sl_errno.h"
#include "sl_unix.h"
#include "tapvu_priv.h"

#define BIT(n) (UINT64_C(1) << (n))

/* Dirty-page logging is not done here; datagram fragmentation and announcements are of no use. */
#define NEVER                                                                                      \
	(BIT(VHOST_F_LOG_ALL) | BIT(VIRTIO_NET_F_GUEST_UFO) | BIT(VIRTIO_NET_F_HOST_UFO) |         \
		BIT(VIRTIO_NET_F_GUEST_ECN) | BIT(VIRTIO_NET_F_HOST_ECN) |                         \
		BIT(VIRTIO_NET_F_GUEST_ANNOUNCE))
/* Large frames are for the kernel; an application would have to ask for them. */
#define ONLY_BRIDGED (BIT(VIRTIO_NET_F_HOST_TSO4) | BIT(VIRTIO_NET_F_HOST_TSO6))

static pthread_mutex_t ports_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tapvu_port *ports;

/* Requests of the vhost-user protocol before which every ring must be down. */
enum request {
	SET_FEATURES = 2,
	RESET_OWNER = 4,
	SET_MEM_TABLE = 5,
	SET_LOG_BASE = 6,
	SET_VRING_NUM = 8,
	SET_VRING_ADDR = 9,
	SET_VRING_BASE = 10,
	GET_VRING_BASE = 11,
	SET_VRING_KICK = 12,
	SET_VRING_CALL = 13,
	SET_VRING_ENABLE = 18,
	ADD_MEM_REG = 37,
	REM_MEM_REG = 38,
};

static bool
must_be_down(uint32_t request)
{
	static const uint8_t all[] = {SET_FEATURES, RESET_OWNER, SET_MEM_TABLE, SET_LOG_BASE,
		SET_VRING_NUM, SET_VRING_ADDR, SET_VRING_BASE, GET_VRING_BASE, SET_VRING_KICK,
		SET_VRING_CALL, SET_VRING_ENABLE, ADD_MEM_REG, REM_MEM_REG};

	for (size_t i = 0; i < SL_COUNT_OF(all); i++)
		if (all[i] == request)
			return true;
	return false;
}

/* ---- rings ---- */

static uint32_t
ring_count(const struct tapvu_frontend *f)
{
	return 2 * f->port->args.queues;
}

/* After this no lcore is in the ring or will enter it, and rte_vhost knows where it stands. */
static void
ring_down(struct tapvu_ring *r)
{
	uint16_t next_avail, next_used;
	bool was_up;

	rte_spinlock_lock(&r->lock);
	was_up = sl_load_relaxed(&r->up) != 0;
	sl_store_relaxed(&r->up, 0u);
	tapvu_intr_ring_down(r);
	sl_vring_position(&r->ring, &next_avail, &next_used);
	for (int o = 0; o < SL_VRING_OUTCOME_COUNT; o++) {
		sl_counter_add(&r->ended[o], r->ring.outcomes[o]);
		sl_store_relaxed(&r->ring.outcomes[o], UINT64_C(0));
	}
	rte_spinlock_unlock(&r->lock);
	if (was_up)
		(void)rte_vhost_set_vring_base(
			r->frontend->vid, (uint16_t)r->index, next_avail, next_used);
}

static void
all_down(struct tapvu_frontend *f)
{
	for (uint32_t i = 0; i < ring_count(f); i++)
		ring_down(&f->ring[i]);
}

static uint32_t
ring_features(uint64_t negotiated)
{
	uint32_t features = 0;

	if ((negotiated & BIT(VIRTIO_F_RING_PACKED)) != 0)
		features |= SL_VRING_F_PACKED;
	if ((negotiated & BIT(VIRTIO_RING_F_INDIRECT_DESC)) != 0)
		features |= SL_VRING_F_INDIRECT;
	if ((negotiated & BIT(VIRTIO_RING_F_EVENT_IDX)) != 0)
		features |= SL_VRING_F_EVENT_IDX;
	if ((negotiated & BIT(VIRTIO_F_IN_ORDER)) != 0)
		features |= SL_VRING_F_IN_ORDER;
	return features;
}

static uint32_t
peer_accepts(uint64_t negotiated)
{
	uint32_t accept = 0;

	if ((negotiated & BIT(VIRTIO_NET_F_GUEST_CSUM)) != 0)
		accept |= SL_TAPQ_VNET_ACCEPT_CSUM;
	if ((negotiated & BIT(VIRTIO_NET_F_GUEST_TSO4)) != 0)
		accept |= SL_TAPQ_VNET_ACCEPT_TSO4;
	if ((negotiated & BIT(VIRTIO_NET_F_GUEST_TSO6)) != 0)
		accept |= SL_TAPQ_VNET_ACCEPT_TSO6;
	return accept;
}

/* What a driver must agree to before its headers may ask for anything. */
#define PEER_OFFLOADS                                                                              \
	(BIT(VIRTIO_NET_F_CSUM) | BIT(VIRTIO_NET_F_HOST_TSO4) | BIT(VIRTIO_NET_F_HOST_TSO6) |      \
		BIT(VIRTIO_NET_F_HOST_ECN) | BIT(VIRTIO_NET_F_HOST_UFO))

static void
view_set(struct tapvu_ring *r, uint64_t negotiated)
{
	bool merge = (negotiated & BIT(VIRTIO_NET_F_MRG_RXBUF)) != 0;
	bool modern = (negotiated & BIT(VIRTIO_F_VERSION_1)) != 0;

	r->view = (struct sl_tapq_ring){.ring = &r->ring,
		.mem = &r->frontend->mem,
		.header = merge || modern ? SL_TAPQ_VNET_LONG : SL_TAPQ_VNET_SHORT,
		.mergeable = merge,
		.bare = (negotiated & PEER_OFFLOADS) == 0,
		.accept = peer_accepts(negotiated)};
}

static int
ring_conf(const struct tapvu_ring *r, struct sl_vring_conf *conf, int *call_fd, int *kick_fd)
{
	const struct tapvu_frontend *f = r->frontend;
	struct rte_vhost_vring v;

	if (rte_vhost_get_vhost_vring(f->vid, (uint16_t)r->index, &v) != 0 || v.desc == NULL)
		return -ENODEV;
	memset(conf, 0, sizeof(*conf));
	conf->features = ring_features(f->features);
	if (r->index % 2 == 1)
		conf->features |= SL_VRING_F_READ_ALL;
	conf->size = v.size;
	if ((conf->features & SL_VRING_F_PACKED) != 0) {
		conf->packed = v.desc_packed;
		conf->driver_event = v.driver_event;
		conf->device_event = v.device_event;
	} else {
		conf->desc = v.desc;
		conf->avail = v.avail;
		conf->used = v.used;
	}
	if (rte_vhost_get_vring_base(
		    f->vid, (uint16_t)r->index, &conf->next_avail, &conf->next_used) != 0)
		return -ENODEV;
	/* rte_vhost looks at that when it is told a place, not when it is told a size. */
	if (!sl_vring_is_mapped(conf, &f->mem))
		return -EFAULT;
	*call_fd = v.callfd;
	*kick_fd = v.kickfd;
	return 0;
}

/* A peer's descriptor must not be able to hold up a burst. */
static int
call_fd_usable(int fd)
{
	int flags = fd >= 0 ? sl_sys(fcntl(fd, F_GETFL)) : -EBADF;

	if (flags < 0 || sl_sys(fcntl(fd, F_SETFL, flags | O_NONBLOCK)) < 0)
		return -1;
	return fd;
}

/* The frontend of a backend that was killed cannot know where a packed ring stands. */
static void
resume(struct tapvu_ring *r)
{
	uint16_t lost, next, used;

	if (!sl_vring_recover(&r->ring, &lost))
		return;
	sl_vring_position(&r->ring, &next, &used);
	TAPVU_LOG(NOTICE,
		"%s: ring %u goes on where an earlier backend left it, at %#x; slots lost: %u\n",
		r->frontend->port->args.path, r->index, next, lost);
}

static void
ring_up(struct tapvu_ring *r)
{
	struct sl_vring_conf conf;
	int call_fd, kick_fd;

	if (ring_conf(r, &conf, &call_fd, &kick_fd) != 0)
		return;
	rte_spinlock_lock(&r->lock);
	if (sl_vring_init(&r->ring, &conf) == 0) {
		resume(r);
		r->call_fd = call_fd_usable(call_fd);
		view_set(r, r->frontend->features);
		sl_store_relaxed(&r->up, 1u);
		tapvu_intr_ring_up(r, kick_fd);
		/* An earlier backend may have been killed before it could call. */
		tapvu_call_peer(r);
	}
	rte_spinlock_unlock(&r->lock);
}

/* ---- memory ---- */

static int
by_guest(const void *a, const void *b)
{
	const struct sl_vmem_region *x = a, *y = b;

	return x->guest < y->guest ? -1 : x->guest > y->guest;
}

static int
mem_read(struct tapvu_frontend *f)
{
	struct rte_vhost_memory *table = NULL;
	int ret = 0;

	memset(&f->mem, 0, sizeof(f->mem));
	if (rte_vhost_get_mem_table(f->vid, &table) != 0 || table == NULL)
		return -ENODEV;
	if (table->nregions > SL_VMEM_REGIONS_MAX) {
		ret = -EINVAL;
		goto free_table;
	}
	f->mem.count = table->nregions;
	for (uint32_t i = 0; i < table->nregions; i++)
		f->mem.region[i] = (struct sl_vmem_region){table->regions[i].guest_phys_addr,
			table->regions[i].size,
			(uint8_t *)(uintptr_t)table->regions[i].host_user_addr};
	qsort(f->mem.region, f->mem.count, sizeof(f->mem.region[0]), by_guest);
	ret = sl_vmem_check(&f->mem);
free_table:
	free(table);
	return ret;
}

/* Read everything anew and bring up what may run. All rings are down. */
static void
all_up(struct tapvu_frontend *f)
{
	uint64_t features;

	if (!f->running || rte_vhost_get_negotiated_features(f->vid, &features) != 0)
		return;
	sl_store_relaxed(&f->features, features);
	if (mem_read(f) != 0)
		return;
	sl_store_relaxed(&f->regions, f->mem.count);
	for (uint32_t i = 0; i < ring_count(f); i++)
		if (f->ring[i].enabled)
			ring_up(&f->ring[i]);
}

/* ---- what rte_vhost tells ---- */

static struct tapvu_port *
port_of(int vid)
{
	struct tapvu_port *port;
	char path[TAPVU_PATH_MAX];

	if (rte_vhost_get_ifname(vid, path, sizeof(path)) != 0)
		return NULL;
	pthread_mutex_lock(&ports_lock);
	for (port = ports; port != NULL; port = port->next_port)
		if (strcmp(port->args.path, path) == 0)
			break;
	pthread_mutex_unlock(&ports_lock);
	return port;
}

static struct tapvu_frontend *
frontend_of(int vid)
{
	struct tapvu_port *port = port_of(vid);

	for (uint32_t i = 0; port != NULL && i < TAPVU_FRONTENDS_MAX; i++)
		if (port->frontend[i].vid == vid)
			return &port->frontend[i];
	return NULL;
}

static enum rte_vhost_msg_result
before_message(int vid, void *msg)
{
	struct tapvu_frontend *f = frontend_of(vid);
	uint32_t request;

	memcpy(&request, msg, sizeof(request));
	if (f != NULL && must_be_down(request))
		all_down(f);
	return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

static enum rte_vhost_msg_result
after_message(int vid, void *msg)
{
	struct tapvu_frontend *f = frontend_of(vid);
	uint32_t request;

	memcpy(&request, msg, sizeof(request));
	if (f != NULL && must_be_down(request)) {
		all_down(f);
		all_up(f);
	}
	return RTE_VHOST_MSG_RESULT_NOT_HANDLED;
}

static const struct rte_vhost_user_extern_ops message_ops = {
	.pre_msg_handle = before_message,
	.post_msg_handle = after_message,
};

static int
new_connection(int vid)
{
	struct tapvu_port *port = port_of(vid);

	if (port == NULL)
		return -1;
	for (uint32_t i = 0; i < TAPVU_FRONTENDS_MAX; i++) {
		struct tapvu_frontend *f = &port->frontend[i];

		if (f->vid >= 0)
			continue;
		sl_store_relaxed(&f->vid, vid);
		for (uint32_t k = 0; k < ring_count(f); k++)
			sl_store_relaxed(&f->ring[k].enabled, false);
		if (rte_vhost_extern_callback_register(vid, &message_ops, NULL) == 0)
			return 0;
		sl_store_relaxed(&f->vid, -1);
		return -1;
	}
	TAPVU_LOG(WARNING, "%s: %u frontends are connected, no more are served\n", port->args.path,
		TAPVU_FRONTENDS_MAX);
	return -1;
}

static void
destroy_connection(int vid)
{
	struct tapvu_frontend *f = frontend_of(vid);

	if (f == NULL)
		return;
	all_down(f);
	sl_store_relaxed(&f->running, false);
	sl_store_relaxed(&f->vid, -1);
}

/* What the kernel may give us is what the peer takes. */
static void
bridge_follow(struct tapvu_frontend *f)
{
	struct tapvu_port *port = f->port;
	uint32_t accept = peer_accepts(f->features), longest = port->data->mtu + 18u;

	if (port->tap.queues == 0)
		return;
	if (sl_tap_set_offloads(&port->tap, accept) != 0)
		TAPVU_LOG(WARNING, "%s: the kernel refuses the offloads of the frontend\n",
			port->tap.name);
	if ((port->tap.offloads & (SL_TAPQ_VNET_ACCEPT_TSO4 | SL_TAPQ_VNET_ACCEPT_TSO6)) != 0)
		longest = SL_TAPQ_FRAME_MAX;
	sl_store_relaxed(&port->bridge_max, longest);
}

static int
new_device(int vid)
{
	struct tapvu_frontend *f = frontend_of(vid);

	if (f == NULL)
		return -1;
	sl_store_relaxed(&f->running, true);
	all_down(f);
	all_up(f);
	bridge_follow(f);
	tapvu_link_refresh(f->port);
	return 0;
}

static void
destroy_device(int vid)
{
	struct tapvu_frontend *f = frontend_of(vid);

	if (f == NULL)
		return;
	all_down(f);
	sl_store_relaxed(&f->running, false);
	tapvu_link_refresh(f->port);
}

static int
vring_state_changed(int vid, uint16_t index, int enable)
{
	struct tapvu_frontend *f = frontend_of(vid);

	if (f == NULL || index >= ring_count(f))
		return 0;
	all_down(f);
	sl_store_relaxed(&f->ring[index].enabled, enable != 0);
	all_up(f);
	rte_eth_dev_callback_process(
		&rte_eth_devices[f->port->data->port_id], RTE_ETH_EVENT_QUEUE_STATE, NULL);
	return 0;
}

static int
features_changed(int vid, uint64_t features)
{
	struct tapvu_frontend *f = frontend_of(vid);

	(void)features;
	if (f == NULL)
		return 0;
	all_down(f);
	all_up(f);
	return 0;
}

static const struct rte_vhost_device_ops device_ops = {
	.new_device = new_device,
	.destroy_device = destroy_device,
	.vring_state_changed = vring_state_changed,
	.features_changed = features_changed,
	.new_connection = new_connection,
	.destroy_connection = destroy_connection,
};

/* ---- the socket ---- */

static void
ports_remove(struct tapvu_port *port)
{
	pthread_mutex_lock(&ports_lock);
	for (struct tapvu_port **p = &ports; *p != NULL; p = &(*p)->next_port) {
		if (*p == port) {
			*p = port->next_port;
			break;
		}
	}
	pthread_mutex_unlock(&ports_lock);
}

void
tapvu_ports_each(void (*f)(struct tapvu_port *port, void *arg), void *arg)
{
	pthread_mutex_lock(&ports_lock);
	for (struct tapvu_port *port = ports; port != NULL; port = port->next_port)
		f(port, arg);
	pthread_mutex_unlock(&ports_lock);
}

static int
socket_setup(struct tapvu_port *port)
{
	const char *path = port->args.path;
	uint64_t without = NEVER | (port->tap.queues > 0 ? 0 : ONLY_BRIDGED);

	if (rte_vhost_driver_disable_features(path, without) != 0 ||
		rte_vhost_driver_callback_register(path, &device_ops) != 0)
		return -EINVAL;
	pthread_mutex_lock(&ports_lock);
	port->next_port = ports;
	ports = port;
	pthread_mutex_unlock(&ports_lock);
	if (rte_vhost_driver_start(path) == 0)
		return 0;
	ports_remove(port);
	return -EINVAL;
}

/*
 * What a killed process has left there would keep rte_vhost from binding to it. Anything else must
 * be found before rte_vhost does: when it cannot bind, it removes what is there, be it another
 * one's.
 */
static bool
path_is_free(const char *path)
{
	struct stat st;

	(void)sl_unix_remove_stale(path, SOCK_STREAM);
	return lstat(path, &st) != 0;
}

int
tapvu_frontend_open(struct tapvu_port *port)
{
	uint64_t flags = port->args.client ? RTE_VHOST_USER_CLIENT : 0;
	int ret;

	if (!port->args.client && !path_is_free(port->args.path)) {
		TAPVU_LOG(ERR, "path=%s: somebody listens there, or it is no socket\n",
			port->args.path);
		return -EADDRINUSE;
	}
	if (rte_vhost_driver_register(port->args.path, flags) != 0) {
		TAPVU_LOG(ERR,
			"path=%s: the socket cannot be had; is it in use, or its folder missing?\n",
			port->args.path);
		return -EADDRINUSE;
	}
	ret = socket_setup(port);
	if (ret != 0) {
		TAPVU_LOG(ERR, "path=%s: the socket cannot be served\n", port->args.path);
		(void)rte_vhost_driver_unregister(port->args.path);
		return ret;
	}
	port->registered = true;
	return 0;
}

void
tapvu_frontend_close(struct tapvu_port *port)
{
	if (!port->registered)
		return;
	port->registered = false;
	/* Ends the connections, through destroy_device and destroy_connection. */
	(void)rte_vhost_driver_unregister(port->args.path);
	ports_remove(port);
}
