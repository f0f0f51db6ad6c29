/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_CONF_H
#define SLUICED_CONF_H

/**
 * @file
 * The configuration as the daemon uses it, and how it is read. doc/sluiced.md has a table of the
 * keys.
 *
 * Reading finds every mistake that the file alone shows: unknown sections and keys, values out of
 * range, what contradicts what. Checking against the machine (conf_machine) finds what the machine
 * does not have. A configuration is of use only if there was no mistake at all.
 */

#include "balancer.h"
#include <net/if.h>

#include "mistakes.h"
#include "mirror.h"
#include "sl_inet.h"
#include "stamp.h"

#define CONF_PORTS_MAX 16
#define CONF_SERVICES_MAX 64
#define CONF_VLANS_MAX 32
#define CONF_ROUTES_MAX 128
#define CONF_BACKENDS_MAX 256
/** Back ends of one service. */
#define CONF_FORWARD_BACKENDS_MAX 64
#define CONF_BRIDGES_MAX 8
#define CONF_LCORES_MAX 64
#define CONF_ADDRS_MAX 8
#define CONF_QUEUES_MAX 16
#define CONF_DRIVERS_MAX 8
#define CONF_NAME_LEN 32
#define CONF_VALUE_LEN 256

enum conf_hugepages { CONF_HUGE_AUTO, CONF_HUGE_YES, CONF_HUGE_NO };
enum conf_idle { CONF_IDLE_POLL, CONF_IDLE_BACKOFF, CONF_IDLE_INTERRUPT, CONF_IDLE_MONITOR };
enum conf_kind {
	CONF_SINK,
	CONF_ECHO,
	CONF_DROP,
	CONF_REFLECT,
	CONF_FORWARD,
	CONF_MIRROR,
	CONF_KINDS
};

struct conf_cidr {
	struct sl_addr addr;
	uint8_t prefix;
};

/** Processors, in the order in which they were named. */
struct conf_lcores {
	uint16_t n;
	uint16_t cpu[CONF_LCORES_MAX];
};

/** A [port], or a [tapvu] or [pktring], which are ports of our own drivers; or a [vlan] of a port. */
struct conf_port {
	char name[CONF_NAME_LEN];
	const char *section; /**< "port", "tapvu", ...: how the section begins */
	uint32_t line;
	uint32_t devargs_line;
	uint32_t address_line;
	uint32_t lcores_line;
	char devargs[CONF_VALUE_LEN];
	char device[CONF_VALUE_LEN]; /**< devargs up to the first comma */
	char iface[CONF_NAME_LEN]; /**< kernel interface of a net_tpacket or net_af_packet; or "" */
	bool vdev;		   /**< a virtual device, not one on a bus */
	uint16_t queues;	   /**< receive queues */
	uint16_t ring;		   /**< descriptors of a receive queue; 0: the default */
	struct conf_lcores lcores; /**< that receive; queue i on the (i mod n)th */
	uint16_t naddrs;
	struct conf_cidr addrs[CONF_ADDRS_MAX];
	struct sl_addr gateway; /**< :: for none */
	uint32_t gateway_line;
	struct sl_addr gateway6; /**< :: for none */
	uint32_t gateway6_line;
	uint32_t mtu_line;
	uint16_t mtu;  /**< 0: the port's own */
	uint16_t vlan; /**< 0: untagged */
	uint32_t vlan_line;
	bool promiscuous;
	uint16_t bridge; /**< that it is in: its index and 1; 0: none */
	char on[CONF_NAME_LEN]; /**< of a [vlan]: the port that it is of */
	uint32_t on_line;
	char exception[IFNAMSIZ]; /**< the kernel's tap; or "" */
	uint32_t exception_line;
	char path[CONF_VALUE_LEN]; /**< of a [tapvu] or [pktring]: its socket */
	uint32_t path_line;
	uint16_t pairs;	   /**< of a [tapvu]: queue pairs of a frontend; 0: as many as queues */
	bool client;	   /**< of a [tapvu]: the frontend has the socket */
	uint8_t mac[6];	   /**< of a [tapvu] or [pktring]; zeros: the device's own */
	bool lend;	   /**< of a [pktring]: packets stay in the client's memory */
	const char *frag;  /**< of a [tapvu]: how buffers are cut; NULL: as the driver does */
};

/** A route of the stack. */
struct conf_route {
	char name[CONF_NAME_LEN];
	uint32_t line;
	uint32_t prefix_line;
	uint32_t via_line;
	uint32_t port_line;
	bool has_prefix; /**< not after a mistake */
	struct conf_cidr prefix;
	struct sl_addr via; /**< :: for on link */
	char port[CONF_NAME_LEN];
	uint32_t metric;
};

/** A learning bridge between ports. */
struct conf_bridge {
	char name[CONF_NAME_LEN];
	uint32_t line;
	uint32_t ports_line;
	uint32_t entries_line;
	uint32_t port_entries_line;
	char names[CONF_VALUE_LEN]; /**< of its ports, as in the file */
	uint16_t nports;
	uint16_t port[CONF_PORTS_MAX]; /**< indexes into conf.port */
	uint32_t entries;
	uint32_t port_entries; /**< behind one port at most */
	uint32_t age_s;
};

