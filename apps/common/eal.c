/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_log.h>

#include "app.h"
#include "iface.h"
#include "sl_errno.h"

/* Memory for the mbuf pool, the tables and EAL itself, in MB. Without hugepages it costs nothing
 * until it is touched. */
#define MEMORY_MB 256

static unsigned int cpus;
static bool crowded;
static bool own_eal; /* EAL was set up here, so what it leaves behind is ours to remove */

int
app_args_split(int argc, char **argv, int *eal_argc, char ***own)
{
	int i = 1;

	while (i < argc && strcmp(argv[i], "--") != 0)
		i++;
	*own = argv;
	*eal_argc = 1;
	if (i == argc)
		return argc;
	*eal_argc = i;
	*own = argv + i;
	argv[i] = argv[0];
	return argc - i;
}

unsigned int
app_cpus(void)
{
	cpu_set_t set;

	/* Once: EAL narrows the main thread's own set. */
	if (cpus == 0)
		cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned int)CPU_COUNT(&set)
								    : 1;
	return cpus;
}

bool
app_eal_own(void)
{
	return own_eal;
}

bool
app_crowded(void)
{
	return crowded;
}

static bool
find_crowd(bool with_kernel)
{
	cpu_set_t all;
	unsigned int lcore;

	CPU_ZERO(&all);
	RTE_LCORE_FOREACH(lcore)
	{
		rte_cpuset_t one = rte_lcore_cpuset(lcore);

		CPU_OR(&all, &all, &one);
	}
	if ((unsigned int)CPU_COUNT(&all) < rte_lcore_count())
		return true;
	/* The kernel's half of an interface needs a processor as well. */
	return with_kernel && rte_lcore_count() >= app_cpus();
}

/* A run that ends in the middle gives back what its ports hold, unless an lcore may still be polling them. */
static void
close_ports(void)
{
	unsigned int lcore;
	uint16_t id;

	RTE_LCORE_FOREACH_WORKER (lcore) {
		if (rte_eal_get_lcore_state(lcore) != WAIT)
			return;
	}
	RTE_ETH_FOREACH_DEV (id) {
		rte_eth_dev_stop(id);
		rte_eth_dev_close(id);
	}
}

static void
remove_runtime_dir(void)
{
	if (own_eal)
		app_runtime_dir_remove();
}

static bool
hugepages_free(void)
{
	return geteuid() == 0 && app_huge_free_mb() >= MEMORY_MB;
}

/* "0@2,1@3": lcore numbers from 0, on the processors that we may use, in turn. */
static void
lcore_map(char *text, size_t size, unsigned int lcores)
{
	cpu_set_t set;
	int cpu = -1;
	size_t at = 0;

	if (sched_getaffinity(0, sizeof(set), &set) != 0 || CPU_COUNT(&set) == 0)
		app_fail("the processors that this process may use cannot be found out.");
	if (lcores > (unsigned int)CPU_COUNT(&set))
		app_note("%u lcores poll in turns, for want of processors: this process may use %d",
			lcores, CPU_COUNT(&set));
	for (unsigned int i = 0; i < lcores && at < size; i++) {
		do
			cpu = (cpu + 1) % CPU_SETSIZE;
		while (!CPU_ISSET(cpu, &set));
		at += (size_t)snprintf(text + at, size - at, "%s%u@%d", i ? "," : "", i, cpu);
	}
}

/* The one place that decides which driver opens a kernel interface. */
static void
iface_vdev(char *text, size_t size, const struct app_eal_conf *conf)
{
	snprintf(text, size, "--vdev=net_tpacket0,iface=%s,qpairs=%u", conf->iface, conf->queues);
}

static void
iface_args(struct app_eal_args *a, const char *name, const struct app_eal_conf *conf)
{
	char text[1024];

	app_eal_arg(a, "%s", name);
	lcore_map(text, sizeof(text), conf->lcores);
	app_eal_arg(a, "--lcores=%s", text);
	iface_vdev(text, sizeof(text), conf);
	app_eal_arg(a, "%s", text);
	app_eal_arg(a, "--file-prefix=%s-%d", app_name(), (int)getpid());
	app_eal_arg(a, "--no-pci");
	app_eal_arg(a, "--no-telemetry");
	app_eal_arg(a, "--log-level=*:error");
	if (hugepages_free()) {
		app_eal_arg(a, "--in-memory");
	} else {
		app_eal_arg(a, "--no-huge");
		app_eal_arg(a, "--no-shconf");
		app_eal_arg(a, "-m");
		app_eal_arg(a, "%d", MEMORY_MB);
	}
}

/* Start EAL without arguments of the user's. */
static void
eal_start_iface(const char *name, const struct app_eal_conf *conf)
{
	struct app_eal_args args = {0};
	char failed[128];

	iface_args(&args, name, conf);
	own_eal = true;
	snprintf(failed, sizeof(failed), "--iface %s: DPDK did not start", conf->iface);
	app_eal_init(&args, failed);
}

void
app_eal_start(int eal_argc, char **eal_argv, const struct app_eal_conf *conf)
{
	app_cpus();
	if (conf->iface == NULL && eal_argc == 1)
		app_fail("--iface is missing: it names the kernel interface to use; or give EAL "
			 "arguments before \"--\".");
	if (conf->iface != NULL && eal_argc > 1)
		app_fail("--iface %s sets EAL up by itself: leave it out, or leave out the EAL "
			 "arguments before \"--\".",
			conf->iface);
	if (conf->iface != NULL) {
		if (!APP_HAS_TPACKET)
			app_fail("--iface %s needs net_tpacket, which this program was built "
				 "without: run config/install-deps.sh and build it again.",
				conf->iface);
		iface_check(conf->iface);
		atexit(remove_runtime_dir);
		eal_start_iface(eal_argv[0], conf);
	} else {
		char *kept[64];

		if (eal_argc >= (int)RTE_DIM(kept))
			app_fail("too many EAL arguments before \"--\".");
		memcpy(kept, eal_argv, (size_t)eal_argc * sizeof(kept[0]));
		kept[eal_argc] = NULL;
		if (rte_eal_init(eal_argc, kept) < 0)
			app_fail("EAL did not start with these arguments (%s); its messages above "
				 "say why.",
				sl_strerror(sl_rte_error()));
	}
	atexit(close_ports);
	crowded = find_crowd(conf->iface != NULL);
}
