/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Routes, addresses and neighbours: added, deleted, listed, and what packets make of them. */
#include <errno.h>

#include "peer_test.h"
#include "sl_inet_table.h"

static uint16_t other_port;

static struct sl_inet_route
route(const char *prefix, const char *via, uint16_t port, uint32_t metric)
{
	struct sl_inet_route r = {.port = port, .metric = metric};

	REQUIRE(sl_addr_parse(prefix, &r.dst, &r.prefix) == 0);
	if (via != NULL)
		r.via = t_addr(via);
	return r;
}

static int
add(const char *prefix, const char *via, uint32_t metric)
{
	struct sl_inet_route r = route(prefix, via, t_port, metric);

	return sl_inet_route_add(t_inet, &r);
}

static int
del(const char *prefix, const char *via, uint32_t metric)
{
	struct sl_inet_route r = route(prefix, via, t_port, metric);

	return sl_inet_route_del(t_inet, &r);
}

static bool
same(const struct sl_addr *a, const char *text)
{
	struct sl_addr b = t_addr(text);

	return memcmp(a, &b, sizeof(b)) == 0;
}

/* The next hop to dst, as a lookup has it and as a datagram finds it; NULL for no route. */
static void
check_hop(const char *dst, const char *hop)
{
	struct sl_addr to = t_addr(dst);
	struct sl_inet_route r;
	int ret = sl_inet_route_get(t_inet, &to, &r);

	CHECK_EQ(ret, hop != NULL ? 0 : -ENETUNREACH);
	if (hop == NULL) {
		CHECK_EQ(send_to(dst, 4), -ENETUNREACH);
		return;
	}
	if (ret != 0 || !same(&r.via, hop)) {
		char text[64];

		fprintf(stderr, "%s: by %s, not %s\n", dst,
			ret == 0 ? sl_addr_format(&r.via, text, sizeof(text)) : "nothing", hop);
		CHECK(false);
		return;
	}
	if (r.port != t_port)
		return;
	/* The first datagram asks for the next hop. It stays unanswered, so forget it. */
	t_drop_out();
	CHECK_EQ(send_to(dst, 4), 0);
	CHECK(is_question(0, hop, NULL));
	t_drop_out();
	for (int i = 0; i < 4; i++)
		t_pass(1 * T_S);
	t_drop_out();
}

struct error_case {
	const char *prefix, *via;
	uint32_t metric;
	int ret;
};

static const struct error_case errors[] = {
	{"192.0.2.0/24", "198.18.0.9", 5, 0},
	{"192.0.2.0/24", "198.18.0.9", 5, -EEXIST},
	{"192.0.2.0/24", "198.18.0.8", 5, -EEXIST}, /* as Linux: the next hop makes no difference */
	{"192.0.2.0/24", "198.18.0.8", 6, 0},
	{"192.0.2.0/25", "198.18.0.8", 5, 0},
	{"198.18.0.0/24", "198.18.0.9", 0, -EEXIST}, /* connected */
	{"198.18.0.0/24", "198.18.0.9", 1, 0},
	{"192.0.2.1/24", "198.18.0.9", 7, -EINVAL}, /* host bits */
	{"224.0.0.0/4", "198.18.0.9", 7, -EINVAL},
	{"203.0.113.0/24", "2001:db8::9", 7, -EINVAL},
	{"203.0.113.0/24", "198.18.0.2", 7, -EINVAL}, /* ourselves */
	{"203.0.113.0/24", "224.0.0.9", 7, -EINVAL},
	{"203.0.113.0/24", "127.0.0.1", 7, -EINVAL},
	{"203.0.113.0/24", "198.18.0.255", 7, -EINVAL}, /* everybody on the link */
	{"203.0.113.0/24", "198.19.0.1", 7, -ENETUNREACH},
	{"203.0.113.0/24", "192.0.2.1", 7, -ENETUNREACH}, /* through a route, but not on link */
	{"203.0.113.0/24", NULL, 7, 0},
	{"0.0.0.0/0", "198.18.0.9", 0, 0},
	{"2001:db8:1::/48", "2001:db8::9", 5, 0},
	{"2001:db8:1::/48", "fe80::9", 5, -EEXIST},
	{"2001:db8:2::/48", "fe80::9", 5, 0},
	{"2001:db8:2::1/48", "fe80::9", 6, -EINVAL},
	{"ff02::/16", "fe80::9", 5, -EINVAL},
	{"fe80::/64", "2001:db8::9", 5, -EINVAL},
	{"2001:db8:3::/48", "2001:db8:1::1", 5, -ENETUNREACH},
	{"2001:db8:3::/48", "198.18.0.9", 5, -EINVAL},
	{"::/0", "fe80::9", 0, 0},
	{"::/0", NULL, 0, -EEXIST},
};

