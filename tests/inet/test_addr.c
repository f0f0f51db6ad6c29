/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Addresses as text, and the control calls' verdicts. */
#include <errno.h>

#include "inet_test.h"

struct text_case {
	const char *text;
	int ret;
	int prefix;
	const char *out; /* NULL: as text */
};

static const struct text_case texts[] = {
	{"198.18.0.2/24", 0, 24, "198.18.0.2"},
	{"198.18.0.2", 0, 32, NULL},
	{"0.0.0.0/0", 0, 0, "0.0.0.0"},
	{"255.255.255.255/32", 0, 32, "255.255.255.255"},
	{"2001:db8::1/64", 0, 64, "2001:db8::1"},
	{"2001:DB8:0:0:0:0:0:1", 0, 128, "2001:db8::1"},
	{"::", 0, 128, NULL},
	{"::/0", 0, 0, "::"},
	{"fe80::1/128", 0, 128, "fe80::1"},
	{"", -EINVAL, 0, NULL},
	{"/24", -EINVAL, 0, NULL},
	{"198.18.0/24", -EINVAL, 0, NULL},
	{"198.18.0.256", -EINVAL, 0, NULL},
	{"198.18.0.2/33", -EINVAL, 0, NULL},
	{"198.18.0.2/", -EINVAL, 0, NULL},
	{"198.18.0.2/-1", -EINVAL, 0, NULL},
	{"198.18.0.2/+8", -EINVAL, 0, NULL},
	{"198.18.0.2/24x", -EINVAL, 0, NULL},
	{"198.18.0.2/24/8", -EINVAL, 0, NULL},
	{" 198.18.0.2", -EINVAL, 0, NULL},
	{"2001:db8::1/129", -EINVAL, 0, NULL},
	{"2001:db8::1/4294967297", -EINVAL, 0, NULL},
	{"2001:db8::1::2", -EINVAL, 0, NULL},
	{"::ffff:198.18.0.2", -EINVAL, 0, NULL},
	{"fe80::1%eth0", -EINVAL, 0, NULL},
	{"1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb", -EINVAL, 0, NULL},
};

static void
addresses_as_text(void)
{
	for (size_t i = 0; i < SL_COUNT_OF(texts); i++) {
		const struct text_case *c = &texts[i];
		struct sl_addr a, untouched;
		uint8_t prefix = 77;
		char out[46];
		int ret;

		memset(&untouched, 0x5a, sizeof(untouched));
		a = untouched;
		ret = sl_addr_parse(c->text, &a, &prefix);
		if (ret != c->ret)
			fprintf(stderr, "\"%s\"\n", c->text);
		CHECK_EQ(ret, c->ret);
		if (c->ret != 0) {
			CHECK(memcmp(&a, &untouched, sizeof(a)) == 0 && prefix == 77);
			continue;
		}
		CHECK_EQ(prefix, c->prefix);
		CHECK(strcmp(sl_addr_format(&a, out, sizeof(out)),
			      c->out != NULL ? c->out : c->text) == 0);
	}
}

static void
kinds_of_addresses(void)
{
	struct sl_addr v4 = t_addr("198.18.0.2"), v6 = t_addr("2001:db8::1"),
		       any4 = t_addr("0.0.0.0");
	struct sl_addr any6 = t_addr("::"), group4 = t_addr("239.1.2.3"),
		       group6 = t_addr("ff02::1");

	CHECK(sl_addr_is_v4(&v4) && sl_addr_is_v4(&any4) && sl_addr_is_v4(&group4));
	CHECK(!sl_addr_is_v4(&v6) && !sl_addr_is_v4(&any6) && !sl_addr_is_v4(&group6));
	CHECK(sl_addr_is_any(&any4) && sl_addr_is_any(&any6));
	CHECK(!sl_addr_is_any(&v4) && !sl_addr_is_any(&v6));
	CHECK(sl_addr_is_multicast(&group4) && sl_addr_is_multicast(&group6));
	CHECK(!sl_addr_is_multicast(&v4) && !sl_addr_is_multicast(&v6));
	CHECK_EQ(sl_addr_to_v4(&v4), rte_cpu_to_be_32(0xc6120002));
	v6 = sl_addr_v4(rte_cpu_to_be_32(0xc6120002));
	CHECK(memcmp(&v4, &v6, sizeof(v4)) == 0);
}

