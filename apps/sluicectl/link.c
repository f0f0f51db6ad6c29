/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl.h"

#define PATIENCE_S 20

void
ctl_path(const char *name, char *path, size_t size)
{
	const char *base = getenv("RUNTIME_DIRECTORY");

	/* As EAL chooses it. */
	if (base == NULL && geteuid() != 0)
		base = getenv("XDG_RUNTIME_DIR");
	if (base == NULL)
		base = geteuid() == 0 ? "/var/run" : "/tmp";
	snprintf(path, size, "%s/dpdk/sluiced%s%s/dpdk_telemetry.v2", base,
		name[0] != '\0' ? "-" : "", name);
}

/* One message of the socket as JSON. */
static json_t *
receive(int fd)
{
	static char text[CTL_ANSWER_MAX];
	ssize_t n = recv(fd, text, sizeof(text), MSG_TRUNC);
	json_error_t error;
	json_t *got;

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		ctl_fail("timeout", "no answer within %d s; is the daemon stuck?", PATIENCE_S);
	if (n <= 0)
		ctl_fail("bad_answer", "the daemon closed the connection.");
	if ((size_t)n > sizeof(text))
		ctl_fail("bad_answer", "an answer of %zd bytes is longer than %d.", n,
			CTL_ANSWER_MAX);
	got = json_loadb(text, (size_t)n, JSON_DISABLE_EOF_CHECK, &error);
	if (!json_is_object(got))
		ctl_fail("bad_answer", "an answer that is no JSON object: %s.", error.text);
	return got;
}

json_t *
ctl_ask(int fd, const char *endpoint, const char *param)
{
	char text[CTL_QUESTION_MAX];
	int len = snprintf(text, sizeof(text), "%s%s%s", endpoint, param != NULL ? "," : "",
		param != NULL ? param : "");
	json_t *answer, *value;

	if (len >= (int)sizeof(text))
		ctl_fail("usage", "\"%s\" is longer than what can be asked.", param);
	if (send(fd, text, (size_t)len, MSG_NOSIGNAL) != len)
		ctl_fail("bad_answer", "the daemon closed the connection.");
	answer = receive(fd);
	value = json_incref(json_object_get(answer, endpoint));
	json_decref(answer);
	return value != NULL ? value : json_null();
}

static void
check_protocol(int fd, const char *path)
{
	json_t *info = ctl_ask(fd, "/sluice/info", NULL);
	const json_t *protocol = json_object_get(info, "protocol");

	if (!json_is_object(info))
		ctl_fail("protocol",
			"what listens at %s does not answer as sluiced does; it may be starting or "
			"ending.",
			path);
	if (json_integer_value(protocol) != CTL_PROTOCOL)
		ctl_fail("protocol",
			"the daemon speaks protocol %lld and this program %d; use those of one "
			"version.",
			(long long)json_integer_value(protocol), CTL_PROTOCOL);
	json_decref(info);
}

int
ctl_connect(const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = PATIENCE_S};
	char first;
	int fd;

	if (strlen(path) >= sizeof(un.sun_path))
		ctl_fail("usage", "%s is longer than the path of a socket can be.", path);
	memcpy(un.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		ctl_fail("no_daemon", "no socket: %s.", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&un, sizeof(un)) != 0) {
		if (errno == EACCES || errno == EPERM)
			ctl_fail("permission", "%s: %s; run as the daemon's user.", path,
				strerror(errno));
		ctl_fail("no_daemon",
			"nobody listens at %s (%s); is sluiced running, and is its name right?",
			path, strerror(errno));
	}
	/* Who it is. Telemetry serves few clients at once, and lets others go without a word. */
	if (recv(fd, &first, sizeof(first), MSG_PEEK) == 0)
		ctl_fail("busy",
			"%s: the daemon has as many clients as it serves at once, or is ending; "
			"try again.",
			path);
	json_decref(receive(fd));
	check_protocol(fd, path);
	return fd;
}