static void
errors_as_linux_has_them(void)
{
	struct sl_inet_route r = route("192.0.2.0/24", "198.18.0.9", 77, 1);

	t_open(NULL);
	for (size_t i = 0; i < SL_COUNT_OF(errors); i++) {
		const struct error_case *e = &errors[i];
		int ret = add(e->prefix, e->via, e->metric);

		if (ret != e->ret)
			fprintf(stderr, "%s by %s\n", e->prefix, e->via != NULL ? e->via : "link");
		CHECK_EQ(ret, e->ret);
	}
	CHECK_EQ(sl_inet_route_add(t_inet, &r), -ENODEV);
	r.port = UINT16_MAX;
	CHECK_EQ(sl_inet_route_add(t_inet, &r), -ENODEV);
	CHECK_EQ(sl_inet_route_del(t_inet, &r), -ESRCH);
	r = route("192.0.2.0/24", "198.18.0.9", t_port, 70);
	r.prefix = 33;
	CHECK_EQ(sl_inet_route_add(t_inet, &r), -EINVAL);
	CHECK_EQ(del("192.0.2.0/24", "198.18.0.9", 4), -ESRCH);
	CHECK_EQ(del("192.0.2.0/24", "198.18.0.7", 5), -ESRCH);
	CHECK_EQ(del("192.0.2.0/23", "198.18.0.9", 5), -ESRCH);
	CHECK_EQ(del("198.18.0.0/24", NULL, 0), -EINVAL); /* an address's */
	for (size_t i = 0; i < SL_COUNT_OF(errors); i++) {
		if (errors[i].ret == 0)
			CHECK_EQ(del(errors[i].prefix, errors[i].via, errors[i].metric), 0);
	}
	check_hop("192.0.2.1", NULL);
	t_close();
}

