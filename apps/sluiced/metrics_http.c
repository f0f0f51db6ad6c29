/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * HTTP by libmicrohttpd, in one thread of its own that waits for all connections at once. The text
 * of a scrape is whole before the first byte of it leaves, so a client that reads slowly holds that
 * memory and one of the connections, and nothing else.
 */
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../common/app.h"
#include "metrics.h"
#include "sl_errno.h"

#define CONNECTIONS 16u
#define BACKLOG 16
#define IDLE_S 10u
#define REQUEST_BYTES ((size_t)16384) /* of memory for one connection: lines and headers */

struct metrics_server {
	struct daemon *d;
	struct MHD_Daemon *http;
	char path[sizeof(((struct conf_metrics *)NULL)->path)]; /* of its socket, or "" */
};

/* Takes the text. */
static enum MHD_Result
answer(struct MHD_Connection *c, unsigned int status, char *text, size_t len, const char *type)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result ret;

	if (r == NULL) {
		free(text);
		return MHD_NO;
	}
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	ret = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return ret;
}

static enum MHD_Result
refuse(struct MHD_Connection *c, unsigned int status, const char *sentence)
{
	char *text;
	int len = asprintf(&text, "%s\n", sentence);

	return len > 0 ? answer(c, status, text, (size_t)len, "text/plain; charset=utf-8") : MHD_NO;
}

static enum MHD_Result
on_request(void *arg, struct MHD_Connection *c, const char *url, const char *method,
	const char *version, const char *data, size_t *size, void **state)
{
	struct metrics_server *s = arg;
	size_t len;
	char *text;

	(void)version;
	(void)data;
	(void)size;
	(void)state;
	/* Answered on the headers alone: what a client sends beyond them is not read. */
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET is served here.");
	if (strcmp(url, "/metrics") != 0)
		return refuse(c, MHD_HTTP_NOT_FOUND, "Counters are at /metrics.");
	text = metrics_text(s->d, &len);
	if (text == NULL)
		return refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE, "Starting or ending.");
	return answer(c, MHD_HTTP_OK, text, len, OPENMETRICS_CONTENT_TYPE);
}

/* What a daemon that was killed has left; one that listens keeps its socket. */
static void
remove_stale(const struct sockaddr_un *un)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	if (fd < 0)
		return;
	if (lstat(un->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
		connect(fd, (const struct sockaddr *)un, sizeof(*un)) != 0)
		unlink(un->sun_path);
	close(fd);
}

/* Owner and group may connect: before anyone can, since it does not listen yet. */
static int
bind_unix(int fd, const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int ret;

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	remove_stale(&un);
	ret = sl_sys(bind(fd, (struct sockaddr *)&un, sizeof(un)));
	if (ret == 0)
		ret = sl_sys(chmod(path, 0660));
	return ret;
}

static int
bind_inet(int fd, const struct conf_metrics *m)
{
	struct sockaddr_storage ss;
	int family = sl_addr_is_v4(&m->addr) ? AF_INET : AF_INET6, on = 1;
	socklen_t len = app_sockaddr(&m->addr, m->port, family, &ss);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	return sl_sys(bind(fd, (struct sockaddr *)&ss, len));
}

/* A descriptor that listens, or -errno. */
static int
listen_at(const struct conf_metrics *m)
{
	int family = m->path[0] != '\0' ? AF_UNIX : sl_addr_is_v4(&m->addr) ? AF_INET : AF_INET6;
	int fd = sl_sys(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	int ret;

	if (fd < 0)
		return fd;
	ret = family == AF_UNIX ? bind_unix(fd, m->path) : bind_inet(fd, m);
	if (ret == 0)
		ret = sl_sys(listen(fd, BACKLOG));
	if (ret == 0)
		return fd;
	close(fd);
	return ret;
}

static int
start(struct metrics_server *s)
{
	int fd = listen_at(&s->d->conf.metrics);

	if (fd < 0)
		return fd;
	snprintf(s->path, sizeof(s->path), "%s", s->d->conf.metrics.path);
	s->http = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL, NULL,
		on_request, s, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, REQUEST_BYTES, MHD_OPTION_END);
	if (s->http != NULL)
		return 0;
	close(fd);
	return -ENOMEM;
}

int
metrics_serve(struct daemon *d, struct metrics_server **out, char *why, size_t size)
{
	const struct conf_metrics *m = &d->conf.metrics;
	struct metrics_server *s;
	int ret;

	*out = NULL;
	if (m->path[0] == '\0' && m->port == 0)
		return 0;
	s = calloc(1, sizeof(*s));
	if (s == NULL) {
		snprintf(why, size, "no memory");
		return -ENOMEM;
	}
	s->d = d;
	ret = start(s);
	if (ret == 0) {
		*out = s;
		return 0;
	}
	snprintf(why, size, "%s:%u: [metrics] listen: cannot be served: %s%s", d->path,
		m->listen_line, sl_strerror(ret),
		ret == -EADDRINUSE ? "; end who listens there, or choose another place" : "");
	metrics_server_close(s);
	return ret;
}

void
metrics_server_close(struct metrics_server *s)
{
	if (s == NULL)
		return;
	if (s->http != NULL)
		MHD_stop_daemon(s->http);
	if (s->http != NULL && s->path[0] != '\0')
		unlink(s->path);
	free(s);
}
