/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * What services do with their datagrams. An echo is safe from abuse by four rules: the answer is
 * the request's payload, so no longer than it; nothing that was sent to or from a group or a
 * broadcast address is answered; no source port is answered behind which something may answer back
 * without being asked to (well-known reflectors, and our own echo services, wherever they are); and
 * it goes to the address that asked, over the stack, which has refused sources that nobody may send
 * from. A reflector's answers follow the same rules, but for the ports, where stamp.h has its own.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_common.h>
#include <rte_mbuf.h>
#include <rte_random.h>

#include "../common/app.h"
#include "backends.h"
#include "daemon.h"
#include "forward.h"
#include "sl_errno.h"
#include "sl_udpq_mbuf.h"
#include "trace.h"

#define HEADROOM 128 /* as sl_inet_udp_output needs */
#define SLOTS 4096
#define NSEC_PER_SEC UINT64_C(1000000000)
#define NSEC_PER_MSEC UINT64_C(1000000)
#define CLOCK_EVERY_MS 1000
/* Sessions of a stateful reflector. Whoever forges new ones takes what there is a second, but
 * cannot fill the table: it forgets faster. */
#define SESSIONS 65536
#define SESSIONS_IDLE_MS 120000
#define SESSIONS_PER_S 500
#define TTL_MAX 255

const struct service_outcome_info service_outcome_info[SERVICE_OUTCOMES] = {
	[SERVICE_SUNK] = {"sunk", false},
	[SERVICE_DROPPED] = {"dropped", true},
	[SERVICE_ECHOED] = {"echoed", false},
	[SERVICE_REFLECTOR] = {"echo_reflector", true},
	[SERVICE_GROUP] = {"echo_group", true},
	[SERVICE_TOO_BIG] = {"echo_too_big", true},
	[SERVICE_UNREACHABLE] = {"echo_unreachable", true},
	[SERVICE_NO_MBUF] = {"echo_no_mbuf", true},
	[SERVICE_STAMP_ANSWERED] = {"stamp_answered", false},
	[SERVICE_STAMP_SHORT] = {"stamp_short", true},
	[SERVICE_STAMP_UNPADDED] = {"stamp_unpadded", true},
	[SERVICE_STAMP_REFLECTED] = {"stamp_reflected", true},
	[SERVICE_STAMP_PORT] = {"stamp_source_port", true},
	[SERVICE_STAMP_SESSIONS] = {"stamp_sessions", true},
	[SERVICE_STAMP_GROUP] = {"stamp_group", true},
	[SERVICE_STAMP_TOO_BIG] = {"stamp_too_big", true},
	[SERVICE_STAMP_UNREACHABLE] = {"stamp_unreachable", true},
	[SERVICE_STAMP_NO_MBUF] = {"stamp_no_mbuf", true},
	[SERVICE_MIRRORED] = {"mirrored", false},
	[SERVICE_MIRROR_NO_ROOM] = {"mirror_no_room", true},
	[SERVICE_MIRROR_NO_MBUF] = {"mirror_no_mbuf", true},
	[SERVICE_FORWARDED] = {"forwarded", false},
	[SERVICE_FORWARD_RETURNED] = {"forward_returned", false},
	[SERVICE_FORWARD_ERROR] = {"forward_icmp", false},
	[SERVICE_FORWARD_NO_BACKEND] = {"forward_no_backend", true},
	[SERVICE_FORWARD_NO_FLOW] = {"forward_no_flow", true},
	[SERVICE_FORWARD_TTL] = {"forward_ttl", true},
	[SERVICE_FORWARD_TOO_BIG] = {"forward_too_big", true},
	[SERVICE_FORWARD_UNREACHABLE] = {"forward_unreachable", true},
	[SERVICE_FORWARD_NO_MBUF] = {"forward_no_mbuf", true},
};

_Static_assert(SERVICE_STAMP_ANSWERED + STAMP_OUTCOMES == SERVICE_STAMP_GROUP,
	"every outcome of a reflector is one of a service");

/* Services that answer whatever comes: echo, discard's neighbours daytime, quotd, chargen and time;
 * and those that are known to be asked in others' names: DNS, TFTP, NTP, SNMP, CLDAP, STAMP, SSDP,
 * memcached. 0 cannot be answered. */
static const uint16_t reflectors[] = {
	0, 7, 13, 17, 19, 37, 53, 69, 123, 161, 389, 862, 1900, 11211};