/** A back end of the load balancer, for the services that name it. */
struct conf_backend {
	char name[CONF_NAME_LEN];
	uint32_t line;
	uint32_t address_line;
	uint32_t udp_line;
	struct sl_addr addr; /**< :: after a mistake */
	uint16_t udp_port;   /**< 0 after a mistake */
	uint32_t weight;     /**< 0..MAGLEV_WEIGHT_MAX */
};

/** Octets that the file has as text. */
struct conf_bytes {
	uint16_t len;
	uint8_t octet[CONF_VALUE_LEN];
};

enum conf_check_kind { CONF_CHECK_NONE, CONF_CHECK_UDP };

/** How back ends are checked. */
struct conf_check {
	enum conf_check_kind kind;
	uint32_t interval_ms; /**< from one request to the next, give or take a tenth */
	uint32_t timeout_ms;  /**< 1..interval_ms: an answer that comes later is none */
	uint32_t rise;	      /**< answers in a row that bring a back end up */
	uint32_t fall;	      /**< failures in a row that take it down */
	struct conf_bytes send;
	struct conf_bytes expect; /**< what an answer begins with; empty: any answer will do */
};

/** Whose address back ends see. */
enum conf_source {
	CONF_SOURCE_KEEP, /**< the client's; they answer by way of us */
	CONF_SOURCE_OWN,  /**< ours, with a port of ours */
};

/** Keys of kind = forward, in the order of the table in doc/sluiced.md. */
enum conf_forward_key {
	CONF_FORWARD_BACKENDS,
	CONF_FORWARD_AFFINITY,
	CONF_FORWARD_DRAIN,
	CONF_FORWARD_SOURCE,
	CONF_FORWARD_SLOTS,
	CONF_FORWARD_SEED,
	CONF_FORWARD_FLOWS,
	CONF_FORWARD_FLOW_TIMEOUT,
	CONF_FORWARD_NEW_FLOWS,
	CONF_FORWARD_CHECK,
	CONF_FORWARD_CHECK_INTERVAL,
	CONF_FORWARD_CHECK_TIMEOUT,
	CONF_FORWARD_CHECK_RISE,
	CONF_FORWARD_CHECK_FALL,
	CONF_FORWARD_CHECK_SEND,
	CONF_FORWARD_CHECK_EXPECT,
	CONF_FORWARD_KEYS
};

/** What a service of kind = forward has besides its address and UDP port. */
struct conf_forward {
	uint32_t line[CONF_FORWARD_KEYS]; /**< of each key; 0: not in the file */
	char names[CONF_VALUE_LEN];	  /**< of the back ends, as in the file */
	uint16_t nbackends;
	uint16_t backend[CONF_FORWARD_BACKENDS_MAX]; /**< indexes into conf.backend */
	enum balancer_affinity affinity;
	enum balancer_drain drain;
	enum conf_source source;
	uint32_t slots;		/**< as for struct maglev_conf; not 0 */
	uint32_t seed;		/**< of names and flows */
	uint32_t flows;		/**< that each lcore remembers */
	uint32_t idle_ms;	/**< after which a flow is forgotten */
	uint32_t inserts_per_s; /**< new flows that each lcore remembers in a second */
	struct conf_check check;
};

/** What a service of kind = mirror has. */
struct conf_mirror {
	uint32_t file_line;
	uint32_t file_size_line;
	uint32_t files_line;
	uint32_t interface_line;
	char file[CONF_VALUE_LEN];     /**< or "" */
	char interface[CONF_NAME_LEN]; /**< or "" */
	uint64_t file_size;
	uint32_t files;
};

struct conf_service {
	char name[CONF_NAME_LEN];
	uint32_t line;
	uint32_t udp_line;
	uint32_t address_line;
	uint32_t port_line;
	uint32_t sequence_line;
	uint32_t format_line;
	uint32_t rcvbuf_line;
	bool has_kind;
	enum conf_kind kind;
	uint16_t udp_port;
	struct sl_addr address; /**< :: for any */
	bool has_address;
	char port[CONF_NAME_LEN];     /**< name of a port, or "" for all */
	uint64_t rcvbuf;	      /**< 0: the default */
	enum stamp_sequence sequence; /**< of a reflector */
	enum stamp_format format;     /**< likewise */
	struct conf_forward forward;  /**< of kind = forward */
	struct conf_mirror mirror;    /**< of kind = mirror */
};

/** Where counters are served for scrapers: a path, or a port above 0, or neither. */
struct conf_metrics {
	uint32_t line; /**< 0: no such section */
	uint32_t listen_line;
	char path[100]; /**< of a unix socket */
	struct sl_addr addr;
	uint16_t port;
};

