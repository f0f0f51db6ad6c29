/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../common/app.h"
#include "notify.h"

static void
notify(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	socklen_t len;
	int fd;

	if (path == NULL || (path[0] != '/' && path[0] != '@') ||
		strlen(path) >= sizeof(un.sun_path))
		return;
	memcpy(un.sun_path, path, strlen(path));
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (path[0] == '@')
		un.sun_path[0] = '\0'; /* an abstract name */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* An init system that does not read must not stop us. */
	(void)!sendto(
		fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&un, len);
	close(fd);
}

void
notify_ready(const char *status)
{
	char text[256];

	snprintf(text, sizeof(text), "READY=1\nSTATUS=%s\nMAINPID=%d\n", status, (int)getpid());
	notify(text);
}

void
notify_reloading(void)
{
	struct timespec ts;
	char text[128];

	clock_gettime(CLOCK_MONOTONIC, &ts);
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu\n",
		(unsigned long long)ts.tv_sec * 1000000 + (unsigned long long)ts.tv_nsec / 1000);
	notify(text);
}

void
notify_stopping(void)
{
	notify("STOPPING=1\nSTATUS=ending\n");
}

void
notify_watchdog(void)
{
	notify("WATCHDOG=1\n");
}

uint64_t
notify_watchdog_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t us, who;

	if (usec == NULL || app_parse_number(usec, &us) != 0)
		return 0;
	if (pid != NULL && (app_parse_number(pid, &who) != 0 || who != (uint64_t)getpid()))
		return 0;
	return us / 1000;
}