static bool
is_reflector(const struct service_table *t, uint16_t sport)
{
	for (size_t i = 0; i < SL_COUNT_OF(reflectors); i++)
		if (sport == rte_cpu_to_be_16(reflectors[i]))
			return true;
	for (uint16_t i = 0; i < t->nechos; i++)
		if (sport == t->echo[i])
			return true;
	return false;
}

static bool
is_group(const struct sl_inet *inet, const struct sl_addr *a)
{
	return sl_addr_is_multicast(a) || sl_inet_addr_is_broadcast(inet, a);
}

static uint64_t
clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* The packet itself if it is ours to write and its first octets, of which there are that many, are
 * in one piece; else a copy; then m is freed. NULL: no packet for it. */
static struct rte_mbuf *
writable(struct daemon *d, struct rte_mbuf *m, uint32_t octets)
{
	bool ours = rte_pktmbuf_headroom(m) >= HEADROOM && rte_pktmbuf_data_len(m) >= octets;
	struct rte_mbuf *copy;

	for (const struct rte_mbuf *s = m; s != NULL && ours; s = s->next)
		ours = RTE_MBUF_DIRECT(s) && rte_mbuf_refcnt_read(s) == 1;
	if (ours)
		return m;
	copy = rte_pktmbuf_copy(m, d->pool, 0, UINT32_MAX);
	rte_pktmbuf_free(m);
	return copy;
}

/* Send a packet of ours, or free it. */
static int
send_back(struct worker *w, const struct sl_inet_flow *flow, struct rte_mbuf *m)
{
	int ret;

	/* What the port said of it on its way in does not hold on its way out. */
	m->ol_flags &= RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT;
	m->tx_offload = 0;
	ret = sl_inet_udp_output(w->d->inet, w->index, flow, m);
	if (ret != 0)
		rte_pktmbuf_free(m);
	return ret;
}

static enum service_outcome
echo(struct worker *w, const struct service_table *t, const struct sl_dgram *g)
{
	struct sl_inet_flow flow = {.sport = g->dport, .dport = g->sport};
	struct daemon *d = w->d;
	struct rte_mbuf *m = g->buf;
	enum service_outcome why = SERVICE_ECHOED;
	int ret;

	memcpy(&flow.src, g->dst, sizeof(flow.src));
	memcpy(&flow.dst, g->src, sizeof(flow.dst));
	if (is_reflector(t, g->sport))
		why = SERVICE_REFLECTOR;
	else if (is_group(d->inet, &flow.src) || is_group(d->inet, &flow.dst))
		why = SERVICE_GROUP;
	if (why != SERVICE_ECHOED) {
		rte_pktmbuf_free(m);
		return why;
	}
	m = writable(d, m, 0);
	if (m == NULL)
		return SERVICE_NO_MBUF;
	ret = send_back(w, &flow, m);
	if (ret == 0)
		return SERVICE_ECHOED;
	return ret == -EMSGSIZE ? SERVICE_TOO_BIG : SERVICE_UNREACHABLE;
}

static enum service_outcome
reflect(struct worker *w, struct service *s, uint64_t rx_ns, const struct sl_dgram *g)
{
	struct sl_inet_flow flow = {.sport = g->dport, .dport = g->sport, .ttl = TTL_MAX};
	struct stamp_seen seen = {
		.sport = g->sport, .dport = g->dport, .ttl = g->ttl, .rx_ns = rx_ns};
	struct daemon *d = w->d;
	enum stamp_outcome what;
	struct rte_mbuf *m = g->buf;
	int ret;

	memcpy(&seen.src, g->src, sizeof(seen.src));
	memcpy(&seen.dst, g->dst, sizeof(seen.dst));
	flow.src = seen.dst;
	flow.dst = seen.src;
	if (is_group(d->inet, &flow.src) || is_group(d->inet, &flow.dst)) {
		rte_pktmbuf_free(m);
		return SERVICE_STAMP_GROUP;
	}
	m = writable(d, m, RTE_MIN(g->len, STAMP_LENGTH_BASE));
	if (m == NULL)
		return SERVICE_STAMP_NO_MBUF;
	seen.tx_ns = clock_ns(CLOCK_REALTIME);
	what = stamp_reflect(s->stamp, &seen, rte_pktmbuf_mtod(m, uint8_t *), g->len);
	if (what != STAMP_ANSWERED) {
		rte_pktmbuf_free(m);
		return (enum service_outcome)(SERVICE_STAMP_ANSWERED + (unsigned int)what);
	}
	ret = send_back(w, &flow, m);
	if (ret == 0)
		return SERVICE_STAMP_ANSWERED;
	return ret == -EMSGSIZE ? SERVICE_STAMP_TOO_BIG : SERVICE_STAMP_UNREACHABLE;
}

