/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Any frames into a load balancer, from clients and from its back end, errors and fragments of
 * both: each ends in one outcome of the stack, what is claimed in one of the service's, no mbuf is
 * lost, and what leaves is consistent.
 *
 * Input: two bytes of flags (below), then frames as in fuzz_frames.h. All frames form one burst.
 */
#include "fuzz_frames.h"

#include "forward_priv.h"

/* First byte. Second: see fuzz_frames.h. */
enum {
	F_VLAN = 1,
	F_NONE = 2,   /* affinity none */
	F_DOWN = 4,   /* no back end is up */
	F_KNOWN = 8,  /* the back end and the client, which is the same, are known neighbours */
	F_TWICE = 16, /* the burst comes twice */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct daemon f_daemon;
static struct forward *f_fwd[2];

/* Port 9 of ours, for the peer's port 4000; or, of IPv6, the same. */
static void
open_service(struct conf *conf, bool v6, uint8_t flags)
{
	struct conf_service *s = &conf->service[0];

	memset(conf, 0, sizeof(*conf));
	conf->nbackends = 1;
	conf->backend[0] = (struct conf_backend){.name = "peer",
		.addr = t_addr(v6 ? "2001:db8::1" : "198.18.0.1"),
		.udp_port = 4000,
		.weight = 1};
	s->udp_port = 9;
	s->address = t_addr(v6 ? "2001:db8::2" : "198.18.0.2");
	s->forward = (struct conf_forward){.nbackends = 1,
		.affinity = (flags & F_NONE) != 0 ? BALANCER_NONE : BALANCER_FLOW,
		.slots = 251,
		.flows = 8,
		.idle_ms = 1000,
		.inserts_per_s = 1000};
	REQUIRE(forward_open(&f_daemon, conf, s, &f_fwd[v6]) == 0);
	if ((flags & F_DOWN) != 0)
		REQUIRE(forward_set_state(f_fwd[v6], "peer", BALANCER_DOWN) == 0);
}

static void
open_services(uint8_t flags)
{
	static struct conf conf;
	struct sl_inet_claims *claims;

	sl_inet_worker_offline(t_inet, 0);
	f_daemon = (struct daemon){.inet = t_inet, .pool = t_pool, .nworkers = 1};
	open_service(&conf, false, flags);
	open_service(&conf, true, flags);
	REQUIRE(forward_claims_make(&f_daemon, f_fwd, 2, &claims) == 0);
	forward_claims_publish(&f_daemon, claims);
}

static void
close_services(void)
{
	uint64_t outcome[SERVICE_OUTCOMES] = {0}, sum = 0;

	forward_outcomes(f_fwd[0], outcome);
	forward_outcomes(f_fwd[1], outcome);
	for (int i = 0; i < SERVICE_OUTCOMES; i++)
		sum += outcome[i];
	sl_inet_worker_offline(t_inet, 0);
	forward_claims_publish(&f_daemon, NULL);
	forward_close(&f_daemon, f_fwd[0]);
	forward_close(&f_daemon, f_fwd[1]);
	REQUIRE(f_daemon.gone_claimed == sum && sum == t_count(SL_RX_CLAIMED));
}

/* On the port, which may be in a VLAN. */
static void
hear(struct t_frame *f, uint16_t vlan)
{
	t_tag(f, vlan);
	t_feed(f->b, f->len);
}

static void
know_neighbours(uint16_t vlan)
{
	struct t_frame f;
	uint8_t msg[64];

	t_arp_frame(&f, 1, t_our_mac, t_peer_mac, "198.18.0.1", "198.18.0.2");
	hear(&f, vlan);
	t_icmp6_frame(&f, "2001:db8::1", "2001:db8::2", t_our_mac, 255, msg,
		t_nd(msg, 135, 0, "2001:db8::2", t_peer_mac));
	hear(&f, vlan);
	t_flush();
	t_drop_out();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rte_mbuf *pkts[SL_INET_BURST];
	struct sl_inet_port_conf conf = {0};
	static bool ready;
	uint16_t n;

	if (!ready)
		t_init("fuzz_forward");
	ready = true;
	if (size < 2)
		return 0;
	conf.vlan = (data[0] & F_VLAN) != 0 ? 7 : 0;
	t_open(&conf);
	if ((data[0] & F_KNOWN) != 0)
		know_neighbours(conf.vlan);
	open_services(data[0]);
	for (int k = 0; k <= ((data[0] & F_TWICE) != 0); k++) {
		n = make_burst(data + 2, size - 2, data[1], pkts);
		sl_inet_input_burst(t_inet, 0, t_port, pkts, n);
		t_flush();
		check_out();
		t_drop_out();
		forward_turn(f_fwd[0], 0, t_now / T_MS);
	}
	t_pass(4 * T_S);
	check_out();
	/* The fragments' time is up. */
	t_pass(31 * T_S);
	REQUIRE(sl_inet_held(t_inet, SL_INET_NO_WORKER) == 0);
	close_services();
	t_close();
	REQUIRE(test_bad == 0); /* the sums and the pool, which t_close checks */
	return 0;
}
