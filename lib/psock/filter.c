/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Classic BPF: rte_bpf turns a program into eBPF, checks that it can be run on a packet without
 * harm, and compiles it where it can. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <pcap/bpf.h>
#include <rte_bpf.h>
#include <rte_malloc.h>

#include "psock_priv.h"

#define PROGRAM_MAX 4096

struct psock_filter {
	struct rte_bpf *bpf;
	uint64_t (*jit)(void *);
};

/* What setsockopt gets: struct sock_fprog of <linux/filter.h>, whose instructions are laid out as
 * those of <pcap/bpf.h>. */
struct program {
	unsigned short len;
	struct bpf_insn *filter;
};

static struct rte_bpf *
load(const struct program *p)
{
	struct bpf_program program = {.bf_len = p->len, .bf_insns = p->filter};
	struct rte_bpf_prm *prm = rte_bpf_convert(&program);
	struct rte_bpf *bpf;

	if (prm == NULL)
		return NULL;
	bpf = rte_bpf_load(prm);
	rte_free(prm);
	return bpf;
}

int
psock_filter_load(const void *value, socklen_t len, struct psock_filter **out)
{
	struct rte_bpf_jit jit = {0};
	struct psock_filter *f;
	struct program p;

	if (len != sizeof(p))
		return -EINVAL;
	if (value == NULL)
		return -EFAULT;
	memcpy(&p, value, sizeof(p));
	if (p.len == 0 || p.len > PROGRAM_MAX)
		return -EINVAL;
	if (p.filter == NULL)
		return -EFAULT;
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return -ENOMEM;
	f->bpf = load(&p);
	if (f->bpf == NULL) {
		free(f);
		return -EINVAL;
	}
	if (rte_bpf_get_jit(f->bpf, &jit) == 0)
		f->jit = jit.func;
	*out = f;
	return 0;
}

void
psock_filter_free(struct psock_filter *f)
{
	if (f == NULL)
		return;
	rte_bpf_destroy(f->bpf);
	free(f);
}

uint32_t
psock_filter_run(const struct psock_filter *f, struct rte_mbuf *m)
{
	uint64_t keep = f->jit != NULL ? f->jit(m) : rte_bpf_exec(f->bpf, m);

	return (uint32_t)keep;
}
