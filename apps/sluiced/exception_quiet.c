/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* A port over a kernel interface gets copies of what the kernel receives there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exception_priv.h"
#include "sl_errno.h"

static const struct {
	const char *family, *name;
	int value;
} settings[] = {
	{"ipv4", "rp_filter", 1},
	{"ipv4", "arp_ignore", 8},
	{"ipv6", "disable_ipv6", 1},
};

_Static_assert(SL_COUNT_OF(settings) == SL_COUNT_OF(((struct exception_quiet *)0)->before),
	"there is room for each");

static int
setting_open(size_t i, const char *iface, int flags)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/sys/net/%s/conf/%s/%s", settings[i].family, iface,
		settings[i].name);
	return sl_sys(open(path, flags | O_CLOEXEC));
}

static int
setting_read(size_t i, const char *iface)
{
	int fd = setting_open(i, iface, O_RDONLY), n;
	char text[16] = "";

	if (fd < 0)
		return fd;
	n = sl_sys((int)read(fd, text, sizeof(text) - 1));
	close(fd);
	return n < 0 ? n : atoi(text);
}

static int
setting_write(size_t i, const char *iface, int value)
{
	int fd = setting_open(i, iface, O_WRONLY), n;
	char text[16];

	if (fd < 0)
		return fd;
	snprintf(text, sizeof(text), "%d", value);
	n = sl_sys((int)write(fd, text, strlen(text)));
	close(fd);
	return n < 0 ? n : 0;
}

int
exception_quiet(struct exception_quiet *q, const char *iface, const char **what)
{
	snprintf(q->iface, sizeof(q->iface), "%s", iface);
	for (size_t i = 0; i < SL_COUNT_OF(settings); i++)
		q->before[i] = -1;
	for (size_t i = 0; i < SL_COUNT_OF(settings); i++) {
		int now = setting_read(i, iface), ret;

		*what = settings[i].name;
		if (now == settings[i].value || now == -ENOENT) /* the kernel may lack IPv6 */
			continue;
		ret = now < 0 ? now : setting_write(i, iface, settings[i].value);
		if (ret != 0)
			return ret;
		q->before[i] = now;
	}
	/* What is set for all interfaces prevails when it is greater: loose is. */
	*what = "all.rp_filter";
	return setting_read(0, "all") > 1 ? -EINVAL : 0;
}

void
exception_unquiet(const struct exception_quiet *q)
{
	for (size_t i = 0; i < SL_COUNT_OF(settings) && q->iface[0] != '\0'; i++)
		if (q->before[i] >= 0)
			(void)setting_write(i, q->iface, q->before[i]);
}
