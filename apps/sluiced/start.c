/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>

#include "../common/app.h"
#include "daemon.h"
#include "early.h"
#include "exception.h"
#include "secondary.h"
#include "served.h"
#include "sl_errno.h"
#include "sl_unix.h"
#include "sleep.h"

#define TX_RING 1024
#define CACHE 256

_Static_assert(24 + 2 * CONF_PORTS_MAX + 2 * CONF_DRIVERS_MAX <= APP_EAL_ARGS_MAX,
	"EAL's arguments fit, whatever is configured");

/* Lcore 0 is the main thread, which mostly sleeps and may be anywhere; workers have 1 and up. */
static void
lcore_args(struct app_eal_args *a, const struct conf *conf)
{
	char text[2048];
	cpu_set_t set;
	size_t at;
	int n = 0;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		CPU_ZERO(&set);
	at = (size_t)snprintf(text, sizeof(text), "--lcores=0@(");
	for (int cpu = 0; cpu < CPU_SETSIZE && at < sizeof(text) - 16; cpu++)
		if (CPU_ISSET(cpu, &set))
			at += (size_t)snprintf(
				text + at, sizeof(text) - at, "%s%d", n++ ? "," : "", cpu);
	at += (size_t)snprintf(text + at, sizeof(text) - at, ")");
	for (uint16_t i = 0; i < conf->lcores.n && at < sizeof(text) - 16; i++)
		at += (size_t)snprintf(
			text + at, sizeof(text) - at, ",%u@%u", i + 1u, conf->lcores.cpu[i]);
	app_eal_arg(a, "%s", text);
}

bool
daemon_hugepages(const struct conf *conf)
{
	if (conf->secondary)
		return true;
	if (conf->hugepages == CONF_HUGE_AUTO)
		return geteuid() == 0 && app_huge_free_mb() >= conf->memory_mb;
	return conf->hugepages == CONF_HUGE_YES;
}

static void
eal_args(struct app_eal_args *a, const struct conf *conf)
{
	bool pci = false;

	app_eal_arg(a, "sluiced");
	lcore_args(a, conf);
	app_eal_arg(a, "--file-prefix=sluiced%s%s", conf->name[0] != '\0' ? "-" : "", conf->name);
	app_eal_arg(a, "--log-level=*:%d", conf->log_level);
	for (uint16_t i = 0; i < conf->nports; i++) {
		if (conf->port[i].vdev)
			continue;
		pci = true;
		app_eal_arg(a, "-a");
		app_eal_arg(a, "%s", conf->port[i].devargs);
	}
	if (!pci)
		app_eal_arg(a, "--no-pci");
	for (uint16_t i = 0; i < conf->ndrivers; i++) {
		app_eal_arg(a, "-d");
		app_eal_arg(a, "%s", conf->driver[i]);
	}
	if (conf->secondary) {
		/* Files for all memory and state, as EAL makes them if it is told nothing. */
		app_eal_arg(a, "--proc-type=primary");
	} else if (daemon_hugepages(conf)) {
		app_eal_arg(a, "--in-memory");
	} else {
		app_eal_arg(a, "--no-huge");
		app_eal_arg(a, "--no-shconf");
	}
	app_eal_arg(a, "-m");
	app_eal_arg(a, "%u", conf->memory_mb);
}

/* Hold the name: two daemons of one name would answer at each other's sockets. */
static void
name_claim(const struct conf *conf)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/sluiced.lock", rte_eal_get_runtime_dir());
	fd = sl_sys(open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
	if (fd < 0)
		app_fail("%s: %s.", path, sl_strerror(fd));
	if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		app_fail(
			"another sluiced of that name is running (%s); give this one a \"name\" of "
			"its own in [sluiced], or end the other.",
			conf->name[0] != '\0' ? conf->name : "no name");
	/* The descriptor stays open, and with it the lock, until the process ends. Only now is what
	 * lies there ours to remove. */
	atexit(app_runtime_dir_remove);
}

static void
eal_start(const struct daemon *d)
{
	struct app_eal_args args = {0};
	char failed[PATH_MAX + 64];

	eal_args(&args, &d->conf);
	snprintf(failed, sizeof(failed), "%s: DPDK does not start", d->path);
	app_eal_init(&args, failed);
	name_claim(&d->conf);
	secondary_open(&d->conf);
}

