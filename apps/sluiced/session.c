/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_eal.h>

#include "sl_errno.h"
#include "session.h"

#define KINDS 4
#define STEP_MS 1

/* One of each kind: running, or ended and to be joined. (l) */
static struct {
	const struct session_kind *kind;
	struct session *running; /* NULL once it has ended */
	pthread_t thread;
	bool joinable;
} slot[KINDS];

int
session_connect(struct session *s, const char *name)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = SESSION_PATIENCE_S};
	int ret;

	if (snprintf(un.sun_path, sizeof(un.sun_path), "%s/%s", rte_eal_get_runtime_dir(), name) >=
		(int)sizeof(un.sun_path))
		return -ENAMETOOLONG;
	s->fd = sl_sys(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	if (s->fd < 0)
		return s->fd;
	setsockopt(s->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	ret = sl_sys(connect(s->fd, (struct sockaddr *)&un, sizeof(un)));
	if (ret != 0) {
		close(s->fd);
		s->fd = -1;
	}
	return ret;
}

static size_t
slot_of(const struct session_kind *kind)
{
	size_t i = 0;

	while (i < KINDS && slot[i].kind != NULL && slot[i].kind != kind)
		i++;
	return i;
}

/* Wait for the thread of one that has ended: it takes no lock any more. */
static void
join(size_t i)
{
	if (slot[i].joinable)
		pthread_join(slot[i].thread, NULL);
	slot[i].joinable = false;
}

bool
session_busy(const struct session_kind *kind)
{
	size_t i = slot_of(kind);

	if (i == KINDS)
		return false;
	if (slot[i].running == NULL)
		join(i);
	return slot[i].running != NULL;
}

/* Wait a little; true if the client wants no more, or is gone. It never sends anything. */
static bool
client_ended(const struct session *s)
{
	struct pollfd p = {.fd = s->fd, .events = POLLIN | POLLRDHUP};

	return poll(&p, 1, STEP_MS) > 0;
}

static void *
session_main(void *arg)
{
	struct session *s = arg;
	struct daemon *d = s->d;
	bool ending;

	do
		ending = client_ended(s) || sl_load_relaxed(&s->stop);
	while (s->kind->pump(s, false) && !ending);
	pthread_mutex_lock(&d->lock);
	s->kind->unhook(s);
	pthread_mutex_unlock(&d->lock);
	/* What workers have found since. */
	(void)s->kind->pump(s, true);
	pthread_mutex_lock(&d->lock);
	slot[slot_of(s->kind)].running = NULL;
	pthread_mutex_unlock(&d->lock);
	/* A client that sees the end may ask for the next one. */
	close(s->fd);
	s->kind->done(s);
	return NULL;
}

int
session_start(struct session *s)
{
	size_t i = slot_of(s->kind);

	if (i == KINDS) {
		close(s->fd);
		return -EBUSY;
	}
	join(i);
	slot[i].kind = s->kind;
	slot[i].running = s;
	if (pthread_create(&slot[i].thread, NULL, session_main, s) == 0) {
		slot[i].joinable = true;
		return 0;
	}
	slot[i].running = NULL;
	close(s->fd);
	return -EAGAIN;
}

bool
session_write(struct session *s, const void *data, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = send(s->fd, (const char *)data + done, len - done, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

void
sessions_stop(struct daemon *d)
{
	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < KINDS; i++)
		if (slot[i].running != NULL)
			sl_store_relaxed(&slot[i].running->stop, true);
	pthread_mutex_unlock(&d->lock);
	for (size_t i = 0; i < KINDS; i++)
		join(i);
}
