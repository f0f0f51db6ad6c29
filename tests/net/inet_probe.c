/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * A stack on one DPDK port, for tests that put real parts on the other end of the wire. It takes
 * commands on standard input, one a line, and answers each with one JSON object on a line:
 *   outcomes            received packets, fragments held, port counters, and every outcome by name
 *   local ADDR          is it ours and usable, or a duplicate
 *   neighbour ADDR      its MAC address
 *   send ADDR PORT LEN COUNT   UDP datagrams from port 4000 to ADDR
 *   errors              ICMP errors heard of
 *   quit                take all down; says how many mbufs did not come back
 * End of input counts as quit.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_byteorder.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "sl_errno.h"
#include "sl_inet.h"
#include "sl_test_eal.h"

#define MAX_ADDRS 8
#define MAX_OPEN 8
#define SEND_FROM 4000

struct probe {
	const char *vdev;
	const char *addrs[MAX_ADDRS];
	const char *gateways[2]; /* one a family */
	uint16_t open_ports[MAX_OPEN];
	unsigned int n_addrs, n_gateways, n_open;
	struct sl_inet_port_conf port;
	bool tx_csum;
	struct sl_inet *inet;
	struct rte_mempool *pool;
	uint64_t payload_bytes;
	uint64_t errors, hard_errors;
	int last_error;
	bool quit;
};

static void
die(const char *what, int error)
{
	fprintf(stderr, "inet_probe: %s: %s\n", what, sl_strerror(error));
	exit(2);
}

static struct sl_dgram *
udp_input(void *arg, uint16_t worker, struct sl_dgram *d, uint16_t n, uint8_t *outcome)
{
	struct probe *p = arg;

	(void)worker;
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = d[i].buf;
		unsigned int k = 0;

		while (k < p->n_open && p->open_ports[k] != rte_be_to_cpu_16(d[i].dport))
			k++;
		outcome[i] = SL_RX_UDP_NO_SOCKET;
		if (k == p->n_open)
			continue;
		outcome[i] = SL_RX_UDP_QUEUED;
		/* The payload must be all there, in the mbuf and in the descriptor. */
		if (rte_pktmbuf_pkt_len(m) != d[i].len)
			die("payload length", -EINVAL);
		p->payload_bytes += d[i].len;
		rte_pktmbuf_free(m);
	}
	return d;
}

static void
udp_error(void *arg, uint16_t worker, const struct sl_inet_error *e)
{
	struct probe *p = arg;

	(void)worker;
	p->errors++;
	p->hard_errors += e->hard;
	p->last_error = e->error;
}

static const struct sl_inet_udp_ops udp_ops = {.input = udp_input, .error = udp_error};

