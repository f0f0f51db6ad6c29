/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SL_TEST_LEAK_H
#define SL_TEST_LEAK_H

/**
 * @file
 * Counts of what this process holds, to be equal before and after.
 */

#include <dirent.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include <rte_alarm.h>

#include "sl_test.h"

struct test_descriptor_count {
	unsigned int n;
	sem_t done;
};

static inline void
test_descriptors_count(void *arg)
{
	struct test_descriptor_count *count = arg;
	DIR *d = opendir("/proc/self/fd");

	REQUIRE(d != NULL);
	while (readdir(d) != NULL)
		count->n++;
	closedir(d);
	sem_post(&count->done);
}

/**
 * Open descriptors; the one that counting takes is among them, each time.
 *
 * EAL's interrupt thread counts: whenever an interrupt source has come or gone it closes its epoll
 * descriptor and opens another, some time later, and a count in between would be one short.
 */
static inline unsigned int
test_descriptors(void)
{
	struct test_descriptor_count count = {.n = 0};

	REQUIRE(sem_init(&count.done, 0, 0) == 0);
	REQUIRE(rte_eal_alarm_set(1, test_descriptors_count, &count) == 0);
	while (sem_wait(&count.done) != 0)
		; /* a signal */
	sem_destroy(&count.done);
	return count.n;
}

/** Mappings whose name contains `name`. */
static inline unsigned int
test_mappings(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned int n = 0;
	char line[512];

	REQUIRE(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		n += strstr(line, name) != NULL;
	fclose(f);
	return n;
}

#endif
