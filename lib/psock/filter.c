/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Classic BPF, as setsockopt hands it over. */
#include <errno.h>
#include <string.h>

#include <pcap/pcap.h>

#include "psock_priv.h"
#include "sl_bpf.h"

#define PROGRAM_MAX 4096

/* What setsockopt gets: struct sock_fprog of <linux/filter.h>, whose instructions are laid out as
 * those of <pcap/bpf.h>. */
struct program {
	unsigned short len;
	struct bpf_insn *filter;
};

int
psock_filter_load(const void *value, socklen_t len, struct sl_bpf **out)
{
	struct bpf_program program;
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
	program = (struct bpf_program){.bf_len = p.len, .bf_insns = p.filter};
	return sl_bpf_create(&program, out);
}
