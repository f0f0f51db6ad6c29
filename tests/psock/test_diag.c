/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* /sluice/packet, as whoever asks the telemetry socket sees it: every socket, what it is set to,
 * its rings, its group, its counters. */
#include <linux/filter.h>
#include <sys/un.h>

#include "psock_help.h"

#define NONE SL_PSOCK_NO_WORKER

static char answer[1 << 16];

static void
ask(const char *command)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ssize_t n;

	REQUIRE(fd >= 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/dpdk_telemetry.v2",
		rte_eal_get_runtime_dir());
	REQUIRE(connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	REQUIRE(recv(fd, answer, sizeof(answer), 0) > 0); /* what it says of itself */
	REQUIRE(send(fd, command, strlen(command), 0) > 0);
	n = recv(fd, answer, sizeof(answer) - 1, 0);
	REQUIRE(n > 0);
	answer[n] = '\0';
	close(fd);
}

/* Is each of the words, which end with NULL, in the answer? */
static void
check_says(const char *const *words)
{
	for (; *words != NULL; words++) {
		if (strstr(answer, *words) == NULL)
			fprintf(stderr, "no %s in: %s\n", *words, answer);
		CHECK(strstr(answer, *words) != NULL);
	}
}

static void
nothing_is_open(void)
{
	ask("/sluice/packet");
	CHECK(strstr(answer, "socket_") == NULL);
}

/* A member of a group with a receive ring, a filter and a drop. */
static void
a_receiver_is_shown(void)
{
	static struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, 0xffff)};
	static const char *const words[] = {"\"type\":\"raw\"", "\"protocol\":3", "\"ifindex\":1",
		"\"reserve\":16", "\"copy_thresh\":1", "\"timestamp\":16", "\"running\":1",
		"\"auxdata\":1", "\"origdev\":0", "\"vnet_hdr\":12", "\"loss\":0", "\"filter\":1",
		"\"fanout_id\":9", "\"fanout_type\":1", "\"rx_packets\":9", "\"rx_drops\":1",
		"\"rx_ring\":{\"version\":2,\"block_size\":4096,\"block_nr\":4,\"frame_size\":2048,"
		"\"frame_nr\":8}",
		NULL};
	struct sock_fprog prog = {1, all};
	struct sl_psock *s = sock_bound(SOCK_RAW, ETH_P_ALL);

	REQUIRE(sock_set(s, PACKET_RESERVE, 16) == 0 && sock_set(s, PACKET_COPY_THRESH, 1) == 0);
	REQUIRE(sock_set(s, PACKET_TIMESTAMP, 16) == 0 && sock_set(s, PACKET_AUXDATA, 1) == 0);
	REQUIRE(sock_set(s, 24 /* PACKET_VNET_HDR_SZ */, 12) == 0);
	REQUIRE(sl_psock_setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog), NONE) ==
		0);
	REQUIRE(sock_set(s, PACKET_FANOUT, 9 | PACKET_FANOUT_LB << 16) == 0);
	REQUIRE(sock_ring(s, PACKET_RX_RING, TPACKET_V2) == 0);
	for (uint32_t i = 0; i < FRAMES + 1; i++)
		show(frame(0x0800, 60), 0);
	ask("/sluice/packet");
	check_says(words);
	CHECK(strstr(answer, "tx_ring") == NULL);
	sl_psock_close(s, NONE);
}

/* A sender with slots in flight, and a bad one. */
static void
a_sender_is_shown(void)
{
	static const char *const words[] = {"\"type\":\"dgram\"", "\"protocol\":0", "\"running\":0",
		"\"loss\":1", "\"has_off\":0", "\"tx_packets\":2", "\"tx_bytes\":200",
		"\"tx_bad\":1", "\"tx_segments\":0", "\"tx_dropped\":0", "\"tx_pending\":0",
		"\"tx_ring\":{\"version\":3,\"block_size\":4096,\"block_nr\":4,\"frame_size\":2048,"
		"\"frame_nr\":8,\"retire_ms\":0,\"sizeof_priv\":0,\"features\":0}",
		NULL};
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = IFINDEX, .sll_halen = 6};
	struct msghdr msg = {.msg_name = &to, .msg_namelen = sizeof(to)};
	struct sl_psock *s = sock_open(SOCK_DGRAM, 0);
	uint8_t *map;

	REQUIRE(sock_bind(s, IFINDEX, 0, NONE) == 0 && sock_set(s, PACKET_LOSS, 1) == 0);
	REQUIRE(sock_ring(s, PACKET_TX_RING, TPACKET_V3) == 0);
	map = sock_map(s, FRAME * FRAMES);
	sl_pktring_request(TPACKET_V3, map, 100);
	sl_pktring_request(TPACKET_V3, map + FRAME, 1501);
	sl_pktring_request(TPACKET_V3, map + 2 * FRAME, 100);
	CHECK_EQ(sl_psock_sendmsg(s, &msg, MSG_DONTWAIT, NONE), 200);
	ask("/sluice/packet");
	check_says(words);
	CHECK(strstr(answer, "fanout") == NULL && strstr(answer, "rx_ring") == NULL);
	drain();
	sl_psock_munmap(s, map, FRAME * FRAMES);
	sl_psock_close(s, NONE);
}

/* Every socket of every net has its own name. */
static void
all_are_listed(void)
{
	struct sl_psock *s[3];
	uint32_t n = 0;

	for (int i = 0; i < 3; i++)
		s[i] = sock_open(i == 2 ? SOCK_PACKET : SOCK_RAW, 0);
	ask("/sluice/packet");
	for (const char *p = answer; (p = strstr(p, "socket_")) != NULL; p++)
		n++;
	CHECK_EQ(n, 3);
	CHECK(strstr(answer, "\"type\":\"packet\"") != NULL);
	for (int i = 0; i < 3; i++)
		sl_psock_close(s[i], NONE);
}

int
main(void)
{
	help_init_with("diag", "-l 0 --vdev=net_ring0 --telemetry --log-level=error");
	net_open(NULL, SL_PSOCK_LEND_AUTO);
	SL_TEST_RUN(nothing_is_open);
	SL_TEST_RUN(a_receiver_is_shown);
	SL_TEST_RUN(a_sender_is_shown);
	SL_TEST_RUN(all_are_listed);
	net_close();
	return help_end();
}