static void
port_start(struct probe *p)
{
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	uint16_t port_id;
	int ret;

	if (rte_eth_dev_count_avail() == 0)
		die("no port", -ENODEV);
	port_id = (uint16_t)rte_eth_find_next(0);
	p->pool = rte_pktmbuf_pool_create("probe", 16383, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	if (p->pool == NULL)
		die("mbuf pool", sl_rte_error());
	if ((ret = rte_eth_dev_info_get(port_id, &info)) != 0)
		die("port information", ret);
	if (p->tx_csum)
		conf.txmode.offloads =
			info.tx_offload_capa &
			(RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM);
	if ((ret = rte_eth_dev_configure(port_id, 1, 1, &conf)) != 0 ||
		(ret = rte_eth_rx_queue_setup(port_id, 0, 1024, SOCKET_ID_ANY, NULL, p->pool)) !=
			0 ||
		(ret = rte_eth_tx_queue_setup(port_id, 0, 1024, SOCKET_ID_ANY, NULL)) != 0 ||
		(ret = rte_eth_dev_start(port_id)) != 0)
		die("port", ret);
	rte_eth_promiscuous_enable(port_id);
	p->port.port_id = port_id;
	p->port.pool = p->pool;
}

static void
stack_start(struct probe *p)
{
	struct sl_inet_conf conf = {.workers = 1};
	struct sl_addr addr;
	uint8_t prefix;
	int ret;

	if ((ret = sl_inet_create(&conf, &p->inet)) != 0)
		die("stack", ret);
	sl_inet_set_udp(p->inet, &udp_ops, p);
	if ((ret = sl_inet_port_add(p->inet, &p->port)) != 0)
		die("stack's port", ret);
	for (unsigned int i = 0; i < p->n_addrs; i++) {
		if ((ret = sl_addr_parse(p->addrs[i], &addr, &prefix)) != 0 ||
			(ret = sl_inet_addr_add(p->inet, p->port.port_id, &addr, prefix)) != 0)
			die(p->addrs[i], ret);
	}
	for (unsigned int i = 0; i < p->n_gateways; i++) {
		if ((ret = sl_addr_parse(p->gateways[i], &addr, &prefix)) != 0 ||
			(ret = sl_inet_gateway_set(p->inet, p->port.port_id, &addr)) != 0)
			die(p->gateways[i], ret);
	}
}

static void
say_outcomes(struct probe *p)
{
	uint64_t counts[SL_OUTCOME_COUNT];
	struct rte_eth_stats stats = {0};

	sl_inet_outcomes(p->inet, SL_INET_NO_WORKER, counts);
	rte_eth_stats_get(p->port.port_id, &stats);
	printf("{\"received\":%" PRIu64 ",\"held\":%" PRIu64 ",\"port_received\":%" PRIu64
	       ",\"port_missed\":%" PRIu64
	       ",\"port_nombuf\":%" PRIu64 ",\"port_sent\":%" PRIu64 ",\"payload_bytes\":%" PRIu64
	       ",\"rx\":{",
		sl_inet_received(p->inet, SL_INET_NO_WORKER),
		sl_inet_held(p->inet, SL_INET_NO_WORKER), stats.ipackets,
		stats.imissed + stats.ierrors, stats.rx_nombuf, stats.opackets, p->payload_bytes);
	for (unsigned int i = 0; i < SL_OUTCOME_COUNT; i++)
		printf("%s\"%s\":%" PRIu64,
			i == 0			   ? ""
			: i == SL_OUTCOME_TX_FIRST ? "},\"tx\":{"
						   : ",",
			sl_outcome_info((enum sl_outcome)i)->name, counts[i]);
	printf("}}\n");
}

static void
say_neighbour(struct probe *p, const char *text)
{
	struct sl_addr addr;
	uint8_t mac[6] = {0}, prefix;
	int ret;

	ret = sl_addr_parse(text, &addr, &prefix);
	if (ret == 0)
		ret = sl_inet_neighbour(p->inet, p->port.port_id, &addr, mac);
	printf("{\"result\":%d,\"mac\":\"%02x:%02x:%02x:%02x:%02x:%02x\"}\n", ret, mac[0], mac[1],
		mac[2], mac[3], mac[4], mac[5]);
}

static void
say_local(struct probe *p, const char *text)
{
	struct sl_addr addr;
	uint8_t prefix;

	if (sl_addr_parse(text, &addr, &prefix) != 0)
		printf("{\"error\":\"no address\"}\n");
	else
		printf("{\"local\":%s,\"duplicate\":%s}\n",
			sl_inet_addr_is_local(p->inet, &addr) ? "true" : "false",
			sl_inet_addr_is_duplicate(p->inet, &addr) ? "true" : "false");
}

/* One datagram whose bytes count up from its length. 0 or the stack's error. */
static int
send_one(struct probe *p, const struct sl_inet_flow *flow, unsigned int len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(p->pool);
	uint8_t *data;
	int ret;

	if (m == NULL)
		return -ENOBUFS;
	data = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)len);
	if (data == NULL) {
		rte_pktmbuf_free(m);
		return -EMSGSIZE;
	}
	for (unsigned int i = 0; i < len; i++)
		data[i] = (uint8_t)(len + i);
	ret = sl_inet_udp_output(p->inet, 0, flow, m);
	if (ret != 0)
		rte_pktmbuf_free(m);
	return ret;
}

static void
say_send(struct probe *p, const char *text, unsigned int port, unsigned int len, unsigned int count)
{
	struct sl_inet_flow flow = {.sport = rte_cpu_to_be_16(SEND_FROM)};
	unsigned int sent = 0;
	uint8_t prefix;
	int ret;

	flow.dport = rte_cpu_to_be_16((uint16_t)port);
	ret = sl_addr_parse(text, &flow.dst, &prefix);
	if (ret == 0)
		ret = sl_inet_source(p->inet, &flow.dst, &flow.src);
	while (ret == 0 && sent < count) {
		ret = send_one(p, &flow, len);
		if (ret == 0)
			sent++;
	}
	printf("{\"result\":%d,\"sent\":%u}\n", ret, sent);
}

