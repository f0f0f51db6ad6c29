/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * Receiving, side by side with the host kernel: the same frames go into a socket of the library and
 * into one of the kernel, and everything that a program can see of them - slots, blocks, addresses,
 * lengths, flags, statistics - is written down as text and must be the same. Times, checksum bits
 * (which say what a device did) and timestamp bits are left out.
 */
#include <linux/filter.h>
#include <stdarg.h>
#include <stdio.h>

#include "backend.h"

#define PROTO 0x88b5
#define PATIENCE_US 20000000 /* only ever waited out when something is broken */
#define STATUS_SEEN                                                                                \
	(TP_STATUS_USER | TP_STATUS_COPY | TP_STATUS_LOSING | TP_STATUS_VLAN_VALID |               \
		TP_STATUS_BLK_TMO | TP_STATUS_VLAN_TPID_VALID)

static int sender = -1; /* a socket at the other end of the cable */
static uint8_t kernel_mac[6];

struct notes {
	char text[16384];
	size_t len;
};

static void
note(struct notes *n, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	n->len += (size_t)vsnprintf(n->text + n->len, sizeof(n->text) - n->len, format, args);
	va_end(args);
	REQUIRE(n->len < sizeof(n->text));
}

enum to { TO_HOST, TO_ALL, TO_GROUP, TO_OTHER };

/* A frame from 02:00:00:00:00:09, len bytes that count up behind its header. */
static void
inject(bool kernel, enum to to, uint16_t len)
{
	struct rte_mbuf *m;
	struct rte_ether_addr mac;
	uint8_t f[2048];

	for (uint16_t i = 0; i < len; i++)
		f[i] = (uint8_t)i;
	rte_eth_macaddr_get(PORT, &mac);
	memcpy(f, kernel ? kernel_mac : mac.addr_bytes, 6);
	if (to == TO_ALL)
		memset(f, 0xff, 6);
	if (to == TO_GROUP)
		f[0] = 1;
	if (to == TO_OTHER)
		f[5] ^= 0x55;
	memcpy(f + 6, "\2\0\0\0\0\11\x88\xb5", 8);
	if (kernel) {
		REQUIRE(send(sender, f, len, 0) == len);
		return;
	}
	m = rte_pktmbuf_alloc(pool);
	REQUIRE(m != NULL);
	memcpy(rte_pktmbuf_append(m, len), f, len);
	show(m, 0);
}

static void
note_from(struct notes *n, const struct sock *k, const struct sockaddr_ll *ll)
{
	note(n, " family %u proto %#x here %d hatype %u type %u from %02x%02x..%02x halen %u",
		ll->sll_family, ntohs(ll->sll_protocol), ll->sll_ifindex == b_ifindex(k),
		ll->sll_hatype, ll->sll_pkttype, ll->sll_addr[0], ll->sll_addr[1], ll->sll_addr[5],
		ll->sll_halen);
}

static uint32_t
sum_of(const uint8_t *p, uint32_t len)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < len; i++)
		sum = sum * 31 + p[i];
	return sum;
}

/* Bytes from the network header on: the link header has the receiver's own address. */
static void
note_bytes(struct notes *n, const uint8_t *p, uint32_t snaplen, uint32_t skip)
{
	note(n, " bytes %u/%#x", snaplen, snaplen > skip ? sum_of(p + skip, snaplen - skip) : 0);
}

static void
wait_status(const struct sock *k, const void *word)
{
	for (int us = 0; us < PATIENCE_US; us += 100) {
		if (sl_load_acquire((const uint32_t *)word) & TP_STATUS_USER)
			return;
		if (!k->kernel)
			sl_psock_tick(net, 0);
		usleep(100);
	}
	fprintf(stderr, "%s: nothing comes\n", k->kernel ? "kernel" : "library");
	REQUIRE(false);
}

