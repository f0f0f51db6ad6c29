/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_bpf.h>
#include <rte_malloc.h>

#include "filter.h"

#define FRAME_MAX 65535

struct filter {
	struct rte_bpf *bpf; /* NULL: every packet */
	uint64_t (*jit)(void *packet);
};

/* What DPDK makes of a program, which it checks. */
static int
load(struct filter *f, const struct bpf_program *program)
{
	struct rte_bpf_prm *prm = rte_bpf_convert(program);
	struct rte_bpf_jit jit = {0};

	if (prm == NULL)
		return -EINVAL;
	f->bpf = rte_bpf_load(prm);
	rte_free(prm);
	if (f->bpf == NULL)
		return -EINVAL;
	if (rte_bpf_get_jit(f->bpf, &jit) == 0)
		f->jit = jit.func;
	return 0;
}

static int
compile(struct filter *f, const char *expression, char *why, size_t size)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, FRAME_MAX);
	struct bpf_program program;
	int ret;

	if (pcap == NULL) {
		snprintf(why, size, "no memory");
		return -ENOMEM;
	}
	if (pcap_compile(pcap, &program, expression, 1, PCAP_NETMASK_UNKNOWN) != 0) {
		snprintf(why, size, "the filter \"%s\" is not understood: %s", expression,
			pcap_geterr(pcap));
		pcap_close(pcap);
		return -EINVAL;
	}
	ret = load(f, &program);
	if (ret != 0)
		snprintf(why, size, "the filter \"%s\" cannot be run here", expression);
	pcap_freecode(&program);
	pcap_close(pcap);
	return ret;
}

int
filter_create(const char *expression, struct filter **out, char *why, size_t size)
{
	struct filter *f = calloc(1, sizeof(*f));
	int ret = 0;

	if (f == NULL) {
		snprintf(why, size, "no memory");
		return -ENOMEM;
	}
	if (expression[0] != '\0')
		ret = compile(f, expression, why, size);
	if (ret == 0)
		*out = f;
	else
		filter_free(f);
	return ret;
}

void
filter_free(struct filter *f)
{
	if (f == NULL)
		return;
	rte_bpf_destroy(f->bpf);
	free(f);
}

bool
filter_match(const struct filter *f, const struct rte_mbuf *m)
{
	void *packet = RTE_PTR_ADD(m, 0); /* which the library does not change */

	if (f->bpf == NULL)
		return true;
	return (f->jit != NULL ? f->jit(packet) : rte_bpf_exec(f->bpf, packet)) != 0;
}
