/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#include "sl_errno.h"
#include "sink.h"

/* Longest that a receive call waits, so that Ctrl-C and the end of --duration are seen. */
#define WAIT_NS 50000000
#define PROGRESS_HZ 2

/* Big, and aligned as its messages are: not on the stack. */
static struct sink sink;
static struct app_stack stack;

/* A waiting call polls because it found the queue empty. */
static void
sink_poll(void *arg)
{
	struct sink *s = arg;

	s->drained = true;
	app_worker_poll(&s->stack->worker[0]);
}

static void
sockets_open(struct sink *s)
{
	const struct sink_options *o = s->opt;
	struct sl_udp_sock_conf conf = {
		.family = o->ipv6 ? AF_INET6 : AF_INET,
		.reuse_port = o->socks != 0,
		.guarded = o->bad_ptr != 0,
		.busy = o->busy,
		.recv_ttl = o->recv_ttl,
		.recv_pktinfo = o->recv_pktinfo,
		.worker = o->split ? SL_INET_NO_WORKER : 0,
		.rcvbuf = o->rcvbuf,
		.rcvtimeo_ns = WAIT_NS,
	};
	struct sockaddr_storage ss;
	struct sl_addr any = {{0}};
	socklen_t len = app_sockaddr(&any, o->port, conf.family, &ss);

	s->nsocks = RTE_MAX(1, o->socks);
	if (s->nsocks > 1)
		conf.rcvtimeo_ns = 1000;
	for (uint16_t i = 0; i < s->nsocks; i++) {
		int ret = sl_udp_socket(s->stack->udp, &conf, &s->socks[i]);

		if (ret != 0)
			app_fail("no socket: %s.", sl_strerror(ret));
		ret = sl_udp_bind(s->socks[i], (struct sockaddr *)&ss, len);
		if (ret != 0)
			app_fail("--port %u cannot be bound: %s.", o->port, sl_strerror(ret));
	}
	s->sock = s->socks[0];
}

/* Learn who sends, by looking at the first datagram; it stays queued. */
static int
first_sender(struct sink *s, struct sockaddr_storage *from, socklen_t *len)
{
	uint8_t byte;
	struct iovec iov = {&byte, sizeof(byte)};
	struct msghdr msg = {.msg_name = from, .msg_iov = &iov, .msg_iovlen = 1};
	ssize_t got;

	do {
		msg.msg_namelen = sizeof(*from);
		got = sl_udp_recvmsg(s->sock, &msg, MSG_PEEK);
	} while ((got == -EAGAIN || got == -EINTR) && !app_stopped());
	*len = msg.msg_namelen;
	return got < 0 ? (int)got : 0;
}

static void
peer_connect(struct sink *s)
{
	const struct sink_options *o = s->opt;
	struct sockaddr_storage ss;
	socklen_t len;
	int ret = 0;

	if (o->connect_any)
		ret = first_sender(s, &ss, &len);
	else
		len = app_sockaddr(&o->peer, o->peer_port, o->ipv6 ? AF_INET6 : AF_INET, &ss);
	if (app_stopped())
		return;
	if (ret == 0)
		ret = sl_udp_connect(s->sock, (struct sockaddr *)&ss, len);
	if (ret != 0)
		app_fail("--connect: %s.", sl_strerror(ret));
	app_note("connected");
}

/* Errors that an ICMP message brought: anybody can send one, so none ends a measurement. */
static bool
from_network(struct sink *s, int error)
{
	static const int known[] = {-ECONNREFUSED, -EHOSTUNREACH, -ENETUNREACH, -EHOSTDOWN, -ENONET,
		-EPROTO, -ENOPROTOOPT, -EACCES, -EMSGSIZE, -EOPNOTSUPP};

	for (size_t i = 0; i < SL_COUNT_OF(known); i++) {
		if (error != known[i])
			continue;
		if (!s->network_said)
			app_note("the network said: %s; receiving goes on", sl_strerror(error));
		s->network_said = true;
		return true;
	}
	return false;
}