static void
creation_verdicts(void)
{
	static const struct {
		struct sl_inet_conf conf;
		int ret;
	} cases[] = {
		{{.workers = 0}, -EINVAL},
		{{.workers = SL_INET_WORKERS_MAX + 1}, -EINVAL},
		{{.workers = 1, .neighbours = 7}, -EINVAL},
		{{.workers = 1, .neighbours = 65537}, -EINVAL},
		{{.workers = SL_INET_WORKERS_MAX}, 0},
		{{.workers = 1, .neighbours = 8}, 0},
		{{.workers = 1, .neighbours = 65536}, 0},
	};

	for (size_t i = 0; i < SL_COUNT_OF(cases); i++) {
		struct sl_inet *inet = NULL;

		CHECK_EQ(sl_inet_create(&cases[i].conf, &inet), cases[i].ret);
		CHECK((inet != NULL) == (cases[i].ret == 0));
		if (inet != NULL)
			CHECK_EQ(sl_inet_workers(inet), cases[i].conf.workers);
		sl_inet_destroy(inet);
	}
}

static void
port_verdicts(void)
{
	struct sl_inet_port_conf good = {.port_id = t_port, .pool = t_pool}, bad;
	struct sl_inet_conf conf = {.workers = 1};
	struct sl_inet *inet;

	REQUIRE(sl_inet_create(&conf, &inet) == 0);
	bad = good;
	bad.port_id = 31;
	CHECK_EQ(sl_inet_port_add(inet, &bad), -ENODEV);
	bad.port_id = UINT16_MAX;
	CHECK_EQ(sl_inet_port_add(inet, &bad), -ENODEV);
	bad = good;
	bad.vlan = 4095;
	CHECK_EQ(sl_inet_port_add(inet, &bad), -EINVAL);
	bad.vlan = 0;
	bad.svlan = 7;
	CHECK_EQ(sl_inet_port_add(inet, &bad), -EINVAL);
	bad.svlan = 4095;
	bad.vlan = 1;
	CHECK_EQ(sl_inet_port_add(inet, &bad), -EINVAL);
	CHECK_EQ(sl_inet_port_add(inet, &good), 0);
	CHECK_EQ(sl_inet_port_add(inet, &good), -EEXIST);
	sl_inet_destroy(inet);
}

static int
add(const char *text, uint8_t prefix)
{
	struct sl_addr a = t_addr(text);

	return sl_inet_addr_add(t_inet, t_port, &a, prefix);
}

