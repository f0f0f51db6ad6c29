/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef FLOOD_H
#define FLOOD_H

/**
 * @file
 * sluice-udp-flood: sends UDP in several flows, from one lcore or from ordinary kernel sockets,
 * with payloads that sluice-udp-sink --check can verify.
 *
 * A *sender* is one of the two ways. A *flow* is a socket of its own, and so a source port.
 */

#include "../common/app.h"
#include "../common/payload.h"

#define FLOOD_BATCH_MAX 1024
#define FLOOD_FLOWS_MAX 1024

struct flood_options {
	const char *iface;
	bool kernel;
	bool ipv6;
	bool check;
	bool json;
	bool to_given;
	struct sl_addr to;
	uint16_t port;
	uint16_t source_port; /**< of the first flow; 0: whatever is free */
	uint16_t flows;
	uint16_t first_flow;
	uint16_t batch;
	uint32_t size;
	uint64_t count; /**< 0: no limit */
	uint64_t duration_s;
	uint64_t rate; /**< datagrams a second, 0: no limit */
	struct app_stack_conf stack;
};

struct flood {
	const struct flood_options *opt;
	const struct flood_sender *sender;
	struct sockaddr_storage to;
	socklen_t to_len;
	int family;
	uint32_t sequence[FLOOD_FLOWS_MAX];
	uint64_t sent;
	uint64_t retries; /**< sends put off because there was no room */
	uint64_t
		unreachable; /**< ICMP errors about earlier datagrams, as the calls reported them */
	uint64_t first_ns, last_ns, first_tsc, last_tsc;
	struct mmsghdr msgs[FLOOD_BATCH_MAX];
	struct iovec iov[FLOOD_BATCH_MAX];
	uint8_t *bufs;
};

struct flood_sender {
	void (*open)(struct flood *f, int eal_argc, char **eal_argv);
	/** As sendmmsg on that flow's socket: number sent, or -errno. */
	int (*send)(struct flood *f, uint16_t flow, unsigned int n);
	/** Nothing to send for so long, or no room: let others work. */
	void (*idle)(struct flood *f, uint64_t ns);
	/** The last datagrams leave; counters are exact afterwards. */
	void (*finish)(struct flood *f);
	/** n of the drop with that index as its name says; NULL when the index is past the last. */
	const char *(*drop)(struct flood *f, unsigned int i, uint64_t *n);
	void (*close)(struct flood *f);
};

extern const struct flood_sender flood_kernel;
extern const struct flood_sender flood_lcore;

/** Read the options; mistakes end the program. */
void flood_options_read(int argc, char **argv, struct flood_options *opt);

#endif