static void
longest_prefix_then_metric(void)
{
	t_open(NULL);
	check_hop("192.0.2.1", NULL);
	CHECK_EQ(add("0.0.0.0/0", "198.18.0.10", 9), 0);
	check_hop("192.0.2.1", "198.18.0.10");
	check_hop("198.18.0.77", "198.18.0.77");
	CHECK_EQ(add("192.0.0.0/8", "198.18.0.11", 100), 0);
	check_hop("192.0.2.1", "198.18.0.11"); /* longer beats better */
	CHECK_EQ(add("192.0.2.0/24", "198.18.0.12", 20), 0);
	CHECK_EQ(add("192.0.2.0/24", "198.18.0.13", 10), 0);
	CHECK_EQ(add("192.0.2.0/24", "198.18.0.14", 30), 0);
	check_hop("192.0.2.1", "198.18.0.13");
	check_hop("192.0.3.1", "198.18.0.11");
	/* When the better ones go, the others take over, and back. */
	CHECK_EQ(del("192.0.2.0/24", "198.18.0.13", 10), 0);
	check_hop("192.0.2.1", "198.18.0.12");
	CHECK_EQ(del("192.0.2.0/24", "198.18.0.12", 20), 0);
	check_hop("192.0.2.1", "198.18.0.14");
	CHECK_EQ(add("192.0.2.0/24", "198.18.0.15", 5), 0);
	check_hop("192.0.2.1", "198.18.0.15");
	CHECK_EQ(del("192.0.2.0/24", "198.18.0.15", 5), 0);
	CHECK_EQ(del("192.0.2.0/24", "198.18.0.14", 30), 0);
	check_hop("192.0.2.1", "198.18.0.11");
	CHECK_EQ(add("192.0.2.1/32", NULL, 5), 0);
	check_hop("192.0.2.1", "192.0.2.1"); /* on link by a route */
	check_hop("192.0.2.2", "198.18.0.11");
	t_close();
	t_open(NULL);
	CHECK_EQ(add("::/0", "fe80::10", 9), 0);
	CHECK_EQ(add("2001:db8:1::/48", "2001:db8::11", 9), 0);
	CHECK_EQ(add("2001:db8:1:2::/64", "2001:db8::12", 9), 0);
	CHECK_EQ(add("2001:db8:1:2::7/128", "2001:db8::13", 9), 0);
	check_hop("2001:db8:9::1", "fe80::10");
	check_hop("2001:db8:1::1", "2001:db8::11");
	check_hop("2001:db8:1:2::1", "2001:db8::12");
	check_hop("2001:db8:1:2::7", "2001:db8::13");
	CHECK_EQ(del("2001:db8:1:2::7/128", "2001:db8::13", 9), 0);
	check_hop("2001:db8:1:2::7", "2001:db8::12");
	t_close();
}

/* A gateway is a default route; the next hop of a route must be on link, as long as the route is
 * used. */
static void
gateways_and_addresses(void)
{
	struct sl_addr gw = t_addr("198.18.0.20"), gw2 = t_addr("10.1.0.20");
	struct sl_addr second = t_addr("10.1.0.2"), third = t_addr("10.1.0.3");

	t_open(NULL);
	CHECK_EQ(sl_inet_gateway_set(t_inet, t_port, &gw), 0);
	check_hop("192.0.2.1", "198.18.0.20");
	CHECK_EQ(sl_inet_gateway_set(t_inet, t_port, &gw2), -ENETUNREACH);
	CHECK_EQ(add("0.0.0.0/0", "198.18.0.21", SL_INET_GATEWAY_METRIC), -EEXIST);
	CHECK_EQ(add("0.0.0.0/0", "198.18.0.21", SL_INET_GATEWAY_METRIC - 1), 0);
	check_hop("192.0.2.1", "198.18.0.21");
	CHECK_EQ(del("0.0.0.0/0", "198.18.0.21", SL_INET_GATEWAY_METRIC - 1), 0);
	check_hop("192.0.2.1", "198.18.0.20");

	CHECK_EQ(sl_inet_addr_add(t_inet, t_port, &second, 24), 0);
	CHECK_EQ(sl_inet_addr_add(t_inet, t_port, &third, 24), 0);
	check_hop("10.1.0.77", "10.1.0.77");
	CHECK_EQ(add("192.0.2.0/24", "10.1.0.9", 1), 0);
	check_hop("192.0.2.1", "10.1.0.9");
	CHECK_EQ(sl_inet_addr_del(t_inet, t_port, &second), 0);
	check_hop("192.0.2.1", "10.1.0.9"); /* another address has the prefix yet */
	CHECK_EQ(sl_inet_addr_del(t_inet, t_port, &third), 0);
	check_hop("192.0.2.1", "198.18.0.20"); /* not usable: the next best */
	check_hop("10.1.0.77", "198.18.0.20");
	CHECK_EQ(sl_inet_addr_add(t_inet, t_port, &second, 24), 0);
	check_hop("192.0.2.1", "10.1.0.9");

	CHECK_EQ(sl_inet_gateway_set(t_inet, t_port, &gw2), 0); /* in the place of the first */
	check_hop("203.0.113.1", "10.1.0.20");
	CHECK_EQ(del("0.0.0.0/0", "10.1.0.20", SL_INET_GATEWAY_METRIC), 0);
	check_hop("203.0.113.1", NULL);
	t_close();
}

