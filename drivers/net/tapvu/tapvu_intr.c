/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Receive interrupts. Each receive queue is an epoll instance of its own, which the application's
 * epoll waits for: in it are the kick descriptors of the virtqueues that feed the queue, those of
 * the kernel tap's queues, and an eventfd of ours to wake it with. All are edge-triggered, so that
 * nothing is ever read from a descriptor that a peer gave us: it might make the read wait.
 *
 *     enable:   forget what happened, ask for kicks (VR4), look; what is there already wakes at
 * once a kick, a frame from the kernel, a virtqueue that comes up:  the application wakes disable:
 * no kicks, we poll
 *
 * A virtqueue joins and leaves under its lock; it leaves before rte_vhost closes its descriptor,
 * which would stay in the epoll instance otherwise, because the peer has it open too.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_interrupts.h>

#include "sl_errno.h"
#include "tapvu_priv.h"

#define EVENTS 32

static struct tapvu_intr *
intr_of(const struct tapvu_ring *r)
{
	struct tapvu_port *port = r->frontend->port;

	return &port->intr[r->index / 2 % port->args.taps];
}

/* Wakes who sleeps on the queue. It fails only when the count is full, and then it is awake. */
static void
wake(const struct tapvu_intr *intr)
{
	uint64_t one = 1;

	if (write(intr->wake_fd, &one, sizeof(one)) < 0)
		return;
}

/* Take the events that were: only later ones count. */
static void
forget(int epoll_fd)
{
	struct epoll_event events[EVENTS];
	int n;

	/* A peer that kicks all the time must not keep us here. */
	for (int tries = 0; tries < EVENTS; tries++) {
		n = sl_sys(epoll_wait(epoll_fd, events, EVENTS, 0));
		if (n < EVENTS)
			break;
	}
}

static int
watch(int epoll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	return sl_sys(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event));
}

/* ---- virtqueues, their lock held ---- */

/* A descriptor that cannot be waited for leaves its virtqueue without interrupts, and no other. */
static void
join(struct tapvu_ring *r)
{
	int epoll_fd = sl_load_relaxed(&intr_of(r)->epoll_fd);
	bool useful = r->index % 2 == 1 || r->frontend->port->tap.queues > 0;

	if (epoll_fd < 0 || r->kick_fd < 0 || r->kick_epoll >= 0 || !useful)
		return;
	if (watch(epoll_fd, r->kick_fd) == 0)
		r->kick_epoll = epoll_fd;
}

static void
leave(struct tapvu_ring *r)
{
	if (r->kick_epoll >= 0)
		(void)!sl_sys(epoll_ctl(r->kick_epoll, EPOLL_CTL_DEL, r->kick_fd, NULL));
	r->kick_epoll = -1;
}

void
tapvu_intr_ring_up(struct tapvu_ring *r, int kick_fd)
{
	const struct tapvu_intr *intr = intr_of(r);
	bool armed = sl_load_relaxed(&intr->armed) != 0;

	r->kick_fd = kick_fd;
	join(r);
	(void)!sl_vring_want_kicks(&r->ring, armed);
	if (armed) /* whatever there is in it */
		wake(intr);
}

void
tapvu_intr_ring_down(struct tapvu_ring *r)
{
	leave(r);
	r->kick_fd = -1;
}

/* True if there is something in it. */
static bool
want_kicks(struct tapvu_ring *r, bool want)
{
	bool ready = false;

	rte_spinlock_lock(&r->lock);
	if (sl_load_relaxed(&r->up) != 0)
		ready = sl_vring_want_kicks(&r->ring, want);
	rte_spinlock_unlock(&r->lock);
	return ready;
}

/* ---- the application ---- */

static bool
readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return sl_sys(poll(&p, 1, 0)) > 0;
}

/* The pair's share in arming: true if there is work already. With a bridge, buffers of the peer
 * matter when the kernel has frames for them. */
static bool
arm_pair(struct tapvu_port *port, uint32_t frontend, uint32_t pair)
{
	struct tapvu_ring *ring = &port->frontend[frontend].ring[2 * pair];
	bool ready = want_kicks(&ring[1], true);

	if (port->tap.queues > 0 && readable(port->tap.fd[pair]))
		ready |= want_kicks(&ring[0], true);
	return ready;
}

int
tapvu_intr_enable(struct rte_eth_dev *dev, uint16_t queue)
{
	struct tapvu_port *port = dev->data->dev_private;
	struct tapvu_intr *intr = &port->intr[queue];
	bool ready = false;

	if (intr->epoll_fd < 0)
		return -ENOTSUP;
	forget(intr->epoll_fd);
	/* Relaxed: whoever brings a virtqueue up holds the lock that we take next. */
	sl_store_relaxed(&intr->armed, 1u);
	for (uint32_t f = 0; f < TAPVU_FRONTENDS_MAX; f++)
		for (uint32_t pair = queue; pair < port->args.queues; pair += port->args.taps)
			ready |= arm_pair(port, f, pair);
	if (ready)
		wake(intr);
	return 0;
}

