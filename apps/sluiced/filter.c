/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>

#include "filter.h"
#include "sl_bpf.h"

#define FRAME_MAX 65535

struct filter {
	struct sl_bpf *bpf; /* NULL: every packet */
};

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
	ret = sl_bpf_create(&program, &f->bpf);
	if (ret != 0)
		snprintf(why, size, "the filter \"%s\" cannot be run here: %s", expression,
			ret == -ENOMEM ? "no memory" : "it has loops");
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
	sl_bpf_free(f->bpf);
	free(f);
}

bool
filter_match(const struct filter *f, const struct rte_mbuf *m)
{
	return f->bpf == NULL || sl_bpf_run(f->bpf, m) != 0;
}