static void
command(struct probe *p, const char *line)
{
	unsigned int port, len, count;
	char text[64];

	if (strcmp(line, "outcomes") == 0)
		say_outcomes(p);
	else if (sscanf(line, "local %63s", text) == 1)
		say_local(p, text);
	else if (sscanf(line, "neighbour %63s", text) == 1)
		say_neighbour(p, text);
	else if (sscanf(line, "send %63s %u %u %u", text, &port, &len, &count) == 4)
		say_send(p, text, port, len, count);
	else if (strcmp(line, "errors") == 0)
		printf("{\"errors\":%" PRIu64 ",\"hard\":%" PRIu64 ",\"last\":%d}\n", p->errors,
			p->hard_errors, p->last_error);
	else if (strcmp(line, "quit") == 0)
		p->quit = true;
	else
		printf("{\"error\":\"unknown command\"}\n");
	fflush(stdout);
}

/* Standard input never blocks here: the loop is a worker's. */
static void
poll_commands(struct probe *p)
{
	static char line[256];
	static size_t used;
	char c;
	ssize_t n;

	while (!p->quit && (n = read(STDIN_FILENO, &c, 1)) >= 0) {
		if (n == 0) {
			p->quit = true;
		} else if (c == '\n') {
			line[used] = '\0';
			used = 0;
			command(p, line);
		} else if (used < sizeof(line) - 1) {
			line[used++] = c;
		}
	}
}

static void
run(struct probe *p)
{
	unsigned int turn = 0;
	uint16_t n;

	if (fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK) != 0)
		die("standard input", -EINVAL);
	sl_inet_worker_online(p->inet, 0);
	printf("{\"ready\":true}\n");
	fflush(stdout);
	while (!p->quit) {
		n = sl_inet_poll(p->inet, 0, p->port.port_id, 0);
		sl_inet_flush(p->inet, 0, p->port.port_id, 0);
		if (n == 0 || ++turn % 64 == 0)
			poll_commands(p);
		if (n == 0)
			usleep(50); /* the peer may need this core */
	}
	sl_inet_worker_offline(p->inet, 0);
}

static void
stop(struct probe *p)
{
	sl_inet_destroy(p->inet);
	if (rte_eth_dev_stop(p->port.port_id) != 0 || rte_eth_dev_close(p->port.port_id) != 0)
		die("closing the port", -EIO);
	printf("{\"mbufs_missing\":%u}\n", rte_mempool_in_use_count(p->pool));
	rte_mempool_free(p->pool);
	rte_eal_cleanup();
}

static void
parse(struct probe *p, int argc, char **argv)
{
	static const struct option options[] = {
		{"vdev", required_argument, NULL, 'd'},
		{"addr", required_argument, NULL, 'a'},
		{"gateway", required_argument, NULL, 'g'},
		{"open", required_argument, NULL, 'o'},
		{"vlan", required_argument, NULL, 'v'},
		{"svlan", required_argument, NULL, 's'},
		{"promiscuous", no_argument, NULL, 'p'},
		{"any-dst", no_argument, NULL, 'y'},
		{"tx-csum", no_argument, NULL, 'c'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'd')
			p->vdev = optarg;
		else if (c == 'a' && p->n_addrs < MAX_ADDRS)
			p->addrs[p->n_addrs++] = optarg;
		else if (c == 'g' && p->n_gateways < SL_COUNT_OF(p->gateways))
			p->gateways[p->n_gateways++] = optarg;
		else if (c == 'o' && p->n_open < MAX_OPEN)
			p->open_ports[p->n_open++] = (uint16_t)atoi(optarg);
		else if (c == 'v')
			p->port.vlan = (uint16_t)atoi(optarg);
		else if (c == 's')
			p->port.svlan = (uint16_t)atoi(optarg);
		else if (c == 'p')
			p->port.promiscuous = true;
		else if (c == 'y')
			p->port.any_dst = true;
		else if (c == 'c')
			p->tx_csum = true;
		else
			die("options", -EINVAL);
	}
	if (p->vdev == NULL)
		die("--vdev is missing", -EINVAL);
}

static void
eal_start(const struct probe *p)
{
	char more[512];

	/* The tap driver asks for qdiscs that a kernel may lack, and does without. */
	snprintf(more, sizeof(more), "-l 0 --log-level=error --log-level=pmd.net.tap:critical --vdev=%s",
		p->vdev);
	if (test_eal_start("probe", more) < 0)
		die("EAL", sl_rte_error());
}

int
main(int argc, char **argv)
{
	static struct probe p;

	parse(&p, argc, argv);
	eal_start(&p);
	port_start(&p);
	stack_start(&p);
	run(&p);
	stop(&p);
	return 0;
}
