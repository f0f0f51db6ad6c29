/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Requests to the kernel about an interface, by name. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include <linux/ethtool.h>
#include <net/if_arp.h>
#include <linux/sockios.h>

#include "sl_errno.h"
#include "tpacket_priv.h"

static int
request(int fd, unsigned long what, const char *name, struct ifreq *req)
{
	memcpy(req->ifr_name, name, strnlen(name, IFNAMSIZ - 1) + 1);
	return sl_sys(ioctl(fd, what, req));
}

int
tpacket_if_index(int fd, const char *name)
{
	struct ifreq req = {0};
	int ret = request(fd, SIOCGIFINDEX, name, &req);

	return ret < 0 ? ret : req.ifr_ifindex;
}

int
tpacket_if_flags(int fd, const char *name, uint32_t *flags)
{
	struct ifreq req = {0};
	int ret = request(fd, SIOCGIFFLAGS, name, &req);

	*flags = ret == 0 ? (uint16_t)req.ifr_flags : 0;
	return ret;
}

int
tpacket_if_set_up(int fd, const char *name, bool up)
{
	struct ifreq req = {0};
	uint32_t flags;
	int ret = tpacket_if_flags(fd, name, &flags);

	if (ret != 0 || up == ((flags & IFF_UP) != 0))
		return ret;
	req.ifr_flags = (short)(up ? flags | IFF_UP : flags & ~(uint32_t)IFF_UP);
	return request(fd, SIOCSIFFLAGS, name, &req);
}

int
tpacket_if_mtu(int fd, const char *name, uint32_t *mtu)
{
	struct ifreq req = {0};
	int ret = request(fd, SIOCGIFMTU, name, &req);

	*mtu = ret == 0 ? (uint32_t)req.ifr_mtu : 0;
	return ret;
}

int
tpacket_if_set_mtu(int fd, const char *name, uint32_t mtu)
{
	struct ifreq req = {.ifr_mtu = (int)mtu};

	return request(fd, SIOCSIFMTU, name, &req);
}

int
tpacket_if_mac(int fd, const char *name, struct rte_ether_addr *mac)
{
	struct ifreq req = {0};
	int ret = request(fd, SIOCGIFHWADDR, name, &req);

	if (ret != 0)
		return ret;
	if (req.ifr_hwaddr.sa_family != ARPHRD_ETHER && req.ifr_hwaddr.sa_family != ARPHRD_LOOPBACK)
		return -EPROTOTYPE; /* frames of this interface have no Ethernet header */
	memcpy(mac->addr_bytes, req.ifr_hwaddr.sa_data, RTE_ETHER_ADDR_LEN);
	return 0;
}

int
tpacket_if_set_mac(int fd, const char *name, const struct rte_ether_addr *mac)
{
	struct ifreq req = {.ifr_hwaddr.sa_family = ARPHRD_ETHER};

	memcpy(req.ifr_hwaddr.sa_data, mac->addr_bytes, RTE_ETHER_ADDR_LEN);
	return request(fd, SIOCSIFHWADDR, name, &req);
}

void
tpacket_if_speed(int fd, const char *name, uint32_t *mbps, bool *full)
{
	struct ethtool_cmd cmd = {.cmd = ETHTOOL_GSET};
	struct ifreq req = {.ifr_data = (char *)&cmd};
	uint32_t speed;

	*mbps = RTE_ETH_SPEED_NUM_UNKNOWN;
	*full = true;
	if (request(fd, SIOCETHTOOL, name, &req) != 0)
		return;
	speed = ethtool_cmd_speed(&cmd);
	if (speed != 0 && speed != (uint32_t)SPEED_UNKNOWN && speed != UINT16_MAX)
		*mbps = speed;
	*full = cmd.duplex != DUPLEX_HALF;
}

bool
tpacket_if_tso(int fd, const char *name)
{
	struct ethtool_value value = {.cmd = ETHTOOL_GTSO};
	struct ifreq req = {.ifr_data = (char *)&value};

	return request(fd, SIOCETHTOOL, name, &req) == 0 && value.data != 0;
}
