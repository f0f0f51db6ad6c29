/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include "served.h"

#include <string.h>

/* Drivers that speak vhost-user over a socket, and the word that makes them serve it, or not. */
static const struct {
	const char *driver;
	const char *path;
	const char *word;
	bool serves; /* with the word; without it, the contrary */
} drivers[] = {
	{"net_virtio_user", "path", "server", true},
	{"net_vhost", "iface", "client", false},
};

/* The value of an argument, to the next comma; false if it is not there, or too long. */
static bool
argument(const char *devargs, const char *key, char *value, size_t size)
{
	size_t len = strlen(key);

	for (const char *p = strchr(devargs, ','); p != NULL; p = strchr(p + 1, ',')) {
		size_t n;

		if (strncmp(p + 1, key, len) != 0 || p[1 + len] != '=')
			continue;
		p += len + 2;
		n = strcspn(p, ",");
		if (n >= size)
			return false;
		memcpy(value, p, n);
		value[n] = '\0';
		return true;
	}
	return false;
}

bool
served_path(const char *devargs, char *path, size_t size)
{
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		char word[8] = "0";

		if (strncmp(devargs, drivers[i].driver, strlen(drivers[i].driver)) != 0)
			continue;
		(void)argument(devargs, drivers[i].word, word, sizeof(word));
		return (strcmp(word, "1") == 0) == drivers[i].serves &&
		       argument(devargs, drivers[i].path, path, size);
	}
	return false;
}