static void
note_slot(struct notes *n, const struct sock *k, int version, uint8_t *slot, uint32_t skip)
{
	const struct tpacket_hdr *h1 = (void *)slot;
	const struct tpacket2_hdr *h2 = (void *)slot;

	wait_status(k, slot);
	if (version == TPACKET_V1) {
		note(n, "status %#lx len %u snap %u mac %u net %u", h1->tp_status & STATUS_SEEN,
			h1->tp_len, h1->tp_snaplen, h1->tp_mac, h1->tp_net);
		note_bytes(n, slot + h1->tp_mac, h1->tp_snaplen, skip);
	} else {
		note(n, "status %#x len %u snap %u mac %u net %u vlan %u/%u pad %d",
			h2->tp_status & STATUS_SEEN, h2->tp_len, h2->tp_snaplen, h2->tp_mac,
			h2->tp_net, h2->tp_vlan_tci, h2->tp_vlan_tpid,
			h2->tp_padding[0] + h2->tp_padding[1] + h2->tp_padding[2] +
				h2->tp_padding[3]);
		note_bytes(n, slot + h2->tp_mac, h2->tp_snaplen, skip);
	}
	note_from(n, k, (void *)(slot + sl_pktring_data(version)));
	note(n, "\n");
	sl_pktring_status_set(version, slot, TP_STATUS_KERNEL);
}

static void
note_block(struct notes *n, const struct sock *k, uint8_t *start, uint32_t skip)
{
	const struct tpacket_block_desc *b = (void *)start;
	uint8_t *p;

	wait_status(k, &b->hdr.bh1.block_status);
	p = start + b->hdr.bh1.offset_to_first_pkt;
	note(n, "block v%u status %#x packets %u first %u sequence %llu private %u\n", b->version,
		b->hdr.bh1.block_status & STATUS_SEEN, b->hdr.bh1.num_pkts,
		b->hdr.bh1.offset_to_first_pkt, (unsigned long long)b->hdr.bh1.seq_num,
		b->offset_to_priv);
	for (uint32_t i = 0; i < b->hdr.bh1.num_pkts; i++) {
		const struct tpacket3_hdr *h = (void *)p;

		note(n, "  status %#x len %u snap %u mac %u net %u next %u vlan %u/%u",
			h->tp_status & STATUS_SEEN & ~TP_STATUS_BLK_TMO, h->tp_len, h->tp_snaplen,
			h->tp_mac, h->tp_net, h->tp_next_offset, h->hv1.tp_vlan_tci,
			h->hv1.tp_vlan_tpid);
		note_bytes(n, p + h->tp_mac, h->tp_snaplen, skip);
		note_from(n, k, (void *)(p + sl_pktring_data(TPACKET_V3)));
		note(n, "\n");
		p += h->tp_next_offset;
	}
	sl_store_release(
		(uint32_t *)(start + offsetof(struct tpacket_block_desc, hdr)), 0); /* PR4 */
}

static int
set_ring(struct sock *k, int version, uint32_t frame_size, uint32_t retire_ms, uint32_t priv)
{
	struct tpacket_req3 req = {4096, 4, frame_size, 4096 / frame_size * 4, retire_ms, priv, 0};

	return b_set(k, SOL_PACKET, PACKET_RX_RING, &req,
		version == TPACKET_V3 ? sizeof(req) : sizeof(struct tpacket_req));
}

struct row {
	int type, version;
	uint32_t frame_size;
	int reserve;
};

/* Packets of every kind and many sizes through slots, clipped where the slot is small. One that is
 * its link header alone is nothing to a socket that sees none. */
static void
slots(bool kernel, const struct row *r, struct notes *n)
{
	static const uint16_t sizes[] = {14, 15, 60, 61, 200, 430, 1000, 1514};
	uint32_t next = 0, nr = 4096 / r->frame_size * 4, skip = r->type == SOCK_RAW ? 14 : 0;
	struct sock k;
	uint8_t *map;

	REQUIRE(b_open(kernel, r->type, 0, &k) == 0);
	note(n, "version %d", b_set_int(&k, PACKET_VERSION, r->version));
	note(n, " reserve %d", b_set_int(&k, PACKET_RESERVE, r->reserve));
	note(n, " ring %d\n", set_ring(&k, r->version, r->frame_size, 0, 0));
	map = b_map(&k, 4 * 4096);
	REQUIRE(map != NULL && b_bind_port(&k, htons(PROTO)) == 0);
	for (size_t i = 0; i < SL_COUNT_OF(sizes); i++) {
		uint32_t per = 4096 / r->frame_size;

		inject(kernel, (enum to)(i % 3), sizes[i]);
		if (sizes[i] == 14 && r->type == SOCK_DGRAM)
			continue;
		note_slot(n, &k, r->version, map + next / per * 4096 + next % per * r->frame_size,
			skip);
		next = (next + 1) % nr;
	}
	b_unmap(&k, map, 4 * 4096);
	b_close(&k);
}

