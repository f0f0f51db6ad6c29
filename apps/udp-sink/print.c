/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sink.h"

/* Flows with gaps that a table names; JSON names more. */
#define FLOWS_SHOWN 8
#define FLOWS_JSON 64

/* Prints `name: n` pairs, as a table's last column or as a JSON object's members. */
struct drops {
	bool json;
	bool any;
};

static void
drop(struct drops *d, const char *name, uint64_t n)
{
	if (n == 0)
		return;
	if (d->json)
		printf("%s\"%s\":%" PRIu64, d->any ? "," : "", name, n);
	else
		printf("%s%s:%" PRIu64, d->any ? " " : "", name, n);
	d->any = true;
}

static void
drops_print(struct sink *s, bool json)
{
	struct drops d = {json, false};
	uint64_t now[SL_OUTCOME_COUNT] = {0};
	uint64_t missed;

	if (s->opt->kernel) {
		missed = sink_kernel_drops(s);
		drop(&d, "kernel", missed - s->missed);
		if (!json && !d.any)
			printf("-");
		s->missed = missed;
		return;
	}
	missed = app_stack_missed(s->stack);
	sl_inet_outcomes(s->stack->inet, SL_INET_NO_WORKER, now);
	for (int i = 0; i < SL_OUTCOME_COUNT; i++) {
		const struct sl_outcome_info *info = sl_outcome_info((enum sl_outcome)i);

		if (info->drop)
			drop(&d, info->name, now[i] - s->outcomes[i]);
	}
	drop(&d, "port_missed", missed - s->missed);
	drop(&d, "efault", s->row.faults);
	if (!json && !d.any)
		printf("-");
	memcpy(s->outcomes, now, sizeof(now));
	s->missed = missed;
}

static void
check_json(const struct payload_check *c)
{
	struct payload_totals t;
	unsigned int shown = 0;

	payload_check_totals(c, &t);
	printf(",\"check\":{\"flows\":%u,\"received\":%" PRIu64 ",\"lost\":%" PRIu64
	       ",\"reordered\":%" PRIu64 ",\"duplicated\":%" PRIu64 ",\"foreign\":%" PRIu64
	       ",\"corrupt\":%" PRIu64 ",\"uneven\":[",
		c->nflows, t.received, t.lost, t.reordered, t.duplicated, c->foreign, c->corrupt);
	for (uint32_t i = 0; i < PAYLOAD_FLOWS && shown < FLOWS_JSON; i++) {
		const struct payload_flow *f = c->flows[i];

		if (f == NULL || payload_flow_lost(f) + f->reordered + f->duplicated == 0)
			continue;
		printf("%s{\"flow\":%u,\"received\":%" PRIu64 ",\"lost\":%" PRIu64
		       ",\"reordered\":%" PRIu64 ",\"duplicated\":%" PRIu64 "}",
			shown++ ? "," : "", i, f->received, payload_flow_lost(f), f->reordered,
			f->duplicated);
	}
	printf("]}");
}

static void
check_text(const struct payload_check *c)
{
	struct payload_totals t;
	unsigned int shown = 0;

	payload_check_totals(c, &t);
	printf("  numbers so far: %u flows, %" PRIu64 " received, %" PRIu64 " lost, %" PRIu64
	       " reordered, %" PRIu64 " duplicated, %" PRIu64 " corrupt, %" PRIu64
	       " not numbered\n",
		c->nflows, t.received, t.lost, t.reordered, t.duplicated, c->corrupt, c->foreign);
	for (uint32_t i = 0; i < PAYLOAD_FLOWS && shown < FLOWS_SHOWN; i++) {
		const struct payload_flow *f = c->flows[i];

		if (f == NULL || payload_flow_lost(f) + f->reordered + f->duplicated == 0)
			continue;
		printf("    flow %u: %" PRIu64 " received, %" PRIu64 " lost, %" PRIu64
		       " reordered, %" PRIu64 " duplicated\n",
			i, f->received, payload_flow_lost(f), f->reordered, f->duplicated);
		shown++;
	}
}

static void
call_label(const struct sink *s, enum sink_call call, char *text, size_t size)
{
	if (call == SINK_RECVMMSG || call == SINK_BURST)
		snprintf(text, size, "%s/%u", sink_call_name(call), s->opt->batch);
	else
		snprintf(text, size, "%s", sink_call_name(call));
}

static void
head(void)
{
	printf("%-14s %4s %11s %9s %11s %8s %8s  %s\n", "call/batch", "run", "count", "ns/pkt",
		"pps", "cycles", "payload", "drops");
}

/* One line, once: the usual cause of a sink that counts and receives nothing. */
static void
say_partial(struct sink *s, uint64_t n)
{
	if (n == 0 || s->partial_said)
		return;
	s->partial_said = true;
	app_note("%" PRIu64 " datagrams came with unfinished checksums, which their sender left to "
		 "hardware that is not there: run \"ethtool -K IFACE tx off\" on the sender's "
		 "interface.",
		n);
}

