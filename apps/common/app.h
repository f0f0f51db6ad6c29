/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef APP_H
#define APP_H

/**
 * @file
 * What the programs share: options and their mistakes, EAL start-up, ports, the stack and its
 * workers, and how an interrupted run ends.
 *
 * A *mistake* is anything that the caller can put right (an option, a missing privilege, a missing
 * interface): app_fail prints one sentence and ends the program with status 2.
 *
 * Programs take EAL arguments before `--` and their own after it; or only their own, and then
 * --iface names the kernel interface that EAL is set up over.
 */

#include <stdio.h>
#include <getopt.h>

#include <rte_common.h>

#include "sl_inet.h"
#include "sl_shared.h"
#include "sl_udp.h"

#define APP_ADDRS_MAX 8
#define APP_PORTS_MAX SL_INET_PORTS_MAX
#define APP_EXIT_MISTAKE 2

/* ---- messages and options (args.c) ---- */

/** Set the name that messages begin with. */
void app_name_set(const char *name);
const char *app_name(void);

/** Print "name: sentence" on standard error and exit with status 2. */
void app_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/** Print "name: sentence" on standard error and go on. */
void app_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/**
 * Read a whole number; k, M and G stand for thousands, millions and milliards.
 *
 * @return   0, or -1 unless the text is a number that fits, and nothing else
 */
int app_parse_number(const char *text, uint64_t *value);

/**
 * Read a whole number; k, M and G stand for thousands, millions and milliards.
 *
 * @param option   as written, for the sentence: "--count"
 * Exits with a sentence unless min <= number <= max.
 */
uint64_t app_number(const char *option, const char *text, uint64_t min, uint64_t max);

/** Read an address without a prefix length, or with one if prefix is not NULL. */
struct sl_addr app_addr(const char *option, const char *text, uint8_t *prefix);

/** Read "ADDR:PORT" or "[ADDR]:PORT" or, when port_default is not 0, an address alone. */
void app_addr_port(const char *option, const char *text, uint16_t port_default,
	struct sl_addr *addr, uint16_t *port);

/** Make a socket address of the family that the socket has (AF_INET6 maps IPv4). Its length. */
socklen_t app_sockaddr(
	const struct sl_addr *addr, uint16_t port, int family, struct sockaddr_storage *out);

/**
 * Next option of getopt_long; an unknown one or one without its value is a mistake.
 *
 * @return   the option's val, or -1 at the end; what is left over is a mistake too
 */
int app_getopt(int argc, char **argv, const struct option *options);

/* ---- how a run ends (stop.c) ---- */

/** From now on SIGINT and SIGTERM set the flag that app_stopped reads; a second one kills. */
void app_catch_signals(void);
bool app_stopped(void);

/* ---- EAL (eal.c, iface.c) ---- */

struct app_eal_conf {
	const char *iface; /**< kernel interface to open, or NULL: EAL arguments name the ports */
	uint16_t lcores;   /**< lcores wanted when EAL is set up here */
	uint16_t queues;   /**< queue pairs wanted on the interface */
};

/**
 * Divide the arguments at `--`.
 *
 * @param own   set to the program's own arguments, own[0] being its name
 * @return      their number; *eal_argc is that of EAL's, 1 meaning none were given
 */
int app_args_split(int argc, char **argv, int *eal_argc, char ***own);

/**
 * Start EAL: with the arguments given, or over conf->iface. Exits with a sentence when it cannot.
 * What it left in the file system is removed at exit.
 */
void app_eal_start(int eal_argc, char **eal_argv, const struct app_eal_conf *conf);

#define APP_EAL_ARGS_MAX 96

/** Arguments that a program makes for EAL; zero it first. (eal_args.c) */
struct app_eal_args {
	int n;
	char *v[APP_EAL_ARGS_MAX + 1];
};

