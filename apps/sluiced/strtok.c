/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * DPDK's telemetry has a thread for each client, and up to 22.11 at least they take requests apart
 * by strtok, which in the C library has one state for all threads: of clients that ask at the same
 * moment one was answered, or had done, what another one had asked for. A program's own functions
 * are found before the C library's, by its libraries too, so they get this one.
 */
#include <string.h>

char *
strtok(char *text, const char *delimiters)
{
	static _Thread_local char *rest;

	return strtok_r(text, delimiters, &rest);
}
