/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "udp_priv.h"

/* What Linux still takes as an IPv6 socket address: without sin6_scope_id. */
#define SIN6_LEN_MIN 24u

int
udp_name_get(
	const struct sl_udp_sock *s, const void *name, socklen_t len, struct sockaddr_storage *sa)
{
	memset(sa, 0, sizeof(*sa));
	if ((int)len < 0 || len > sizeof(*sa))
		return -EINVAL;
	if (len == 0)
		return 0;
	return name != NULL ? udp_get(s, sa, name, len) : -EFAULT;
}

static int
get_v4(const struct sockaddr *sa, socklen_t len, struct sl_addr *addr, uint16_t *port)
{
	struct sockaddr_in sin;

	if (len < sizeof(sin))
		return -EINVAL;
	memcpy(&sin, sa, sizeof(sin));
	*addr = sl_addr_v4(sin.sin_addr.s_addr);
	*port = sin.sin_port;
	return 0;
}

int
udp_addr_get(const struct sl_udp_sock *s, const struct sockaddr *sa, socklen_t len,
	struct sl_addr *addr, uint16_t *port)
{
	struct sockaddr_in6 sin6;

	if (sa == NULL || len < sizeof(sa->sa_family))
		return -EINVAL;
	if (s->conf.family == AF_INET) {
		if (len < sizeof(struct sockaddr_in))
			return -EINVAL;
		return sa->sa_family == AF_INET ? get_v4(sa, len, addr, port) : -EAFNOSUPPORT;
	}
	if (sa->sa_family == AF_INET)
		return s->conf.v6only ? -EAFNOSUPPORT : get_v4(sa, len, addr, port);
	if (len < SIN6_LEN_MIN)
		return -EINVAL;
	if (sa->sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	memcpy(&sin6, sa, SIN6_LEN_MIN);
	memcpy(addr->b, &sin6.sin6_addr, sizeof(addr->b));
	*port = sin6.sin6_port;
	return 0;
}

struct sl_addr
udp_addr_any(const struct sl_udp_sock *s)
{
	return s->conf.family == AF_INET ? sl_addr_v4(0) : (struct sl_addr){{0}};
}

static bool
is_link_local(const struct sl_addr *a)
{
	return a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

socklen_t
udp_addr_put(const struct sl_udp_sock *s, const struct sl_addr *addr, uint16_t port, uint16_t scope,
	struct sockaddr_storage *sa)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)sa;
	struct sockaddr_in *sin = (struct sockaddr_in *)sa;

	if (s->conf.family == AF_INET) {
		memset(sin, 0, sizeof(*sin));
		sin->sin_family = AF_INET;
		sin->sin_port = port;
		sin->sin_addr.s_addr = sl_addr_to_v4(addr);
		return sizeof(*sin);
	}
	memset(sin6, 0, sizeof(*sin6));
	sin6->sin6_family = AF_INET6;
	sin6->sin6_port = port;
	memcpy(&sin6->sin6_addr, addr->b, sizeof(addr->b));
	if (is_link_local(addr))
		sin6->sin6_scope_id = scope;
	return sizeof(*sin6);
}
