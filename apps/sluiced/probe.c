/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#include <rte_mbuf.h>
#include <rte_random.h>

#include "../common/app.h"
#include "daemon.h"
#include "probe.h"

/* One answer is expected at a time; the rest is for what is late or was not asked for. */
#define SLOTS 16
#define RCVBUF 65536
#define BURST 8

static struct health_conf
health_conf_of(const struct conf_check *c)
{
	return (struct health_conf){.interval_ms = c->interval_ms,
		.timeout_ms = c->timeout_ms,
		.rise = c->rise,
		.fall = c->fall,
		.expect = c->expect.octet,
		.expect_len = c->expect.len};
}

/* A port takes nothing that is for an address of another one, so answers come back to an address of
 * the port by which the back end is reached: the service's own if it is that port's. */
static struct sl_addr
source_for(const struct daemon *d, const struct sl_addr *service, const struct sl_addr *to)
{
	struct sl_addr src;

	if (sl_inet_source(d->inet, to, &src) != 0 ||
		conf_port_of(&d->conf, &src) == conf_port_of(&d->conf, service))
		return *service;
	return src;
}

static int
sock_open(struct daemon *d, const struct sl_addr *service, const struct conf_backend *to,
	struct sl_udp_sock **out)
{
	struct sl_addr from = source_for(d, service, &to->addr);
	struct sl_udp_sock_conf conf = {
		.family = sl_addr_is_v4(&from) ? AF_INET : AF_INET6,
		.busy = true,
		.worker = d->nworkers == 1 ? 0 : SL_INET_NO_WORKER,
		.slots = SLOTS,
		.rcvbuf = RCVBUF,
	};
	struct sockaddr_storage ss;
	socklen_t len = app_sockaddr(&from, 0, conf.family, &ss);
	int ret = sl_udp_socket(d->udp, &conf, out);

	if (ret != 0)
		return ret;
	ret = sl_udp_bind(*out, (struct sockaddr *)&ss, len);
	if (ret == 0) {
		len = app_sockaddr(&to->addr, to->udp_port, conf.family, &ss);
		ret = sl_udp_connect(*out, (struct sockaddr *)&ss, len);
	}
	if (ret != 0)
		sl_udp_close(*out, SL_INET_NO_WORKER);
	return ret;
}

int
probe_open(struct daemon *d, const struct sl_addr *service, const struct conf_backend *to,
	const struct conf_check *check, bool up, struct probe **out)
{
	struct health_conf conf = health_conf_of(check);
	struct probe *p = calloc(1, sizeof(*p));
	int ret;

	if (p == NULL)
		return -ENOMEM;
	ret = sock_open(d, service, to, &p->sock);
	if (ret != 0) {
		free(p);
		return ret;
	}
	health_begin(&p->health, &conf, daemon_now_ms(), (uint32_t)rte_rand());
	if (!up)
		health_doubt(&p->health);
	*out = p;
	return 0;
}

void
probe_close(struct daemon *d, struct probe *p)
{
	if (p == NULL)
		return;
	service_sock_close(d, p->sock);
	free(p);
}

static void
take_answer(struct probe *p, const struct health_conf *conf, uint64_t now_ms, struct rte_mbuf *m)
{
	uint8_t room[CONF_VALUE_LEN];
	const uint8_t *payload = rte_pktmbuf_read(m, 0, conf->expect_len, room);

	/* Too short for that: no answer can be good. */
	health_answer(&p->health, conf, now_ms, payload, payload != NULL ? conf->expect_len : 0);
	rte_pktmbuf_free(m);
}

bool
probe_turn(struct probe *p, uint16_t worker, const struct conf_check *check, bool hint,
	uint64_t now_ms)
{
	struct health_conf conf = health_conf_of(check);
	struct sl_dgram g[BURST];
	bool up = p->health.up;
	int n = sl_udp_recv_burst(p->sock, g, BURST);

	for (int i = 0; i < n; i++)
		take_answer(p, &conf, now_ms, g[i].buf);
	if (n < 0 && n != -EBUSY)
		health_unreachable(&p->health, &conf, now_ms);
	if (hint)
		health_hint(&p->health, &conf, now_ms);
	if (health_turn(&p->health, &conf, now_ms)) {
		ssize_t sent = sl_udp_sendto(
			p->sock, worker, check->send.octet, check->send.len, 0, NULL, 0);

		health_sent(&p->health, &conf, now_ms, sent >= 0);
	}
	return p->health.up != up;
}

void
probe_sums(const struct probe *p, struct service_sums *sums)
{
	service_sock_sums(p->sock, sums);
}