/* Behind its burst, so that no answer waits for it: sessions age, and the state of the clock. */
static void
reflect_turn(struct service *s, uint64_t now_ms)
{
	struct stamp_clock clock;

	stamp_turn(s->stamp, now_ms);
	if (now_ms - s->clock_ms < CLOCK_EVERY_MS)
		return;
	stamp_clock_read(&clock);
	stamp_set_clock(s->stamp, &clock);
	s->clock_ms = now_ms;
}

static void
free_all(const struct sl_dgram *g, uint16_t n)
{
	void *bufs[SL_UDPQ_BURST_MAX];

	for (uint16_t i = 0; i < n; i++)
		bufs[i] = g[i].buf;
	sl_udpq_free_mbufs(bufs, n);
}

/* Do with datagrams what the service does. */
static void
handle(struct worker *w, const struct service_table *t, struct service *s, const struct sl_dgram *g,
	int n, uint64_t rx_ns)
{
	struct service_cell *cell = &s->cell[w->index];

	switch (sl_load_relaxed(&s->kind)) {
	case CONF_SINK:
		free_all(g, (uint16_t)n);
		sl_counter_add(&cell->outcome[SERVICE_SUNK], (uint64_t)n);
		break;
	case CONF_ECHO:
		for (int i = 0; i < n; i++)
			sl_counter_add(&cell->outcome[echo(w, t, &g[i])], 1);
		break;
	case CONF_REFLECT:
		/* Other lcores may have put requests there since. */
		if (w->d->nworkers > 1)
			rx_ns = clock_ns(CLOCK_REALTIME);
		for (int i = 0; i < n; i++)
			sl_counter_add(&cell->outcome[reflect(w, s, rx_ns, &g[i])], 1);
		break;
	case CONF_MIRROR:
		service_mirror_serve(s, cell, g, (uint16_t)n);
		break;
	default:
		free_all(g, (uint16_t)n);
		sl_counter_add(&cell->outcome[SERVICE_DROPPED], (uint64_t)n);
		break;
	}
}

/* One at a time, to see what becomes of each. */
static void __attribute__((noinline))
handle_traced(struct trace *trace, struct worker *w, const struct service_table *t,
	struct service *s, const struct sl_dgram *g, int n, uint64_t rx_ns)
{
	for (int i = 0; i < n; i++) {
		struct trace_mark mark;
		bool follow = trace_begin(trace, w, s, &g[i], &mark);

		handle(w, t, s, &g[i], 1, rx_ns);
		if (follow)
			trace_end(trace, w, s, &mark);
	}
}

static uint32_t
serve(struct worker *w, const struct service_table *t, struct service *s, struct sl_udp_sock *sock,
	uint64_t rx_ns)
{
	struct sl_dgram g[SL_UDPQ_BURST_MAX];
	int n = sl_udp_recv_burst(sock, g, SL_UDPQ_BURST_MAX);
	struct trace *trace;
	uint64_t bytes = 0;

	if (n <= 0)
		return 0;
	for (int i = 0; i < n; i++)
		bytes += g[i].len;
	sl_counter_add(&s->cell[w->index].bytes, bytes);
	trace = trace_of(w->d);
	if (SL_LIKELY(trace == NULL))
		handle(w, t, s, g, n, rx_ns);
	else
		handle_traced(trace, w, t, s, g, n, rx_ns);
	return (uint32_t)n;
}

uint32_t
services_turn(struct worker *w, const struct service_table *t)
{
	/* The time of arrival is read behind the polls: one before them could be earlier than a
	 * request was sent. */
	bool reflects = t != NULL && t->reflects, forwards = t != NULL && t->forwards;
	uint64_t rx_ns = reflects ? clock_ns(CLOCK_REALTIME) : 0;
	uint64_t now_ms = reflects || forwards ? daemon_now_ms() : 0;
	uint32_t work = 0;

	for (uint16_t i = 0; t != NULL && i < t->n; i++) {
		struct service *s = t->service[i];

		if (s->forward != NULL)
			forward_turn(s->forward, w->index, now_ms);
		if (s->worker != w->index)
			continue;
		if (s->forward != NULL)
			backends_turn(w, &s->backends, now_ms);
		for (uint16_t k = 0; k < s->nsocks; k++)
			work += serve(w, t, s, s->sock[k], rx_ns);
		if (s->stamp != NULL)
			reflect_turn(s, now_ms);
	}
	return work;
}

