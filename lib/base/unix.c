/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "sl_errno.h"
#include "sl_unix.h"

static bool
is_socket(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

bool
sl_unix_remove_stale(const char *path, int type)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd, ret;

	if (strlen(path) >= sizeof(addr.sun_path))
		return false;
	memcpy(addr.sun_path, path, strlen(path) + 1);
	/* Without blocking: one whose backlog is full is not stale. */
	fd = sl_sys(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (fd < 0)
		return false;
	ret = sl_sys(connect(fd, (const struct sockaddr *)&addr, sizeof(addr)));
	close(fd);
	/* A file of another kind refuses, too. */
	return ret == -ECONNREFUSED && is_socket(path) && unlink(path) == 0;
}
