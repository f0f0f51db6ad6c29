/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "flood.h"
#include "sl_errno.h"

static int fds[FLOOD_FLOWS_MAX];

static int
socket_bind(const struct flood *f, int fd, uint16_t flow)
{
	const struct flood_options *o = f->opt;
	struct sl_addr from = f->family == AF_INET ? sl_addr_v4(0) : (struct sl_addr){{0}};
	struct sockaddr_storage ss;
	socklen_t len;

	for (uint16_t i = 0; i < o->stack.naddrs; i++)
		if (sl_addr_is_v4(&o->stack.addrs[i].addr) == sl_addr_is_v4(&o->to))
			from = o->stack.addrs[i].addr;
	len = app_sockaddr(&from, o->source_port ? o->source_port + flow : 0, f->family, &ss);
	return sl_sys(bind(fd, (struct sockaddr *)&ss, len));
}

static void
kernel_open(struct flood *f, int eal_argc, char **eal_argv)
{
	const struct flood_options *o = f->opt;
	struct rlimit files;

	(void)eal_argv;
	if (eal_argc > 1)
		app_fail("--kernel sends without DPDK: leave the EAL arguments before \"--\" out.");
	/* A thousand flows pass the usual soft limit. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	for (uint16_t i = 0; i < o->flows; i++) {
		int fd = sl_sys(socket(f->family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
		int ret = fd < 0 ? fd : 0;

		if (ret == 0 && o->iface != NULL)
			ret = sl_sys(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, o->iface,
				(socklen_t)strlen(o->iface)));
		if (ret != 0)
			app_fail("no kernel socket%s%s: %s.", o->iface ? " on --iface " : "",
				o->iface ? o->iface : "", sl_strerror(ret));
		ret = socket_bind(f, fd, i);
		if (ret == -EADDRINUSE)
			app_fail("--source-port %u is in use: choose another one.",
				o->source_port + i);
		if (ret == -EADDRNOTAVAIL)
			app_fail("--addr is not an address of this host; \"ip addr\" lists them.");
		if (ret == 0)
			ret = sl_sys(connect(fd, (struct sockaddr *)&f->to, f->to_len));
		if (ret != 0)
			app_fail("--to: no way there: %s.", sl_strerror(ret));
		fds[i] = fd;
	}
}

static int
kernel_send(struct flood *f, uint16_t flow, unsigned int n)
{
	return sl_sys(sendmmsg(fds[flow], f->msgs, n, 0));
}

static void
kernel_idle(struct flood *f, uint64_t ns)
{
	struct timespec pause = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	(void)f;
	/* Sleeping takes about 50 us at least. */
	if (ns > 100000)
		nanosleep(&pause, NULL);
}

static void
kernel_finish(struct flood *f)
{
	(void)f;
}

static const char *
kernel_drop(struct flood *f, unsigned int i, uint64_t *n)
{
	(void)f;
	(void)i;
	(void)n;
	return NULL;
}

static void
kernel_close(struct flood *f)
{
	for (uint16_t i = 0; i < f->opt->flows; i++)
		close(fds[i]);
}

const struct flood_sender flood_kernel = {
	kernel_open, kernel_send, kernel_idle, kernel_finish, kernel_drop, kernel_close};
