/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"

static const char *program = "sluice";

void
app_name_set(const char *name)
{
	program = name;
}

const char *
app_name(void)
{
	return program;
}

static void
say(const char *format, va_list args)
{
	fprintf(stderr, "%s: ", program);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

void
app_fail(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, format);
	say(format, args);
	va_end(args);
	exit(APP_EXIT_MISTAKE);
}

void
app_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

int
app_parse_number(const char *text, uint64_t *value)
{
	uint64_t v = 0;
	uint64_t scale = 1;

	if (!isdigit((unsigned char)*text))
		return -1;
	for (; isdigit((unsigned char)*text); text++)
		if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
			__builtin_add_overflow(v, (uint64_t)(*text - '0'), &v))
			return -1;
	if (*text == 'k')
		scale = 1000;
	else if (*text == 'M')
		scale = 1000000;
	else if (*text == 'G')
		scale = 1000000000;
	if (scale != 1)
		text++;
	if (*text != '\0' || __builtin_mul_overflow(v, scale, &v))
		return -1;
	*value = v;
	return 0;
}

uint64_t
app_number(const char *option, const char *text, uint64_t min, uint64_t max)
{
	uint64_t v;

	if (app_parse_number(text, &v) != 0)
		app_fail("%s takes a whole number, not \"%s\".", option, text);
	if (v < min || v > max)
		app_fail("%s %s is out of range: it takes %llu to %llu.", option, text,
			(unsigned long long)min, (unsigned long long)max);
	return v;
}

struct sl_addr
app_addr(const char *option, const char *text, uint8_t *prefix)
{
	struct sl_addr addr;
	uint8_t got;

	if (sl_addr_parse(text, &addr, &got) != 0)
		app_fail("%s takes an address such as %s, not \"%s\".", option,
			prefix != NULL ? "198.18.0.2/24 or 2001:db8::2/64"
				       : "198.18.0.1 or 2001:db8::1",
			text);
	if (prefix == NULL && strchr(text, '/') != NULL)
		app_fail("%s takes an address without a prefix length, not \"%s\".", option, text);
	if (prefix != NULL && strchr(text, '/') == NULL)
		app_fail("%s %s lacks the prefix length: write %s/%u, for instance.", option, text,
			text, sl_addr_is_v4(&addr) ? 24 : 64);
	if (prefix != NULL)
		*prefix = got;
	return addr;
}

void
app_addr_port(const char *option, const char *text, uint16_t port_default, struct sl_addr *addr,
	uint16_t *port)
{
	char host[128];
	const char *colon = strrchr(text, ':');
	uint8_t prefix;
	uint64_t number = port_default;
	size_t len;

	if (port_default != 0 && strchr(text, '/') == NULL &&
		sl_addr_parse(text, addr, &prefix) == 0) {
		*port = port_default;
		return;
	}
	len = colon == NULL ? 0 : (size_t)(colon - text);
	if (len == 0 || len >= sizeof(host) || app_parse_number(colon + 1, &number) != 0)
		app_fail("%s takes ADDR:PORT, or [ADDR]:PORT for IPv6, not \"%s\".", option, text);
	memcpy(host, text, len);
	host[len] = '\0';
	if (host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		memmove(host, host + 1, len - 1);
	}
	if (sl_addr_parse(host, addr, &prefix) != 0 || strchr(host, '/') != NULL)
		app_fail("%s takes ADDR:PORT, or [ADDR]:PORT for IPv6, not \"%s\".", option, text);
	if (number < 1 || number > 65535)
		app_fail("%s %s: the port is out of range: it takes 1 to 65535.", option, text);
	*port = (uint16_t)number;
}

socklen_t
app_sockaddr(const struct sl_addr *addr, uint16_t port, int family, struct sockaddr_storage *out)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (family == AF_INET) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		in->sin_addr.s_addr = sl_addr_to_v4(addr);
		return sizeof(*in);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, addr->b, sizeof(addr->b));
	return sizeof(*in6);
}

int
app_getopt(int argc, char **argv, const struct option *options)
{
	int at = optind;
	int opt;

	opterr = 0;
	opt = getopt_long(argc, argv, "+:h", options, NULL);
	if (opt == -1 && optind < argc)
		app_fail("\"%s\" is not an option; --help lists them.", argv[optind]);
	if (opt == ':')
		app_fail("%s needs a value; --help shows which.", argv[at]);
	if (opt == '?')
		app_fail("%s is not an option, or not unambiguous, or takes no value; "
			 "--help lists them.",
			argv[at]);
	return opt;
}

void
app_stack_addr(struct app_stack_conf *conf, const char *text)
{
	struct app_addr *a = &conf->addrs[conf->naddrs];

	if (conf->naddrs == APP_ADDRS_MAX)
		app_fail("--addr %s is one too many: %d at most.", text, APP_ADDRS_MAX);
	a->addr = app_addr("--addr", text, &a->prefix);
	conf->naddrs++;
}

void
app_stack_gateway(struct app_stack_conf *conf, const char *text)
{
	struct sl_addr a = app_addr("--gateway", text, NULL);

	if (sl_addr_is_v4(&a))
		conf->gateway = a;
	else
		conf->gateway6 = a;
}