static unsigned int visits;

static void
count_route(void *arg, const struct sl_inet_route_info *r)
{
	char *text = arg;
	char dst[64], via[64];

	sl_addr_format(&r->route.dst, dst, sizeof(dst));
	sl_addr_format(&r->route.via, via, sizeof(via));
	sprintf(text + strlen(text), "%s/%u %s %u %u%s%s\n", dst, r->route.prefix, via,
		r->route.metric, r->kind, r->usable ? " usable" : "", r->best ? " best" : "");
	visits++;
}

static void
listing_routes(void)
{
	struct sl_addr ten = t_addr("10.0.0.2"), gw = t_addr("198.18.0.20");
	static char text[4096];

	t_open(NULL);
	CHECK_EQ(sl_inet_addr_add(t_inet, t_port, &ten, 8), 0);
	CHECK_EQ(sl_inet_gateway_set(t_inet, t_port, &gw), 0);
	CHECK_EQ(add("192.0.2.0/24", "10.0.0.7", 5), 0);
	CHECK_EQ(add("192.0.2.0/24", "198.18.0.9", 6), 0);
	CHECK_EQ(add("2001:db8:1::/48", "fe80::1", 6), 0);
	CHECK_EQ(sl_inet_addr_del(t_inet, t_port, &ten), 0);
	text[0] = '\0';
	visits = 0;
	sl_inet_route_foreach(t_inet, count_route, text);
	CHECK_EQ(visits, 7);
	if (strcmp(text, "0.0.0.0/0 198.18.0.20 1024 2 usable best\n"
			 "192.0.2.0/24 10.0.0.7 5 1\n"
			 "192.0.2.0/24 198.18.0.9 6 1 usable best\n"
			 "198.18.0.0/24 :: 0 0 usable best\n"
			 "2001:db8::/64 :: 0 0 usable best\n"
			 "2001:db8:1::/48 fe80::1 6 1 usable best\n"
			 "fe80::/64 :: 0 0 usable best\n") != 0) {
		fputs(text, stderr);
		CHECK(false);
	}
	t_close();
}

static void
bounds(void)
{
	struct sl_inet_conf bad = {.workers = 1, .routes = 4097};
	struct sl_inet *inet;
	uint32_t n = 0;

	CHECK_EQ(sl_inet_create(&bad, &inet), -EINVAL);
	t_open(NULL);
	for (; n < 1000; n++) {
		struct sl_inet_route r = {.dst = sl_addr_v4(rte_cpu_to_be_32(0x0b000000 + n)),
			.via = t_addr("198.18.0.9"),
			.prefix = 32,
			.port = t_port};
		int ret = sl_inet_route_add(t_inet, &r);

		if (ret != 0) {
			CHECK_EQ(ret, -ENOSPC);
			break;
		}
	}
	CHECK_EQ(n, 256);
	check_hop("11.0.0.255", "198.18.0.9");
	check_hop("11.0.1.0", NULL);
	CHECK_EQ(del("11.0.0.200/32", "198.18.0.9", 0), 0);
	check_hop("11.0.0.200", NULL);
	CHECK_EQ(add("11.0.1.0/32", "198.18.0.9", 0), 0);
	t_close();
}

