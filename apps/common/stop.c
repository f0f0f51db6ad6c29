/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <signal.h>

#include "app.h"
#include "sl_shared.h"

static int stopped;

static void
on_signal(int sig)
{
	sl_store_relaxed(&stopped, 1);
	/* Whoever presses Ctrl-C twice does not want to wait for a table. */
	signal(sig, SIG_DFL);
}

void
app_catch_signals(void)
{
	/* No SA_RESTART: a sleeping reader is to wake up. */
	struct sigaction action = {.sa_handler = on_signal};

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

bool
app_stopped(void)
{
	return sl_load_relaxed(&stopped) != 0;
}
