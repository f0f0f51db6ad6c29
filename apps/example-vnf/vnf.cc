/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The same as vnf.c: what the library gave has an owner, which gives it back in the right order. */
#include <array>
#include <atomic>
#include <csignal>
#include <iostream>
#include <memory>
#include <netinet/in.h>
#include <stdexcept>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include <sl_errno.h>
#include <sl_udp.h>

#include "dns.hh"

std::atomic<bool> stop;

static void
check(int ret, const std::string &what)
{
	if (ret != 0)
		throw std::runtime_error(what + ": " + sl_strerror(ret));
}

/* Stack and sockets' layer over DPDK port 0, with a worker and a queue pair for each lcore. */
struct stack {
	std::unique_ptr<sl_inet, decltype(&sl_inet_destroy)> inet{nullptr, sl_inet_destroy};
	std::unique_ptr<sl_udp, decltype(&sl_udp_destroy)> udp{nullptr, sl_udp_destroy}; /* ends first */

	stack(std::uint16_t workers, std::span<char *> addrs)
	{
		sl_inet_conf conf{};
		sl_inet_port_conf port{};
		sl_udp_conf udp_conf{};
		sl_inet *i = nullptr;
		sl_udp *u = nullptr;

		port.pool = udp_conf.pool = rte_pktmbuf_pool_create(
			"packets", 16383, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
		check(port.pool == nullptr ? sl_rte_error() : 0, "packets");
		start_port(workers, port.pool);
		conf.workers = workers;
		check(sl_inet_create(&conf, &i), "stack");
		inet.reset(i);
		check(sl_inet_port_add(i, &port), "port 0");
		for (const char *text : addrs) {
			sl_addr addr;
			std::uint8_t prefix = 0;

			check(sl_addr_parse(text, &addr, &prefix), text);
			check(sl_inet_addr_add(i, 0, &addr, prefix), text);
		}
		check(sl_udp_create(i, &udp_conf, &u), "UDP");
		udp.reset(u);
	}

	/* The fragments of a datagram have to come to one lcore, so queues are chosen by address alone. */
	static void
	start_port(std::uint16_t queues, rte_mempool *pool)
	{
		rte_eth_dev_info info{};
		rte_eth_conf conf{};

		check(rte_eth_dev_info_get(0, &info), "port 0");
		conf.rxmode.mq_mode = queues > 1 ? RTE_ETH_MQ_RX_RSS : RTE_ETH_MQ_RX_NONE;
		conf.rx_adv_conf.rss_conf.rss_hf = RTE_ETH_RSS_IP & info.flow_type_rss_offloads;
		check(rte_eth_dev_configure(0, queues, queues, &conf), "port 0, a queue pair for each lcore");
		for (std::uint16_t q = 0; q < queues; q++) {
			check(rte_eth_rx_queue_setup(0, q, 1024, SOCKET_ID_ANY, nullptr, pool), "queue");
			check(rte_eth_tx_queue_setup(0, q, 1024, SOCKET_ID_ANY, nullptr), "queue");
		}
		check(rte_eth_dev_start(0), "start of port 0");
	}
};

/* One lcore's part: its queue pair, and a socket that shares port 53 with those of the others. */
class responder {
	static constexpr unsigned burst = 32;
	struct worker {
		sl_inet *inet;
		std::uint16_t w;
		sl_udp_sock *sock = nullptr;

		~worker()
		{
			if (sock != nullptr)
				sl_udp_close(sock, w);
			sl_inet_worker_offline(inet, w);
		}
	} own;
	std::array<std::array<char, dns::query_max + dns::growth>, burst> data;
	std::array<sockaddr_in6, burst> from;
	std::array<mmsghdr, burst> msgs;
	std::array<iovec, burst> iov;

	static void
	turn(void *arg)
	{
		auto *own = static_cast<worker *>(arg);

		sl_inet_poll(own->inet, own->w, 0, own->w);
	}

public:
	responder(const stack &s, std::uint16_t w) : own{s.inet.get(), w}
	{
		sl_udp_sock_conf conf{};
		sockaddr_in6 here{};

		conf.family = here.sin6_family = AF_INET6; /* [::] takes IPv4, too */
		conf.reuse_port = true;
		conf.worker = w;
		here.sin6_port = htons(53);
		sl_inet_worker_online(own.inet, w);
		sl_udp_set_poll(s.udp.get(), w, turn, &own);
		check(sl_udp_socket(s.udp.get(), &conf, &own.sock), "socket");
		check(sl_udp_bind(own.sock, reinterpret_cast<sockaddr *>(&here), sizeof(here)), "bind");
	}

	void
	answer_burst()
	{
		timespec patience{0, 100'000'000};
		int n = 0;

		for (unsigned i = 0; i < burst; i++) {
			iov[i] = {data[i].data(), dns::query_max};
			msgs[i].msg_hdr = {&from[i], sizeof(from[i]), &iov[i], 1, nullptr, 0, 0};
		}
		const int got = sl_udp_recvmmsg(own.sock, msgs.data(), burst, MSG_WAITFORONE, &patience);
		for (int i = 0; i < got; i++) {
			if (msgs[i].msg_hdr.msg_flags & MSG_TRUNC)
				continue; /* longer than query_max */
			iov[i].iov_len = dns::answer(data[i], msgs[i].msg_len);
			if (iov[i].iov_len > 0)
				msgs[n++] = msgs[i];
		}
		for (int sent = 0, ret; sent < n; sent += ret > 0 ? ret : 1) /* or passes one over */
			ret = sl_udp_sendmmsg(own.sock, own.w, &msgs[sent], unsigned(n - sent), 0);
		sl_inet_flush(own.inet, own.w, 0, own.w);
	}
};

static int
serve(void *arg)
try {
	responder r(*static_cast<const stack *>(arg), std::uint16_t(rte_lcore_index(int(rte_lcore_id()))));

	while (!stop)
		r.answer_burst();
	return 0;
} catch (const std::exception &e) {
	std::cerr << "lcore " << rte_lcore_id() << ": " << e.what() << '\n';
	stop = true;
	return 1;
}

static int
run(std::span<char *> addrs)
try {
	stack s(std::uint16_t(rte_lcore_count()), addrs);
	unsigned lcore;
	int failed;

	if (addrs.empty())
		throw std::runtime_error("EAL-ARGUMENTS -- ADDRESS/PREFIX ...");
	std::cout << "answering" << std::endl;
	rte_eal_mp_remote_launch(serve, &s, SKIP_MAIN);
	failed = serve(&s);
	RTE_LCORE_FOREACH_WORKER(lcore)
		failed |= rte_eal_wait_lcore(lcore);
	return failed;
} catch (const std::exception &e) {
	std::cerr << e.what() << '\n';
	return 1;
}

int
main(int argc, char **argv)
{
	const int used = rte_eal_init(argc, argv);

	if (used < 0)
		return 1;
	for (int sig : {SIGINT, SIGTERM})
		std::signal(sig, [](int) { stop = true; });
	const int failed = run({argv + used + 1, argv + argc});
	rte_eal_cleanup();
	return failed;
}
