/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "feed.h"

#define PATIENCE_MS 5000

static struct sockaddr_un own = {.sun_family = AF_UNIX};
static volatile sig_atomic_t enough; /* set by a signal */
static bool told;		     /* the daemon knows */

static void
on_signal(int sig)
{
	(void)sig;
	enough = 1;
}

static void
remove_socket(void)
{
	unlink(own.sun_path);
}

/* A socket beside the daemon's. *name is what the daemon calls it. */
static int
listen_beside(int fd, const char **name)
{
	struct sockaddr_un peer = {0};
	socklen_t len = sizeof(peer);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), used;
	const char *slash;

	if (listener < 0 || getpeername(fd, (struct sockaddr *)&peer, &len) != 0)
		ctl_fail("failed", "no socket: %s.", strerror(errno));
	slash = strrchr(peer.sun_path, '/');
	used = slash != NULL ? (int)(slash + 1 - peer.sun_path) : 0;
	if (snprintf(own.sun_path, sizeof(own.sun_path), "%.*ssluicectl-%d", used, peer.sun_path,
		    (int)getpid()) >= (int)sizeof(own.sun_path))
		ctl_fail("failed", "the path of the control socket is too long for one more.");
	*name = own.sun_path + used;
	unlink(own.sun_path); /* of a process that had our number before */
	if (bind(listener, (struct sockaddr *)&own, sizeof(own)) != 0 || listen(listener, 1) != 0)
		ctl_fail("permission", "%s: %s.", own.sun_path, strerror(errno));
	atexit(remove_socket);
	return listener;
}

/* The daemon's answer to the request. */
static void
check_started(json_t *answer)
{
	const char *result = json_string_value(json_object_get(answer, "result"));
	const char *message = json_string_value(json_object_get(answer, "message"));

	if (result == NULL)
		ctl_fail("bad_answer", "the daemon does not say whether it has started.");
	if (strcmp(result, "started") != 0)
		ctl_fail(result, "%s.", message != NULL ? message : "refused");
	json_decref(answer);
}

int
feed_open(int fd, const char *endpoint, const char *words)
{
	char param[CTL_QUESTION_MAX];
	struct sigaction action = {.sa_handler = on_signal};
	struct pollfd p;
	const char *name;
	int feed;

	p = (struct pollfd){.fd = listen_beside(fd, &name), .events = POLLIN};
	snprintf(param, sizeof(param), "%s %s", name, words);
	check_started(ctl_ask(fd, endpoint, param));
	if (poll(&p, 1, PATIENCE_MS) != 1)
		ctl_fail("timeout", "the daemon does not connect.");
	feed = accept4(p.fd, NULL, NULL, SOCK_CLOEXEC);
	if (feed < 0)
		ctl_fail("failed", "no connection: %s.", strerror(errno));
	close(p.fd);
	remove_socket();
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	return feed;
}

size_t
feed_read(int feed, void *data, size_t size)
{
	for (;;) {
		ssize_t n;

		if (enough && !told) {
			shutdown(feed, SHUT_WR);
			told = true;
		}
		n = recv(feed, data, size, 0);
		if (n >= 0)
			return (size_t)n;
		if (errno != EINTR)
			return 0;
	}
}

void
feed_filter(char **argv, int n, char *text, size_t size)
{
	size_t at = 0;

	text[0] = '\0';
	for (int i = 0; i < n; i++) {
		at += (size_t)snprintf(text + at, size - at, "%s%s", i > 0 ? " " : "", argv[i]);
		if (at >= size)
			ctl_fail("usage", "the filter is too long.");
	}
}

unsigned long long
feed_count(const char *option, const char *text)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || n == 0)
		ctl_fail("usage", "%s %s: write a number of packets, 1 or more.", option, text);
	return n;
}
