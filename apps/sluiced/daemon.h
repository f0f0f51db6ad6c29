/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_DAEMON_H
#define SLUICED_DAEMON_H

/**
 * @file
 * The running daemon: ports, the stack, workers on lcores, services, and who may touch what.
 *
 *   main thread       starts all, then sleeps: signals, watchdog
 *   workers           one a processor of [sluiced] lcores: poll ports, serve, flush
 *   telemetry threads answer sluicectl and dpdk-telemetry.py; also a reload runs in one
 *
 * A *table* is the services as workers see them. A reload makes a new one, publishes the pointer
 * (release; a worker loads it once a turn with acquire), waits for a grace period of the stack, and
 * then closes what only the old table had. Sockets share their ports (SO_REUSEPORT), so that the
 * new ones can be open before the old ones are closed. What several control threads touch is under
 * `lock`.
 *
 * To read all counters as of one moment, an audit *parks* the workers: each ends its turn, goes
 * offline for grace periods, says so and waits. That takes as long as the slowest turn, and what
 * arrives meanwhile waits in the ports' rings.
 */

#include <pthread.h>

#include <rte_cycles.h>

#include <rte_interrupts.h>

#include "bridge.h"
#include "conf.h"
#include "sl_inet.h"
#include "sl_shared.h"
#include "sl_udp.h"
#include "spread.h"

#define DAEMON_PROTOCOL 1
#define DAEMON_VERSION "0.1.0"
/** Sockets of a service: one for any address, or one for each of a port. */
#define SERVICE_SOCKS_MAX CONF_ADDRS_MAX
#define DAEMON_REPORT_LEN 7000
/** How soon at least the main thread sees that the time of a drain is over. */
#define DAEMON_TICK_MS 100

/** What becomes of a datagram that a service was handed. */
enum service_outcome {
	SERVICE_SUNK,	   /**< received and counted */
	SERVICE_DROPPED,   /**< taken and dropped, as asked */
	SERVICE_ECHOED,	   /**< sent back */
	SERVICE_REFLECTOR, /**< came from a port that may answer: no echo, or it would never end */
	SERVICE_GROUP,	   /**< sent to or from a group or broadcast address: no echo */
	SERVICE_TOO_BIG,   /**< no echo: longer than the MTU of the way back */
	SERVICE_UNREACHABLE, /**< no echo: no way back */
	SERVICE_NO_MBUF,     /**< no echo: no packet for the copy */
	/* Those of enum stamp_outcome, in its order. */
	SERVICE_STAMP_ANSWERED,
	SERVICE_STAMP_SHORT,
	SERVICE_STAMP_UNPADDED,
	SERVICE_STAMP_REFLECTED,
	SERVICE_STAMP_PORT,
	SERVICE_STAMP_SESSIONS,
	SERVICE_STAMP_GROUP,	   /**< sent to or from a group or broadcast address: no answer */
	SERVICE_STAMP_TOO_BIG,	   /**< no answer: longer than the MTU of the way back */
	SERVICE_STAMP_UNREACHABLE, /**< no answer: no way back */
	SERVICE_STAMP_NO_MBUF,	   /**< no answer: no packet for the copy */
	/* Of a load balancer: */
	SERVICE_FORWARDED,	     /**< sent on to a back end */
	SERVICE_FORWARD_RETURNED,    /**< from a back end, sent on to its client */
	SERVICE_FORWARD_ERROR,	     /**< an ICMP error, sent on to the one it is for */
	SERVICE_FORWARD_NO_BACKEND,  /**< no back end is up or draining */
	SERVICE_FORWARD_NO_FLOW,     /**< an ICMP error about a flow of which nothing is known */
	SERVICE_FORWARD_TTL,	     /**< its hop limit was used up */
	SERVICE_FORWARD_TOO_BIG,     /**< longer than the MTU of its way */
	SERVICE_FORWARD_UNREACHABLE, /**< no way to its destination */
	SERVICE_FORWARD_NO_MBUF,     /**< no packet for a copy */
	SERVICE_MIRRORED,	     /**< given to the mirror's thread */
	SERVICE_MIRROR_NO_ROOM,	     /**< lost: the thread does not keep up */
	SERVICE_MIRROR_NO_MBUF,	     /**< lost: no packet for the copy */
	SERVICE_OUTCOMES
};

