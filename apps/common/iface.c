/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
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

bool
iface_fault(const char *iface, char *text, size_t size)
{
	struct ifreq ifr = {0};
	int fd;

	text[0] = '\0';
	if (strlen(iface) == 0 || strlen(iface) >= sizeof(ifr.ifr_name) ||
		strpbrk(iface, ",/ ") != NULL || if_nametoindex(iface) == 0) {
		snprintf(text, size, "there is no interface of that name here; \"ip link\" lists them");
		return true;
	}
	/* Protocol 0: hears nothing. */
	fd = sl_sys(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
	if (fd == -EPERM) {
		snprintf(text, size,
			"needs the CAP_NET_RAW privilege: run as root, or once \"setcap "
			"cap_net_raw+ep\" on this program");
		return true;
	}
	if (fd < 0) {
		snprintf(text, size, "no packet socket: %s", sl_strerror(fd));
		return true;
	}
	memcpy(ifr.ifr_name, iface, strlen(iface));
	if (ioctl(fd, SIOCGIFFLAGS, &ifr) == 0 && (ifr.ifr_flags & IFF_UP) == 0)
		snprintf(text, size, "is down: \"ip link set %s up\" first", iface);
	else if (ioctl(fd, SIOCGIFHWADDR, &ifr) == 0 && ifr.ifr_hwaddr.sa_family != ARPHRD_ETHER)
		snprintf(text, size, "does not carry Ethernet frames");
	close(fd);
	return text[0] != '\0';
}

void
iface_check(const char *iface)
{
	char text[256];

	if (iface_fault(iface, text, sizeof(text)))
		app_fail("--iface %s: %s.", iface, text);
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
