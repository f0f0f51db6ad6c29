/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "flood.h"
#include "sl_errno.h"

/* Big, so not on the stack. */
static struct flood flood;

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool
buffers_create(struct flood *f)
{
	/* An odd number of cache lines apart, so that they do not share cache sets. */
	size_t stride = ((f->opt->size + 63) / 64 | 1) * 64;

	f->bufs = calloc(f->opt->batch, stride);
	if (f->bufs == NULL)
		return false;
	for (unsigned int i = 0; i < f->opt->batch; i++) {
		f->iov[i].iov_base = f->bufs + i * stride;
		f->iov[i].iov_len = f->opt->size;
		f->msgs[i].msg_hdr.msg_iov = &f->iov[i];
		f->msgs[i].msg_hdr.msg_iovlen = 1;
	}
	return true;
}

/* How many may be sent now, by batch, count and rate; 0 when it is too early. */
static unsigned int
room(const struct flood *f, uint64_t now)
{
	const struct flood_options *o = f->opt;
	uint64_t n = o->batch;

	if (o->count != 0)
		n = RTE_MIN(n, o->count - f->sent);
	if (o->rate != 0) {
		uint64_t due = (uint64_t)((double)(now - f->first_ns) * (double)o->rate / 1e9) + 1;

		n = RTE_MIN(n, due > f->sent ? due - f->sent : 0);
	}
	return (unsigned int)n;
}

/* Send one batch on a flow. 0, or the mistake or fault that ends the run. */
static int
send_batch(struct flood *f, uint16_t flow, unsigned int n, uint64_t now)
{
	int sent;

	if (f->opt->check)
		for (unsigned int i = 0; i < n; i++)
			payload_write(f->iov[i].iov_base, f->opt->size,
				(uint16_t)(f->opt->first_flow + flow), f->sequence[flow] + i, now);
	sent = f->sender->send(f, flow, n);
	if (sent > 0) {
		/* What was not sent is built again, under the same numbers. */
		f->sequence[flow] += (uint32_t)sent;
		f->sent += (uint64_t)sent;
		return 0;
	}
	if (sent == -ENOBUFS || sent == -EAGAIN) {
		f->retries++;
		f->sender->idle(f, 0);
		return 0;
	}
	if (sent == -ECONNREFUSED || sent == -EHOSTUNREACH) {
		/* About an earlier datagram; this one has not been tried. */
		f->unreachable++;
		return 0;
	}
	return sent == -EINTR ? 0 : sent;
}

static void
run(struct flood *f)
{
	const struct flood_options *o = f->opt;
	bool progress = isatty(STDERR_FILENO) != 0;
	uint16_t flow = 0;
	uint64_t shown;
	int ret = 0;

	f->first_ns = now_ns();
	f->first_tsc = rte_rdtsc();
	shown = f->first_ns;
	while (!app_stopped() && ret == 0 && (o->count == 0 || f->sent < o->count)) {
		uint64_t now = now_ns();
		unsigned int n = room(f, now);

		if (o->duration_s != 0 && now - f->first_ns > o->duration_s * 1000000000)
			break;
		if (progress && now - shown > 500000000) {
			fprintf(stderr, "\r%" PRIu64 " datagrams   ", f->sent);
			shown = now;
		}
		if (n == 0) {
			f->sender->idle(f, 1000000000 / o->rate);
			continue;
		}
		ret = send_batch(f, flow, n, now);
		flow = (uint16_t)((flow + 1) % o->flows);
	}
	f->last_ns = now_ns();
	f->last_tsc = rte_rdtsc();
	if (progress)
		fprintf(stderr, "\r%40s\r", "");
	if (ret == -EMSGSIZE)
		app_fail("--size %u does not fit the path: %s.", o->size, sl_strerror(ret));
	if (ret != 0)
		app_fail("after %" PRIu64 " datagrams: %s.", f->sent, sl_strerror(ret));
}

static void
print_drops(struct flood *f)
{
	bool json = f->opt->json;
	const char *sep = "";
	const char *name;
	uint64_t n = 0;

	for (unsigned int i = 0; (name = f->sender->drop(f, i, &n)) != NULL; i++) {
		if (n == 0)
			continue;
		printf(json ? "%s\"%s\":%" PRIu64 : "%s%s:%" PRIu64, sep, name, n);
		sep = json ? "," : " ";
	}
	if (!json && sep[0] == '\0')
		printf("-");
}

static void
print_row(struct flood *f)
{
	const struct flood_options *o = f->opt;
	double n = f->sent ? (double)f->sent : 1;
	double ns = (double)(f->last_ns - f->first_ns) / n;
	double cycles = (double)(f->last_tsc - f->first_tsc) / n;
	double pps = ns > 0 ? 1e9 / ns : 0;

	if (o->json)
		printf("{\"call\":\"sendmmsg\",\"batch\":%u,\"run\":1,\"count\":%" PRIu64
		       ",\"ns_per_packet\":%.2f,\"pps\":%.0f,\"cycles_per_packet\":%.1f,"
		       "\"payload\":%u,\"flows\":%u,\"retries\":%" PRIu64
		       ",\"unreachable\":%" PRIu64 ",\"drops\":{",
			o->batch, f->sent, ns, pps, cycles, o->size, o->flows, f->retries,
			f->unreachable);
	else
		printf("%-14s %4s %11s %9s %11s %8s %8s  %s\n%s/%-*u %4u %11" PRIu64
		       " %9.2f %11.0f %8.1f %8u  ",
			"call/batch", "run", "count", "ns/pkt", "pps", "cycles", "payload", "drops",
			"sendmmsg", 5, o->batch, 1, f->sent, ns, pps, cycles, o->size);
	print_drops(f);
	printf(o->json ? "}}\n" : "\n");
	if (!o->json && f->unreachable != 0)
		printf("  %" PRIu64 " reports that the destination was unreachable\n",
			f->unreachable);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	struct flood_options opt;
	struct flood *f = &flood;
	int eal_argc;
	char **own;
	int own_argc = app_args_split(argc, argv, &eal_argc, &own);

	app_name_set("sluice-udp-flood");
	flood_options_read(own_argc, own, &opt);
	f->opt = &opt;
	f->family = opt.ipv6 || !sl_addr_is_v4(&opt.to) ? AF_INET6 : AF_INET;
	f->to_len = app_sockaddr(&opt.to, opt.port, f->family, &f->to);
	f->sender = opt.kernel ? &flood_kernel : &flood_lcore;
	app_catch_signals();
	if (!buffers_create(f))
		app_fail("no memory for %u buffers of %u bytes.", opt.batch, opt.size);
	f->sender->open(f, eal_argc, argv);
	run(f);
	f->sender->finish(f);
	print_row(f);
	f->sender->close(f);
	free(f->bufs);
	return 0;
}