struct service_outcome_info {
	const char *name;
	bool drop;
};
extern const struct service_outcome_info service_outcome_info[SERVICE_OUTCOMES];

/** Counters of one worker for one service; that worker alone writes them. */
struct service_cell {
	uint64_t outcome[SERVICE_OUTCOMES];
	uint64_t bytes; /**< payload handed to the service */
} SL_CACHE_ALIGNED;

/** Sums over sockets: those that are open, or those that are closed. */
struct service_sums {
	uint64_t appended;   /**< datagrams that entered the queues */
	uint64_t handed;     /**< of these, handed to the service */
	uint64_t purged;     /**< of these, in a queue when its socket was closed */
	uint64_t held;	     /**< of these, in a queue now */
	uint64_t held_bytes; /**< packet memory that they take */
	uint64_t rcvbuf;     /**< refused: no room for their size */
	uint64_t slots;	     /**< refused: no slot */
};

struct backends;
struct forward;
struct sl_inet_claims;

struct service {
	struct conf_service conf;
	uint16_t nsocks;
	struct sl_udp_sock *sock[SERVICE_SOCKS_MAX];
	struct sl_addr bound[SERVICE_SOCKS_MAX];
	uint16_t worker;	   /**< its reader */
	enum conf_kind kind;	   /**< (relaxed) a reload may change it while workers serve */
	struct service_cell *cell; /**< one a worker */
	struct mirror *mirror;	   /**< of a mirror; else NULL */
	struct stamp *stamp;	   /**< of a reflector, its reader's; else NULL */
	uint64_t clock_ms;	   /**< when its reader last asked for the state of the clock */
	struct forward *forward;   /**< of a load balancer; else NULL */
	struct backends *backends; /**< likewise (release by control, acquire by its reader) */
};

struct service_table {
	uint16_t n;
	struct service *service[CONF_SERVICES_MAX];
	/** UDP ports of echo services, network order: they are not answered. */
	uint16_t nechos;
	uint16_t echo[CONF_SERVICES_MAX];
	bool reflects; /**< some service is a reflector */
	bool forwards; /**< some service is a load balancer */
};

struct daemon;
struct trace;

struct worker_pair {
	uint16_t port_index;
	uint16_t port_id;
	uint16_t queue;
	struct bridge *bridge; /**< that has the port, or NULL: the stack has it */
	uint16_t member;       /**< which of the bridge's the port is */
	struct spread *spread; /**< that spreads the port's flows; or NULL */
	uint16_t target;       /**< of it, the worker's: 0 has the queue, others a ring */
};

struct exception;

/** A queue of a tap that a worker reads. */
struct worker_tap {
	struct exception *e;
	int fd;
	uint32_t wait; /**< us between looks, as long as nothing comes */
	uint64_t due;  /**< TSC of the next look */
	struct rte_epoll_event event; /**< with interrupts: frames wake the worker */
};

