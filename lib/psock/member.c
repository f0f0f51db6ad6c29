/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Memberships: multicast addresses, all multicast, promiscuous, second unicast addresses. They are
 * counted per socket and per port, and undo themselves when the socket or the port goes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "psock_priv.h"

/* Tell the port; ethdev has no counts, so only the first and the last matter. */
static int
counted(uint32_t *count, uint16_t port_id, bool on, int (*enable)(uint16_t),
	int (*disable)(uint16_t))
{
	int ret;

	if (!on)
		return --*count == 0 ? disable(port_id) : 0;
	ret = *count == 0 ? enable(port_id) : 0;
	if (ret == 0 || ret == -ENOTSUP)
		++*count;
	return ret;
}

static int
port_promisc(struct psock_port *port, bool on)
{
	return counted(&port->promisc, port->conf.port_id, on, rte_eth_promiscuous_enable,
		rte_eth_promiscuous_disable);
}

static int
port_allmulti(struct psock_port *port, bool on)
{
	return counted(&port->allmulti, port->conf.port_id, on, rte_eth_allmulticast_enable,
		rte_eth_allmulticast_disable);
}

/* A port that cannot filter addresses lets every one through: that is no error. */
static int
port_address(struct psock_port *port, const uint8_t *address, bool on)
{
	struct rte_ether_addr mac;
	int ret;

	memcpy(&mac, address, MAC_LEN);
	ret = on ? rte_eth_dev_mac_addr_add(port->conf.port_id, &mac, 0)
		 : rte_eth_dev_mac_addr_remove(port->conf.port_id, &mac);
	return ret == -ENOTSUP ? 0 : ret;
}

/* Multicast addresses go as a list of all, which other programs may own: all multicast it is. */
static int
port_apply(struct psock_port *port, const struct psock_member *m, bool on)
{
	int ret;

	switch (m->type) {
	case PACKET_MR_PROMISC:
		ret = port_promisc(port, on);
		break;
	case PACKET_MR_MULTICAST:
	case PACKET_MR_ALLMULTI:
		ret = port_allmulti(port, on);
		break;
	default:
		ret = port_address(port, m->address, on);
		break;
	}
	return ret == -ENOTSUP ? 0 : ret;
}

static int
read_mreq(const void *value, socklen_t len, struct packet_mreq *mreq)
{
	memset(mreq, 0, sizeof(*mreq));
	if (len < sizeof(*mreq))
		return -EINVAL;
	if (value == NULL)
		return -EFAULT;
	memcpy(mreq, value, sizeof(*mreq));
	if (len < offsetof(struct packet_mreq, mr_address) + mreq->mr_alen)
		return -EINVAL;
	return 0;
}

static struct psock_member **
find(struct sl_psock *s, const struct packet_mreq *mreq)
{
	struct psock_member **m = &s->members;

	for (; *m != NULL; m = &(*m)->next)
		if ((*m)->ifindex == mreq->mr_ifindex && (*m)->type == mreq->mr_type &&
			(*m)->alen == mreq->mr_alen &&
			memcmp((*m)->address, mreq->mr_address,
				RTE_MIN((size_t)mreq->mr_alen, sizeof(mreq->mr_address))) == 0)
			break;
	return m;
}

/* Caller: in a control call. */
int
psock_member_add(struct sl_psock *s, const void *value, socklen_t len)
{
	struct psock_port *port;
	struct packet_mreq mreq;
	struct psock_member *m;
	int ret = read_mreq(value, len, &mreq);

	if (ret != 0)
		return ret;
	port = psock_port(s->net, mreq.mr_ifindex);
	if (port == NULL)
		return -ENODEV;
	if (mreq.mr_alen > MAC_LEN)
		return -EINVAL;
	m = *find(s, &mreq);
	if (m != NULL) {
		m->count++;
		return 0;
	}
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return -ENOBUFS;
	*m = (struct psock_member){.ifindex = mreq.mr_ifindex,
		.type = mreq.mr_type,
		.alen = mreq.mr_alen,
		.count = 1,
		.next = s->members};
	memcpy(m->address, mreq.mr_address, sizeof(m->address));
	ret = port_apply(port, m, true);
	if (ret != 0) {
		free(m);
		return ret;
	}
	s->members = m;
	return 0;
}

static void
remove_member(struct sl_psock *s, struct psock_member **at)
{
	struct psock_member *m = *at;
	struct psock_port *port = psock_port(s->net, m->ifindex);

	if (port != NULL)
		port_apply(port, m, false);
	*at = m->next;
	free(m);
}

/* Caller: in a control call. What is not there to be dropped is no error, as on Linux. */
int
psock_member_drop(struct sl_psock *s, const void *value, socklen_t len)
{
	struct psock_member **at;
	struct packet_mreq mreq;
	int ret = read_mreq(value, len, &mreq);

	if (ret != 0)
		return ret;
	at = find(s, &mreq);
	if (*at != NULL && --(*at)->count == 0)
		remove_member(s, at);
	return 0;
}

/* Those on one port, or all of them for -1. */
void
psock_members_undo(struct sl_psock *s, int ifindex)
{
	struct psock_member **at = &s->members;

	while (*at != NULL) {
		if (ifindex == -1 || (*at)->ifindex == ifindex)
			remove_member(s, at);
		else
			at = &(*at)->next;
	}
}
