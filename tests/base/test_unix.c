/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* What a killed program has left at the path of a socket. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "sl_base.h"
#include "sl_test.h"
#include "sl_unix.h"

static char folder[] = "/tmp/sl-unix-XXXXXX";

/* A bound socket at the path; it listens if asked. */
static int
bound(const char *path, int type, bool listens)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type, 0);

	REQUIRE(fd >= 0 && strlen(path) < sizeof(addr.sun_path));
	memcpy(addr.sun_path, path, strlen(path) + 1);
	REQUIRE(bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	REQUIRE(!listens || listen(fd, 1) == 0);
	return fd;
}

static bool
there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static void
only_stale_sockets_go(void)
{
	static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET};
	char path[64];

	snprintf(path, sizeof(path), "%s/s", folder);
	for (size_t i = 0; i < SL_COUNT_OF(types); i++) {
		int fd = bound(path, types[i], true);

		CHECK(!sl_unix_remove_stale(path, types[i]) && there(path));
		/* One of another type lives there: it is not ours to judge. */
		CHECK(!sl_unix_remove_stale(path, types[1 - i]) && there(path));
		close(fd);
		CHECK(sl_unix_remove_stale(path, types[i]) && !there(path));
		CHECK(!sl_unix_remove_stale(path, types[i]));
	}
}

static void
a_full_backlog_is_alive(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd, waiting[4];

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/s", folder);
	fd = bound(addr.sun_path, SOCK_STREAM, true);
	for (int i = 0; i < 4; i++) {
		waiting[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(waiting[i], (struct sockaddr *)&addr, sizeof(addr));
	}
	CHECK(!sl_unix_remove_stale(addr.sun_path, SOCK_STREAM) && there(addr.sun_path));
	for (int i = 0; i < 4; i++)
		close(waiting[i]);
	close(fd);
	unlink(addr.sun_path);
}

static void
other_files_stay(void)
{
	char path[64], longer[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/file", folder);
	f = fopen(path, "w");
	REQUIRE(f != NULL);
	fclose(f);
	CHECK(!sl_unix_remove_stale(path, SOCK_STREAM) && there(path));
	unlink(path);
	CHECK(!sl_unix_remove_stale(folder, SOCK_STREAM) && there(folder));
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	CHECK(!sl_unix_remove_stale(longer, SOCK_STREAM));
}

int
main(void)
{
	REQUIRE(mkdtemp(folder) != NULL);
	SL_TEST_RUN(only_stale_sockets_go);
	SL_TEST_RUN(a_full_backlog_is_alive);
	SL_TEST_RUN(other_files_stay);
	REQUIRE(rmdir(folder) == 0);
	return test_end();
}