struct worker {
	struct daemon *d;
	uint16_t index;
	uint16_t cpu;
	unsigned int lcore;
	uint16_t npairs;
	struct worker_pair pair[CONF_PORTS_MAX * CONF_QUEUES_MAX];
	bool spread;			   /**< one of them is spread */
	uint16_t tx_queue[CONF_PORTS_MAX]; /**< of each port, this worker's own */
	uint64_t sleep_max_ns;		   /**< of its receive rings, the least */
	uint16_t ntaps;
	struct worker_tap tap[CONF_PORTS_MAX + CONF_VLANS_MAX];
	uint8_t *tap_room; /**< what is read from a tap */
	/* With interrupts (d->interrupts); constant after the start. */
	int epoll_fd; /**< its receive queues, and wake_fd */
	int wake_fd;
	struct rte_epoll_event wake_event;
	/* Written by the worker alone, from here on. */
	SL_CACHE_ALIGNED uint64_t turns;
	uint64_t busy_turns; /**< those that received or served something */
	uint64_t sleeps;
	uint64_t slept_ns;
	uint64_t longest_ns;
	uint64_t busy_cycles;		   /**< of the TSC: turns that found work */
	uint64_t idle_cycles;		   /**< turns that found none, and what is between turns */
	uint64_t sleep_cycles;		   /**< asleep */
	uint64_t billed;		   /**< the TSC, up to which cycles are counted */
	uint64_t served;		   /**< datagrams handed to services */
	uint64_t received[CONF_PORTS_MAX]; /**< packets by port */
	uint64_t interrupts;		   /**< sleeps that a receive queue ended */
	uint64_t wakes;			   /**< that another thread ended */
	uint64_t timeouts;		   /**< that nothing ended but their time */
	bool asleep;	/**< (relaxed, ID1) sleeps, or is about to: wake it by wake_fd */
	uint32_t empty; /**< turns in a row that found nothing */
	uint64_t step_ns;
	bool parked; /**< (release) waits for the end of an audit */
	bool ended;  /**< (release) has left its loop */
};

enum daemon_state { DAEMON_STARTING, DAEMON_RUNNING, DAEMON_ENDING };

struct daemon {
	const char *path; /**< of the configuration file */
	struct conf conf; /**< in force (l) */
	pthread_mutex_t lock;
	enum daemon_state state; /**< (l) */
	struct rte_mempool *pool;
	uint32_t mbufs; /**< in the pool */
	struct sl_inet *inet;
	struct sl_udp *udp;
	uint16_t port_id[CONF_PORTS_MAX];
	bool link_up[CONF_PORTS_MAX]; /**< when the main thread last looked */
	uint16_t vlan_handle[CONF_VLANS_MAX]; /**< the stack's, of [vlan] sections */
	uint16_t nexceptions;
	struct exception *exception[CONF_PORTS_MAX + CONF_VLANS_MAX];
	struct bridge *bridge[CONF_BRIDGES_MAX]; /**< as in conf */
	struct spread *spread[CONF_PORTS_MAX];	 /**< of ports that need one, else NULL */
	uint16_t target_worker[CONF_PORTS_MAX][CONF_LCORES_MAX]; /**< of their targets */
	uint16_t nworkers;
	struct worker *worker;
	struct service_table *table; /**< (release by control, acquire by workers) */
	struct trace *trace; /**< (release by control, acquire by workers) NULL: none is on */
	bool crowded;	     /**< workers share processors with others */
	bool interrupts;     /**< ports were started with receive interrupts */
	bool halt;	     /**< (relaxed) workers return */
	bool park;	     /**< (release) workers park */
	int event_fd;	     /**< an eventfd: a worker has something for the main thread */
	uint64_t started_s;
	uint64_t reloads;			 /**< applied (l) */
	uint64_t refused;			 /**< reloads that were refused (l) */
	struct service_sums gone;		 /**< sockets closed so far (l) */
	uint64_t gone_outcome[SERVICE_OUTCOMES]; /**< of services that are gone (l) */
	uint64_t gone_claimed;			 /**< packets that they were handed whole (l) */
	uint64_t gone_mirror[MIRROR_OUTCOMES];	 /**< of mirrors that are gone (l) */
	char report[DAEMON_REPORT_LEN];		 /**< what the last reload found (l) */
};

/* ---- start and end (start.c) ---- */

/** Set EAL, ports, stack and workers up; mistakes end the program. */
void daemon_start(struct daemon *d);
/** Will EAL use hugepages? */
bool daemon_hugepages(const struct conf *conf);
/** Are all addresses usable? 1 yes; 0 not yet; -1 another host has one, which is told. */
int daemon_addresses_ready(const struct daemon *d);
/** Stop workers, close all; tell when packets are missing. */
void daemon_end(struct daemon *d);

/* ---- workers (worker.c) ---- */

/** Bill the time since the last bill to one of a worker's counters of cycles. Caller: the worker.
 */
