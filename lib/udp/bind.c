/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_common.h>

#include "udp_priv.h"

#define EPHEMERAL_FIRST 32768u
#define EPHEMERAL_COUNT (60999u - EPHEMERAL_FIRST + 1)

void
udp_names_write(struct sl_udp_sock *s, const struct udp_names *names)
{
	bool no_source = sl_addr_is_any(&names->local) || sl_addr_is_multicast(&names->local) ||
			 sl_inet_addr_is_broadcast(s->udp->inet, &names->local);

	rte_seqcount_write_begin(&s->names_seq);
	s->names = *names;
	s->names.no_source = no_source;
	rte_seqcount_write_end(&s->names_seq);
}

void
udp_names_read(const struct sl_udp_sock *s, struct udp_names *names)
{
	uint32_t begin;

	do {
		begin = rte_seqcount_read_begin(&s->names_seq);
		*names = s->names;
	} while (rte_seqcount_read_retry(&s->names_seq, begin));
}

/* A port that nobody shares, also not with SO_REUSEPORT; 0 if all are taken. */
static uint16_t
find_port(struct sl_udp_sock *s, const struct sl_addr *addr)
{
	struct sl_udp *udp = s->udp;

	for (uint32_t i = 0; i < EPHEMERAL_COUNT; i++) {
		uint32_t port = EPHEMERAL_FIRST + udp->next_port++ % EPHEMERAL_COUNT;

		if (udp_port_free(s, addr, rte_cpu_to_be_16((uint16_t)port), false))
			return rte_cpu_to_be_16((uint16_t)port);
	}
	return 0;
}

int
udp_bind_locked(struct sl_udp_sock *s, const struct sl_addr *addr, uint16_t port)
{
	struct udp_names names = s->names;
	int ret;

	if (port == 0)
		port = find_port(s, addr);
	else if (!udp_port_free(s, addr, port, true))
		port = 0;
	if (port == 0)
		return -EADDRINUSE;
	names.bound = *addr;
	names.local = *addr;
	names.lport = port;
	udp_names_write(s, &names);
	ret = udp_port_add(s, addr, port);
	if (ret != 0) {
		names.bound = names.local = udp_addr_any(s);
		names.lport = 0;
		udp_names_write(s, &names);
	}
	return ret;
}

int
udp_autobind(struct sl_udp_sock *s)
{
	struct sl_addr any = udp_addr_any(s);
	int ret = 0;

	pthread_mutex_lock(&s->udp->lock);
	if (udp_closed_locked(s))
		ret = -EBADF;
	else if (s->names.lport == 0)
		ret = udp_bind_locked(s, &any, 0);
	pthread_mutex_unlock(&s->udp->lock);
	return ret;
}

/* What bind(2) takes on top of what every call takes: AF_UNSPEC with 0.0.0.0 counts as AF_INET, and
 * an AF_INET6 socket takes no AF_INET address. */
static int
bind_addr(const struct sl_udp_sock *s, const struct sockaddr *name, socklen_t len,
	struct sl_addr *addr, uint16_t *port)
{
	struct sockaddr_storage ss;
	struct sockaddr *sa = (struct sockaddr *)&ss;
	int ret = udp_name_get(s, name, len, &ss);

	if (ret != 0)
		return ret;
	if (s->conf.family == AF_INET6) {
		if (len < sizeof(struct sockaddr_in6) - sizeof(uint32_t))
			return -EINVAL;
		return sa->sa_family == AF_INET6 ? udp_addr_get(s, sa, len, addr, port)
						 : -EAFNOSUPPORT;
	}
	if (sa->sa_family == AF_UNSPEC &&
		((struct sockaddr_in *)&ss)->sin_addr.s_addr == INADDR_ANY)
		sa->sa_family = AF_INET;
	return udp_addr_get(s, sa, len, addr, port);
}

static int
bind_check(const struct sl_udp_sock *s, const struct sl_addr *addr)
{
	if (s->conf.family == AF_INET6 && s->conf.v6only && sl_addr_is_v4(addr))
		return -EINVAL;
	if (sl_addr_is_any(addr) || sl_addr_is_multicast(addr))
		return 0;
	return sl_inet_addr_is_local(s->udp->inet, addr) ||
			       sl_inet_addr_is_broadcast(s->udp->inet, addr) ? 0 : -EADDRNOTAVAIL;
}

int
sl_udp_bind(struct sl_udp_sock *s, const struct sockaddr *addr, socklen_t len)
{
	struct sl_addr a;
	uint16_t port;
	int ret = bind_addr(s, addr, len, &a, &port);

	if (ret == 0)
		ret = bind_check(s, &a);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&s->udp->lock);
	if (udp_closed_locked(s))
		ret = -EBADF;
	else
		ret = s->names.lport == 0 ? udp_bind_locked(s, &a, port) : -EINVAL;
	pthread_mutex_unlock(&s->udp->lock);
	return ret;
}

int
sl_udp_getsockname(const struct sl_udp_sock *s, struct sockaddr *addr, socklen_t *len)
{
	struct sockaddr_storage sa;
	struct udp_names names;
	socklen_t room, whole;
	int ret = len != NULL ? udp_get(s, &room, len, sizeof(room)) : -EFAULT;

	if (ret != 0)
		return ret;
	if (sl_load_relaxed(&s->closing) != 0)
		return -EBADF;
	if ((int)room < 0)
		return -EINVAL;
	if (addr == NULL && room != 0)
		return -EFAULT;
	udp_names_read(s, &names);
	whole = udp_addr_put(s, &names.local, names.lport, 0, &sa);
	if (room != 0)
		ret = udp_put(s, addr, &sa, RTE_MIN(room, whole));
	return ret == 0 ? udp_put(s, len, &whole, sizeof(whole)) : ret;
}
