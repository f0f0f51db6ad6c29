/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The ring of a net_pktring port in another process. */
#include <errno.h>
#include <sched.h>

#include "common/app.h"
#include "sl_client.h"
#include "sl_errno.h"
#include "tx.h"

static struct sl_client *client;

static uint32_t
server_open(const struct tx_conf *conf)
{
	struct sl_client_conf c = {.path = conf->server,
		.queue = SL_CLIENT_ANY_QUEUE,
		.version = conf->version,
		.loss = conf->loss,
		.tx_frames = conf->frames};
	struct sl_client_info info;
	uint32_t blocks, block_size;
	const char *why;
	int ret;

	tx_ring_geometry(conf, &c.frame_size, &blocks, &block_size);
	ret = sl_client_connect(&c, &client, &why);
	if (ret != 0)
		app_fail("--server %s: %s", conf->server, why != NULL ? why : sl_strerror(ret));
	sl_client_info(client, &info);
	return info.tx_frames;
}

static uint8_t *
server_next(void)
{
	return sl_client_tx_next(client);
}

static void
server_submit(uint32_t len)
{
	sl_client_tx_submit(client, len);
}

/* The server takes requests by itself; a blocking flush lets it have the processor. */
static int
server_flush(const struct tx_conf *conf)
{
	sl_client_kick(client);
	if (!conf->dontwait)
		sched_yield();
	return sl_client_gone(client) ? -EPIPE : 0;
}

static uint32_t
server_refused(void)
{
	return sl_client_tx_refused(client);
}

static bool
server_idle(void)
{
	return sl_client_tx_busy(client) == 0;
}

static void
server_close(void)
{
	sl_client_close(client);
}

const struct tx_backend tx_server = {"server", server_open, server_next, server_submit,
	server_flush, server_refused, server_idle, server_close};