/* One run of one call. */
static void
run_row(struct sink *s, enum sink_call call, uint32_t run)
{
	const struct sink_options *o = s->opt;
	struct sink_row *r = &s->row;
	uint64_t limit = o->duration_s * s->tsc_hz;
	uint64_t since = rte_rdtsc();
	uint64_t shown = since;
	bool progress = isatty(STDERR_FILENO) != 0;

	memset(r, 0, sizeof(*r));
	while (r->count + r->faults < o->count && !app_stopped()) {
		int got = sink_receive(s, call, o->count - r->count - r->faults);
		uint64_t now;

		if (got < 0 && got != -EFAULT && !from_network(s, got))
			app_fail("%s failed: %s.", sink_call_name(call), sl_strerror(got));
		/* While datagrams come, the time of the last stamp is good enough. */
		now = got > 0 ? r->last_tsc : rte_rdtsc();
		if (limit != 0 && now - (r->first_count ? r->first_tsc : since) > limit)
			break;
		if (progress && now - shown > s->tsc_hz / PROGRESS_HZ) {
			sink_print_progress(s, call, run, false);
			shown = now;
		}
	}
	if (progress)
		sink_print_progress(s, call, run, true);
	sink_print_row(s, call, run);
}

static void
run_all(struct sink *s)
{
	for (int call = 0; call < SINK_CALLS; call++)
		for (uint32_t run = 1; s->opt->calls[call] && run <= s->opt->repeat; run++) {
			/* What Ctrl-C leaves undone has no row, but the first one always has. */
			if (app_stopped() && s->rows != 0)
				return;
			run_row(s, (enum sink_call)call, run);
			s->rows++;
		}
}

static void
start(struct sink *s, int eal_argc, char **argv)
{
	const struct sink_options *o = s->opt;
	struct app_eal_conf eal = {
		.iface = o->iface,
		.lcores = o->split ? o->stack.workers + 1 : 1,
		.queues = o->stack.workers,
	};
	struct app_stack_conf conf = o->stack;

	if (o->iface != NULL) {
		app_iface_claim(o->iface, o->port, o->socks != 0);
		for (uint16_t i = 0; i < conf.naddrs && o->socks == 0; i++)
			app_kernel_claim(&conf.addrs[i].addr, o->port);
	}
	app_eal_start(eal_argc, argv, &eal);
	conf.queued = 16384u * (conf.workers + 1);
	app_stack_start(s->stack, &conf);
	if (o->split)
		app_stack_launch(s->stack);
	else
		app_stack_local(s->stack);
	s->tsc_hz = rte_get_tsc_hz();
	s->via = &sink_sockets_own;
	app_stack_wait_ready(s->stack, &conf);
	sl_udp_set_poll(s->stack->udp, 0, sink_poll, s);
	sockets_open(s);
	if (!app_stopped())
		app_note("ready on port %u", o->port);
}

static void
finish(struct sink *s)
{
	if (s->opt->kernel) {
		close(s->fd);
		return;
	}
	app_stack_halt(s->stack);
	sink_print_end(s);
	for (uint16_t i = 0; i < s->nsocks; i++)
		sl_udp_close(s->socks[i], SL_INET_NO_WORKER);
	app_stack_free(s->stack);
	rte_eal_cleanup();
}

int
main(int argc, char **argv)
{
	struct sink_options opt;
	struct sink *s = &sink;
	int eal_argc;
	char **own;
	int own_argc = app_args_split(argc, argv, &eal_argc, &own);

	app_name_set("sluice-udp-sink");
	sink_options_read(own_argc, own, &opt);
	s->opt = &opt;
	app_catch_signals();
	if (opt.kernel) {
		sink_kernel_open(s, eal_argc);
	} else {
		s->stack = &stack;
		start(s, eal_argc, argv);
	}
	if (opt.check)
		s->check = payload_check_create();
	if (!sink_buffers_create(s) || (opt.check && s->check == NULL))
		app_fail("no memory for %d buffers.", SINK_BATCH_MAX);
	if (opt.connect)
		peer_connect(s);
	run_all(s);
	finish(s);
	sink_buffers_free(s);
	payload_check_free(s->check);
	return 0;
}
