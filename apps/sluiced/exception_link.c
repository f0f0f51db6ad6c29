/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What a tap is given before it is used: MAC address, addresses. */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>

#include "exception_priv.h"
#include "sl_errno.h"

int
exception_link_mac(const struct sl_tap *t, const uint8_t *mac)
{
	struct ifreq request;

	memset(&request, 0, sizeof(request));
	memcpy(request.ifr_name, t->name, sizeof(request.ifr_name));
	request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
	memcpy(request.ifr_hwaddr.sa_data, mac, 6);
	return sl_sys(ioctl(t->control, SIOCSIFHWADDR, &request));
}

struct addr_request {
	struct nlmsghdr n;
	struct ifaddrmsg a;
	uint8_t attributes[2 * RTA_SPACE(16)];
};

static void
attribute(struct addr_request *r, unsigned short type, const void *data, unsigned short len)
{
	struct rtattr *to = (struct rtattr *)(void *)((char *)r + NLMSG_ALIGN(r->n.nlmsg_len));

	to->rta_type = type;
	to->rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(RTA_DATA(to), data, len);
	r->n.nlmsg_len = NLMSG_ALIGN(r->n.nlmsg_len) + (uint32_t)RTA_SPACE(len);
}

/* Ask the kernel, and wait for its answer: 0 or -errno. */
static int
netlink_ask(const struct nlmsghdr *n)
{
	struct {
		struct nlmsghdr n;
		struct nlmsgerr e;
		char more[512];
	} answer;
	int fd = sl_sys(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)), ret;

	if (fd < 0)
		return fd;
	ret = sl_sys((int)send(fd, n, n->nlmsg_len, 0));
	if (ret >= 0)
		ret = sl_sys((int)recv(fd, &answer, sizeof(answer), 0));
	close(fd);
	if (ret < 0)
		return ret;
	if ((size_t)ret < NLMSG_LENGTH(sizeof(answer.e)) || answer.n.nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return answer.e.error;
}

int
exception_link_addr(const char *name, const struct conf_cidr *a)
{
	bool v4 = sl_addr_is_v4(&a->addr);
	const uint8_t *bytes = a->addr.b + (v4 ? 12 : 0);
	struct addr_request r = {
		.n = {.nlmsg_len = NLMSG_LENGTH(sizeof(r.a)),
			.nlmsg_type = RTM_NEWADDR,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL},
		.a = {.ifa_family = v4 ? AF_INET : AF_INET6,
			.ifa_prefixlen = a->prefix,
			/* The stack does it: the kernel's own probe would not be answered here. */
			.ifa_flags = v4 ? 0 : IFA_F_NODAD,
			.ifa_index = if_nametoindex(name)}};
	int ret;

	attribute(&r, IFA_LOCAL, bytes, v4 ? 4 : 16);
	attribute(&r, IFA_ADDRESS, bytes, v4 ? 4 : 16);
	ret = netlink_ask(&r.n);
	return ret == -EEXIST ? 0 : ret;
}
