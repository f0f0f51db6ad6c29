/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_log.h>

#include "../common/app.h"
#include "conf_priv.h"

#define CPU_MAX 1023

static const char *const kinds[] = {"sink", "echo", "drop", "reflect"};
static const char *const yes_no[] = {"no", "yes"};
static const char *const log_names[] = {"error", "warning", "notice", "info", "debug"};
static const int log_levels[] = {
	RTE_LOG_ERR, RTE_LOG_WARNING, RTE_LOG_NOTICE, RTE_LOG_INFO, RTE_LOG_DEBUG};

const char *
conf_kind_name(enum conf_kind kind)
{
	return kinds[kind];
}

const char *
conf_log_name(int level)
{
	for (size_t i = 0; i < SL_COUNT_OF(log_levels); i++)
		if (log_levels[i] == level)
			return log_names[i];
	return "notice";
}

bool
conf_number(struct conf_at *at, uint64_t min, uint64_t max, uint64_t *value)
{
	uint64_t v;

	if (app_parse_number(at->value, &v) != 0)
		conf_wrong(at, "is no whole number; write one of %llu to %llu.",
			(unsigned long long)min, (unsigned long long)max);
	else if (v < min || v > max)
		conf_wrong(at, "is out of range; write one of %llu to %llu.",
			(unsigned long long)min, (unsigned long long)max);
	else
		*value = v;
	return app_parse_number(at->value, &v) == 0 && v >= min && v <= max;
}

bool
conf_word(struct conf_at *at, const char *const *words, size_t n, const char *choices,
	unsigned int *value)
{
	for (unsigned int i = 0; i < n; i++) {
		if (strcmp(words[i], at->value) == 0) {
			*value = i;
			return true;
		}
	}
	conf_wrong(at, "is not known; write %s.", choices);
	return false;
}

bool
conf_next(const char **text, char *word, size_t size)
{
	static const char between[] = " \t,";
	size_t len;

	*text += strspn(*text, between);
	len = strcspn(*text, between);
	if (len == 0)
		return false;
	snprintf(word, size, "%.*s", (int)len, *text);
	*text += len;
	return true;
}

bool
conf_lcores_have(const struct conf_lcores *lcores, uint16_t cpu)
{
	for (uint16_t i = 0; i < lcores->n; i++)
		if (lcores->cpu[i] == cpu)
			return true;
	return false;
}

/* "3" or "3-5". */
static bool
cpu_range(const char *word, uint64_t *first, uint64_t *last)
{
	const char *dash = strchr(word, '-');
	char left[32];

	snprintf(left, sizeof(left), "%.*s", dash != NULL ? (int)(dash - word) : (int)strlen(word),
		word);
	if (app_parse_number(left, first) != 0)
		return false;
	*last = *first;
	if (dash != NULL && app_parse_number(dash + 1, last) != 0)
		return false;
	return *first <= *last && *last <= CPU_MAX;
}

void
conf_lcores(struct conf_at *at, struct conf_lcores *lcores)
{
	const char *text = at->value;
	char word[32];

	lcores->n = 0;
	while (conf_next(&text, word, sizeof(word))) {
		uint64_t first, last;

		if (!cpu_range(word, &first, &last)) {
			conf_wrong(
				at, "\"%s\" names no processor; write \"1\" or \"1-3,5\".", word);
			lcores->n = 0;
			return;
		}
		for (; first <= last; first++) {
			if (conf_lcores_have(lcores, (uint16_t)first)) {
				conf_wrong(at, "names processor %u twice; once is enough.",
					(unsigned int)first);
				continue;
			}
			if (lcores->n == CONF_LCORES_MAX) {
				conf_wrong(at, "names more than %d processors; leave some out.",
					CONF_LCORES_MAX);
				lcores->n = 0;
				return;
			}
			lcores->cpu[lcores->n++] = (uint16_t)first;
		}
	}
}