/* Blocks that end because the next packet does not fit, and one that ends in time. */
static void
blocks(bool kernel, const struct row *r, struct notes *n)
{
	uint32_t skip = r->type == SOCK_RAW ? 14 : 0;

	for (uint32_t retire = 1; retire <= 60000; retire += 59999) {
		struct sock k;
		uint8_t *map;

		REQUIRE(b_open(kernel, r->type, 0, &k) == 0);
		note(n, "version %d", b_set_int(&k, PACKET_VERSION, TPACKET_V3));
		note(n, " reserve %d", b_set_int(&k, PACKET_RESERVE, r->reserve));
		note(n, " ring %d\n", set_ring(&k, TPACKET_V3, r->frame_size, retire, 13));
		map = b_map(&k, 4 * 4096);
		REQUIRE(map != NULL && b_bind_port(&k, htons(PROTO)) == 0);
		for (uint32_t i = 0; i < 6; i++) {
			if (retire > 1) { /* the third does not fit, and starts the next block */
				inject(kernel, TO_HOST, 1500);
				inject(kernel, TO_ALL, (uint16_t)(1401 + i));
				if (i == 0)
					inject(kernel, TO_GROUP, 1000);
				else
					inject(kernel, TO_GROUP, 1300);
				note_block(n, &k, map + i % 4 * 4096, skip);
				break;
			}
			inject(kernel, (enum to)(i % 3), (uint16_t)(60 + i));
			note_block(n, &k, map + i % 4 * 4096, skip);
		}
		b_unmap(&k, map, 4 * 4096);
		b_close(&k);
	}
}

/* A ring that is full drops, says LOSING until the statistics are read, and counts. */
static void
full_ring(bool kernel, const struct row *r, struct notes *n)
{
	struct tpacket_stats stats, sum = {0};
	socklen_t len;
	struct sock k;
	uint8_t *map;

	REQUIRE(b_open(kernel, SOCK_RAW, 0, &k) == 0);
	REQUIRE(b_set_int(&k, PACKET_VERSION, r->version) == 0);
	REQUIRE(set_ring(&k, r->version, 2048, 0, 0) == 0);
	map = b_map(&k, 4 * 4096);
	REQUIRE(map != NULL && b_bind_port(&k, htons(PROTO)) == 0);
	for (int i = 0; i < 11; i++)
		inject(kernel, TO_ALL, 60);
	for (int us = 0; us < PATIENCE_US && sum.tp_packets < 11; us += 100) {
		len = sizeof(stats);
		REQUIRE(b_get(&k, SOL_PACKET, PACKET_STATISTICS, &stats, &len) == 0);
		sum.tp_packets += stats.tp_packets;
		sum.tp_drops += stats.tp_drops;
		usleep(100);
	}
	note(n, "packets %u drops %u\n", sum.tp_packets, sum.tp_drops);
	inject(kernel, TO_ALL, 60); /* dropped: the next that finds room is LOSING */
	for (uint32_t i = 0; i < 8; i++)
		note_slot(n, &k, r->version, map + i * 2048, 14);
	inject(kernel, TO_ALL, 60);
	note_slot(n, &k, r->version, map, 14);
	len = sizeof(stats);
	note(n, "%d", b_get(&k, SOL_PACKET, PACKET_STATISTICS, &stats, &len));
	note(n, " packets %u drops %u len %u\n", stats.tp_packets, stats.tp_drops, len);
	inject(kernel, TO_ALL, 60);
	note_slot(n, &k, r->version, map + 2048, 14);
	b_unmap(&k, map, 4 * 4096);
	b_close(&k);
}

