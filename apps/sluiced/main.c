/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_version.h>

#include "../common/app.h"
#include "daemon.h"
#include "exception.h"
#include "links.h"
#include "metrics.h"
#include "notify.h"
#include "session.h"

/* Duplicate address detection takes a second; see that it has the chance to end. */
#define READY_MS 5000
#define READY_STEP_MS 20

static struct daemon the_daemon = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char help[] =
	"sluiced [--check] FILE\n"
	"  Serve UDP on lcores as FILE says; doc/sluiced.md explains its keys.\n"
	"  --check     only look for mistakes, in the file and against this machine\n"
	"  --version   of this program, and of DPDK\n"
	"Signals: SIGHUP reads the file again, SIGTERM and SIGINT end.\n"
	"Exit status: 0; 2 for a mistake, each of which is told with file, line, key and remedy.\n"
	"sluicectl asks a running one; so does dpdk-telemetry.py -f sluiced.\n";

/* All mistakes, and the end if there are any. */
static void
fail_if_any(struct mistakes *m)
{
	size_t n = mistakes_kept(m);

	if (mistakes_count(m) == 0)
		return;
	fflush(stdout);
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, "%s\n", mistakes_text(m, i));
	if (mistakes_count(m) > n)
		fprintf(stderr, "and %zu more\n", mistakes_count(m) - n);
	exit(APP_EXIT_MISTAKE);
}

static void
read_options(int argc, char **argv, struct daemon *d, bool *check)
{
	static const struct option options[] = {{"check", no_argument, NULL, 'c'},
		{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'v'}, {0}};
	int opt;

	*check = false;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			exit(0);
		}
		if (opt == 'v') {
			printf("sluiced %s, %s\n", DAEMON_VERSION, rte_version());
			exit(0);
		}
		if (opt != 'c')
			app_fail("%s is not an option; --help lists them.", argv[optind - 1]);
		*check = true;
	}
	if (optind + 1 != argc)
		app_fail("takes the path of one configuration file; --help says more.");
	d->path = argv[optind];
}

static void
say_port(const struct conf *conf, const struct conf_port *p)
{
	char devargs[2 * CONF_VALUE_LEN];
	char text[64];

	if (p->on[0] != '\0') {
		app_note("VLAN %s: %u of port %s", p->name, p->vlan, p->on);
	} else {
		conf_devargs(conf, p, devargs, sizeof(devargs));
		app_note("port %s: %s, %u receive and %u transmit queues, ring of %u", p->name,
			devargs, p->queues, conf_tx_queues(conf, p), conf_ring(p));
	}
	if (conf_spread(p))
		app_note("port %s: one receive queue for %u lcores: lcore %u receives, and spreads "
			 "flows over them in software",
			p->name, p->lcores.n, p->lcores.cpu[0]);
	if (p->exception[0] != '\0')
		app_note("port %s: the kernel has it as %s for what no service claims", p->name,
			p->exception);
	for (uint16_t i = 0; i < p->naddrs; i++)
		app_note("port %s: address %s/%u", p->name,
			sl_addr_format(&p->addrs[i].addr, text, sizeof(text)), p->addrs[i].prefix);
}

/* What will be used. */
static void
say_plan(const struct conf *conf)
{
	char text[512];
	size_t at = 0;

	for (uint16_t i = 0; i < conf->lcores.n && at < sizeof(text) - 8; i++)
		at += (size_t)snprintf(
			text + at, sizeof(text) - at, "%s%u", i ? "," : "", conf->lcores.cpu[i]);
	app_note("lcores %s; %u MB %s hugepages; %u packets; idle = %s; user id %d", text,
		conf->memory_mb, daemon_hugepages(conf) ? "in" : "without", conf_mbufs(conf),
		conf_idle_name(conf->idle), (int)geteuid());
	for (uint16_t i = 0; i < conf->nports; i++)
		say_port(conf, &conf->port[i]);
	for (uint16_t i = 0; i < conf->nvlans; i++)
		say_port(conf, &conf->vlan[i]);
	for (uint16_t i = 0; i < conf->nbridges; i++)
		app_note("bridge %s: %s; %u stations, %u behind a port, %u s", conf->bridge[i].name,
			conf->bridge[i].names, conf->bridge[i].entries,
			conf->bridge[i].port_entries, conf->bridge[i].age_s);
	for (uint16_t i = 0; i < conf->nservices; i++)
		app_note("service %s: %s on UDP port %u", conf->service[i].name,
			conf_kind_name(conf->service[i].kind), conf->service[i].udp_port);
}

/* The next signal within a time, or 0, also when a worker has something for us. */
static int
next_signal(const struct daemon *d, int fd, int ms)
{
	struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = d->event_fd, .events = POLLIN}};
	struct signalfd_siginfo info;
	uint64_t events;
	ssize_t n = 0;

	if (poll(p, SL_COUNT_OF(p), ms) <= 0)
		return 0;
	if ((p[1].revents & POLLIN) != 0)
		n = read(d->event_fd, &events, sizeof(events));
	(void)n; /* whatever it was, the caller looks at everything */
	if ((p[0].revents & POLLIN) == 0 || read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	return (int)info.ssi_signo;
}