static void
take_name(struct conf_at *at)
{
	if (conf_name_good(at->value))
		snprintf(at->conf->name, sizeof(at->conf->name), "%s", at->value);
	else
		conf_wrong(at, "is no name; it has 1 to %d letters, digits, \"-\", \"_\" or \".\".",
			CONF_NAME_LEN - 1);
}

static void
take_lcores(struct conf_at *at)
{
	at->conf->lcores_line = at->line;
	conf_lcores(at, &at->conf->lcores);
}

static void
take_memory(struct conf_at *at)
{
	uint64_t mb;

	at->conf->memory_line = at->line;
	if (conf_number(at, 64, 65536, &mb))
		at->conf->memory_mb = (uint32_t)mb;
}

static void
take_hugepages(struct conf_at *at)
{
	static const char *const words[] = {"auto", "yes", "no"};
	unsigned int i;

	at->conf->hugepages_line = at->line;
	if (conf_word(at, words, SL_COUNT_OF(words), "yes, no or auto", &i))
		at->conf->hugepages = (enum conf_hugepages)i;
}

static void
take_log(struct conf_at *at)
{
	unsigned int i;

	if (conf_word(at, log_names, SL_COUNT_OF(log_names),
		    "error, warning, notice, info or debug", &i))
		at->conf->log_level = log_levels[i];
}

static void
take_idle(struct conf_at *at)
{
	static const char *const words[] = {"poll", "backoff"};
	unsigned int i;

	if (conf_word(at, words, SL_COUNT_OF(words), "poll or backoff", &i))
		at->conf->idle = (enum conf_idle)i;
}

static void
take_driver(struct conf_at *at)
{
	struct conf *conf = at->conf;
	const char *text = at->value;
	char word[CONF_VALUE_LEN];

	conf->driver_line = at->line;
	while (conf_next(&text, word, sizeof(word))) {
		if (word[0] != '/') {
			conf_wrong(at, "\"%s\" is no whole path; begin it with \"/\".", word);
		} else if (conf->ndrivers == CONF_DRIVERS_MAX) {
			conf_wrong(at, "names more than %d plugins; leave some out.",
				CONF_DRIVERS_MAX);
			return;
		} else {
			memcpy(conf->driver[conf->ndrivers++], word, sizeof(word));
		}
	}
}

const struct conf_key conf_sluiced_keys[] = {
	{"name", NULL, take_name},
	{"lcores", "1", take_lcores},
	{"memory", NULL, take_memory},
	{"hugepages", NULL, take_hugepages},
	{"log", NULL, take_log},
	{"idle", NULL, take_idle},
	{"driver", NULL, take_driver},
	{NULL, NULL, NULL},
};

static void
take_devargs(struct conf_at *at)
{
	struct conf_port *p = at->port;
	const char *iface = strstr(at->value, "iface=");

	p->devargs_line = at->line;
	if (strpbrk(at->value, " \t") != NULL) {
		conf_wrong(at, "has a blank in it; write NAME,KEY=VALUE,... without.");
		return;
	}
	snprintf(p->devargs, sizeof(p->devargs), "%s", at->value);
	snprintf(p->device, sizeof(p->device), "%.*s", (int)strcspn(at->value, ","), at->value);
	p->vdev = strncmp(p->device, "net_", 4) == 0 || strncmp(p->device, "eth_", 4) == 0;
	if (!p->vdev && strchr(p->device, ':') == NULL) {
		conf_wrong(at,
			"names no device; write net_tpacket0,iface=eth1 or a bus address such "
			"as 0000:03:00.0.");
		p->devargs[0] = '\0';
		return;
	}
	if (strncmp(p->device, "net_tpacket", 11) != 0 &&
		strncmp(p->device, "net_af_packet", 13) != 0)
		return;
	if (iface == NULL || iface[-1] != ',' || strcspn(iface + 6, ",") == 0) {
		conf_wrong(at, "lacks the interface; add \",iface=eth1\", for instance.");
		return;
	}
	snprintf(p->iface, sizeof(p->iface), "%.*s", (int)strcspn(iface + 6, ","), iface + 6);
}

