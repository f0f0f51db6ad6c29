/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Sockets that ports serve. */
#include <string.h>

#include "served.h"
#include "sl_base.h"
#include "sl_test.h"

static void
paths(void)
{
	static const struct {
		const char *devargs;
		const char *path; /* NULL: none is served */
	} cases[] = {
		{"net_virtio_user0,path=/run/a,server=1", "/run/a"},
		{"net_virtio_user7,server=1,queues=2,path=/run/a", "/run/a"},
		{"net_virtio_user0,path=/run/a", NULL},
		{"net_virtio_user0,path=/run/a,server=0", NULL},
		{"net_virtio_user0,server=1", NULL},
		{"net_virtio_user0,path=/dev/vhost-net,iface=x,server=0", NULL},
		{"net_vhost0,iface=/run/b,queues=1", "/run/b"},
		{"net_vhost0,iface=/run/b,client=0", "/run/b"},
		{"net_vhost0,iface=/run/b,client=1", NULL},
		{"net_vhost0,xiface=/run/b", NULL},
		{"net_vhost0,iface=", ""},
		{"net_tapvu0,path=/run/c", NULL}, /* does it by itself, as net_pktring */
		{"net_tap0,iface=tt0", NULL},
		{"net_virtio_user0", NULL},
		{"0000:00:01.0", NULL},
		{"", NULL},
	};

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		char path[32];
		bool found = served_path(cases[i].devargs, path, sizeof(path));

		CHECK_EQ(found, cases[i].path != NULL);
		CHECK(!found || strcmp(path, cases[i].path) == 0);
	}
}

static void
path_too_long(void)
{
	char path[6];

	CHECK(!served_path("net_vhost0,iface=/run/b", path, sizeof(path)));
	CHECK(served_path("net_vhost0,iface=/ru/b", path, sizeof(path)));
	CHECK(strcmp(path, "/ru/b") == 0);
}

int
main(void)
{
	SL_TEST_RUN(paths);
	SL_TEST_RUN(path_too_long);
	return test_end();
}
