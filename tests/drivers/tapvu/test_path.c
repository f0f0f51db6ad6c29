/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * What is at the path of a port's socket when the port is made.
 *
 * usage: test_path PLUGIN
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_dev.h>

#include "sl_base.h"
#include "sl_test.h"
#include "sl_test_eal.h"

static char folder[] = "/tmp/sl-tapvu-path-XXXXXX", path[64];

/* Does a port begin to serve the path? It is gone again afterwards. */
static bool
serves(void)
{
	char args[128];

	snprintf(args, sizeof(args), "path=%s", path);
	if (rte_eal_hotplug_add("vdev", "net_tapvu0", args) != 0)
		return false;
	CHECK_EQ(rte_eal_hotplug_remove("vdev", "net_tapvu0"), 0);
	return true;
}

static ino_t
inode(void)
{
	struct stat st;

	return lstat(path, &st) == 0 ? st.st_ino : 0;
}

static int
bound(bool listens)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(addr.sun_path, path, strlen(path) + 1);
	REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	REQUIRE(!listens || listen(fd, 1) == 0);
	return fd;
}

static void
nothing_is_served(void)
{
	CHECK(serves());
	CHECK_EQ(inode(), 0);
}

/* Of a process that was killed. */
static void
a_stale_socket_is_replaced(void)
{
	close(bound(true));
	CHECK(inode() != 0);
	CHECK(serves());
	CHECK_EQ(inode(), 0);
}

static void
a_socket_that_is_served_stays(void)
{
	int fd = bound(true);
	ino_t before = inode();

	CHECK(!serves());
	CHECK(before != 0 && inode() == before);
	close(fd);
	unlink(path);
}

static void
files_of_other_kinds_stay(void)
{
	ino_t before;
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);

	REQUIRE(fd >= 0);
	close(fd);
	before = inode();
	CHECK(!serves());
	CHECK(before != 0 && inode() == before);
	unlink(path);
	REQUIRE(mkdir(path, 0700) == 0);
	CHECK(!serves());
	CHECK(inode() != 0);
	rmdir(path);
	REQUIRE(symlink("/nonexistent/target", path) == 0);
	CHECK(!serves());
	CHECK(inode() != 0);
	unlink(path);
}

int
main(int argc, char **argv)
{
	char args[512];

	REQUIRE(argc == 2 && mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/sock", folder);
	snprintf(args, sizeof(args), "-l 0 -d %s --log-level=*:1", argv[1]);
	REQUIRE(test_eal_start(argv[0], args) >= 0);
	SL_TEST_RUN(nothing_is_served);
	SL_TEST_RUN(a_stale_socket_is_replaced);
	SL_TEST_RUN(a_socket_that_is_served_stays);
	SL_TEST_RUN(files_of_other_kinds_stay);
	rmdir(folder);
	return test_end();
}