/* A port that serves a socket may wait for its peer, so it is told. */
static void
port_socket(const struct conf_port *p)
{
	char path[CONF_VALUE_LEN];

	if (!served_path(p->devargs, path, sizeof(path)))
		return;
	(void)sl_unix_remove_stale(path, SOCK_STREAM);
	if (strncmp(p->device, "net_virtio_user", 15) == 0)
		app_note("port %s: waits until a vhost-user backend connects to %s", p->name, path);
}

/* Find the driver, and let it make the port. */
static void
port_probe(struct daemon *d, uint16_t i)
{
	const struct conf_port *p = &d->conf.port[i];
	char devargs[2 * CONF_VALUE_LEN];
	struct app_kept_log log;
	int ret = 0;

	conf_devargs(&d->conf, p, devargs, sizeof(devargs));
	port_socket(p);
	app_log_keep(&log);
	if (p->vdev)
		ret = rte_dev_probe(devargs);
	if (ret == 0)
		ret = rte_eth_dev_get_port_by_name(p->device, &d->port_id[i]);
	if (ret != 0) {
		fclose(log.stream);
		/* The first one to complain knows most; the layers above it only pass it on. */
		app_fail("%s:%u: [%s %s] devargs = %s: there is no such port: %.*s", d->path,
			p->devargs_line != 0 ? p->devargs_line : p->line, p->section, p->name,
			devargs, (int)strcspn(log.text, "\n"), log.text);
	}
	app_log_release(&log);
	free(log.text);
}

/* Of the port, or of a VLAN of it. */
static bool
has_exception(const struct conf *conf, const struct conf_port *p)
{
	bool has = p->exception[0] != '\0';

	for (uint16_t i = 0; i < conf->nvlans; i++)
		has |= strcmp(conf->vlan[i].on, p->name) == 0 && conf->vlan[i].exception[0] != '\0';
	return has;
}

static int
port_mac(uint16_t id, const struct conf_port *p)
{
	struct rte_ether_addr mac;

	memcpy(mac.addr_bytes, p->mac, sizeof(mac.addr_bytes));
	return rte_is_zero_ether_addr(&mac) ? 0 : rte_eth_dev_default_mac_addr_set(id, &mac);
}

static void
port_start(struct daemon *d, uint16_t i)
{
	const struct conf_port *p = &d->conf.port[i];
	struct app_port_conf conf = {
		.rx_queues = p->queues,
		.tx_queues = conf_tx_queues(&d->conf, p),
		.rx_ring = conf_ring(p),
		.tx_ring = TX_RING,
		.mtu = p->mtu,
		.promiscuous = p->promiscuous || p->bridge != 0,
		.bridge = p->bridge != 0,
		.interrupts = d->conf.idle == CONF_IDLE_INTERRUPT,
		.tcp = has_exception(&d->conf, p),
		.pool = d->pool,
	};
	struct sl_inet_port_conf inet = {
		.port_id = d->port_id[i],
		.pool = d->pool,
		.vlan = p->vlan,
		.promiscuous = p->promiscuous,
	};
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(d->port_id[i], &info);

	if (ret == 0 &&
		(info.max_rx_queues < conf.rx_queues || info.max_tx_queues < conf.tx_queues))
		app_fail("%s:%u: [%s %s]: needs %u receive and %u transmit queues, and the "
			 "device has "
			 "%u and %u; name fewer \"queues\" here (1 spreads "
			 "flows over its lcores in software), or fewer \"lcores\" in [sluiced].",
			d->path, p->line, p->section, p->name, conf.rx_queues, conf.tx_queues,
			info.max_rx_queues, info.max_tx_queues);
	if (ret == 0)
		ret = port_mac(d->port_id[i], p);
	if (ret == 0)
		ret = app_port_start(d->port_id[i], &conf);
	if (ret == 0 && p->bridge == 0)
		ret = sl_inet_port_add(d->inet, &inet);
	if (ret != 0)
		app_fail("%s:%u: [%s %s]: does not start: %s.", d->path, p->line, p->section,
			p->name, sl_strerror(ret));
}

/* The port's VLANs, each a port of the stack. */
static void
vlan_start(struct daemon *d, uint16_t i)
{
	const struct conf_port *v = &d->conf.vlan[i], *on = conf_find_port(&d->conf, v->on);
	struct sl_inet_port_conf conf = {
		.port_id = daemon_handle(d, v->on),
		.pool = d->pool,
		.vlan = v->vlan,
		.promiscuous = on->promiscuous,
	};
	int ret = sl_inet_port_add(d->inet, &conf);

	if (ret == 0)
		ret = sl_inet_port_find(d->inet, conf.port_id, 0, v->vlan, &d->vlan_handle[i]);
	if (ret != 0)
		app_fail("%s:%u: [vlan %s]: does not start: %s.", d->path, v->line, v->name,
			sl_strerror(ret));
}

