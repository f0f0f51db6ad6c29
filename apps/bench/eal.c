/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>

#include "sl_base.h"
#include "sl_errno.h"

#include "../common/app.h"
#include "bench.h"

/* Some spin: leave the rest of a large machine alone. */
#define LCORES_MAX 8
#define MEMORY_MB 512
#define HUGEPAGES "/sys/kernel/mm/hugepages"

/* Bytes in free hugepages of all sizes. */
static uint64_t
hugepages_free(void)
{
	DIR *dir = opendir(HUGEPAGES);
	const struct dirent *e;
	uint64_t total = 0;

	if (dir == NULL)
		return 0;
	while ((e = readdir(dir)) != NULL) {
		unsigned long long kib = 0, pages = 0;
		char path[512];
		FILE *f;

		if (sscanf(e->d_name, "hugepages-%llukB", &kib) != 1)
			continue;
		snprintf(path, sizeof(path), HUGEPAGES "/%s/free_hugepages", e->d_name);
		f = fopen(path, "r");
		if (f == NULL)
			continue;
		if (fscanf(f, "%llu", &pages) == 1)
			total += kib * 1024 * pages;
		fclose(f);
	}
	closedir(dir);
	return total;
}

/* The CPUs that this process may run on, as EAL's -l takes them. */
static int
cpus_list(char *list, size_t size)
{
	unsigned int found = 0;
	size_t used = 0;
	cpu_set_t set;

	if (sl_sys(sched_getaffinity(0, sizeof(set), &set)) != 0)
		return -EINVAL;
	for (int cpu = 0; cpu < CPU_SETSIZE && found < LCORES_MAX && used < size; cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		used += (size_t)snprintf(list + used, size - used, "%s%d", found ? "," : "", cpu);
		found++;
	}
	return found > 0 && used < size ? 0 : -EINVAL;
}

static int
start_by_itself(char *program)
{
	static char prefix[64], cpus[128], megabytes[16];
	char *args[16];
	int n = 0, ret = cpus_list(cpus, sizeof(cpus));

	if (ret != 0)
		return ret;
	snprintf(prefix, sizeof(prefix), "--file-prefix=sluice-bench-%d", (int)getpid());
	snprintf(megabytes, sizeof(megabytes), "%d", MEMORY_MB);
	args[n++] = program;
	args[n++] = (char *)(uintptr_t) "-l";
	args[n++] = cpus;
	args[n++] = (char *)(uintptr_t) "-m";
	args[n++] = megabytes;
	args[n++] = (char *)(uintptr_t) "--no-pci";
	args[n++] = (char *)(uintptr_t) "--no-telemetry";
	args[n++] = (char *)(uintptr_t) "--log-level=warning";
	/* The two exclude each other in DPDK 22.11. */
	if (hugepages_free() >= (uint64_t)MEMORY_MB << 20) {
		args[n++] = (char *)(uintptr_t) "--in-memory";
	} else {
		args[n++] = (char *)(uintptr_t) "--no-huge";
		args[n++] = prefix;
	}
	args[n] = NULL;
	atexit(app_runtime_dir_remove);
	return rte_eal_init(n, args) < 0 ? sl_rte_error() : 0;
}

int
bench_eal_start(int argc, char **argv)
{
	int ret;

	if (argc > 1)
		ret = rte_eal_init(argc, argv) < 0 ? sl_rte_error() : 0;
	else
		ret = start_by_itself(argv[0]);
	if (ret != 0)
		fprintf(stderr, "sluice-bench: cannot start DPDK: %s\n", sl_strerror(ret));
	return ret;
}

const char *
bench_eal_memory(void)
{
	return rte_eal_has_hugepages() ? "hugepages" : "4k pages";
}
