/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include "links.h"

#include <rte_ethdev.h>

#include "daemon.h"

bool
links_up(uint16_t port_id)
{
	struct rte_eth_link link;

	return rte_eth_link_get_nowait(port_id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

void
links_look(struct daemon *d)
{
	for (uint16_t i = 0; i < d->conf.nports; i++) {
		bool up = links_up(d->port_id[i]);

		if (up && !d->link_up[i])
			sl_inet_announce(d->inet, d->port_id[i]);
		d->link_up[i] = up;
	}
}