static void
port_addresses(struct daemon *d, const struct conf_port *p, uint16_t port_id, uint16_t handle)
{
	const struct sl_addr *gateway[] = {&p->gateway, &p->gateway6};
	char text[64];
	int ret;

	for (uint16_t k = 0; k < p->naddrs; k++) {
		ret = sl_inet_addr_add(d->inet, handle, &p->addrs[k].addr, p->addrs[k].prefix);
		if (ret != 0)
			app_fail("%s:%u: [%s %s] address: %s: %s.", d->path, p->address_line,
				p->section, p->name,
				sl_addr_format(&p->addrs[k].addr, text, sizeof(text)),
				sl_strerror(ret));
	}
	for (size_t k = 0; k < SL_COUNT_OF(gateway); k++) {
		if (sl_addr_is_any(gateway[k]))
			continue;
		ret = sl_inet_gateway_set(d->inet, handle, gateway[k]);
		if (ret != 0)
			app_fail("%s:%u: [%s %s] gateway: %s: %s.", d->path, p->line, p->section,
				p->name, sl_addr_format(gateway[k], text, sizeof(text)),
				sl_strerror(ret));
	}
	if (p->exception[0] != '\0')
		exception_open(d, p, port_id, handle);
}

static uint32_t
port_speed(uint16_t id)
{
	struct rte_eth_link link;

	if (rte_eth_link_get_nowait(id, &link) != 0 || link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN)
		return 0;
	return link.link_speed;
}

/* Give queue q of each port to the (q mod n)th of its lcores, and each worker a transmit queue of
 * each port that no other has. */
static void
deal(struct daemon *d)
{
	for (uint16_t w = 0; w < d->nworkers; w++) {
		d->worker[w].d = d;
		d->worker[w].index = w;
		d->worker[w].cpu = d->conf.lcores.cpu[w];
		d->worker[w].lcore = w + 1u;
		d->worker[w].sleep_max_ns = UINT64_MAX;
	}
	for (uint16_t i = 0; i < d->conf.nports; i++) {
		const struct conf_port *p = &d->conf.port[i];
		uint64_t most = sleep_max_ns(conf_ring(p), port_speed(d->port_id[i]));
		uint16_t spare = p->queues;

		for (uint16_t n = 0; n < d->nworkers; n++) {
			struct worker *w = &d->worker[n];
			uint16_t first = UINT16_MAX;

			for (uint16_t q = 0; q < p->queues; q++) {
				if (p->lcores.cpu[q % p->lcores.n] != w->cpu)
					continue;
				w->pair[w->npairs] = (struct worker_pair){
					.port_index = i, .port_id = d->port_id[i], .queue = q};
				bridges_pair(d, &w->pair[w->npairs++]);
				w->sleep_max_ns = RTE_MIN(w->sleep_max_ns, most);
				first = RTE_MIN(first, q);
			}
			w->tx_queue[i] = first != UINT16_MAX ? first : spare++;
		}
	}
	for (uint16_t w = 0; w < d->nworkers; w++)
		bridges_deal(d, &d->worker[w]);
}

static void
workers_launch(struct daemon *d)
{
	for (uint16_t i = 0; i < d->nworkers; i++)
		if (rte_eal_remote_launch(worker_main, &d->worker[i], d->worker[i].lcore) != 0)
			app_fail("lcore %u does not start.", d->worker[i].cpu);
}

/*
 * As rte_pktmbuf_pool_create has it. But without hugepages that would give each packet a page of
 * its own, nearly twice the memory, so that no device finds a packet in two places: there are no
 * places but virtual ones then.
 */
static struct rte_mempool *
packets_create(uint32_t n, uint16_t size)
{
	const struct rte_pktmbuf_pool_private room = {.mbuf_data_room_size = size};
	struct rte_mempool *pool = rte_mempool_create_empty("sluiced", n,
		(unsigned int)sizeof(struct rte_mbuf) + size, CACHE, sizeof(room),
		(int)rte_socket_id(), rte_eal_has_hugepages() ? 0 : RTE_MEMPOOL_F_NO_IOVA_CONTIG);

	if (pool == NULL)
		return NULL;
	if (rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL) == 0) {
		rte_pktmbuf_pool_init(pool, RTE_PTR_ADD(&room, 0));
		if (rte_mempool_populate_default(pool) >= 0) {
			rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
			return pool;
		}
	}
	rte_mempool_free(pool);
	return NULL;
}