static ssize_t
b_recv(struct sock *k, struct msghdr *msg, int flags)
{
	ssize_t ret = -EAGAIN;

	for (int us = 0; us < PATIENCE_US && ret == -EAGAIN; us += 100) {
		ret = k->kernel ? sl_sys((int)recvmsg(k->fd, msg, flags | MSG_DONTWAIT))
				: sl_psock_recvmsg(k->s, msg, flags | MSG_DONTWAIT);
		if (ret == -EAGAIN)
			usleep(100);
	}
	return ret;
}

static void
note_message(struct notes *n, struct sock *k, int flags, uint32_t room, uint32_t skip)
{
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	} control = {0};
	uint8_t buf[2048] = {0};
	struct sockaddr_ll from = {0};
	struct tpacket_auxdata aux;
	struct iovec v = {buf, room};
	struct msghdr msg = {.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t ret = b_recv(k, &msg, flags);

	note(n, "%zd flags %#x name %u", ret, msg.msg_flags, msg.msg_namelen);
	if (ret < 0) {
		note(n, "\n");
		return;
	}
	memcpy(&aux, CMSG_DATA(&control.align), sizeof(aux));
	if (flags & MSG_TRUNC) /* peeked at before: Linux has overwritten it with the address */
		aux.tp_len = 0;
	note(n, " aux %#x len %u snap %u mac %u net %u vlan %u/%u", aux.tp_status & STATUS_SEEN,
		aux.tp_len, aux.tp_snaplen, aux.tp_mac, aux.tp_net, aux.tp_vlan_tci,
		aux.tp_vlan_tpid);
	note_bytes(n, buf, RTE_MIN((uint32_t)ret, room), skip);
	note_from(n, k, &from);
	note(n, "\n");
}

/* Without a ring: lengths, truncation, peeking, filters, packet types. */
static void
messages(bool kernel, const struct row *r, struct notes *n)
{
	static struct sock_filter keep_100[] = {BPF_STMT(BPF_RET | BPF_K, 100)};
	static struct sock_filter long_ones[] = {BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 500, 0, 1), BPF_STMT(BPF_RET | BPF_K, 0xffff),
		BPF_STMT(BPF_RET | BPF_K, 0)};
	/* Places that the packet computes: behind its first byte's low half, and below zero. */
	static struct sock_filter computed[] = {BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 20),
		BPF_STMT(BPF_LD | BPF_B | BPF_IND, 14), BPF_STMT(BPF_RET | BPF_A, 0)};
	static struct sock_filter below[] = {BPF_STMT(BPF_LDX | BPF_IMM, (uint32_t)-1),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 0), BPF_STMT(BPF_RET | BPF_K, 0xffff)};
	static const struct sock_fprog progs[] = {
		{1, keep_100}, {4, long_ones}, {3, computed}, {3, below}};
	uint32_t skip = r->type == SOCK_RAW ? 14 : 0;
	struct sock k;

	REQUIRE(b_open(kernel, r->type, 0, &k) == 0);
	REQUIRE(b_set_int(&k, PACKET_AUXDATA, 1) == 0);
	REQUIRE(b_bind_port(&k, htons(PROTO)) == 0);
	for (int i = 0; i < 3; i++)
		inject(kernel, (enum to)i, (uint16_t)(60 + i));
	note_message(n, &k, MSG_PEEK, 2000, skip);
	note_message(n, &k, MSG_TRUNC, 20, skip);
	note_message(n, &k, 0, 20, skip);
	note_message(n, &k, 0, 2000, skip);
	note_message(n, &k, MSG_OOB, 2000, skip);
	for (size_t i = 0; i < SL_COUNT_OF(progs); i++) {
		note(n, "filter %d\n",
			b_set(&k, SOL_SOCKET, SO_ATTACH_FILTER, &progs[i], sizeof(progs[i])));
		inject(kernel, TO_ALL, 400);
		inject(kernel, TO_ALL, 600);
		note_message(n, &k, 0, 2000, skip);
		if (i == 0)
			note_message(n, &k, 0, 2000, skip);
	}
	b_close(&k);
}

/* A frame to another host: seen with promiscuity alone on the kernel's veth, whose two ends filter
 * nothing; so it is a packet type and no more. */