/* The fast path remembers addresses; one that is gone is gone for it, too. */
static void
deleted_addresses(void)
{
	struct sl_addr v4 = t_addr("198.18.0.2"), v6_addr = t_addr("2001:db8::2");
	struct sl_addr next = t_addr("198.18.0.3"), src;
	struct sl_addr nobodys = t_addr("198.18.0.99"), peer = t_addr("198.18.0.1");
	struct t_udp u4 = {.payload = 20}, u6 = {.v6 = true, .payload = 20};
	struct t_frame four, six, arp;

	t_open(NULL);
	t_udp_frame(&four, &u4);
	t_udp_frame(&six, &u6);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(t_feed(four.b, four.len), SL_RX_UDP_QUEUED);
		CHECK_EQ(t_feed(six.b, six.len), SL_RX_UDP_QUEUED);
	}
	CHECK_EQ(sl_inet_addr_del(t_inet, 77, &v4), -ENODEV);
	CHECK_EQ(sl_inet_addr_del(t_inet, t_port, &nobodys), -EADDRNOTAVAIL);
	CHECK_EQ(sl_inet_addr_del(t_inet, t_port, &v4), 0);
	CHECK_EQ(sl_inet_addr_del(t_inet, t_port, &v4), -EADDRNOTAVAIL);
	CHECK_EQ(t_feed(four.b, four.len), SL_RX_IP_NOT_LOCAL);
	CHECK_EQ(t_feed(six.b, six.len), SL_RX_UDP_QUEUED);
	CHECK_EQ(sl_inet_addr_del(t_inet, t_port, &v6_addr), 0);
	CHECK_EQ(t_feed(six.b, six.len), SL_RX_IP_NOT_LOCAL);
	CHECK(!sl_inet_addr_is_local(t_inet, &v4));
	CHECK_EQ(sl_inet_source(t_inet, &peer, &src), -ENETUNREACH);
	t_arp_frame(&arp, 1, t_any_mac, t_peer_mac, "198.18.0.1", "198.18.0.2");
	CHECK_EQ(t_feed(arp.b, arp.len), SL_RX_ARP);
	t_flush();
	CHECK_EQ(t_outs, 0); /* we do not answer for it */
	/* It can be had again, with another prefix, and so can another one in its place. */
	CHECK_EQ(sl_inet_addr_add(t_inet, t_port, &v4, 16), 0);
	CHECK_EQ(sl_inet_addr_add(t_inet, t_port, &next, 24), 0);
	CHECK_EQ(t_feed(four.b, four.len), SL_RX_UDP_QUEUED);
	t_pass(20 * T_MS);
	CHECK_EQ(t_outs, 2); /* both are announced */
	CHECK_EQ(sl_inet_source(t_inet, &peer, &src), 0);
	CHECK(same(&src, "198.18.0.3"));
	t_close();
}

/* Places for addresses are used again when no worker looks any more. */
static void
many_addresses(void)
{
	t_open_bare(NULL, 0, 0);
	for (uint32_t i = 0; i < 200; i++) {
		struct sl_addr a = sl_addr_v4(rte_cpu_to_be_32(0x0a000002 + (i << 8)));
		struct sl_addr old = sl_addr_v4(rte_cpu_to_be_32(0x0a000002 + ((i - 15) << 8)));

		if (i >= 15) {
			CHECK_EQ(sl_inet_addr_add(t_inet, t_port, &a, 24), -ENOSPC);
			CHECK_EQ(sl_inet_addr_del(t_inet, t_port, &old), 0);
		}
		CHECK_EQ(sl_inet_addr_add(t_inet, t_port, &a, 24), 0);
	}
	/* A worker that is online and does nothing holds them up. */
	sl_inet_worker_online(t_inet, 1);
	for (uint32_t i = 185; i < 200; i++) {
		struct sl_addr a = sl_addr_v4(rte_cpu_to_be_32(0x0a000002 + (i << 8)));

		CHECK_EQ(sl_inet_addr_del(t_inet, t_port, &a), 0);
	}
	{
		struct sl_addr a = t_addr("10.0.0.2");

		CHECK_EQ(sl_inet_addr_add(t_inet, t_port, &a, 24), -EBUSY);
		CHECK_EQ(add("192.0.2.0/24", NULL, 1), 0);
		CHECK_EQ(add("192.0.3.0/24", NULL, 1), 0);
		CHECK_EQ(add("192.0.4.0/24", NULL, 1), -EBUSY);
		check_hop("192.0.4.1", NULL); /* nothing is half done */
		sl_inet_worker_offline(t_inet, 1);
		CHECK_EQ(sl_inet_addr_add(t_inet, t_port, &a, 24), 0);
		CHECK_EQ(add("192.0.4.0/24", NULL, 1), 0);
	}
	t_close();
}