/* Addresses that a service's sockets are bound to; "any" is one, of both families. */
static uint16_t
bindings(const struct daemon *d, const struct conf_service *c, struct sl_addr *addr)
{
	const struct conf_port *p;
	uint16_t n = 0;

	if (c->kind == CONF_FORWARD) /* it takes whole packets (sl_inet_claim.h) */
		return 0;
	if (c->has_address) {
		addr[0] = c->address;
		return 1;
	}
	p = conf_find_port(&d->conf, c->port);
	for (; p != NULL && n < p->naddrs; n++)
		addr[n] = p->addrs[n].addr;
	if (p != NULL)
		return n;
	memset(&addr[0], 0, sizeof(addr[0]));
	return 1;
}

static int
socket_open(struct daemon *d, const struct service *s, const struct sl_addr *addr,
	struct sl_udp_sock **out)
{
	bool v4 = sl_addr_is_v4(addr);
	struct sl_udp_sock_conf conf = {
		.family = v4 ? AF_INET : AF_INET6,
		.reuse_port = true,
		.busy = true,
		.worker = d->nworkers == 1 ? 0 : SL_INET_NO_WORKER,
		.slots = SLOTS,
		.rcvbuf = s->conf.rcvbuf,
	};
	struct sockaddr_storage ss;
	socklen_t len = app_sockaddr(addr, s->conf.udp_port, conf.family, &ss);
	int ret = sl_udp_socket(d->udp, &conf, out);

	if (ret != 0)
		return ret;
	ret = sl_udp_bind(*out, (struct sockaddr *)&ss, len);
	if (ret != 0)
		sl_udp_close(*out, SL_INET_NO_WORKER);
	return ret;
}

static void
service_free(struct service *s)
{
	if (s == NULL)
		return;
	stamp_destroy(s->stamp);
	free(s->cell);
	free(s);
}

static int
reflector_open(struct service *s)
{
	struct stamp_conf conf = {
		.sequence = s->conf.sequence,
		.format = s->conf.format,
		.sessions = {.flows = SESSIONS,
			.idle_ms = SESSIONS_IDLE_MS,
			.inserts_per_s = SESSIONS_PER_S,
			.seed = (uint32_t)rte_rand(),
			.socket = -1},
	};
	struct stamp_clock clock;
	int ret;

	if (s->conf.kind != CONF_REFLECT)
		return 0;
	ret = stamp_create(&conf, &s->stamp);
	if (ret != 0)
		return ret;
	stamp_clock_read(&clock);
	stamp_set_clock(s->stamp, &clock);
	return 0;
}

static const char *
mirror_remedy(const struct conf_mirror *c, int ret)
{
	if (c->file_line == 0)
		return ret == -ENODEV ? "; \"ip link\" lists interfaces" : "";
	switch (ret) {
	case -EEXIST:
		return "; what is there is no regular file: name another one";
	case -EBUSY:
		return "; another daemon writes it: name another one";
	case -ENOENT:
		return "; make its folder";
	case -ENOSPC:
	case -EIO:
		return "; is there room?";
	default:
		return "";
	}
}

static void
open_failed(const struct conf_service *c, int ret, struct mistakes *m)
{
	const struct conf_mirror *to = &c->mirror;

	if (c->kind == CONF_MIRROR)
		mistake(m, to->file_line != 0 ? to->file_line : to->interface_line,
			"[service %s] %s = %s: cannot be opened: %s%s.", c->name,
			to->file_line != 0 ? "file" : "interface",
			to->file_line != 0 ? to->file : to->interface, sl_strerror(ret),
			mirror_remedy(to, ret));
	else
		/* While it is made, the one that it replaces has its memory, too. */
		mistake(m, c->line, "[service %s]: cannot be opened: %s%s.", c->name,
			sl_strerror(ret),
			ret == -ENOMEM && c->kind == CONF_FORWARD
				? "; restart with more \"memory\", or use smaller \"flows\""
				: "");
}