static inline void
worker_bill(struct worker *w, uint64_t *cycles)
{
	uint64_t now = rte_rdtsc();

	sl_counter_add(cycles, now - w->billed);
	w->billed = now;
}

/** A worker's life; the argument is its struct worker. */
int worker_main(void *worker);
/** Milliseconds of the monotonic clock. Any thread. */
uint64_t daemon_now_ms(void);
/** Wake the main thread. A worker, seldom: it costs a system call. */
void daemon_event(struct daemon *d);
/** Stop all workers between two turns; daemon_unpark lets them go on. Locked. */
void daemon_park(struct daemon *d);
void daemon_unpark(struct daemon *d);

/* ---- what workers do when there is nothing to do (idle.c) ---- */

/** Prepare it; queues are dealt, workers do not run yet. A mistake ends the program. */
void idle_open(struct daemon *d);
/** Workers have ended; their ports are still there. */
void idle_close(struct daemon *d);
/** Tell why `idle` of another configuration cannot be. Locked. */
void idle_check(const struct daemon *d, const struct conf *next, struct mistakes *m);
/** A turn found nothing: rest. Before a long sleep it looks once more; returns what that found.
 * The worker itself. */
uint32_t idle_rest(struct worker *w, uint32_t (*look)(struct worker *w));
/** A turn found something. The worker itself. */
void idle_busy(struct worker *w);
/** Wake workers whose services have datagrams waiting: this worker may have put them there. */
void idle_wake_readers(struct worker *w, const struct service_table *table);
/** Wake a worker if it sleeps: this one has passed something on to it. */
void idle_wake(struct worker *to);
/** Wake all that sleep. Control threads. */
void idle_wake_all(struct daemon *d);

/* ---- services (service.c) ---- */

/**
 * Serve what waits in the queues of a worker's services.
 *
 * @return   datagrams
 */
uint32_t services_turn(struct worker *w, const struct service_table *table);

/**
 * Make a service; its sockets are open.
 *
 * @param conf    that c, the nth service, is of
 * @param former  the one of that name that it is to replace, or NULL
 * @return        NULL, with the mistake told, when that cannot be done
 * Locked.
 */
struct service *service_open(struct daemon *d, const struct conf *conf,
	const struct conf_service *c, uint16_t nth, const struct service *former,
	struct mistakes *m);
/** Close its sockets; their sums go to d->gone. No worker has it any more. */
void service_close(struct daemon *d, struct service *s);
/** Close one socket; its sums go to d->gone. No worker has it any more. Locked. */
void service_sock_close(struct daemon *d, struct sl_udp_sock *sock);
/** Sums over one open socket, added up. */
void service_sock_sums(const struct sl_udp_sock *sock, struct service_sums *sums);
/** Sums over open sockets, those of its probes included, added up. */
void service_sums(const struct service *s, struct service_sums *sums);
/** Outcomes over all workers, added up. */
void service_outcomes(const struct daemon *d, const struct service *s, uint64_t *outcome);

/* ---- reload (reload.c) ---- */

struct reload_result {
	bool applied;
	uint16_t added;
	uint16_t removed;
	uint16_t changed;
	uint16_t kept;
	uint32_t mistakes;
};

/** Read a file as a reload does; what it would refuse is a mistake. Locked. */
void reload_read(const struct daemon *d, const char *path, struct conf *next, struct mistakes *m);
/** May a service stay what it is, with its sockets and tables, under another configuration? */
bool service_stays(const struct conf_service *a, const struct conf_service *b);
/** Let changes of back ends take effect; is there a load balancer, so that it must be called again
 * within DAEMON_TICK_MS? Takes the lock. */
bool daemon_backends(struct daemon *d);

/** Read the file and apply it, or refuse the whole of it. Takes the lock. d->report has the text.
 */
void daemon_reload(struct daemon *d, struct reload_result *r);
/** Open the services of the first configuration; false with mistakes told. */
bool daemon_open_services(struct daemon *d, struct mistakes *m);

/* ---- routes (routes.c) ---- */