static void
show_addr(void *arg, const struct sl_inet_addr_info *a)
{
	char *text = arg;
	char addr[64];

	sprintf(text + strlen(text), "%s/%u %u\n", sl_addr_format(&a->addr, addr, sizeof(addr)),
		a->prefix, a->state);
	CHECK_EQ(a->port, t_port);
}

static void
listing_addresses(void)
{
	struct sl_addr more = t_addr("2001:db8::5"), twice = t_addr("2001:db8::6"),
		       v4 = t_addr("198.18.0.2");
	static char text[1024];
	struct t_frame f;
	uint8_t msg[32];

	t_open(NULL);
	CHECK_EQ(sl_inet_addr_add(t_inet, t_port, &twice, 64), 0);
	t_pass(20 * T_MS);
	t_icmp6_frame(&f, "2001:db8::6", "ff02::1", (const uint8_t[]){0x33, 0x33, 0, 0, 0, 1}, 255,
		msg, t_nd(msg, 136, 0x20, "2001:db8::6", t_peer_mac));
	CHECK_EQ(t_feed(f.b, f.len), SL_RX_ND);
	CHECK_EQ(sl_inet_addr_add(t_inet, t_port, &more, 64), 0);
	CHECK_EQ(sl_inet_addr_del(t_inet, t_port, &v4), 0);
	text[0] = '\0';
	sl_inet_addr_foreach(t_inet, show_addr, text);
	if (strcmp(text, "fe80::ff:fe00:2/64 1\n2001:db8::2/64 1\n2001:db8::6/64 2\n2001:db8::5/64 "
			 "0\n") != 0) {
		fputs(text, stderr);
		CHECK(false);
	}
	CHECK(sl_inet_addr_is_duplicate(t_inet, &twice));
	t_close();
}

static void
show_neigh(void *arg, const struct sl_inet_neigh_info *n)
{
	struct sl_inet_neigh_info *all = arg;

	CHECK_EQ(n->port, t_port);
	all[visits++] = *n;
}

static void
listing_neighbours(void)
{
	static struct sl_inet_neigh_info all[1024];

	t_open(NULL);
	visits = 0;
	sl_inet_neigh_foreach(t_inet, show_neigh, all);
	CHECK_EQ(visits, 0);
	CHECK_EQ(send_to("198.18.0.20", 4), 0);
	CHECK_EQ(send_to("198.18.0.20", 4), 0);
	CHECK_EQ(send_to("2001:db8::20", 4), 0);
	answer("2001:db8::20", mac_b);
	t_pass(1500 * T_MS);
	visits = 0;
	sl_inet_neigh_foreach(t_inet, show_neigh, all);
	REQUIRE(visits == 2);
	CHECK(same(&all[0].addr, "198.18.0.20"));
	CHECK_EQ(all[0].state, SL_INET_NEIGH_INCOMPLETE);
	CHECK_EQ(all[0].waiting, 2);
	CHECK(memcmp(all[0].mac, nobody, 6) == 0);
	CHECK_EQ(all[0].idle_ns, 1500 * T_MS);
	CHECK(same(&all[1].addr, "2001:db8::20"));
	CHECK_EQ(all[1].state, SL_INET_NEIGH_REACHABLE);
	CHECK_EQ(all[1].waiting, 0);
	CHECK_EQ(all[1].age_ns, 1500 * T_MS);
	CHECK(memcmp(all[1].mac, mac_b, 6) == 0);
	/* More than are copied at a time. */
	for (unsigned int i = 0; i < 100; i++) {
		char text[64];

		snprintf(text, sizeof(text), "198.18.0.%u", 100 + i);
		CHECK_EQ(send_to(text, 4), 0);
	}
	visits = 0;
	sl_inet_neigh_foreach(t_inet, show_neigh, all);
	CHECK_EQ(visits, 102);
	t_close();
}

