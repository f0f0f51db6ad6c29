/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include "early.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "../common/app.h"

static void *
early_main(void *arg)
{
	const struct early *e = arg;
	struct pollfd p[] = {
		{.fd = e->done, .events = POLLIN}, {.fd = e->signals, .events = POLLIN}};

	while (poll(p, 2, -1) < 0)
		;
	/* A signal at the last moment is left for the main thread. */
	if (p[0].revents != 0)
		return NULL;
	app_note("ended before its ports were there");
	app_runtime_dir_remove();
	/* The main thread is inside of a driver, so nothing can be taken down in order. */
	_exit(0);
}

void
early_begin(struct early *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	e->signals = signalfd(-1, &set, SFD_CLOEXEC);
	e->done = eventfd(0, EFD_CLOEXEC);
	e->running = e->signals >= 0 && e->done >= 0 &&
		     pthread_create(&e->thread, NULL, early_main, e) == 0;
}

void
early_end(struct early *e)
{
	if (e->running && eventfd_write(e->done, 1) == 0)
		pthread_join(e->thread, NULL);
	if (e->signals >= 0)
		close(e->signals);
	if (e->done >= 0)
		close(e->done);
	e->running = false;
}
