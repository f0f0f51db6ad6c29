/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * --kernel: the same calls and rows on a socket of the host's kernel, for comparison on one machine.
 * Nothing of DPDK is started.
 */
#include <errno.h>
#include <linux/sock_diag.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "sink.h"
#include "sl_errno.h"

#define CALIBRATE_NS 20000000
/* So that Ctrl-C and the end of --duration are seen. */
#define WAIT_US 50000

static int64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* EAL, which otherwise knows, is not there. */
static uint64_t
tsc_hz_measure(void)
{
	int64_t start = now_ns(), ns;
	uint64_t cycles = rte_rdtsc();

	do {
		ns = now_ns() - start;
	} while (ns < CALIBRATE_NS);
	cycles = rte_rdtsc() - cycles;
	return (uint64_t)((double)cycles * 1e9 / (double)ns);
}

static void
options_set(int fd, const struct sink_options *o)
{
	struct timeval wait = {.tv_usec = WAIT_US};
	int rcvbuf = o->rcvbuf != 0 ? (int)RTE_MIN(o->rcvbuf, (uint64_t)INT32_MAX) : 32 << 20;

	if (sl_sys(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait))) != 0)
		app_fail("--kernel: the socket takes no timeout.");
	/* Beyond the host's limit with the privilege for it, else up to it. */
	if (sl_sys(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &rcvbuf, sizeof(rcvbuf))) != 0 &&
		sl_sys(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof(rcvbuf))) != 0)
		app_fail("--rcvbuf: the kernel's socket takes none.");
}

void
sink_kernel_open(struct sink *s, int eal_argc)
{
	const struct sink_options *o = s->opt;
	int family = o->ipv6 ? AF_INET6 : AF_INET;
	struct sl_addr addr = o->ipv6 ? (struct sl_addr){{0}} : sl_addr_v4(0);
	struct sockaddr_storage ss;
	socklen_t len;
	int ret;

	if (eal_argc > 1)
		app_fail("--kernel receives without DPDK: leave the EAL arguments before \"--\" out.");
	for (uint16_t i = 0; i < o->stack.naddrs; i++)
		if (sl_addr_is_v4(&o->stack.addrs[i].addr) == !o->ipv6)
			addr = o->stack.addrs[i].addr;
	s->fd = sl_sys(socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	if (s->fd < 0)
		app_fail("no kernel socket: %s.", sl_strerror(s->fd));
	options_set(s->fd, o);
	len = app_sockaddr(&addr, o->port, family, &ss);
	ret = sl_sys(bind(s->fd, (struct sockaddr *)&ss, len));
	if (ret == -EADDRNOTAVAIL)
		app_fail("--addr is not an address of this host; \"ip addr\" lists them.");
	if (ret != 0)
		app_fail("--port %u cannot be bound: %s.", o->port, sl_strerror(ret));
	s->via = &sink_sockets_kernel;
	s->nsocks = 1;
	s->tsc_hz = tsc_hz_measure();
	app_note("ready on port %u", o->port);
}

uint64_t
sink_kernel_drops(const struct sink *s)
{
	uint32_t info[SK_MEMINFO_VARS];
	socklen_t len = sizeof(info);

	if (sl_sys(getsockopt(s->fd, SOL_SOCKET, SO_MEMINFO, info, &len)) != 0)
		return 0; /* Linux before 4.12 */
	return info[SK_MEMINFO_DROPS];
}

static int
kernel_recvmmsg(struct sink *s, unsigned int n, int flags, struct timespec *timeout)
{
	return sl_sys(recvmmsg(s->fd, s->msgs, n, flags, timeout));
}

static ssize_t
kernel_recvmsg(struct sink *s, int flags)
{
	return sl_sys((int)recvmsg(s->fd, &s->msgs[0].msg_hdr, flags));
}

static ssize_t
kernel_recvfrom(struct sink *s, int flags)
{
	socklen_t len = sizeof(s->name);

	return sl_sys((int)recvfrom(s->fd, s->iov[0].iov_base, SINK_BUF, flags,
		(struct sockaddr *)&s->name, &len));
}

static ssize_t
kernel_read(struct sink *s)
{
	return sl_sys((int)read(s->fd, s->iov[0].iov_base, SINK_BUF));
}

static void
kernel_idle(struct sink *s)
{
	(void)s; /* the call itself has waited */
}

const struct sink_sockets sink_sockets_kernel = {
	kernel_recvmmsg, kernel_recvmsg, kernel_recvfrom, kernel_read, kernel_idle};
