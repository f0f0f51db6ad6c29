/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The control thread: accepts clients, answers their hello, notices that they are gone, passes
 * kicks on to who sleeps on the queue's interrupt. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "port.h"
#include "sl_errno.h"
#include "sl_unix.h"

#define STRANGERS_MAX 64
#define REAP_MS 100

/* What an event is about, in the low bits of its pointer. */
enum { ON_CLIENT, ON_KICK };

static int
watch(struct pktring_port *port, int fd, uint32_t events, void *p, unsigned int tag)
{
	struct epoll_event e = {.events = events, .data.u64 = (uintptr_t)p | tag};

	return sl_sys(epoll_ctl(port->epoll_fd, EPOLL_CTL_ADD, fd, &e));
}

static void
link_tell(struct pktring_port *port, uint32_t connected)
{
	struct rte_eth_dev *dev = &rte_eth_devices[port->port_id];
	uint32_t before = port->connected;

	sl_store_relaxed(&port->connected, connected);
	if ((before == 0) == (connected == 0))
		return;
	dev->data->dev_link.link_status = connected > 0 && dev->data->dev_started;
	if (dev->data->dev_conf.intr_conf.lsc != 0 && dev->data->dev_started)
		rte_eth_dev_callback_process(dev, RTE_ETH_EVENT_INTR_LSC, NULL);
}

static void
client_remove(struct pktring_port *port, struct pktring_client *c)
{
	struct pktring_client **at = &port->clients;
	bool known = c->kick_fd >= 0;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	if (!known)
		port->strangers--;
	/* By hand: a client has the eventfd too, and a forked child may have both, so that our
	 * closing them ends no watch. */
	if (known)
		epoll_ctl(port->epoll_fd, EPOLL_CTL_DEL, c->kick_fd, NULL);
	epoll_ctl(port->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
	pktring_client_close(port, c);
	if (known)
		link_tell(port, port->connected - 1);
}

static void
client_accept(struct pktring_port *port)
{
	int fd = sl_sys(accept4(port->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
	struct pktring_client *c;

	if (fd < 0)
		return;
	c = port->strangers < STRANGERS_MAX ? calloc(1, sizeof(*c)) : NULL;
	if (c == NULL || watch(port, fd, EPOLLIN | EPOLLRDHUP, c, ON_CLIENT) != 0) {
		free(c);
		close(fd);
		return;
	}
	c->fd = fd;
	c->kick_fd = -1;
	c->next = port->clients;
	port->clients = c;
	port->strangers++;
}

static int
answer_send(int fd, const struct sl_pktring_answer *a, const int *fds, int n)
{
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(SL_PKTRING_FDS * sizeof(int))];
	} control = {0};
	struct iovec v = {.iov_base = (void *)(uintptr_t)a, .iov_len = sizeof(*a)};
	struct msghdr msg = {.msg_iov = &v, .msg_iovlen = 1};

	if (n > 0) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, (size_t)n * sizeof(int));
	}
	return sl_sys((int)sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL));
}

/* A ring that was not asked for has the page's descriptor in its place: there are always four. */
static int
welcome(struct pktring_port *port, struct pktring_client *c, const struct pktring_wish *wish)
{
	struct sl_pktring_answer a = {.magic = SL_PKTRING_MAGIC,
		.type = SL_PKTRING_ANSWER,
		.protocol = wish->protocol,
		.queue = c->queue,
		.mtu = port->mtu,
		.tx_bytes = wish->tx.bytes,
		.rx_bytes = wish->rx.bytes};
	int fds[SL_PKTRING_FDS] = {c->page_mem.fd, c->page_mem.fd, c->page_mem.fd, c->kick_fd};

	memcpy(a.mac, &port->mac, sizeof(a.mac));
	if (c->tx != NULL)
		fds[0] = sl_pktring_tx_mem(c->tx)->fd;
	if (c->rx != NULL)
		fds[1] = sl_pktring_rx_mem(c->rx)->fd;
	return answer_send(c->fd, &a, fds, SL_PKTRING_FDS);
}

static void
refuse(struct pktring_port *port, int fd, int error, const char *why)
{
	struct sl_pktring_answer a = {.magic = SL_PKTRING_MAGIC,
		.type = SL_PKTRING_ANSWER,
		.protocol = SL_PKTRING_PROTOCOL,
		.error = error};

	snprintf(a.text, sizeof(a.text), "%s", why);
	sl_counter_add(&port->refused, 1);
	if (answer_send(fd, &a, NULL, 0) < 0)
		return; /* it does not listen */
}