static void
row_json(struct sink *s, enum sink_call call, uint32_t run, double ns, double payload)
{
	const struct sink_row *r = &s->row;
	bool batched = call == SINK_RECVMMSG || call == SINK_BURST;

	printf("{\"call\":\"%s\",\"batch\":%u,\"run\":%u,\"count\":%" PRIu64
	       ",\"ns_per_packet\":%.2f,\"pps\":%.0f,\"cycles_per_packet\":%.1f,"
	       "\"payload\":%.1f,\"drops\":{",
		sink_call_name(call), batched ? s->opt->batch : 1, run, r->count, ns,
		ns > 0 ? 1e9 / ns : 0, ns * (double)s->tsc_hz / 1e9, payload);
	drops_print(s, true);
	printf("},\"calls\":%" PRIu64, r->calls);
	if (s->opt->touch)
		printf(",\"touch_sum\":%" PRIu64, r->sum);
	if (s->opt->recv_ttl)
		printf(",\"with_ttl\":%" PRIu64 ",\"ttl_min\":%d,\"ttl_max\":%d", r->with_ttl,
			r->ttl_min, r->ttl_max);
	if (s->opt->recv_pktinfo)
		printf(",\"with_pktinfo\":%" PRIu64, r->with_pktinfo);
	if (s->check != NULL)
		check_json(s->check);
	printf("}\n");
}

static void
row_text(struct sink *s, enum sink_call call, uint32_t run, double ns, double payload)
{
	const struct sink_row *r = &s->row;
	char label[32];

	if (s->rows == 0)
		head();
	call_label(s, call, label, sizeof(label));
	printf("%-14s %4u %11" PRIu64 " %9.2f %11.0f %8.1f %8.1f  ", label, run, r->count, ns,
		ns > 0 ? 1e9 / ns : 0, ns * (double)s->tsc_hz / 1e9, payload);
	drops_print(s, false);
	printf("\n");
	if (s->opt->recv_ttl)
		printf("  TTL of %" PRIu64 " datagrams: %d to %d\n", r->with_ttl, r->ttl_min,
			r->ttl_max);
	if (s->opt->recv_pktinfo)
		printf("  destination address of %" PRIu64 " datagrams\n", r->with_pktinfo);
	if (s->check != NULL)
		check_text(s->check);
}

void
sink_print_row(struct sink *s, enum sink_call call, uint32_t run)
{
	const struct sink_row *r = &s->row;
	double cycles = r->timed ? (double)(r->last_tsc - r->first_tsc) / (double)r->timed : 0;
	double ns = cycles * 1e9 / (double)s->tsc_hz;
	double payload = r->count ? (double)r->bytes / (double)r->count : 0;
	uint64_t partial = s->outcomes[SL_RX_UDP_CSUM_PARTIAL];

	if (s->opt->json)
		row_json(s, call, run, ns, payload);
	else
		row_text(s, call, run, ns, payload);
	fflush(stdout);
	say_partial(s, s->outcomes[SL_RX_UDP_CSUM_PARTIAL] - partial);
}

void
sink_print_end(struct sink *s)
{
	struct drops d = {s->opt->json, false};
	uint64_t counts[SL_OUTCOME_COUNT];
	uint64_t held = sl_inet_held(s->stack->inet, SL_INET_NO_WORKER);
	uint64_t queued = 0;

	for (uint16_t i = 0; i < s->nsocks; i++) {
		struct sl_udp_sock_stats stats;

		sl_udp_sock_stats(s->socks[i], &stats);
		queued += stats.queue.appended - stats.queue.released;
	}
	sl_inet_outcomes(s->stack->inet, SL_INET_NO_WORKER, counts);
	if (s->opt->json)
		printf("{\"call\":\"end\",\"entered\":%" PRIu64 ",\"held\":%" PRIu64
		       ",\"left_in_queue\":%" PRIu64
		       ",\"port_missed\":%" PRIu64 ",\"outcomes\":{",
			sl_inet_received(s->stack->inet, SL_INET_NO_WORKER), held, queued,
			app_stack_missed(s->stack));
	else
		printf("entered the stack: %" PRIu64 " packets: ",
			sl_inet_received(s->stack->inet, SL_INET_NO_WORKER));
	for (int i = 0; i < SL_OUTCOME_COUNT; i++)
		drop(&d, sl_outcome_info((enum sl_outcome)i)->name, counts[i]);
	printf(s->opt->json ? "}}\n" : "\n");
	if (!s->opt->json && held != 0)
		printf("still held at the end: %" PRIu64 " fragments of incomplete datagrams\n", held);
	if (!s->opt->json && queued != 0)
		printf("left in the queue at the end: %" PRIu64 " datagrams\n", queued);
	fflush(stdout);
	say_partial(s, counts[SL_RX_UDP_CSUM_PARTIAL]);
}

void
sink_print_progress(const struct sink *s, enum sink_call call, uint32_t run, bool last)
{
	const struct sink_row *r = &s->row;
	double seconds = (double)(r->last_tsc - r->first_tsc) / (double)s->tsc_hz;
	char label[32];

	if (last) {
		fprintf(stderr, "\r%78s\r", "");
		return;
	}
	call_label(s, call, label, sizeof(label));
	fprintf(stderr, "\r%s, run %u: %" PRIu64 " datagrams, %.3f Mpps   ", label, run, r->count,
		seconds > 0 ? (double)r->timed / seconds / 1e6 : 0);
	fflush(stderr);
}