struct source_case {
	const char *have[5]; /* with prefix lengths, in this order, besides fe80::ff:fe00:2/64 */
	const char *dst;
	const char *want;
};

/* The examples of RFC 6724, 10.1, that apply, and what Linux does for IPv4. */
static const struct source_case source_cases[] = {
	{{"2001:db8:1::1/64"}, "2001:db8:1::9", "2001:db8:1::1"},
	{{"2001:db8:3::1/64"}, "ff05::1",
		"2001:db8:3::1"}, /* of the larger scope, not the smaller */
	{{"2001:db8:1::2/64", "2001:db8:3::2/64"}, "2001:db8:1::9", "2001:db8:1::2"},
	{{"2001:db8:1::2/64", "2001:db8:3::2/64"}, "2001:db8:3:5::9", "2001:db8:3::2"},
	{{"2001:db8:1::2/64"}, "fe80::9", "fe80::ff:fe00:2"},
	{{"2002:c633:6401::2/64", "2001:db8:1::2/64"}, "2002:c633:6401:9::1", "2002:c633:6401::2"},
	{{"2001:db8:1::2/64", "2002:c633:6401::2/64"}, "2001:db8:9::1", "2001:db8:1::2"},
	{{"fd00:1::2/64", "2001:db8:1::2/64"}, "fd00:2::1", "fd00:1::2"},
	{{"fd00:1::2/64", "2001:db8:1::2/64"}, "2600::1", "2001:db8:1::2"},
	{{"2001:db8::2/64", "2001:db8::3/64"}, "2001:db8::9",
		"2001:db8::2"}, /* who was there first */
	{{"10.0.0.2/8", "10.1.0.2/16", "10.1.1.2/24"}, "10.1.1.9", "10.1.1.2"},
	{{"10.0.0.2/8", "10.1.0.2/16", "10.1.1.2/24"}, "10.1.9.9", "10.1.0.2"},
	{{"10.0.0.2/24", "10.0.0.3/24"}, "10.0.0.9", "10.0.0.2"},
	{{"10.0.0.2/24", "198.18.5.2/24"}, "192.0.2.1", "198.18.5.2"}, /* its next hop is there */
};

static void
sources(void)
{
	for (size_t i = 0; i < SL_COUNT_OF(source_cases); i++) {
		const struct source_case *c = &source_cases[i];
		struct sl_addr dst = t_addr(c->dst), src, again;

		t_open_bare(NULL, 0, 0);
		for (size_t k = 0; k < 5 && c->have[k] != NULL; k++) {
			struct sl_addr a;
			uint8_t prefix;

			REQUIRE(sl_addr_parse(c->have[k], &a, &prefix) == 0);
			REQUIRE(sl_inet_addr_add(t_inet, t_port, &a, prefix) == 0);
		}
		t_pass(0);
		t_pass(2 * T_S);
		t_pass(2 * T_S);
		CHECK_EQ(add("::/0", "fe80::1", 1), 0);
		if (c->have[1] != NULL && strncmp(c->have[1], "198", 3) == 0)
			CHECK_EQ(add("0.0.0.0/0", "198.18.5.1", 1), 0);
		REQUIRE(sl_inet_source(t_inet, &dst, &src) == 0);
		if (!same(&src, c->want)) {
			char text[64];

			fprintf(stderr, "to %s: %s, not %s\n", c->dst,
				sl_addr_format(&src, text, sizeof(text)), c->want);
			CHECK(false);
		}
		/* A worker has the same answer, from memory too. */
		sl_inet_worker_online(t_inet, 0);
		for (int k = 0; k < 2; k++) {
			CHECK_EQ(sl_inet_worker_source(t_inet, 0, &dst, &again), 0);
			CHECK(memcmp(&src, &again, sizeof(src)) == 0);
		}
		/* And another one when there is a better one. */
		if (sl_addr_is_v4(&dst)) {
			struct sl_addr better = dst;

			better.b[15] ^= 3;
			sl_inet_worker_offline(t_inet, 0);
			REQUIRE(sl_inet_addr_add(t_inet, t_port, &better, 29) == 0);
			sl_inet_worker_online(t_inet, 0);
			CHECK_EQ(sl_inet_worker_source(t_inet, 0, &dst, &again), 0);
			CHECK(memcmp(&better, &again, sizeof(src)) == 0);
		}
		sl_inet_worker_offline(t_inet, 0);
		t_close();
	}
}