static void
take_queues(struct conf_at *at)
{
	uint64_t n;

	if (conf_number(at, 1, CONF_QUEUES_MAX, &n))
		at->port->queues = (uint16_t)n;
}

static void
take_ring(struct conf_at *at)
{
	uint64_t n;

	if (conf_number(at, 64, 32768, &n))
		at->port->ring = (uint16_t)n;
}

static void
take_port_lcores(struct conf_at *at)
{
	at->port->lcores_line = at->line;
	conf_lcores(at, &at->port->lcores);
}

/* Why a host on a link cannot have it, or NULL. */
static const char *
unfit(const struct sl_addr *a, uint8_t prefix)
{
	uint32_t v4 = rte_be_to_cpu_32(sl_addr_to_v4(a));
	uint32_t host = prefix < 32 ? UINT32_MAX >> prefix : 0;
	struct sl_addr loopback = {{0}};

	loopback.b[15] = 1;
	if (sl_addr_is_any(a) || (sl_addr_is_v4(a) && v4 >> 24 == 0))
		return "is no address of a host";
	if (sl_addr_is_multicast(a))
		return "is the address of a group";
	if (sl_addr_is_v4(a) ? v4 >> 24 == 127 : memcmp(a, &loopback, sizeof(*a)) == 0)
		return "is a loopback address";
	if (sl_addr_is_v4(a) && (v4 == UINT32_MAX || (prefix < 31 && (v4 & host) == host)))
		return "is a broadcast address";
	if (sl_addr_is_v4(a) && prefix < 31 && (v4 & host) == 0)
		return "is the address of the network itself";
	return NULL;
}

static void
take_cidr(struct conf_at *at, const char *word)
{
	struct conf_port *p = at->port;
	struct conf_cidr *c = &p->addrs[p->naddrs];
	const char *why;

	if (p->naddrs == CONF_ADDRS_MAX) {
		conf_wrong(at, "\"%s\" is one too many; %d at most.", word, CONF_ADDRS_MAX);
		return;
	}
	if (sl_addr_parse(word, &c->addr, &c->prefix) != 0) {
		conf_wrong(
			at, "\"%s\" is no address; write 198.18.0.2/24 or 2001:db8::2/64.", word);
		return;
	}
	if (strchr(word, '/') == NULL) {
		conf_wrong(at, "\"%s\" lacks the prefix length; write %s/%d, for instance.", word,
			word, sl_addr_is_v4(&c->addr) ? 24 : 64);
		return;
	}
	why = unfit(&c->addr, c->prefix);
	if (why != NULL) {
		conf_wrong(at, "\"%s\" %s; give the port one of its own.", word, why);
		return;
	}
	for (uint16_t i = 0; i < p->naddrs; i++) {
		if (memcmp(&p->addrs[i].addr, &c->addr, sizeof(c->addr)) == 0) {
			conf_wrong(at, "names \"%s\" twice; once is enough.", word);
			return;
		}
	}
	p->naddrs++;
}

static void
take_port_address(struct conf_at *at)
{
	const char *text = at->value;
	char word[64];

	at->port->address_line = at->line;
	while (conf_next(&text, word, sizeof(word)))
		take_cidr(at, word);
}

static void
take_gateway(struct conf_at *at)
{
	struct conf_port *p = at->port;
	const char *text = at->value;
	struct sl_addr a;
	uint8_t prefix;
	char word[64];

	while (conf_next(&text, word, sizeof(word))) {
		struct sl_addr *to;

		if (sl_addr_parse(word, &a, &prefix) != 0 || strchr(word, '/') != NULL) {
			conf_wrong(
				at, "\"%s\" is no address; write 198.18.0.1 or 2001:db8::1.", word);
			continue;
		}
		if (unfit(&a, 32) != NULL) {
			conf_wrong(
				at, "\"%s\" %s; name a router on the link.", word, unfit(&a, 32));
			continue;
		}
		to = sl_addr_is_v4(&a) ? &p->gateway : &p->gateway6;
		if (!sl_addr_is_any(to)) {
			conf_wrong(at, "\"%s\" is a second one for %s; name one.", word,
				sl_addr_is_v4(&a) ? "IPv4" : "IPv6");
			continue;
		}
		*to = a;
		if (sl_addr_is_v4(&a))
			p->gateway_line = at->line;
		else
			p->gateway6_line = at->line;
	}
}

