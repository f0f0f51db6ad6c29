/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_TEST_EAL_H
#define SL_TEST_EAL_H

/**
 * @file
 * EAL as tests want it: no hugepages, no devices but those named, a file prefix that no other
 * program has, and nothing left in the file system.
 */

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>

#define TEST_EAL_ARGS_MAX 32

static char test_eal_dir[256];
static pid_t test_eal_pid; /* children that a test forks off leave it alone */

/* EAL removes no more than its mappings; its folder of locks and sockets stays. */
static void
test_eal_remove(void)
{
	int dir = test_eal_pid == getpid() ? open(test_eal_dir, O_RDONLY | O_DIRECTORY) : -1;
	DIR *d = dir < 0 ? NULL : fdopendir(dir);
	const struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL) {
		if (e->d_name[0] != '.')
			unlinkat(dir, e->d_name, 0);
	}
	if (d == NULL)
		return;
	closedir(d);
	rmdir(test_eal_dir);
}

/**
 * rte_eal_init, after which the calling thread may run on every CPU that it might run on before.
 * EAL binds it to its lcore's, and the threads that a test starts would inherit that: on one lcore
 * they would never run at the same time, and a stress test would show nothing. What EAL made is
 * removed at exit.
 */
static inline int
test_eal_init(int argc, char **argv)
{
	cpu_set_t cpus;
	int ret;

	pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	ret = rte_eal_init(argc, argv);
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	if (ret >= 0) {
		snprintf(test_eal_dir, sizeof(test_eal_dir), "%s", rte_eal_get_runtime_dir());
		test_eal_pid = getpid();
		atexit(test_eal_remove);
	}
	return ret;
}

/**
 * Start EAL with the arguments of a test; call once.
 *
 * @param name   of the program, or its path: begins the file prefix
 * @param more   further arguments: "-l 0 --vdev=net_null0"; lcores are among them. --telemetry, if
 *               there is to be any.
 * @return       as test_eal_init
 */
static inline int
test_eal_start(const char *name, const char *more)
{
	/* EAL keeps pointers into the words, and may write into them. */
	static char text[1024], prefix[128];
	char *args[TEST_EAL_ARGS_MAX], *save = NULL;
	const char *slash = strrchr(name, '/');
	int n = 0;

	snprintf(prefix, sizeof(prefix), "--file-prefix=%s-%d", slash != NULL ? slash + 1 : name,
		(int)getpid());
	snprintf(text, sizeof(text), "test --no-huge -m 256 --no-pci %s %s",
		strstr(more, "--telemetry") != NULL ? "" : "--no-telemetry", more);
	for (char *word = strtok_r(text, " ", &save); word != NULL && n < TEST_EAL_ARGS_MAX - 2;
		word = strtok_r(NULL, " ", &save))
		args[n++] = word;
	args[n++] = prefix;
	args[n] = NULL;
	return test_eal_init(n, args);
}

#endif
