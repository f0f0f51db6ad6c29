/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Creating and binding: what waits for a grace period and what must not, and what ports' comings
 * and goings do. */
#include <pthread.h>
#include <sched.h>

#include "psock_help.h"

#define NONE SL_PSOCK_NO_WORKER

static void
nothing_is_hooked_for_protocol_0(void)
{
	struct sl_psock *s = sock_open(SOCK_RAW, 0);
	uint8_t buf[100];

	show(frame(0x0800, 60), 0);
	CHECK_EQ(sock_recv(s, buf, sizeof(buf), 0, NULL), -EAGAIN);
	CHECK_EQ(sock_bind(s, IFINDEX, 0, NONE), 0);
	show(frame(0x0800, 60), 0);
	CHECK_EQ(sock_recv(s, buf, sizeof(buf), 0, NULL), -EAGAIN);
	sl_psock_close(s, NONE);
}

static void
a_protocol_receives_from_all_ports_at_once(void)
{
	struct sl_psock *s = sock_open(SOCK_RAW, ETH_P_IP), *all = sock_open(SOCK_RAW, ETH_P_ALL);
	uint8_t buf[100];

	show(frame(0x0800, 60), 0);
	show(frame(0x86dd, 61), 0);
	CHECK_EQ(sock_recv(s, buf, sizeof(buf), 0, NULL), 60);
	CHECK_EQ(sock_recv(s, buf, sizeof(buf), 0, NULL), -EAGAIN);
	CHECK_EQ(sock_recv(all, buf, sizeof(buf), 0, NULL), 60);
	CHECK_EQ(sock_recv(all, buf, sizeof(buf), 0, NULL), 61);
	sl_psock_close(s, NONE);
	sl_psock_close(all, NONE);
}

static void
bind_errors(void)
{
	struct sl_psock *s = sock_open(SOCK_RAW, 0), *none = NULL;
	struct sockaddr_ll ll = {.sll_family = AF_PACKET, .sll_ifindex = IFINDEX};

	CHECK_EQ(sl_psock_create(net, SOCK_STREAM, 0, &none), -ESOCKTNOSUPPORT);
	CHECK(none == NULL);
	CHECK_EQ(sl_psock_bind(s, &ll, sizeof(ll) - 1, NONE), -EINVAL);
	CHECK_EQ(sl_psock_bind(s, NULL, sizeof(ll), NONE), -EFAULT);
	ll.sll_family = AF_INET;
	CHECK_EQ(sl_psock_bind(s, &ll, sizeof(ll), NONE), -EINVAL);
	ll.sll_family = AF_PACKET;
	ll.sll_ifindex = 7;
	CHECK_EQ(sl_psock_bind(s, &ll, sizeof(ll), NONE), -ENODEV);
	ll.sll_ifindex = -1;
	CHECK_EQ(sl_psock_bind(s, &ll, sizeof(ll), NONE), -ENODEV);
	sl_psock_close(s, NONE);
}

static void
the_old_type_binds_by_name(void)
{
	struct sl_psock *s = sock_open(SOCK_PACKET, ETH_P_ALL);
	struct sockaddr_pkt pkt = {.spkt_family = AF_PACKET};
	struct sockaddr_pkt from = {0};
	uint8_t buf[100];
	struct iovec v = {buf, sizeof(buf)};
	struct msghdr msg = {.msg_iov = &v, .msg_iovlen = 1, .msg_name = &from};

	memcpy(pkt.spkt_device, "net_ring0", 10);
	CHECK_EQ(sl_psock_bind(s, &pkt, sizeof(pkt), NONE), -EINVAL); /* 16 it is */
	CHECK_EQ(sl_psock_bind(s, &pkt, 16, NONE), 0);
	memcpy(pkt.spkt_device, "net_ring9", 10);
	CHECK_EQ(sl_psock_bind(s, &pkt, 16, NONE), -ENODEV);
	show(frame(0x0800, 60), 0);
	msg.msg_namelen = sizeof(from);
	CHECK_EQ(sl_psock_recvmsg(s, &msg, MSG_DONTWAIT), 60);
	CHECK(memcmp(from.spkt_device, "net_ring0", 10) == 0);
	CHECK_EQ(from.spkt_protocol, htons(0x0800));
	sl_psock_close(s, NONE);
}

