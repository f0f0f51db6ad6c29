/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stdio.h>
#include <string.h>

#include <rte_byteorder.h>

#include "conf_priv.h"

static struct conf_port *
port_of(struct conf_at *at)
{
	return at->item;
}

static void *
begin(struct conf_at *at, const char *section, const char *name)
{
	const struct conf_port *same = conf_find_port(at->conf, name);
	struct conf *conf = at->conf;
	struct conf_port *p;

	if (same != NULL) {
		mistake(at->m, at->line,
			"[%s]: [%s %s] on line %u has this name already; choose another.",
			at->section, same->section, same->name, same->line);
		return NULL;
	}
	if (strcmp(section, "vlan") == 0) {
		if (conf->nvlans == CONF_VLANS_MAX) {
			conf_too_many(at, CONF_VLANS_MAX, "VLANs");
			return NULL;
		}
		p = &conf->vlan[conf->nvlans++];
	} else {
		if (conf->nports == CONF_PORTS_MAX) {
			conf_too_many(at, CONF_PORTS_MAX, "ports");
			return NULL;
		}
		p = &conf->port[conf->nports++];
	}
	p->section = section;
	p->vdev = true; /* what has no devargs of its own; a [port] says it */
	p->line = at->line;
	snprintf(p->name, sizeof(p->name), "%s", name);
	return p;
}

void *
conf_port_begin(struct conf_at *at, const char *name)
{
	return begin(at, "port", name);
}

void *
conf_vlan_begin(struct conf_at *at, const char *name)
{
	return begin(at, "vlan", name);
}

/* The number tells devices of one driver apart, and is that of the port in the file. */
void *
conf_tapvu_begin(struct conf_at *at, const char *name)
{
	struct conf_port *p = begin(at, "tapvu", name);

	if (p != NULL)
		snprintf(p->device, sizeof(p->device), "net_tapvu%u", at->conf->nports + 99u);
	return p;
}

void *
conf_pktring_begin(struct conf_at *at, const char *name)
{
	struct conf_port *p = begin(at, "pktring", name);

	if (p != NULL)
		snprintf(p->device, sizeof(p->device), "net_pktring%u", at->conf->nports + 99u);
	return p;
}

static void
take_devargs(struct conf_at *at)
{
	struct conf_port *p = at->item;
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
		port_of(at)->queues = (uint16_t)n;
}

static void
take_ring(struct conf_at *at)
{
	uint64_t n;

	if (conf_number(at, 64, 32768, &n))
		port_of(at)->ring = (uint16_t)n;
}

static void
take_port_lcores(struct conf_at *at)
{
	port_of(at)->lcores_line = at->line;
	conf_lcores(at, &port_of(at)->lcores);
}

const char *
conf_addr_unfit(const struct sl_addr *a, uint8_t prefix)
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
	struct conf_port *p = at->item;
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
	why = conf_addr_unfit(&c->addr, c->prefix);
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

	port_of(at)->address_line = at->line;
	while (conf_next(&text, word, sizeof(word)))
		take_cidr(at, word);
}

static void
take_gateway(struct conf_at *at)
{
	struct conf_port *p = at->item;
	const char *text = at->value;
	struct sl_addr a;
	const char *why;
	uint8_t prefix;
	char word[64];

	while (conf_next(&text, word, sizeof(word))) {
		struct sl_addr *to;

		if (sl_addr_parse(word, &a, &prefix) != 0 || strchr(word, '/') != NULL) {
			conf_wrong(
				at, "\"%s\" is no address; write 198.18.0.1 or 2001:db8::1.", word);
			continue;
		}
		why = conf_addr_unfit(&a, 32);
		if (why != NULL) {
			conf_wrong(at, "\"%s\" %s; name a router on the link.", word, why);
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

	port_of(at)->mtu_line = at->line;
	if (conf_number(at, 576, 9198, &n))
		port_of(at)->mtu = (uint16_t)n;
}

static void
take_vlan(struct conf_at *at)
{
	uint64_t n;

	port_of(at)->vlan_line = at->line;
	if (conf_number(at, 1, 4094, &n))
		port_of(at)->vlan = (uint16_t)n;
}

static void
take_promiscuous(struct conf_at *at)
{
	static const char *const words[] = {"no", "yes"};
	unsigned int i;

	if (conf_word(at, words, SL_COUNT_OF(words), "yes or no", &i))
		port_of(at)->promiscuous = i != 0;
}

const struct conf_key conf_port_keys[] = {
	{"devargs", "net_tpacket0,iface=eth1", take_devargs},
	{"address", NULL, take_port_address},
	{"gateway", NULL, take_gateway},
	{"lcores", NULL, take_port_lcores},
	{"queues", NULL, take_queues},
	{"ring", NULL, take_ring},
	{"mtu", NULL, take_mtu},
	{"vlan", NULL, take_vlan},
	{"promiscuous", NULL, take_promiscuous},
	{"exception", NULL, conf_take_exception},
	{NULL, NULL, NULL},
};

const struct conf_key conf_vlan_keys[] = {
	{"port", "wan", conf_take_on},
	{"vlan", "100", take_vlan},
	{"address", "198.18.100.2/24", take_port_address},
	{"gateway", NULL, take_gateway},
	{"exception", NULL, conf_take_exception},
	{NULL, NULL, NULL},
};

const struct conf_key conf_tapvu_keys[] = {
	{"path", "/run/sluiced/guest.sock", conf_take_path},
	{"address", NULL, take_port_address},
	{"gateway", NULL, take_gateway},
	{"mac", NULL, conf_take_mac},
	{"client", NULL, conf_take_client},
	{"pairs", NULL, conf_take_pairs},
	{"frag", NULL, conf_take_frag},
	{"lcores", NULL, take_port_lcores},
	{"queues", NULL, take_queues},
	{"mtu", NULL, take_mtu},
	{"vlan", NULL, take_vlan},
	{"promiscuous", NULL, take_promiscuous},
	{"exception", NULL, conf_take_exception},
	{NULL, NULL, NULL},
};

const struct conf_key conf_pktring_keys[] = {
	{"path", "/run/sluiced/ring.sock", conf_take_path},
	{"address", NULL, take_port_address},
	{"gateway", NULL, take_gateway},
	{"mac", NULL, conf_take_mac},
	{"lend", NULL, conf_take_lend},
	{"lcores", NULL, take_port_lcores},
	{"queues", NULL, take_queues},
	{"mtu", NULL, take_mtu},
	{"vlan", NULL, take_vlan},
	{"promiscuous", NULL, take_promiscuous},
	{"exception", NULL, conf_take_exception},
	{NULL, NULL, NULL},
};