struct conf {
	char name[CONF_NAME_LEN]; /**< "" unless given: tells daemons on one machine apart */
	struct conf_lcores lcores;
	uint32_t lcores_line;
	uint32_t memory_mb;
	uint32_t memory_line;
	enum conf_hugepages hugepages;
	uint32_t hugepages_line;
	int log_level; /**< RTE_LOG_... */
	enum conf_idle idle;
	bool secondary; /**< other DPDK processes may attach */
	uint32_t secondary_line;
	struct conf_metrics metrics;
	uint32_t idle_line;
	uint16_t ndrivers;
	char driver[CONF_DRIVERS_MAX][CONF_VALUE_LEN];
	uint32_t driver_line;
	uint16_t nports;
	struct conf_port port[CONF_PORTS_MAX];
	uint16_t nvlans;
	struct conf_port vlan[CONF_VLANS_MAX];
	uint16_t nroutes;
	struct conf_route route[CONF_ROUTES_MAX];
	uint16_t nservices;
	struct conf_service service[CONF_SERVICES_MAX];
	uint16_t nbackends;
	struct conf_backend backend[CONF_BACKENDS_MAX];
	uint16_t nbridges;
	struct conf_bridge bridge[CONF_BRIDGES_MAX];
};

/** How a kind reads in the file. */
const char *conf_kind_name(enum conf_kind kind);
/** How a way of being idle reads in the file. */
const char *conf_idle_name(enum conf_idle idle);
/** How a log level reads in the file. */
const char *conf_log_name(int level);

/**
 * Read a text.
 *
 * @param conf  filled; of use only if mistakes_count(m) is 0
 * Caller: control path.
 */
void conf_read_text(const char *text, size_t len, struct conf *conf, struct mistakes *m);

/** Read a file; one that cannot be opened is a mistake. */
void conf_read_file(const char *path, struct conf *conf, struct mistakes *m);

/** Contradictions between sections, and what is missing. conf_read_text calls it. */
void conf_cross(struct conf *conf, struct mistakes *m);

/** Find what the machine does not have: processors, interfaces, memory, privileges, driver files.
 */
void conf_machine(const struct conf *conf, struct mistakes *m);

/** Find that the processor cannot do what `idle` asks for; conf_machine calls it. */
void conf_idle_machine(const struct conf *conf, struct mistakes *m);

/** Does the port's one queue serve several lcores, so that flows are spread in software? */
bool conf_spread(const struct conf_port *port);

/** Transmit queues that a port gets: one for each of its receive queues, and one for each lcore
 * that does not receive from it. */
uint16_t conf_tx_queues(const struct conf *conf, const struct conf_port *port);

/** The port or VLAN of that name, or NULL. */
const struct conf_port *conf_find_port(const struct conf *conf, const char *name);

/** Do two routes say the same? */
bool conf_route_equal(const struct conf_route *a, const struct conf_route *b);

/** Write a port's device with its arguments, those that follow from the rest included. */
void conf_devargs(const struct conf *conf, const struct conf_port *p, char *text, size_t size);

/** Descriptors of a receive queue of a port. */
uint16_t conf_ring(const struct conf_port *port);

/** Mbufs that the daemon makes: what rings, queues of services and caches can hold. */
uint32_t conf_mbufs(const struct conf *conf);
/** Bytes of data in an mbuf, headroom included. */
uint16_t conf_mbuf_size(const struct conf *conf);
/** Memory that goes with it, in MB. */
uint32_t conf_memory_needed_mb(const struct conf *conf);

/**
 * Tell what differs between two configurations that only a restart can change.
 *
 * @param m   takes a mistake for each, at the line of the new file where it has one
 */
void conf_restart_only(const struct conf *now, const struct conf *next, struct mistakes *m);

/** Do they write to the same place in the same way, if they are mirrors? */
bool conf_mirror_equal(const struct conf_service *a, const struct conf_service *b);

/** Do both serve counters at the same place, or neither at any? */
bool conf_metrics_equal(const struct conf_metrics *a, const struct conf_metrics *b);

/** Are two services the same in all that concerns traffic? Of kind = forward: but for the back
 * ends, see conf_forward_equal. */
bool conf_service_equal(const struct conf_service *a, const struct conf_service *b);

/** Is a back end the same one: name, address and UDP port? Its flows may stay then. */
bool conf_backend_equal(const struct conf_backend *a, const struct conf_backend *b);

/** Are back ends checked in the same way? */
bool conf_check_equal(const struct conf_check *a, const struct conf_check *b);

/** The port that has an address, or NULL. */
const struct conf_port *conf_port_of(const struct conf *conf, const struct sl_addr *a);

/** Does a change from one to the other need a service of kind = forward that is made anew, without
 * the flows that it knows? */
bool conf_forward_remade(const struct conf_forward *a, const struct conf_forward *b);

/** Have two services of kind = forward the same settings and back ends? a is of conf x, b of y. */
bool conf_forward_equal(const struct conf *x, const struct conf_service *a, const struct conf *y,
	const struct conf_service *b);

#endif