int
tapvu_intr_disable(struct rte_eth_dev *dev, uint16_t queue)
{
	struct tapvu_port *port = dev->data->dev_private;
	struct tapvu_intr *intr = &port->intr[queue];

	if (intr->epoll_fd < 0)
		return -ENOTSUP;
	sl_store_relaxed(&intr->armed, 0u);
	for (uint32_t f = 0; f < TAPVU_FRONTENDS_MAX; f++) {
		for (uint32_t pair = queue; pair < port->args.queues; pair += port->args.taps) {
			struct tapvu_ring *ring = &port->frontend[f].ring[2 * pair];

			(void)want_kicks(&ring[0], false);
			(void)want_kicks(&ring[1], false);
		}
	}
	return 0;
}

/* ---- configuration ---- */

static void
all_rings(struct tapvu_port *port, void (*f)(struct tapvu_ring *r))
{
	for (uint32_t i = 0; i < TAPVU_FRONTENDS_MAX; i++) {
		for (uint32_t k = 0; port->frontend[i].ring != NULL && k < 2 * port->args.queues;
			k++) {
			struct tapvu_ring *r = &port->frontend[i].ring[k];

			rte_spinlock_lock(&r->lock);
			f(r);
			rte_spinlock_unlock(&r->lock);
		}
	}
}

static int
queue_open(struct tapvu_port *port, uint16_t queue)
{
	struct tapvu_intr *intr = &port->intr[queue];
	int epoll_fd = sl_sys(epoll_create1(EPOLL_CLOEXEC)), ret = 0;

	if (epoll_fd < 0)
		return epoll_fd;
	intr->wake_fd = sl_sys(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
	sl_store_relaxed(&intr->epoll_fd, epoll_fd); /* from here on intr_close closes both */
	if (intr->wake_fd < 0)
		return intr->wake_fd;
	ret = watch(epoll_fd, intr->wake_fd);
	for (uint32_t pair = queue; ret == 0 && pair < port->tap.queues; pair += port->args.taps)
		ret = watch(epoll_fd, port->tap.fd[pair]);
	return ret;
}

int
tapvu_intr_open(struct rte_eth_dev *dev)
{
	struct tapvu_port *port = dev->data->dev_private;
	uint16_t n = dev->data->nb_rx_queues;

	dev->intr_handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	if (dev->intr_handle == NULL || rte_intr_vec_list_alloc(dev->intr_handle, "tapvu", n) != 0)
		return -ENOMEM;
	rte_intr_type_set(dev->intr_handle, RTE_INTR_HANDLE_VDEV);
	rte_intr_nb_efd_set(dev->intr_handle, n);
	rte_intr_max_intr_set(dev->intr_handle, n + RTE_INTR_VEC_RXTX_OFFSET);
	rte_intr_efd_counter_size_set(dev->intr_handle, 0); /* there is nothing to read */
	for (uint16_t i = 0; i < n; i++) {
		int ret = queue_open(port, i);

		if (ret != 0)
			return ret;
		rte_intr_vec_list_index_set(dev->intr_handle, i, i + RTE_INTR_VEC_RXTX_OFFSET);
		rte_intr_efds_index_set(dev->intr_handle, i, port->intr[i].epoll_fd);
	}
	all_rings(port, join); /* those that come up from now on do so themselves */
	return 0;
}

void
tapvu_intr_close(struct rte_eth_dev *dev)
{
	struct tapvu_port *port = dev->data->dev_private;
	int epoll_fd[TAPVU_QUEUES_MAX];

	for (uint32_t i = 0; i < TAPVU_QUEUES_MAX; i++) {
		epoll_fd[i] = port->intr[i].epoll_fd;
		sl_store_relaxed(&port->intr[i].armed, 0u);
		sl_store_relaxed(&port->intr[i].epoll_fd, -1);
	}
	all_rings(port, leave); /* after this nobody joins or wakes */
	for (uint32_t i = 0; i < TAPVU_QUEUES_MAX; i++) {
		if (epoll_fd[i] < 0)
			continue;
		close(epoll_fd[i]);
		if (port->intr[i].wake_fd >= 0)
			close(port->intr[i].wake_fd);
	}
	if (dev->intr_handle != NULL)
		rte_intr_vec_list_free(dev->intr_handle);
	rte_intr_instance_free(dev->intr_handle);
	dev->intr_handle = NULL;
}