/* Did every worker make a turn since the last look? */
static bool
workers_alive(struct daemon *d, uint64_t *before)
{
	bool alive = true;

	for (uint16_t i = 0; i < d->nworkers; i++) {
		uint64_t turns = sl_load_relaxed(&d->worker[i].turns);

		alive &= turns != before[i];
		before[i] = turns;
	}
	return alive;
}

static void
reload(struct daemon *d)
{
	static char report[DAEMON_REPORT_LEN];
	struct reload_result r;

	daemon_reload(d, &r);
	pthread_mutex_lock(&d->lock);
	memcpy(report, d->report, sizeof(report));
	pthread_mutex_unlock(&d->lock);
	fputs(report, stderr);
	if (!r.applied)
		app_note("the reload is refused; services go on as they were");
}

/* Until a signal says that it is the end; true if it came. */
static bool
wait_ready(struct daemon *d, int fd)
{
	for (int ms = 0; ms < READY_MS; ms += READY_STEP_MS) {
		int ready = daemon_addresses_ready(d), sig;

		if (ready > 0)
			return false;
		if (ready < 0) {
			daemon_end(d);
			exit(APP_EXIT_MISTAKE);
		}
		sig = next_signal(d, fd, READY_STEP_MS);
		if (sig == SIGTERM || sig == SIGINT)
			return true;
	}
	daemon_end(d);
	app_fail("%s: addresses did not become usable within %d s; is the link up?", d->path,
		READY_MS / 1000);
}

static void
run(struct daemon *d, int fd)
{
	uint64_t turns[CONF_LCORES_MAX] = {0};
	uint64_t watchdog = notify_watchdog_ms();
	/* Twice in the time, so that a late one is not too late. */
	int ms = watchdog != 0 ? (int)RTE_MAX(RTE_MIN(watchdog / 2, LINKS_MS), 1u) : LINKS_MS;

	for (;;) {
		bool balances = daemon_backends(d);
		int sig = next_signal(d, fd, balances ? RTE_MIN(ms, DAEMON_TICK_MS) : ms);

		exceptions_watch(d);
		if (sig == SIGHUP)
			reload(d);
		else if (sig != 0)
			return;
		else if (watchdog != 0 && workers_alive(d, turns))
			notify_watchdog();
		links_look(d);
		if (sig == 0)
			bridges_age(d);
	}
}

/* Start to serve counters over HTTP, if the file says so. */
static struct metrics_server *
serve_metrics(struct daemon *d)
{
	struct metrics_server *s;
	char why[512];

	if (metrics_serve(d, &s, why, sizeof(why)) == 0)
		return s;
	daemon_end(d);
	app_fail("%s.", why);
}

int
main(int argc, char **argv)
{
	struct daemon *d = &the_daemon;
	struct metrics_server *metrics = NULL;
	struct mistakes *m;
	bool check;
	sigset_t set;
	int fd;

	app_name_set("sluiced");
	read_options(argc, argv, d, &check);
	m = mistakes_create(d->path);
	if (m == NULL)
		app_fail("no memory.");
	conf_read_file(d->path, &d->conf, m);
	if (mistakes_count(m) == 0)
		conf_machine(&d->conf, m);
	fail_if_any(m);
	if (check) {
		printf("%s: no mistake found\n", d->path);
		mistakes_free(m);
		return 0;
	}
	app_cpus(); /* before EAL narrows the set */
	/* Before EAL's threads are there: they must not get these. */
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN); /* a client that goes away is an error of its socket */
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	d->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0 || d->event_fd < 0)
		app_fail("no descriptor for signals.");
	say_plan(&d->conf);
	daemon_start(d);
	if (!wait_ready(d, fd)) {
		if (!daemon_open_services(d, m)) {
			daemon_end(d);
			fail_if_any(m);
		}
		metrics = serve_metrics(d);
		if (!telemetry_open(d))
			app_note("no endpoints: sluicectl cannot ask this daemon");
		pthread_mutex_lock(&d->lock);
		d->state = DAEMON_RUNNING;
		pthread_mutex_unlock(&d->lock);
		notify_ready("running");
		app_note("ready, control socket %s/dpdk_telemetry.v2", rte_eal_get_runtime_dir());
		run(d, fd);
	}
	app_note("ending");
	notify_stopping();
	metrics_server_close(metrics);
	pthread_mutex_lock(&d->lock);
	d->state = DAEMON_ENDING;
	pthread_mutex_unlock(&d->lock);
	sessions_stop(d);
	daemon_end(d);
	mistakes_free(m);
	close(d->event_fd);
	close(fd);
	return 0;
}
