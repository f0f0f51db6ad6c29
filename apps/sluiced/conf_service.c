/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <stdio.h>
#include <string.h>

#include "conf_priv.h"

static const char *const kinds[] = {"sink", "echo", "drop", "reflect", "forward"};

const char *
conf_kind_name(enum conf_kind kind)
{
	return kinds[kind];
}

static struct conf_service *
service_of(struct conf_at *at)
{
	return at->item;
}

void *
conf_service_begin(struct conf_at *at, const char *name)
{
	struct conf *conf = at->conf;
	struct conf_service *s;

	if (conf->nservices == CONF_SERVICES_MAX) {
		conf_too_many(at, CONF_SERVICES_MAX, "services");
		return NULL;
	}
	s = &conf->service[conf->nservices++];
	s->line = at->line;
	snprintf(s->name, sizeof(s->name), "%s", name);
	return s;
}

static void
take_kind(struct conf_at *at)
{
	unsigned int i;

	if (conf_word(at, kinds, SL_COUNT_OF(kinds), "sink, echo, drop, reflect or forward", &i)) {
		service_of(at)->kind = (enum conf_kind)i;
		service_of(at)->has_kind = true;
	}
}

static void
take_sequence(struct conf_at *at)
{
	static const char *const words[] = {
		[STAMP_STATELESS] = "stateless", [STAMP_STATEFUL] = "stateful"};
	unsigned int i;

	service_of(at)->sequence_line = at->line;
	if (conf_word(at, words, SL_COUNT_OF(words), "stateless or stateful", &i))
		service_of(at)->sequence = (enum stamp_sequence)i;
}

static void
take_format(struct conf_at *at)
{
	static const char *const words[] = {
		[STAMP_NTP] = "ntp", [STAMP_PTP] = "ptp", [STAMP_SENDER] = "sender"};
	unsigned int i;

	service_of(at)->format_line = at->line;
	if (conf_word(at, words, SL_COUNT_OF(words), "ntp, ptp or sender", &i))
		service_of(at)->format = (enum stamp_format)i;
}

static void
take_udp_port(struct conf_at *at)
{
	uint64_t n;

	service_of(at)->udp_line = at->line;
	if (conf_number(at, 1, 65535, &n))
		service_of(at)->udp_port = (uint16_t)n;
}

static void
take_service_address(struct conf_at *at)
{
	struct conf_service *s = at->item;
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
	service_of(at)->port_line = at->line;
	if (conf_name_good(at->value))
		snprintf(service_of(at)->port, sizeof(service_of(at)->port), "%s", at->value);
	else
		conf_wrong(at, "is no name of a port; write the NAME of a [port NAME].");
}

static void
take_rcvbuf(struct conf_at *at)
{
	uint64_t n;

	service_of(at)->rcvbuf_line = at->line;
	if (conf_number(at, 4096, 1000000000, &n))
		service_of(at)->rcvbuf = n;
}

const struct conf_key conf_service_keys[] = {
	{"kind", "echo", take_kind},
	{"udp-port", "7", take_udp_port},
	{"address", NULL, take_service_address},
	{"port", NULL, take_service_port},
	{"rcvbuf", NULL, take_rcvbuf},
	{"sequence", NULL, take_sequence},
	{"format", NULL, take_format},
	{"backends", NULL, conf_forward_take},
	{"affinity", NULL, conf_forward_take},
	{"drain", NULL, conf_forward_take},
	{"source", NULL, conf_forward_take},
	{"slots", NULL, conf_forward_take},
	{"seed", NULL, conf_forward_take},
	{"flows", NULL, conf_forward_take},
	{"flow-timeout", NULL, conf_forward_take},
	{"new-flows", NULL, conf_forward_take},
	{"check", NULL, conf_forward_take},
	{"check-interval", NULL, conf_forward_take},
	{"check-timeout", NULL, conf_forward_take},
	{"check-rise", NULL, conf_forward_take},
	{"check-fall", NULL, conf_forward_take},
	{"check-send", NULL, conf_forward_take},
	{"check-expect", NULL, conf_forward_take},
	{NULL, NULL, NULL},
};
