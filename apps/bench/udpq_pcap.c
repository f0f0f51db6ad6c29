/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pcap/pcap.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "sl_errno.h"

#include "udpq_pcap.h"

#define SRC_PORT_FIRST 10000
#define SRC_ADDR_FIRST 0xc6120100u /* 198.18.1.0 */
#define DST_ADDR 0xc6120002u	   /* PCAP_DST */

static void
frame_make(uint8_t frame[PCAP_FRAME], uint32_t flow)
{
	static const struct rte_ether_hdr eth = {
		/* What net_pcap gives to its first port, as traffic to a real one would have. */
		.dst_addr = {{0x02, 'p', 'c', 'a', 'p', 0}},
		.src_addr = {{0x02, 0, 0, 0, 0, 1}},
		.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4),
	};
	struct rte_ipv4_hdr ip = {
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = RTE_BE16(PCAP_FRAME - 14),
		.packet_id = rte_cpu_to_be_16((uint16_t)flow),
		.time_to_live = 64,
		.next_proto_id = IPPROTO_UDP,
		.src_addr = rte_cpu_to_be_32(SRC_ADDR_FIRST + flow),
		.dst_addr = RTE_BE32(DST_ADDR),
	};
	struct {
		struct rte_udp_hdr udp;
		uint8_t payload[PCAP_PAYLOAD];
	} l4 = {
		.udp =
			{
				.src_port = rte_cpu_to_be_16((uint16_t)(SRC_PORT_FIRST + flow)),
				.dst_port = RTE_BE16(PCAP_DST_PORT),
				.dgram_len = RTE_BE16(8 + PCAP_PAYLOAD),
			},
	};

	for (uint32_t i = 0; i < PCAP_PAYLOAD; i++)
		l4.payload[i] = pcap_payload_byte(flow, i);
	ip.hdr_checksum = rte_ipv4_cksum(&ip);
	l4.udp.dgram_cksum = rte_ipv4_udptcp_cksum(&ip, &l4);
	memcpy(frame, &eth, sizeof(eth));
	memcpy(frame + sizeof(eth), &ip, sizeof(ip));
	memcpy(frame + sizeof(eth) + sizeof(ip), &l4, PCAP_FRAME - sizeof(eth) - sizeof(ip));
}

static int
frames_dump(pcap_t *pcap, FILE *file)
{
	struct pcap_pkthdr header = {.caplen = PCAP_FRAME, .len = PCAP_FRAME};
	pcap_dumper_t *dumper = pcap_dump_fopen(pcap, file);
	uint8_t frame[PCAP_FRAME];
	int ret;

	if (dumper == NULL)
		return -EIO;
	for (uint32_t flow = 0; flow < PCAP_FLOWS; flow++) {
		frame_make(frame, flow);
		pcap_dump((u_char *)dumper, &header, frame);
	}
	ret = pcap_dump_flush(dumper) == 0 ? 0 : -EIO;
	pcap_dump_close(dumper); /* closes file, too */
	return ret;
}

int
pcap_file_write(char *path, size_t size)
{
	const char *dir = getenv("TMPDIR");
	pcap_t *pcap;
	FILE *file;
	int fd, ret;

	if ((size_t)snprintf(path, size, "%s/sluice-bench-XXXXXX", dir != NULL ? dir : "/tmp") >=
		size)
		return -ENAMETOOLONG;
	fd = sl_sys(mkstemp(path));
	if (fd < 0)
		return fd;
	file = fdopen(fd, "wb");
	pcap = pcap_open_dead(DLT_EN10MB, RTE_ETHER_MAX_LEN);
	if (file != NULL && pcap != NULL) {
		ret = frames_dump(pcap, file);
	} else {
		ret = -ENOMEM;
		close(fd);
	}
	if (pcap != NULL)
		pcap_close(pcap);
	if (ret != 0)
		unlink(path);
	return ret;
}