static void
address_verdicts(void)
{
	struct sl_addr a = t_addr("198.18.0.2");
	char text[46];
	int n;

	t_open_bare(NULL, 0, 0);
	CHECK_EQ(sl_inet_addr_add(t_inet, t_port + 1, &a, 24), -ENODEV);
	CHECK_EQ(sl_inet_addr_add(t_inet, UINT16_MAX, &a, 24), -ENODEV);
	CHECK_EQ(add("0.0.0.0", 24), -EINVAL);
	CHECK_EQ(add("224.0.0.1", 24), -EINVAL);
	CHECK_EQ(add("255.255.255.255", 32), -EINVAL);
	CHECK_EQ(add("0.1.2.3", 24), -EINVAL);
	CHECK_EQ(add("127.0.0.1", 8), -EINVAL);
	CHECK_EQ(add("198.18.0.255", 24), -EINVAL);
	CHECK_EQ(add("198.19.255.255", 15), -EINVAL);
	CHECK_EQ(add("198.18.0.2", 33), -EINVAL);
	CHECK_EQ(add("::1", 128), -EINVAL);
	CHECK_EQ(add("::", 64), -EINVAL);
	CHECK_EQ(add("ff02::1", 64), -EINVAL);
	CHECK_EQ(add("2001:db8::2", 129), -EINVAL);
	CHECK(!sl_inet_addr_is_local(t_inet, &a));
	CHECK_EQ(add("198.18.0.2", 24), 0);
	CHECK(sl_inet_addr_is_local(t_inet, &a));
	CHECK_EQ(add("198.18.0.2", 24), -EEXIST);
	CHECK_EQ(add("198.18.0.2", 16), -EEXIST);
	/* Two are there: the link-local one and that. */
	for (n = 2; n < SL_INET_ADDRS_MAX; n++) {
		snprintf(text, sizeof(text), "10.0.%d.1", n);
		CHECK_EQ(add(text, 24), 0);
	}
	CHECK_EQ(add("10.1.0.1", 24), -ENOSPC);
	t_close();
	/* A prefix of one or two addresses has no broadcast address. */
	t_open_bare(NULL, 0, 0);
	CHECK_EQ(add("198.18.0.3", 31), 0);
	CHECK_EQ(add("198.18.0.7", 32), 0);
	CHECK_EQ(add("198.18.0.11", 30), -EINVAL);
	CHECK_EQ(add("198.18.0.10", 30), 0);
	a = t_addr("198.18.0.11");
	CHECK(sl_inet_addr_is_broadcast(t_inet, &a));
	a = t_addr("198.18.0.3");
	CHECK(!sl_inet_addr_is_broadcast(t_inet, &a));
	a = t_addr("255.255.255.255");
	CHECK(sl_inet_addr_is_broadcast(t_inet, &a));
	a = t_addr("ff02::1");
	CHECK(!sl_inet_addr_is_broadcast(t_inet, &a));
	t_close();
}

static void
gateway_verdicts(void)
{
	struct sl_addr own = t_addr("198.18.0.2"), gw = t_addr("198.18.0.1"),
		       group = t_addr("ff02::2"), far = t_addr("198.18.1.1"),
		       far6 = t_addr("2001:db9::1"), link6 = t_addr("fe80::1"),
		       all = t_addr("198.18.0.255"), everybody = t_addr("255.255.255.255");

	t_open(NULL);
	CHECK_EQ(sl_inet_gateway_set(t_inet, t_port + 1, &gw), -ENODEV);
	CHECK_EQ(sl_inet_gateway_set(t_inet, t_port, &group), -EINVAL);
	CHECK_EQ(sl_inet_gateway_set(t_inet, t_port, &own), -EINVAL);
	CHECK_EQ(sl_inet_gateway_set(t_inet, t_port, &all), -EINVAL);
	CHECK_EQ(sl_inet_gateway_set(t_inet, t_port, &everybody), -EINVAL);
	CHECK_EQ(sl_inet_gateway_set(t_inet, t_port, &far), -ENETUNREACH);
	CHECK_EQ(sl_inet_gateway_set(t_inet, t_port, &far6), -ENETUNREACH);
	CHECK_EQ(sl_inet_gateway_set(t_inet, t_port, &link6), 0);
	CHECK_EQ(sl_inet_gateway_set(t_inet, t_port, &gw), 0);
	CHECK_EQ(sl_inet_gateway_set(t_inet, t_port, &gw), 0);
	t_close();
}

int
main(int argc, char **argv)
{
	(void)argc;
	t_init(argv[0]);
	SL_TEST_RUN(addresses_as_text);
	SL_TEST_RUN(kinds_of_addresses);
	SL_TEST_RUN(creation_verdicts);
	SL_TEST_RUN(port_verdicts);
	SL_TEST_RUN(address_verdicts);
	SL_TEST_RUN(gateway_verdicts);
	return test_end();
}
