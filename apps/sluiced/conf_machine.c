/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <ifaddrs.h>
#include <linux/capability.h>
#include <mntent.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_cpuflags.h>

#include "../common/app.h"
#include "../common/iface.h"
#include "conf_priv.h"

static void
check_cpus(const struct conf *conf, struct mistakes *m)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return;
	for (uint16_t i = 0; i < conf->lcores.n; i++)
		if (conf->lcores.cpu[i] >= CPU_SETSIZE || !CPU_ISSET(conf->lcores.cpu[i], &set))
			mistake(m, conf->lcores_line,
				"[sluiced] lcores: processor %u is not there, or not allowed to "
				"this "
				"process; \"taskset -p $$\" shows which are.",
				conf->lcores.cpu[i]);
}

/* Is a file system of hugepages there? DPDK makes the files that other processes open in it. */
static bool
hugetlbfs_mounted(void)
{
	FILE *f = setmntent("/proc/self/mounts", "r");
	const struct mntent *e = NULL;

	if (f == NULL)
		return false;
	while ((e = getmntent(f)) != NULL && strcmp(e->mnt_type, "hugetlbfs") != 0)
		;
	endmntent(f);
	return e != NULL;
}

static void
check_hugepages(const struct conf *conf, struct mistakes *m)
{
	const char *key = conf->secondary ? "secondary" : "hugepages";
	uint32_t line = conf->secondary ? conf->secondary_line : conf->hugepages_line;
	uint64_t most = app_huge_free_mb();

	if (conf->hugepages != CONF_HUGE_YES && !conf->secondary)
		return;
	if (geteuid() != 0)
		mistake(m, line, "[sluiced] %s = yes: needs root; run as root, or write no.", key);
	else if (most < conf->memory_mb)
		mistake(m, line,
			"[sluiced] %s = yes: %u MB are needed and %llu MB of one size free; "
			"\"sysctl vm.nr_hugepages=%u\" reserves them, or write no.",
			key, conf->memory_mb, (unsigned long long)most,
			(conf->memory_mb + 1) / 2 + 8);
	else if (conf->secondary && !hugetlbfs_mounted())
		mistake(m, line,
			"[sluiced] secondary = yes: no hugetlbfs is mounted; \"mount -t hugetlbfs "
			"none /dev/hugepages\" does it, or write no.");
}

static void
check_drivers(const struct conf *conf, struct mistakes *m)
{
	for (uint16_t i = 0; i < conf->ndrivers; i++)
		if (access(conf->driver[i], R_OK) != 0)
			mistake(m, conf->driver_line,
				"[sluiced] driver = %s: there is no such file to read; name the "
				"librte_net_... that you want.",
				conf->driver[i]);
}

void
conf_idle_machine(const struct conf *conf, struct mistakes *m)
{
	struct rte_cpu_intrinsics cpu = {0};

	rte_cpu_get_intrinsics_support(&cpu);
	if (conf->idle == CONF_IDLE_MONITOR && !cpu.power_monitor)
		mistake(m, conf->idle_line,
			"[sluiced] idle = monitor: this processor, or the virtual machine that it "
			"is "
			"in, cannot watch memory (no waitpkg or monitorx in /proc/cpuinfo); write "
			"interrupt or backoff.");
}

/* Has the host's kernel the address? Then it answers in our place. */
static bool
kernel_has(const struct sl_addr *a, const char *tap)
{
	struct ifaddrs *list, *i;
	bool found = false;

	if (getifaddrs(&list) != 0)
		return false;
	for (i = list; i != NULL && !found; i = i->ifa_next) {
		const struct sockaddr_in *in = (const void *)i->ifa_addr;
		const struct sockaddr_in6 *in6 = (const void *)i->ifa_addr;

		/* It has it on the exception path's tap, if the daemon runs. */
		if (i->ifa_addr == NULL || strcmp(i->ifa_name, tap) == 0)
			continue;
		if (sl_addr_is_v4(a) && in->sin_family == AF_INET)
			found = in->sin_addr.s_addr == sl_addr_to_v4(a);
		else if (!sl_addr_is_v4(a) && in6->sin6_family == AF_INET6)
			found = memcmp(&in6->sin6_addr, a->b, sizeof(a->b)) == 0;
	}
	freeifaddrs(list);
	return found;
}

static void
check_port(const struct conf_port *p, struct mistakes *m)
{
	char text[256];

	if (p->iface[0] == '\0')
		return;
	if (iface_fault(p->iface, text, sizeof(text))) {
		mistake(m, p->devargs_line, "[port %s] devargs: interface %s: %s.", p->name,
			p->iface, text);
		return;
	}
	for (uint16_t i = 0; i < p->naddrs; i++) {
		if (!kernel_has(&p->addrs[i].addr, p->exception))
			continue;
		sl_addr_format(&p->addrs[i].addr, text, sizeof(text));
		mistake(m, p->address_line,
			"[port %s] address: the kernel has %s too and would answer in the port's "
			"place; \"ip addr del\" takes it away, or choose another.",
			p->name, text);
	}
}

static bool
may_administer(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	return syscall(SYS_capget, &head, data) == 0 &&
	       (data[0].effective & CAP_TO_MASK(CAP_NET_ADMIN)) != 0;
}

static void
check_exception(const struct conf_port *p, struct mistakes *m)
{
	if (p->exception[0] == '\0')
		return;
	if (access("/dev/net/tun", R_OK | W_OK) != 0)
		mistake(m, p->exception_line,
			"[%s %s] exception = %s: /dev/net/tun cannot be opened; \"modprobe tun\" makes "
			"it, and this process must be allowed to.",
			p->section, p->name, p->exception);
	else if (!may_administer())
		mistake(m, p->exception_line,
			"[%s %s] exception = %s: needs the CAP_NET_ADMIN privilege: run as root, or once "
			"\"setcap cap_net_admin,cap_net_raw+ep\" on this program.",
			p->section, p->name, p->exception);
}

static void
check_socket(const struct conf_port *p, struct mistakes *m)
{
	char folder[CONF_VALUE_LEN];

	if (p->path[0] == '\0')
		return;
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(p->path, '/') - p->path), p->path);
	if (folder[0] != '\0' && access(folder, W_OK | X_OK) != 0)
		mistake(m, p->path_line,
			"[%s %s] path = %s: no socket can be made in %s; make that folder, or choose "
			"another.",
			p->section, p->name, p->path, folder);
}

void
conf_machine(const struct conf *conf, struct mistakes *m)
{
	check_cpus(conf, m);
	check_hugepages(conf, m);
	check_drivers(conf, m);
	conf_idle_machine(conf, m);
	conf_mirror_machine(conf, m);
	for (uint16_t i = 0; i < conf->nports; i++)
		check_port(&conf->port[i], m);
	for (uint16_t i = 0; i < conf->nports; i++)
		check_socket(&conf->port[i], m);
	for (uint16_t i = 0; i < conf->nports; i++)
		check_exception(&conf->port[i], m);
	for (uint16_t i = 0; i < conf->nvlans; i++)
		check_exception(&conf->vlan[i], m);
}