static void
the_name_tells_what_is_bound(void)
{
	struct sl_psock *s = sock_open(SOCK_RAW, 0);
	struct sockaddr_ll ll = {0};
	struct rte_ether_addr mac;
	socklen_t len = sizeof(ll);

	CHECK_EQ(sl_psock_getsockname(s, &ll, &len), 0);
	CHECK_EQ(len, 12);
	CHECK_EQ(ll.sll_ifindex, 0);
	CHECK_EQ(sock_bind(s, IFINDEX, ETH_P_IP, NONE), 0);
	len = sizeof(ll);
	CHECK_EQ(sl_psock_getsockname(s, &ll, &len), 0);
	CHECK_EQ(len, 18);
	CHECK_EQ(ll.sll_ifindex, IFINDEX);
	CHECK_EQ(ll.sll_protocol, htons(ETH_P_IP));
	CHECK_EQ(ll.sll_pkttype, 0);
	CHECK_EQ(ll.sll_hatype, 1);
	rte_eth_macaddr_get(PORT, &mac);
	CHECK(memcmp(ll.sll_addr, &mac, 6) == 0);
	/* Protocol 0 keeps what there was. */
	CHECK_EQ(sock_bind(s, 0, 0, NONE), 0);
	len = sizeof(ll);
	CHECK_EQ(sl_psock_getsockname(s, &ll, &len), 0);
	CHECK_EQ(ll.sll_protocol, htons(ETH_P_IP));
	CHECK_EQ(ll.sll_ifindex, 0);
	sl_psock_close(s, NONE);
}

struct binder {
	struct sl_psock *s;
	uint16_t proto;
	uint32_t done;
	int ret;
	pthread_t thread;
};

static void *
bind_thread(void *arg)
{
	struct binder *b = arg;

	b->ret = sock_bind(b->s, IFINDEX, b->proto, NONE);
	sl_store_release(&b->done, 1);
	return NULL;
}

/* Worker 1 is online and in the middle of its turn for as long as it pleases. */
static void
only_a_changed_bind_waits(void)
{
	struct sl_psock *s = sock_bound(SOCK_RAW, ETH_P_IP);
	struct binder b = {.s = s, .proto = ETH_P_ARP};

	sl_psock_worker_online(net, 1);
	/* Were they to wait, these would never return. */
	CHECK_EQ(sock_bind(s, IFINDEX, ETH_P_IP, NONE), 0);
	CHECK_EQ(sock_bind(s, IFINDEX, 0, NONE), 0);
	sl_psock_close(sock_open(SOCK_RAW, 0), NONE);
	CHECK_EQ(sock_bind(sock_open(SOCK_RAW, 0), IFINDEX, ETH_P_ALL, NONE),
		0); /* not hooked yet */
	REQUIRE(pthread_create(&b.thread, NULL, bind_thread, &b) == 0);
	/* The unhook is visible at once; the bind is not done before the worker has passed. */
	while (((struct psock_table *)sl_load_acquire(&net->port[0].table))->hooks != 1)
		sched_yield();
	CHECK_EQ(sl_load_acquire(&b.done), 0);
	/* The bind may not wait yet: turns end again and again, as a worker's do. */
	while (sl_load_acquire(&b.done) == 0) {
		sl_psock_quiescent(net, 1);
		sched_yield();
	}
	pthread_join(b.thread, NULL);
	CHECK_EQ(b.ret, 0);
	CHECK_EQ(sock_bind(s, IFINDEX, ETH_P_IP, 1), 0); /* a worker does not wait for itself */
	sl_psock_worker_offline(net, 1);
	sl_psock_close(s, NONE);
	s = TAILQ_FIRST(&net->sockets);
	REQUIRE(s != NULL);
	sl_psock_close(s, NONE);
}

static void
a_down_port_is_no_error_at_bind(void)
{
	struct sl_psock *s = sock_open(SOCK_RAW, 0);
	uint8_t buf[100];

	sl_psock_port_event(net, PORT, SL_PSOCK_PORT_DOWN, NONE);
	CHECK_EQ(sock_bind(s, IFINDEX, ETH_P_ALL, NONE), 0);
	CHECK_EQ(sock_recv(s, buf, sizeof(buf), 0, NULL), -ENETDOWN);
	CHECK_EQ(sock_recv(s, buf, sizeof(buf), 0, NULL), -EAGAIN); /* once */
	sl_psock_port_event(net, PORT, SL_PSOCK_PORT_UP, NONE);
	show(frame(0x0800, 60), 0);
	CHECK_EQ(sock_recv(s, buf, sizeof(buf), 0, NULL), 60);
	sl_psock_port_event(net, PORT, SL_PSOCK_PORT_DOWN, NONE);
	sl_psock_port_event(net, PORT, SL_PSOCK_PORT_DOWN, NONE);
	CHECK_EQ(sock_error(s), ENETDOWN);
	CHECK_EQ(sock_error(s), 0);
	show(frame(0x0800, 60), 0);
	CHECK_EQ(sock_recv(s, buf, sizeof(buf), 0, NULL), -EAGAIN);
	sl_psock_port_event(net, PORT, SL_PSOCK_PORT_UP, NONE);
	sl_psock_close(s, NONE);
}