static void
take_mtu(struct conf_at *at)
{
	uint64_t n;

	at->port->mtu_line = at->line;
	if (conf_number(at, 576, 9198, &n))
		at->port->mtu = (uint16_t)n;
}

static void
take_vlan(struct conf_at *at)
{
	uint64_t n;

	if (conf_number(at, 1, 4094, &n))
		at->port->vlan = (uint16_t)n;
}

static void
take_promiscuous(struct conf_at *at)
{
	unsigned int i;

	if (conf_word(at, yes_no, SL_COUNT_OF(yes_no), "yes or no", &i))
		at->port->promiscuous = i != 0;
}

const struct conf_key conf_port_keys[] = {
	{"devargs", "net_tpacket0,iface=eth1", take_devargs},
	{"address", "198.18.0.2/24", take_port_address},
	{"gateway", NULL, take_gateway},
	{"lcores", NULL, take_port_lcores},
	{"queues", NULL, take_queues},
	{"ring", NULL, take_ring},
	{"mtu", NULL, take_mtu},
	{"vlan", NULL, take_vlan},
	{"promiscuous", NULL, take_promiscuous},
	{NULL, NULL, NULL},
};

static void
take_kind(struct conf_at *at)
{
	unsigned int i;

	if (conf_word(at, kinds, SL_COUNT_OF(kinds), "sink, echo, drop or reflect", &i)) {
		at->service->kind = (enum conf_kind)i;
		at->service->has_kind = true;
	}
}

static void
take_sequence(struct conf_at *at)
{
	static const char *const words[] = {
		[STAMP_STATELESS] = "stateless", [STAMP_STATEFUL] = "stateful"};
	unsigned int i;

	at->service->sequence_line = at->line;
	if (conf_word(at, words, SL_COUNT_OF(words), "stateless or stateful", &i))
		at->service->sequence = (enum stamp_sequence)i;
}

static void
take_format(struct conf_at *at)
{
	static const char *const words[] = {
		[STAMP_NTP] = "ntp", [STAMP_PTP] = "ptp", [STAMP_SENDER] = "sender"};
	unsigned int i;

	at->service->format_line = at->line;
	if (conf_word(at, words, SL_COUNT_OF(words), "ntp, ptp or sender", &i))
		at->service->format = (enum stamp_format)i;
}

static void
take_udp_port(struct conf_at *at)
{
	uint64_t n;

	at->service->udp_line = at->line;
	if (conf_number(at, 1, 65535, &n))
		at->service->udp_port = (uint16_t)n;
}

static void
take_service_address(struct conf_at *at)
{
	struct conf_service *s = at->service;
	uint8_t prefix;

	s->address_line = at->line;
	if (sl_addr_parse(at->value, &s->address, &prefix) != 0 || strchr(at->value, '/') != NULL)
		conf_wrong(
			at, "is no address; write one that a port has, without a prefix length.");
	else
		s->has_address = true;
}

static void
take_service_port(struct conf_at *at)
{
	at->service->port_line = at->line;
	if (conf_name_good(at->value))
		snprintf(at->service->port, sizeof(at->service->port), "%s", at->value);
	else
		conf_wrong(at, "is no name of a port; write the NAME of a [port NAME].");
}

static void
take_rcvbuf(struct conf_at *at)
{
	uint64_t n;

	if (conf_number(at, 4096, 1000000000, &n))
		at->service->rcvbuf = n;
}

const struct conf_key conf_service_keys[] = {
	{"kind", "echo", take_kind},
	{"udp-port", "7", take_udp_port},
	{"address", NULL, take_service_address},
	{"port", NULL, take_service_port},
	{"rcvbuf", NULL, take_rcvbuf},
	{"sequence", NULL, take_sequence},
	{"format", NULL, take_format},
	{NULL, NULL, NULL},
};