/* Two ports: the prefix says which. */
static void
two_ports(void)
{
	struct sl_inet_port_conf conf = {.port_id = other_port, .pool = t_pool};
	struct sl_addr a = t_addr("10.0.0.2"), dst = t_addr("192.0.2.1"), gw = t_addr("10.0.0.1");
	struct sl_addr gw0 = t_addr("198.18.0.1"), src;
	struct sl_inet_route r;
	struct rte_mbuf *m;

	t_open(NULL);
	REQUIRE(sl_inet_port_add(t_inet, &conf) == 0);
	REQUIRE(sl_inet_addr_add(t_inet, other_port, &a, 24) == 0);
	CHECK_EQ(sl_inet_gateway_set(t_inet, other_port, &gw), 0);
	check_hop("192.0.2.1", "10.0.0.1");
	CHECK_EQ(sl_inet_gateway_set(t_inet, t_port, &gw0), 0);
	check_hop("192.0.2.1", "198.18.0.1"); /* the first port's is the better one */
	r = route("192.0.2.0/24", "10.0.0.9", other_port, 3);
	CHECK_EQ(sl_inet_route_add(t_inet, &r), 0);
	CHECK_EQ(sl_inet_route_get(t_inet, &dst, &r), 0);
	CHECK_EQ(r.port, other_port);
	CHECK_EQ(r.metric, 3);
	CHECK(same(&r.via, "10.0.0.9"));
	CHECK_EQ(sl_inet_source(t_inet, &dst, &src), 0);
	CHECK(same(&src, "10.0.0.2"));
	r = route("203.0.113.0/24", "10.0.0.9", t_port, 3); /* on the other one's link */
	CHECK_EQ(sl_inet_route_add(t_inet, &r), -ENETUNREACH);
	check_hop("10.0.0.2", NULL);
	/* What went out there comes back. */
	sl_inet_flush(t_inet, 0, other_port, 0);
	while (rte_eth_rx_burst(other_port, 0, &m, 1) == 1)
		rte_pktmbuf_free(m);
	t_close();
}

int
main(int argc, char **argv)
{
	struct rte_eth_conf conf = {0};

	(void)argc;
	t_init(argv[0]);
	REQUIRE(rte_eth_dev_get_port_by_name("net_ring0", &other_port) == 0);
	REQUIRE(rte_eth_dev_configure(other_port, 1, 1, &conf) == 0);
	REQUIRE(rte_eth_rx_queue_setup(other_port, 0, 64, 0, NULL, t_pool) == 0);
	REQUIRE(rte_eth_tx_queue_setup(other_port, 0, 64, 0, NULL) == 0);
	REQUIRE(rte_eth_dev_start(other_port) == 0);
	SL_TEST_RUN(errors_as_linux_has_them);
	SL_TEST_RUN(longest_prefix_then_metric);
	SL_TEST_RUN(gateways_and_addresses);
	SL_TEST_RUN(listing_routes);
	SL_TEST_RUN(bounds);
	SL_TEST_RUN(deleted_addresses);
	SL_TEST_RUN(many_addresses);
	SL_TEST_RUN(listing_addresses);
	SL_TEST_RUN(listing_neighbours);
	SL_TEST_RUN(sources);
	SL_TEST_RUN(two_ports);
	return test_end();
}