static void
a_port_that_goes_unbinds(void)
{
	struct sl_psock_port_conf conf = {.port_id = PORT, .tx_queues = 1};
	struct sl_psock *s = sock_bound(SOCK_RAW, ETH_P_ALL), *all = sock_open(SOCK_RAW, ETH_P_ALL);
	struct sockaddr_ll ll = {0};
	socklen_t len = sizeof(ll);
	uint8_t buf[100];

	sl_psock_port_remove(net, PORT, NONE);
	CHECK_EQ(sock_error(s), ENETDOWN);
	CHECK_EQ(sock_error(all), 0);
	CHECK_EQ(sl_psock_getsockname(s, &ll, &len), 0);
	CHECK_EQ(ll.sll_ifindex, -1);
	CHECK_EQ(sock_kick(s, 0), -ENXIO);
	CHECK_EQ(sock_bind(s, IFINDEX, 0, NONE), -ENODEV);
	CHECK_EQ(sl_psock_port_add(net, &conf), 0);
	CHECK_EQ(sl_psock_port_add(net, &conf), -EEXIST);
	show(frame(0x0800, 60), 0);
	CHECK_EQ(sock_recv(s, buf, sizeof(buf), 0, NULL), -EAGAIN);
	CHECK_EQ(sock_recv(all, buf, sizeof(buf), 0, NULL), 60);
	CHECK_EQ(sock_bind(s, IFINDEX, 0, NONE), 0);
	show(frame(0x0800, 60), 0);
	CHECK_EQ(sock_recv(s, buf, sizeof(buf), 0, NULL), 60);
	sl_psock_close(s, NONE);
	sl_psock_close(all, NONE);
}

static void *
remove_thread(void *arg)
{
	(void)arg;
	sl_psock_port_remove(net, PORT, NONE);
	return NULL;
}

/* The port goes while a bind waits for workers: the bind finds it gone afterwards. */
static void
a_port_that_goes_during_bind(void)
{
	struct sl_psock_port_conf conf = {.port_id = PORT, .tx_queues = 1};
	struct sl_psock *s = sock_bound(SOCK_RAW, ETH_P_IP);
	struct binder b = {.s = s, .proto = ETH_P_ARP};
	pthread_t remover;

	sl_psock_worker_online(net, 1);
	REQUIRE(pthread_create(&b.thread, NULL, bind_thread, &b) == 0);
	while (((struct psock_table *)sl_load_acquire(&net->port[0].table))->hooks != 0)
		sched_yield();
	REQUIRE(pthread_create(&remover, NULL, remove_thread, NULL) == 0);
	sl_psock_worker_offline(net, 1);
	pthread_join(b.thread, NULL);
	pthread_join(remover, NULL);
	CHECK_EQ(b.ret, 0);
	CHECK_EQ(sock_error(s), ENETDOWN);
	CHECK_EQ(s->ifindex, -1);
	CHECK(!s->hooked);
	sl_psock_close(s, NONE);
	CHECK_EQ(sl_psock_port_add(net, &conf), 0);
}

static void
an_open_socket_keeps_the_net(void)
{
	struct sl_psock *s = sock_open(SOCK_RAW, 0);

	CHECK_EQ(sl_psock_net_destroy(net), -EBUSY);
	sl_psock_close(s, NONE);
}

int
main(void)
{
	help_init("bind");
	net_open(NULL, SL_PSOCK_LEND_AUTO);
	SL_TEST_RUN(nothing_is_hooked_for_protocol_0);
	SL_TEST_RUN(a_protocol_receives_from_all_ports_at_once);
	SL_TEST_RUN(bind_errors);
	SL_TEST_RUN(the_old_type_binds_by_name);
	SL_TEST_RUN(the_name_tells_what_is_bound);
	SL_TEST_RUN(only_a_changed_bind_waits);
	SL_TEST_RUN(a_down_port_is_no_error_at_bind);
	SL_TEST_RUN(a_port_that_goes_unbinds);
	SL_TEST_RUN(a_port_that_goes_during_bind);
	SL_TEST_RUN(an_open_socket_keeps_the_net);
	net_close();
	return help_end();
}
