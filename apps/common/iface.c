/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <dirent.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/un.h>
#include <unistd.h>

#include "app.h"
#include "iface.h"
#include "sl_errno.h"

#define RINGS_MAX 64

static int rings[RINGS_MAX];
static unsigned int nrings;

static void
join(int fd, const char *iface, int ifindex, unsigned short type, const char *what)
{
	struct packet_mreq mreq = {.mr_ifindex = ifindex, .mr_type = type};
	int ret = sl_sys(setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &mreq, sizeof(mreq)));

	if (ret != 0)
		app_fail("--iface %s does not receive %s: %s.", iface, what, sl_strerror(ret));
}

static void
fail_privilege(const char *iface, const char *what)
{
	app_fail("--iface %s needs the %s privilege: run as root, or once "
		 "\"setcap cap_net_raw,cap_net_admin+ep\" on this program.",
		iface, what);
}

void
iface_check(const char *iface, bool promiscuous, bool group)
{
	struct ifreq ifr = {0};
	int ifindex;
	int fd;

	if (strlen(iface) == 0 || strlen(iface) >= sizeof(ifr.ifr_name) ||
		strpbrk(iface, ",/ ") != NULL || if_nametoindex(iface) == 0)
		app_fail("--iface %s: there is no interface of that name here; \"ip link\" lists "
			 "them.",
			iface);
	ifindex = (int)if_nametoindex(iface);
	/* Protocol 0: hears nothing. It holds the memberships, which end with the process. */
	fd = sl_sys(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
	if (fd == -EPERM)
		fail_privilege(iface, "CAP_NET_RAW");
	if (fd < 0)
		app_fail("--iface %s: no packet socket: %s.", iface, sl_strerror(fd));
	memcpy(ifr.ifr_name, iface, strlen(iface));
	if (ioctl(fd, SIOCGIFFLAGS, &ifr) == 0 && (ifr.ifr_flags & IFF_UP) == 0)
		app_fail("--iface %s is down: \"ip link set %s up\" first.", iface, iface);
	/* net_af_packet sets the MAC address that is there once more when it starts, which takes
	 * the same privilege as setting the flags that are there. */
	if (sl_sys(ioctl(fd, SIOCSIFFLAGS, &ifr)) == -EPERM)
		fail_privilege(iface, "CAP_NET_ADMIN");
	if (ioctl(fd, SIOCGIFHWADDR, &ifr) == 0 && ifr.ifr_hwaddr.sa_family != ARPHRD_ETHER)
		app_fail("--iface %s does not carry Ethernet frames.", iface);
	if (promiscuous)
		join(fd, iface, ifindex, PACKET_MR_PROMISC, "frames to other hosts");
	if (group)
		join(fd, iface, ifindex, PACKET_MR_ALLMULTI, "frames to groups");
}

/* Is this file descriptor the ring of a packet socket on that interface? */
static bool
is_ring(int fd, int ifindex)
{
	struct sockaddr_ll addr = {0};
	socklen_t len = sizeof(addr);
	int version = -1;
	socklen_t version_len = sizeof(version);

	if (getsockname(fd, (struct sockaddr *)&addr, &len) != 0 || addr.sll_family != AF_PACKET ||
		addr.sll_ifindex != ifindex || addr.sll_protocol == 0)
		return false;
	return getsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, &version_len) == 0 &&
	       version == TPACKET_V2;
}

void
iface_opened(const char *iface)
{
	int one = 1;
	int ifindex = (int)if_nametoindex(iface);
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *e;

	if (dir == NULL)
		return;
	while ((e = readdir(dir)) != NULL && nrings < RINGS_MAX)
		if (e->d_name[0] != '.' && is_ring(atoi(e->d_name), ifindex))
			rings[nrings++] = atoi(e->d_name);
	closedir(dir);
	/* What the kernel itself sends there is none of our business. */
	for (unsigned int i = 0; i < nrings; i++)
		(void)setsockopt(rings[i], SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one));
}

/* net_af_packet of 22.11 does not report what its rings had no room for; the kernel does. */
uint64_t
app_iface_missed(void)
{
	uint64_t missed = 0;

	for (unsigned int i = 0; i < nrings; i++) {
		struct tpacket_stats stats = {0};
		socklen_t len = sizeof(stats);

		if (getsockopt(rings[i], SOL_PACKET, PACKET_STATISTICS, &stats, &len) == 0)
			missed += stats.tp_drops;
	}
	return missed;
}

/* Hold an abstract name, which this network namespace alone sees and which ends with the process.
 * The descriptor, or -EADDRINUSE. */
static int
hold_name(const char *iface, uint16_t port, const char *how)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = sl_sys(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	int len;
	int ret;

	if (fd < 0)
		return fd;
	len = snprintf(
		un.sun_path + 1, sizeof(un.sun_path) - 1, "sluice-udp/%s/%u/%s", iface, port, how);
	ret = sl_sys(bind(fd, (struct sockaddr *)&un,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)));
	if (ret == 0)
		return fd;
	close(fd);
	return ret;
}

void
app_iface_claim(const char *iface, uint16_t port, bool shared)
{
	int one = hold_name(iface, port, "one");
	int many = hold_name(iface, port, "many");

	if (one == -EADDRINUSE || (many == -EADDRINUSE && !shared))
		app_fail("--port %u on %s is in use by another sluice program: end that one, "
			 "choose another port, or start both with --reuse-port.",
			port, iface);
	/* Whoever shares keeps the second name alone, and the first one to share keeps it for all.
	 */
	if (shared && one >= 0)
		close(one);
	if (!shared && many >= 0)
		close(many);
}

void
app_kernel_claim(const struct sl_addr *addr, uint16_t port)
{
	int family = sl_addr_is_v4(addr) ? AF_INET : AF_INET6;
	struct sockaddr_storage ss;
	socklen_t len = app_sockaddr(addr, port, family, &ss);
	char text[64];
	int one = 1;
	int fd;
	int ret;

	fd = sl_sys(socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return;
	ret = sl_sys(bind(fd, (struct sockaddr *)&ss, len));
	if (ret == -EADDRINUSE)
		app_fail("--port %u of %s is in use by a program on the kernel's sockets: end that "
			 "one, or choose another port.",
			port, sl_addr_format(addr, text, sizeof(text)));
	/* The kernel has the address too. The socket stays, small and never read: as long as it is
	 * there, the kernel does not tell senders that the port is closed. */
	if (ret == 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &one, sizeof(one));
	else
		close(fd);
}
