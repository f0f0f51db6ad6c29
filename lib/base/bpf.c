/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <pcap/pcap.h>
#include <rte_bpf.h>
#include <rte_malloc.h>

#include "sl_bpf.h"

#define COPY_MAX 65536u

struct sl_bpf {
	unsigned int len;
	struct bpf_insn insn[];
};

/*
 * libpcap checks jumps, places in memory and divisions by zero, but ends the process on an
 * instruction that it does not know, and may run in loops. DPDK knows instructions, and refuses
 * loops.
 */
static bool
good(const struct bpf_program *program)
{
	struct rte_bpf_prm *prm;
	struct rte_bpf *bpf;

	if (program->bf_len == 0 || bpf_validate(program->bf_insns, (int)program->bf_len) == 0)
		return false;
	prm = rte_bpf_convert(program);
	if (prm == NULL)
		return false;
	bpf = rte_bpf_load(prm);
	rte_free(prm);
	if (bpf == NULL)
		return false;
	rte_bpf_destroy(bpf);
	return true;
}

int
sl_bpf_create(const struct bpf_program *program, struct sl_bpf **out)
{
	struct sl_bpf *f;
	size_t size = program->bf_len * sizeof(f->insn[0]);

	if (!good(program))
		return -EINVAL;
	f = malloc(sizeof(*f) + size);
	if (f == NULL)
		return -ENOMEM;
	f->len = program->bf_len;
	memcpy(f->insn, program->bf_insns, size);
	*out = f;
	return 0;
}

void
sl_bpf_free(struct sl_bpf *f)
{
	free(f);
}

/* Apart, so that packets of one segment do not pay for the place. */
static __rte_noinline uint32_t
run_copied(const struct sl_bpf *f, const struct rte_mbuf *m)
{
	uint8_t copy[COPY_MAX];
	uint32_t len = RTE_MIN(m->pkt_len, COPY_MAX);
	const uint8_t *data = rte_pktmbuf_read(m, 0, len, copy);

	return data != NULL ? bpf_filter(f->insn, data, m->pkt_len, len) : 0;
}

uint32_t
sl_bpf_run(const struct sl_bpf *f, const struct rte_mbuf *m)
{
	if (m->nb_segs > 1)
		return run_copied(f, m);
	return bpf_filter(f->insn, rte_pktmbuf_mtod(m, const uint8_t *), m->pkt_len, m->data_len);
}
