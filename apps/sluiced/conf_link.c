/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Keys of exception paths, VLANs, and ports of the drivers of this project; and what such a driver
 * is told. */
#include <stdio.h>
#include <string.h>

#include <rte_ether.h>

#include "conf_priv.h"

#define PAIRS_MAX 32
/* Of a socket's path, its end included. */
#define PATH_LEN 108

static bool
yes_or_no(struct conf_at *at, bool *value)
{
	static const char *const words[] = {"no", "yes"};
	unsigned int i;

	if (!conf_word(at, words, SL_COUNT_OF(words), "yes or no", &i))
		return false;
	*value = i != 0;
	return true;
}

void
conf_take_exception(struct conf_at *at)
{
	struct conf_port *p = at->item;

	p->exception_line = at->line;
	if (!conf_name_good(at->value) || strlen(at->value) >= IFNAMSIZ || at->value[0] == '.')
		conf_wrong(at,
			"is no name of an interface; it has 1 to %d letters, digits, \"-\", \"_\" "
			"or "
			"\".\".",
			IFNAMSIZ - 1);
	else
		snprintf(p->exception, sizeof(p->exception), "%s", at->value);
}

void
conf_take_on(struct conf_at *at)
{
	struct conf_port *p = at->item;

	p->on_line = at->line;
	if (conf_name_good(at->value))
		snprintf(p->on, sizeof(p->on), "%s", at->value);
	else
		conf_wrong(at, "is no name of a port; write the NAME of a [port NAME].");
}

void
conf_take_path(struct conf_at *at)
{
	struct conf_port *p = at->item;

	p->path_line = at->line;
	if (at->value[0] != '/')
		conf_wrong(at, "is no whole path; begin it with \"/\".");
	else if (strlen(at->value) >= PATH_LEN)
		conf_wrong(at, "is longer than the path of a socket can be; %d at most.",
			PATH_LEN - 1);
	else if (strpbrk(at->value, ", \t=") != NULL)
		conf_wrong(at, "has a blank, a comma or \"=\" in it; choose another.");
	else
		snprintf(p->path, sizeof(p->path), "%s", at->value);
}

void
conf_take_mac(struct conf_at *at)
{
	struct conf_port *p = at->item;
	struct rte_ether_addr mac;

	if (rte_ether_unformat_addr(at->value, &mac) != 0 ||
		!rte_is_valid_assigned_ether_addr(&mac))
		conf_wrong(
			at, "is no MAC address of a host; write 02:00:00:00:00:01, for instance.");
	else
		memcpy(p->mac, mac.addr_bytes, sizeof(p->mac));
}

void
conf_take_client(struct conf_at *at)
{
	struct conf_port *p = at->item;

	yes_or_no(at, &p->client);
}

void
conf_take_lend(struct conf_at *at)
{
	struct conf_port *p = at->item;

	yes_or_no(at, &p->lend);
}

void
conf_take_pairs(struct conf_at *at)
{
	struct conf_port *p = at->item;
	uint64_t n;

	if (conf_number(at, 1, PAIRS_MAX, &n))
		p->pairs = (uint16_t)n;
}

void
conf_take_frag(struct conf_at *at)
{
	static const char *const words[] = {"lock", "lcore", "page"};
	struct conf_port *p = at->item;
	unsigned int i;

	if (conf_word(at, words, SL_COUNT_OF(words), "lock, lcore or page", &i))
		p->frag = words[i];
}

static void
tapvu_devargs(const struct conf_port *p, char *text, size_t size)
{
	uint16_t pairs = p->pairs > p->queues ? p->pairs : p->queues;

	snprintf(text, size, "%s,path=%s,queues=%u,taps=%u,client=%d%s%s", p->device, p->path,
		pairs, p->queues, p->client, p->frag != NULL ? ",frag=" : "",
		p->frag != NULL ? p->frag : "");
}

void
conf_devargs(const struct conf *conf, const struct conf_port *p, char *text, size_t size)
{
	/* net_tpacket makes as many rings as it is told to. */
	bool give =
		strncmp(p->device, "net_tpacket", 11) == 0 && strstr(p->devargs, "qpairs=") == NULL;

	if (strcmp(p->section, "tapvu") == 0)
		tapvu_devargs(p, text, size);
	else if (strcmp(p->section, "pktring") == 0)
		snprintf(text, size, "%s,path=%s,queues=%u,copy=%d", p->device, p->path,
			conf_tx_queues(conf, p), !p->lend);
	else if (give)
		snprintf(text, size, "%s,qpairs=%u", p->devargs, conf_tx_queues(conf, p));
	else
		snprintf(text, size, "%s", p->devargs);
}