/* The first message. 0, or the client has been refused. */
static int
greet(struct pktring_port *port, struct pktring_client *c, const void *message, size_t len)
{
	struct pktring_wish wish;
	const char *why;
	int ret = pktring_hello_check(message, len, port->queues, port->most, &wish, &why);

	if (ret == 0)
		ret = pktring_client_open(port, c, &wish, &why);
	if (ret != 0) {
		refuse(port, c->fd, ret, why);
		return ret;
	}
	port->strangers--;
	link_tell(port, port->connected + 1);
	sl_counter_add(&port->accepted, 1);
	/* Edge-triggered and never read: a client could make a read of the shared eventfd block. */
	ret = watch(port, c->kick_fd, EPOLLIN | EPOLLET, c, ON_KICK);
	return ret == 0 ? welcome(port, c, &wish) : ret;
}

static void
client_event(struct pktring_port *port, struct pktring_client *c)
{
	uint8_t message[sizeof(struct sl_pktring_hello) + 1];
	/* Plain recv: descriptors that come along are discarded by the system. */
	ssize_t n = recv(c->fd, message, sizeof(message), MSG_DONTWAIT);
	int ret = n < 0 ? sl_sys((int)n) : 0;

	if (ret == -EAGAIN || ret == -EINTR)
		return;
	/* A client has one thing to say; whatever comes after it ends the talk, as hanging up does.
	 */
	if (ret != 0 || n == 0 || c->kick_fd >= 0 || greet(port, c, message, (size_t)n) < 0)
		client_remove(port, c);
}

static void
kick_event(struct pktring_port *port, const struct pktring_client *c)
{
	const struct pktring_queue *q = &port->queue[c->queue];
	uint64_t one = 1;

	if (q->event_fd >= 0 && write(q->event_fd, &one, sizeof(one)) < 0)
		return; /* full: it wakes all the same */
}

/* One turn; false when told to stop. Removing a client ends the turn, as the events behind may be
 * about it. */
static bool
turn(struct pktring_port *port)
{
	int timeout = pktring_graves_reap() > 0 ? REAP_MS : -1;
	struct epoll_event e;
	struct pktring_client *c;

	if (epoll_wait(port->epoll_fd, &e, 1, timeout) != 1)
		return true;
	if (e.data.u64 == 0) {
		client_accept(port);
		return true;
	}
	if (e.data.u64 == ON_KICK) /* no client: our own word to stop */
		return false;
	c = (struct pktring_client *)(uintptr_t)(e.data.u64 & ~(uint64_t)ON_KICK);
	if (e.data.u64 & ON_KICK)
		kick_event(port, c);
	else
		client_event(port, c);
	return true;
}

static void *
serve(void *arg)
{
	struct pktring_port *port = arg;

	while (turn(port))
		;
	return NULL;
}

static int
listen_on(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd, ret;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path) + 1);
	fd = sl_sys(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (fd < 0)
		return fd;
	(void)sl_unix_remove_stale(path, SOCK_SEQPACKET);
	ret = sl_sys(bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	if (ret == 0) {
		ret = sl_sys(listen(fd, STRANGERS_MAX));
		if (ret != 0)
			unlink(path);
	}
	if (ret != 0) {
		close(fd);
		return ret;
	}
	return fd;
}

static void
close_fds(struct pktring_port *port)
{
	int *fds[] = {&port->listen_fd, &port->epoll_fd, &port->stop_fd};

	for (size_t i = 0; i < SL_COUNT_OF(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

int
pktring_server_start(struct pktring_port *port)
{
	int ret;

	port->epoll_fd = port->stop_fd = -1;
	port->listen_fd = listen_on(port->path);
	ret = port->listen_fd < 0 ? port->listen_fd : 0;
	if (ret == 0)
		port->epoll_fd = ret = sl_sys(epoll_create1(EPOLL_CLOEXEC));
	if (ret >= 0)
		port->stop_fd = ret = sl_sys(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (ret >= 0)
		ret = watch(port, port->stop_fd, EPOLLIN, NULL, ON_KICK);
	if (ret == 0)
		ret = watch(port, port->listen_fd, EPOLLIN, NULL, ON_CLIENT);
	if (ret == 0)
		ret = rte_ctrl_thread_create(&port->thread, "pktring", NULL, serve, port);
	if (ret != 0) {
		if (port->listen_fd >= 0)
			unlink(port->path);
		close_fds(port);
		return ret;
	}
	port->running = true;
	return 0;
}

void
pktring_server_stop(struct pktring_port *port)
{
	uint64_t one = 1;

	if (!port->running)
		return;
	if (write(port->stop_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(port->thread, NULL);
	port->running = false;
	unlink(port->path);
	while (port->clients != NULL)
		client_remove(port, port->clients);
	close_fds(port);
	pktring_graves_reap();
}
