/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include "links.h"

#include <rte_ethdev.h>

#include "daemon.h"

void
links_look(struct daemon *d)
{
	for (uint16_t i = 0; i < d->conf.nports; i++) {
		struct rte_eth_link link;
		bool up = rte_eth_link_get_nowait(d->port_id[i], &link) == 0 &&
			  link.link_status == RTE_ETH_LINK_UP;

		if (up && !d->link_up[i])
			sl_inet_announce(d->inet, d->port_id[i]);
		d->link_up[i] = up;
	}
}
