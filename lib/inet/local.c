/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Addresses of ports. Each has a place in its port (struct inet_addr), which workers look at
 * without a lock: it is filled in while its state says that there is none, and its state is stored
 * last (IN1). A place whose address was deleted is used again after a grace period, so that nobody
 * reads half of one address and half of another; those who are no workers hold the table's lock
 * while they look.
 */
#include <errno.h>
#include <string.h>

#include "neigh.h"
#include "table.h"

static bool
acceptable4(uint32_t be, uint8_t prefix)
{
	uint32_t first = rte_be_to_cpu_32(be) >> 24, mask;

	if (prefix > 32 || be == UINT32_MAX || first == 0 || first == 127)
		return false;
	if (prefix > 30 || prefix == 0)
		return true; /* no broadcast address, RFC 3021 */
	mask = inet_prefix_mask4(prefix);
	return (be | mask) != UINT32_MAX;
}

bool
inet_addr_acceptable(const struct sl_addr *addr, uint8_t prefix)
{
	static const struct sl_addr loopback6 = {{[15] = 1}};

	if (inet_is_multicast(addr) || sl_addr_is_any(addr))
		return false;
	if (inet_is_v4(addr))
		return acceptable4(inet_to_v4(addr), prefix);
	return prefix <= 128 && memcmp(addr, &loopback6, sizeof(*addr)) != 0;
}

static bool
is_taken(const struct sl_inet *inet, const struct inet_port *port, const struct sl_addr *addr)
{
	for (uint32_t i = 0; i < inet->port_count; i++) {
		/* One link-local address may well be there on two links. */
		bool scoped = inet->port[i] != port && inet_is_link_local(addr);

		if (!scoped && inet_port_addr(inet->port[i], addr) != NULL)
			return true;
	}
	return false;
}

/* A place for an address: 0; -ENOSPC; -EBUSY when those that are free are still being looked at. */
static int
find_place(const struct sl_inet *inet, struct inet_port *port, struct inet_addr **out)
{
	uint32_t live = 0;

	for (uint32_t i = 0; i < port->addr_count; i++) {
		struct inet_addr *a = &port->addr[i];

		if (a->state != INET_ADDR_NONE) {
			live++;
		} else if (rte_rcu_qsbr_check(inet->rcu, a->token, false) == 1) {
			*out = a;
			return 0;
		}
	}
	if (live == SL_INET_ADDRS_MAX)
		return -ENOSPC;
	if (port->addr_count == SL_INET_ADDRS_MAX)
		return -EBUSY;
	*out = &port->addr[port->addr_count];
	return 0;
}

static void
remove_place(struct sl_inet *inet, struct inet_port *port, struct inet_addr *a)
{
	inet_addr_set_state(inet, a, INET_ADDR_NONE);
	if (inet_is_v4(&a->addr))
		sl_store_relaxed(&port->count4, port->count4 - 1);
	a->token = rte_rcu_qsbr_start(inet->rcu);
}

int
inet_addr_add_locked(
	struct sl_inet *inet, struct inet_port *port, const struct sl_addr *addr, uint8_t prefix)
{
	struct inet_addr *a;
	int ret;

	if (!inet_addr_acceptable(addr, prefix))
		return -EINVAL;
	if (is_taken(inet, port, addr))
		return -EEXIST;
	ret = find_place(inet, port, &a);
	for (int i = 0; ret == -EBUSY && i < TABLE_WAITS; i++) {
		rte_delay_us_sleep(TABLE_WAIT_US);
		ret = find_place(inet, port, &a);
	}
	if (ret != 0)
		return ret;
	a->addr = *addr;
	a->prefix = prefix;
	if (inet_is_v4(addr))
		sl_store_relaxed(&port->count4, port->count4 + 1);
	inet_addr_set_state(inet, a, inet_is_v4(addr) ? INET_ADDR_READY : INET_ADDR_TENTATIVE);
	if (a == &port->addr[port->addr_count])
		sl_store_release(&port->addr_count, port->addr_count + 1u); /* IN1 */
	ret = inet_table_connect(inet, port, addr, prefix);
	if (ret != 0)
		remove_place(inet, port, a);
	return ret;
}