static void
others(bool kernel, const struct row *r, struct notes *n)
{
	struct sock k;

	REQUIRE(b_open(kernel, r->type, 0, &k) == 0);
	REQUIRE(b_set_int(&k, PACKET_AUXDATA, 1) == 0);
	REQUIRE(b_bind_port(&k, htons(PROTO)) == 0);
	inject(kernel, TO_OTHER, 100);
	note_message(n, &k, 0, 2000, r->type == SOCK_RAW ? 14 : 0);
	b_close(&k);
}

static void
both(void (*body)(bool, const struct row *, struct notes *), const struct row *r, size_t rows)
{
	static struct notes kernel, ours;

	if (kernel_ifindex == 0)
		SKIP("needs the right to make a network namespace");
	for (size_t i = 0; i < rows; i++) {
		kernel.len = ours.len = 0;
		body(true, &r[i], &kernel);
		body(false, &r[i], &ours);
		if (strcmp(kernel.text, ours.text) != 0)
			fprintf(stderr, "row %zu\nkernel:\n%sours:\n%s", i, kernel.text, ours.text);
		CHECK(strcmp(kernel.text, ours.text) == 0);
		CHECK(kernel.len > 0);
	}
}

static void
slots_are_filled_alike(void)
{
	static const struct row rows[] = {{SOCK_RAW, TPACKET_V1, 2048, 0},
		{SOCK_RAW, TPACKET_V2, 2048, 0}, {SOCK_DGRAM, TPACKET_V1, 2048, 0},
		{SOCK_DGRAM, TPACKET_V2, 2048, 0}, {SOCK_RAW, TPACKET_V2, 256, 0},
		{SOCK_DGRAM, TPACKET_V2, 256, 0}, {SOCK_RAW, TPACKET_V1, 512, 100},
		{SOCK_DGRAM, TPACKET_V2, 512, 7}};

	both(slots, rows, SL_COUNT_OF(rows));
}

static void
blocks_are_filled_alike(void)
{
	static const struct row rows[] = {{SOCK_RAW, TPACKET_V3, 2048, 0},
		{SOCK_DGRAM, TPACKET_V3, 2048, 0}, {SOCK_RAW, TPACKET_V3, 1024, 33}};

	both(blocks, rows, SL_COUNT_OF(rows));
}

static void
full_rings_drop_alike(void)
{
	static const struct row rows[] = {
		{SOCK_RAW, TPACKET_V1, 2048, 0}, {SOCK_RAW, TPACKET_V2, 2048, 0}};

	both(full_ring, rows, SL_COUNT_OF(rows));
}

static void
messages_are_alike(void)
{
	static const struct row rows[] = {{SOCK_RAW, 0, 0, 0}, {SOCK_DGRAM, 0, 0, 0}};

	both(messages, rows, SL_COUNT_OF(rows));
	both(others, rows, SL_COUNT_OF(rows));
}

static void
sender_open(void)
{
	struct sockaddr_ll ll = {.sll_family = AF_PACKET, .sll_protocol = htons(PROTO)};
	socklen_t len = sizeof(ll);

	if (kernel_ifindex == 0)
		return;
	sender = sl_sys(socket(AF_PACKET, SOCK_RAW, 0));
	REQUIRE(sender >= 0);
	/* The library's port has no name that says so, but it is the cable's this end. */
	ll.sll_ifindex = kernel_ifindex;
	REQUIRE(bind(sender, (struct sockaddr *)&ll, sizeof(ll)) == 0);
	REQUIRE(getsockname(sender, (struct sockaddr *)&ll, &len) == 0);
	memcpy(kernel_mac, ll.sll_addr, 6);
	ll.sll_ifindex = (int)if_nametoindex("cable1");
	ll.sll_protocol = 0;
	REQUIRE(bind(sender, (struct sockaddr *)&ll, sizeof(ll)) == 0);
}

int
main(void)
{
	kernel_init();
	help_init("rxdiff");
	net_open(help_progress, SL_PSOCK_LEND_AUTO);
	sender_open();
	SL_TEST_RUN(slots_are_filled_alike);
	SL_TEST_RUN(blocks_are_filled_alike);
	SL_TEST_RUN(full_rings_drop_alike);
	SL_TEST_RUN(messages_are_alike);
	close(sender);
	net_close();
	return help_end();
}