/** Append one. */
void app_eal_arg(struct app_eal_args *a, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * Start EAL with them, quietly; they are freed. When it cannot, exits with `failed`, the error and
 * the last line of its messages.
 */
void app_eal_init(struct app_eal_args *a, const char *failed);

/** What DPDK says while it does something, kept for when that fails; text is to be freed. */
struct app_kept_log {
	FILE *stream;
	char *text;
	size_t len;
};

void app_log_keep(struct app_kept_log *k);
void app_log_release(struct app_kept_log *k);

/** The last line of such a text, which is cut there. */
const char *app_last_line(char *log);

/** Was EAL set up here, over an interface? */
bool app_eal_own(void);

/** Remove what an EAL that was started under the prefix "sluice-..." or "sluiced..." leaves in the file
 * system. For atexit; EAL need not be running any more. */
void app_runtime_dir_remove(void);

/** Memory in free hugepages of that size of which there is most, in MB. (huge.c) */
uint64_t app_huge_free_mb(void);

/** Number of processors that this process may use. */
unsigned int app_cpus(void);

/** Do lcores share processors, so that one which finds nothing to do should let others run? */
bool app_crowded(void);

/** Exit with a sentence if another sluice program receives on that port, unless both share it. */
void app_iface_claim(const char *iface, uint16_t port, bool shared);
/** Exit with a sentence if a program on the kernel's sockets receives on that address and port. */
void app_kernel_claim(const struct sl_addr *addr, uint16_t port);

/* ---- ports, stack, workers (stack.c) ---- */

struct app_addr {
	struct sl_addr addr;
	uint8_t prefix;
};

struct app_stack_conf {
	struct app_addr addrs[APP_ADDRS_MAX]; /**< of the first port */
	uint16_t naddrs;
	struct sl_addr gateway;	 /**< 0.0.0.0 or :: for none */
	struct sl_addr gateway6; /**< 0.0.0.0 or :: for none */
	bool promiscuous;
	bool any_dst;
	uint16_t workers; /**< lcores that poll */
	uint32_t queued;  /**< datagrams that may be queued at once: sizes the mbuf pool */
};

/** One worker's turn: its (port, queue) pairs. */
struct app_worker {
	struct app_stack *stack;
	uint16_t index;
	uint16_t npairs;
	struct {
		uint16_t port;
		uint16_t queue;
	} pairs[APP_PORTS_MAX];
	uint32_t idle; /**< turns in a row that found nothing */
} __rte_cache_aligned;

struct app_stack {
	struct sl_inet *inet;
	struct sl_udp *udp;
	struct rte_mempool *pool;
	uint16_t ports[APP_PORTS_MAX];
	uint16_t queues[APP_PORTS_MAX]; /**< configured on that port */
	uint16_t nports;
	uint16_t nworkers;
	uint16_t lcores; /**< workers started on lcores of their own */
	bool crowded;
	bool local;
	bool halt; /**< (relaxed) launched workers return */
	uint64_t missed;
	uint64_t missed_before[APP_PORTS_MAX];
	struct app_worker worker[SL_INET_WORKERS_MAX];
};

/** Take one value of --addr, or of --gateway. */
void app_stack_addr(struct app_stack_conf *conf, const char *text);
void app_stack_gateway(struct app_stack_conf *conf, const char *text);

struct app_port_conf {
	uint16_t rx_queues;
	uint16_t tx_queues;
	uint16_t rx_ring; /**< descriptors wanted; the driver has the last word */
	uint16_t tx_ring;
	uint16_t mtu; /**< 0: the port's own */
	bool promiscuous;
	bool tcp; /**< TCP comes and goes, too: its offloads, and segments joined, are wanted */
	bool bridge; /**< passes frames on that are not its own: TCP, too */
	bool interrupts; /**< that receive queues can be waited for */
	struct rte_mempool *pool;
};

/**
 * Configure and start one DPDK port, with the checksum offloads and the spreading of flows that it
 * has. (port.c)
 *
 * @return   0, or -errno of the step that failed
 */
int app_port_start(uint16_t id, const struct app_port_conf *conf);

/** Configure and start every DPDK port and build the stack. Exits with a sentence on failure. */
void app_stack_start(struct app_stack *s, const struct app_stack_conf *conf);

/** Start workers 0.. on the worker lcores. */
void app_stack_launch(struct app_stack *s);
/** Instead: the caller is worker 0 and polls. */
void app_stack_local(struct app_stack *s);

/** Poll (or let the workers poll) until every address is usable. Exits when one is taken. */
void app_stack_wait_ready(struct app_stack *s, const struct app_stack_conf *conf);

/** One turn of a worker; the argument is a struct app_worker, so that sl_udp_set_poll takes it. */
void app_worker_poll(void *worker);

/** Stop the workers and wait for them. Counters are exact afterwards. */
void app_stack_halt(struct app_stack *s);

/** Frames that ports lost so far before the stack saw them: full receive rings. */
uint64_t app_stack_missed(struct app_stack *s);

/** Free everything; all sockets are closed. Tells when packets are missing from the pool. */
void app_stack_free(struct app_stack *s);

#endif