static void
pool_create(struct daemon *d)
{
	d->mbufs = conf_mbufs(&d->conf);
	d->pool = packets_create(d->mbufs, conf_mbuf_size(&d->conf));
	if (d->pool == NULL)
		app_fail("%s: no memory for %u packets; give [sluiced] more \"memory\" than %u.",
			d->path, d->mbufs, d->conf.memory_mb);
}

void
daemon_start(struct daemon *d)
{
	struct sl_inet_conf inet_conf = {.workers = d->conf.lcores.n};
	struct sl_udp_conf udp_conf = {0};
	struct early early;
	struct timespec now;
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &now);
	d->started_s = (uint64_t)now.tv_sec;
	d->nworkers = d->conf.lcores.n;
	/* Also with a kernel interface: its half needs a processor, too. */
	d->crowded = d->nworkers >= app_cpus();
	eal_start(d);
	pool_create(d);
	d->worker = aligned_alloc(SL_CACHE_LINE, d->nworkers * sizeof(*d->worker));
	ret = d->worker != NULL ? sl_inet_create(&inet_conf, &d->inet) : -ENOMEM;
	if (ret != 0)
		app_fail("no network stack: %s.", sl_strerror(ret));
	memset(d->worker, 0, d->nworkers * sizeof(*d->worker));
	early_begin(&early);
	for (uint16_t i = 0; i < d->conf.nports; i++) {
		port_probe(d, i);
		port_start(d, i);
	}
	early_end(&early);
	for (uint16_t i = 0; i < d->conf.nvlans; i++)
		vlan_start(d, i);
	udp_conf.pool = d->pool;
	ret = sl_udp_create(d->inet, &udp_conf, &d->udp);
	if (ret != 0)
		app_fail("no UDP layer: %s.", sl_strerror(ret));
	for (uint16_t i = 0; i < d->conf.nports; i++)
		port_addresses(d, &d->conf.port[i], d->port_id[i], d->port_id[i]);
	for (uint16_t i = 0; i < d->conf.nvlans; i++)
		port_addresses(d, &d->conf.vlan[i], daemon_handle(d, d->conf.vlan[i].on),
			d->vlan_handle[i]);
	daemon_open_routes(d);
	bridges_open(d);
	deal(d);
	exceptions_deal(d);
	spreads_open(d);
	idle_open(d);
	workers_launch(d);
}

int
daemon_addresses_ready(const struct daemon *d)
{
	const struct conf *conf = &d->conf;
	char text[64];

	for (uint16_t i = 0; i < conf->nports + conf->nvlans; i++) {
		const struct conf_port *p =
			i < conf->nports ? &conf->port[i] : &conf->vlan[i - conf->nports];

		for (uint16_t k = 0; k < p->naddrs; k++) {
			const struct sl_addr *a = &p->addrs[k].addr;

			if (sl_inet_addr_is_local(d->inet, a))
				continue;
			if (!sl_inet_addr_is_duplicate(d->inet, a))
				return 0;
			app_note("%s:%u: [%s %s] address: %s is in use by another host on the "
				 "link; choose another.",
				d->path, p->address_line, p->section, p->name,
				sl_addr_format(a, text, sizeof(text)));
			return -1;
		}
	}
	return 1;
}

void
daemon_end(struct daemon *d)
{
	struct service_table *t;
	unsigned int missing;

	pthread_mutex_lock(&d->lock);
	d->state = DAEMON_ENDING;
	t = d->table;
	sl_store_relaxed(&d->halt, true);
	idle_wake_all(d);
	rte_eal_mp_wait_lcore();
	idle_close(d);
	for (uint16_t i = 0; t != NULL && i < t->n; i++)
		service_close(d, t->service[i]);
	d->table = NULL;
	pthread_mutex_unlock(&d->lock);
	free(t);
	sl_udp_destroy(d->udp);
	sl_inet_destroy(d->inet);
	exceptions_close(d);
	bridges_close(d);
	spreads_close(d);
	for (uint16_t i = 0; i < d->conf.nports; i++) {
		rte_eth_dev_stop(d->port_id[i]);
		rte_eth_dev_close(d->port_id[i]);
	}
	missing = d->pool->size - rte_mempool_avail_count(d->pool);
	if (missing != 0)
		app_note("%u of %u packets did not come back: please report it.", missing,
			d->pool->size);
	rte_mempool_free(d->pool);
	free(d->worker);
	secondary_close(&d->conf);
	rte_eal_cleanup();
}
