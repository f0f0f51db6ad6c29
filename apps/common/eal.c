/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <sched.h>
#include <stdarg.h>
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
#define EAL_ARGS_MAX 24

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

/* Arguments for rte_eal_init, which may write into them. */
struct args {
	int n;
	char *v[EAL_ARGS_MAX + 1];
};

static void arg(struct args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void
arg(struct args *a, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	if (a->n == EAL_ARGS_MAX || vasprintf(&a->v[a->n], format, list) < 0)
		app_fail("no memory for EAL's arguments.");
	va_end(list);
	a->v[++a->n] = NULL;
}

static void
iface_args(struct args *a, const char *name, const struct app_eal_conf *conf)
{
	char text[1024];

	arg(a, "%s", name);
	lcore_map(text, sizeof(text), conf->lcores);
	arg(a, "--lcores=%s", text);
	iface_vdev(text, sizeof(text), conf);
	arg(a, "%s", text);
	arg(a, "--file-prefix=%s-%d", app_name(), (int)getpid());
	arg(a, "--no-pci");
	arg(a, "--no-telemetry");
	arg(a, "--log-level=*:error");
	if (hugepages_free()) {
		arg(a, "--in-memory");
	} else {
		arg(a, "--no-huge");
		arg(a, "--no-shconf");
		arg(a, "-m");
		arg(a, "%d", MEMORY_MB);
	}
}

static const char *
last_line(char *log)
{
	char *line = log;
	char *end;

	while ((end = strchr(line, '\n')) != NULL && end[1] != '\0')
		line = end + 1;
	line[strcspn(line, "\n")] = '\0';
	return line;
}

/* Start EAL without arguments of the user's; its log is kept and its last line shown on failure. */
static void
eal_start_iface(const char *name, const struct app_eal_conf *conf)
{
	struct args args = {0};
	char *kept[EAL_ARGS_MAX + 1];
	char *log = NULL;
	size_t log_len = 0;
	FILE *stream = open_memstream(&log, &log_len);
	int ret;

	if (stream == NULL)
		app_fail("no memory for EAL's messages.");
	iface_args(&args, name, conf);
	memcpy(kept, args.v, sizeof(kept));
	own_eal = true;
	rte_openlog_stream(stream);
	/* It reorders the array. */
	ret = rte_eal_init(args.n, args.v);
	if (ret < 0) {
		ret = sl_rte_error();
		fclose(stream);
		app_fail("--iface %s: DPDK did not start (%s): %s", conf->iface, sl_strerror(ret),
			last_line(log));
	}
	rte_openlog_stream(NULL);
	fclose(stream);
	free(log);
	for (int i = 0; i < args.n; i++)
		free(kept[i]);
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