int
sl_inet_addr_add(struct sl_inet *inet, uint16_t handle, const struct sl_addr *addr, uint8_t prefix)
{
	struct inet_port *port = inet_port_find(inet, handle);
	int ret;

	if (port == NULL)
		return -ENODEV;
	inet_table_write(inet);
	ret = inet_addr_add_locked(inet, port, addr, prefix);
	inet_table_unlock(inet);
	return ret;
}

static int
addr_del_locked(struct sl_inet *inet, struct inet_port *port, const struct sl_addr *addr)
{
	struct inet_addr *a = inet_port_addr(port, addr);
	uint32_t state;
	int ret;

	if (a == NULL)
		return -EADDRNOTAVAIL;
	/* Hidden first: what goes by a next hop in its prefix is not usable without it. */
	state = sl_load_relaxed(&a->state);
	inet_addr_set_state(inet, a, INET_ADDR_NONE);
	ret = inet_table_disconnect(inet, port, addr, a->prefix);
	if (ret != 0)
		inet_addr_set_state(inet, a, state);
	else
		remove_place(inet, port, a);
	return ret;
}

int
sl_inet_addr_del(struct sl_inet *inet, uint16_t handle, const struct sl_addr *addr)
{
	struct inet_port *port = inet_port_find(inet, handle);
	int ret;

	if (port == NULL)
		return -ENODEV;
	inet_table_write(inet);
	ret = addr_del_locked(inet, port, addr);
	inet_table_unlock(inet);
	return ret;
}

void
sl_inet_addr_foreach(const struct sl_inet *inet,
	void (*visit)(void *arg, const struct sl_inet_addr_info *addr), void *arg)
{
	static const enum sl_inet_addr_state states[] = {
		[INET_ADDR_TENTATIVE] = SL_INET_ADDR_TENTATIVE,
		[INET_ADDR_READY] = SL_INET_ADDR_READY,
		[INET_ADDR_DUPLICATE] = SL_INET_ADDR_DUPLICATE,
	};

	inet_table_read(inet);
	for (uint32_t p = 0; p < inet->port_count; p++) {
		const struct inet_port *port = inet->port[p];

		for (uint32_t i = 0; i < port->addr_count; i++) {
			const struct inet_addr *a = &port->addr[i];
			uint32_t state = sl_load_relaxed(&a->state);
			struct sl_inet_addr_info info = {
				.addr = a->addr, .prefix = a->prefix, .port = port->id};

			if (state == INET_ADDR_NONE)
				continue;
			info.state = states[state];
			visit(arg, &info);
		}
	}
	inet_table_unlock(inet);
}

static bool
has_addr(const struct sl_inet *inet, const struct sl_addr *addr, uint32_t state)
{
	bool found = false;

	inet_table_read(inet);
	for (uint32_t i = 0; i < inet->port_count && !found; i++) {
		const struct inet_addr *a = inet_port_addr(inet->port[i], addr);

		found = a != NULL && sl_load_relaxed(&a->state) == state;
	}
	inet_table_unlock(inet);
	return found;
}

bool
sl_inet_addr_is_local(const struct sl_inet *inet, const struct sl_addr *addr)
{
	return has_addr(inet, addr, INET_ADDR_READY);
}

bool
sl_inet_addr_is_duplicate(const struct sl_inet *inet, const struct sl_addr *addr)
{
	return has_addr(inet, addr, INET_ADDR_DUPLICATE);
}

bool
sl_inet_addr_is_broadcast(const struct sl_inet *inet, const struct sl_addr *addr)
{
	bool found = false;

	if (!inet_is_v4(addr))
		return false;
	if (inet_to_v4(addr) == UINT32_MAX)
		return true;
	inet_table_read(inet);
	for (uint32_t i = 0; i < inet->port_count && !found; i++)
		found = inet_port_is_broadcast4(inet->port[i], inet_to_v4(addr));
	inet_table_unlock(inet);
	return found;
}

void
sl_inet_announce(struct sl_inet *inet, uint16_t port_id)
{
	inet_table_read(inet);
	for (uint32_t i = 0; i < inet->port_count; i++)
		if (inet->port[i]->dev == port_id)
			inet_addrs_announce(inet, inet->port[i]);
	inet_table_unlock(inet);
}
