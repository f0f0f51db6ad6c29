/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Requests of telemetry's clients are taken apart one thread beside the other. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include <rte_telemetry.h>

#include "sl_test.h"

/* Another client's request, from its beginning to its end. */
static void *
other(void *arg)
{
	char text[] = "/other,their";
	const char *command = strtok(text, ","), *param = strtok(NULL, "");

	(void)arg;
	CHECK(command != NULL && strcmp(command, "/other") == 0);
	CHECK(param != NULL && strcmp(param, "their") == 0);
	return NULL;
}

static void
threads_do_not_meet(void)
{
	char text[] = "/mine,my,own";
	const char *command = strtok(text, ","), *param;
	pthread_t thread;

	REQUIRE(pthread_create(&thread, NULL, other, NULL) == 0);
	pthread_join(thread, NULL);
	param = strtok(NULL, "");
	CHECK(strcmp(command, "/mine") == 0);
	CHECK(param != NULL && strcmp(param, "my,own") == 0);
	CHECK(strtok(NULL, "") == NULL);
}

int main(void);

/* The library has to find ours. */
static void
libraries_find_it(void)
{
	Dl_info ours, theirs;
	void *found = dlsym(RTLD_DEFAULT, "strtok");
	/* So that it is linked, as it is to the daemon. */
	struct rte_tel_data *data = rte_tel_data_alloc();

	CHECK(data != NULL);
	rte_tel_data_free(data);
	REQUIRE(found != NULL && dladdr(found, &theirs) != 0);
	REQUIRE(dladdr((void *)(uintptr_t)main, &ours) != 0);
	CHECK_EQ(strcmp(theirs.dli_fname, ours.dli_fname), 0);
}

int
main(void)
{
	SL_TEST_RUN(threads_do_not_meet);
	SL_TEST_RUN(libraries_find_it);
	return test_end();
}