/** Add the routes of the first configuration; mistakes end the program. */
void daemon_open_routes(struct daemon *d);
/** Make the stack's routes those of the next configuration, or, with a mistake, leave them. Locked. */
bool daemon_reload_routes(struct daemon *d, const struct conf *next, struct mistakes *m);
/** Handle of a port or VLAN of that name. */
uint16_t daemon_handle(const struct daemon *d, const char *name);
/** Name of the port or VLAN that has a handle. */
/** Ports and VLANs of the stack, and the handle of the ith of all ports and then all VLANs. */
uint16_t daemon_handles(const struct daemon *d);
uint16_t daemon_handle_at(const struct daemon *d, uint16_t i);
const char *daemon_handle_name(const struct daemon *d, uint16_t handle);

/* ---- mirrors (mirror_daemon.c) ---- */

struct audit_line;

/** Open the mirror of a service, if it is one: 0 or -errno. Nothing that is there changes. */
int service_mirror_open(struct daemon *d, struct service *s);
/** Let it have its file's name, once it is in use and the one that it replaces is closed. */
void service_mirror_begin(struct service *s);
/** Close it; its counts go to d->gone_mirror. No worker has the service any more. Locked. */
void service_mirror_close(struct daemon *d, struct service *s);
/** Give it datagrams. The reader's worker. */
void service_mirror_serve(
	struct service *s, struct service_cell *cell, const struct sl_dgram *g, uint16_t n);
/** Counts of all mirrors, those that are gone included, added up. Locked. */
void mirrors_counts(const struct daemon *d, uint64_t *counts);
/** Their lines of the audit. Locked; workers are parked. How many. */
uint16_t mirrors_audit(const struct daemon *d, struct audit_line *lines);

/* ---- flows spread in software (spread_daemon.c) ---- */

/** Prepare it for the ports that need it; queues are dealt. A mistake ends the program. */
void spreads_open(struct daemon *d);
/** Free it; no worker runs. */
void spreads_close(struct daemon *d);
/** A turn of a pair that is spread. The worker. Returns packets. */
uint16_t spread_poll(struct worker *w, const struct worker_pair *p);
/** Packets that were lost to full rings. */
uint64_t spreads_full(const struct daemon *d);
/** Lines of the audit; workers are parked. How many. */
uint16_t spreads_audit(const struct daemon *d, struct audit_line *lines);

/* ---- bridges (bridge_daemon.c) ---- */

/** Make those of the configuration; their ports are started. A mistake ends the program. */
void bridges_open(struct daemon *d);
/** Free them; no worker runs. */
void bridges_close(struct daemon *d);
/** Tell them which transmit queues are a worker's; and a pair, which bridge it is for. */
void bridges_deal(struct daemon *d, struct worker *w);
void bridges_pair(struct daemon *d, struct worker_pair *p);
/** Forget old stations. Main thread, about once a second; workers run. */
void bridges_age(struct daemon *d);
/** What a reload changes of them. Locked. */
void bridges_apply(struct daemon *d, const struct conf *next);
/** Counters of all of them, added up. */
void bridges_counts(const struct daemon *d, struct bridge_counts *sum);
/** Their lines of the audit, two for each; workers are parked. How many. */
uint16_t bridges_audit(const struct daemon *d, struct audit_line *lines);
/** Register their endpoints (bridge_telemetry.c). */
bool bridge_telemetry_open(void);

/* ---- telemetry (telemetry.c, audit.c) ---- */

struct audit_line {
	char name[64];
	uint64_t entered;
	uint64_t outcomes;
	uint64_t held;
};
#define AUDIT_LINES_MAX                                                                            \
	(5 * CONF_PORTS_MAX + 2 * CONF_VLANS_MAX + 2 * CONF_SERVICES_MAX + 2 * CONF_BRIDGES_MAX + 11)

/**
 * Compare, as of one moment, what entered with what became of it.
 *
 * @return   number of lines; each is right if entered = outcomes + held
 * Locked.
 */
uint16_t daemon_audit(struct daemon *d, struct audit_line *lines);

/** Register the endpoints; false when telemetry does not take them. */
bool telemetry_open(struct daemon *d);

#endif