/* States are known before a worker asks for them. */
static int
balancer_open(
	struct daemon *d, const struct conf *conf, struct service *s, const struct service *former)
{
	int ret;

	if (s->conf.kind != CONF_FORWARD)
		return 0;
	ret = forward_open(d, conf, &s->conf, &s->forward);
	if (ret == 0)
		ret = backends_make(d, conf, &s->conf, former != NULL ? former->backends : NULL,
			false, &s->backends);
	if (ret != 0)
		return ret;
	backends_bind(s->backends, s->forward);
	backends_update(s->backends, daemon_now_ms());
	return 0;
}

struct service *
service_open(struct daemon *d, const struct conf *conf, const struct conf_service *c, uint16_t nth,
	const struct service *former, struct mistakes *m)
{
	struct service *s = calloc(1, sizeof(*s));
	size_t bytes = d->nworkers * sizeof(*s->cell);
	struct sl_addr addr[SERVICE_SOCKS_MAX];
	uint16_t n = bindings(d, c, addr);
	int ret = -ENOMEM;

	if (s != NULL)
		s->cell = aligned_alloc(SL_CACHE_LINE, bytes);
	if (s != NULL && s->cell != NULL) {
		memset(s->cell, 0, bytes);
		s->conf = *c;
		s->kind = c->kind;
		s->worker = nth % d->nworkers;
		ret = reflector_open(s);
		if (ret == 0)
			ret = balancer_open(d, conf, s, former);
		for (; ret == 0 && s->nsocks < n; s->nsocks++) {
			s->bound[s->nsocks] = addr[s->nsocks];
			ret = socket_open(d, s, &addr[s->nsocks], &s->sock[s->nsocks]);
			if (ret != 0)
				break;
		}
		if (ret == 0)
			ret = service_mirror_open(d, s);
	}
	if (ret == 0)
		return s;
	open_failed(c, ret, m);
	if (s != NULL && s->cell != NULL)
		service_close(d, s);
	else
		service_free(s);
	return NULL;
}

void
service_sock_sums(const struct sl_udp_sock *sock, struct service_sums *sums)
{
	struct sl_udp_sock_stats st;

	sl_udp_sock_stats(sock, &st);
	sums->appended += st.queue.appended;
	sums->handed += st.datagrams;
	sums->held += st.queue.appended - st.queue.released;
	sums->held_bytes += st.queue.rmem;
	sums->rcvbuf += st.queue.drops[SL_UDPQ_DROP_RCVBUF];
	sums->slots += st.queue.drops[SL_UDPQ_DROP_SLOTS];
}

void
service_sums(const struct service *s, struct service_sums *sums)
{
	for (uint16_t i = 0; i < s->nsocks; i++)
		service_sock_sums(s->sock[i], sums);
	backends_sums(sl_load_acquire(&s->backends), sums); /* BE1: also asked by other workers */
}

void
service_outcomes(const struct daemon *d, const struct service *s, uint64_t *outcome)
{
	for (uint16_t w = 0; w < d->nworkers; w++)
		for (int i = 0; i < SERVICE_OUTCOMES; i++)
			outcome[i] += sl_load_relaxed(&s->cell[w].outcome[i]);
	if (s->forward != NULL)
		forward_outcomes(s->forward, outcome);
}

void
service_sock_close(struct daemon *d, struct sl_udp_sock *sock)
{
	struct sl_udp_sock_stats before, after;

	sl_udp_sock_stats(sock, &before);
	sl_udp_close(sock, SL_INET_NO_WORKER);
	sl_udp_sock_stats(sock, &after);
	d->gone.handed += after.datagrams;
	d->gone.purged += after.purged;
	/* Nothing enters it any more, so this is all that did. */
	d->gone.appended += after.datagrams + after.purged;
	d->gone.rcvbuf += before.queue.drops[SL_UDPQ_DROP_RCVBUF];
	d->gone.slots += before.queue.drops[SL_UDPQ_DROP_SLOTS];
}

void
service_close(struct daemon *d, struct service *s)
{
	for (uint16_t i = 0; i < s->nsocks; i++)
		service_sock_close(d, s->sock[i]);
	backends_drop(d, s->backends, NULL);
	service_outcomes(d, s, d->gone_outcome);
	service_mirror_close(d, s);
	forward_close(d, s->forward);
	service_free(s);
}
