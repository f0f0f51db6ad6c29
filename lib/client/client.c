/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <threads.h>
#include <unistd.h>

#include "sl_client.h"
#include "sl_errno.h"
#include "sl_pktring_slot.h"
#include "sl_pktring_wire.h"

#define FRAME_SIZE 2048u
#define BLOCK_BYTES 65536u
#define PAGE_BYTES 4096u

struct ring {
	uint8_t *addr;
	size_t bytes;
	uint32_t frames, frame_size, block_size, per_block;
	uint32_t next;
	bool lent; /* the slot, or V3's packet, that is next is in the caller's hands */
};

struct sl_client {
	int fd, kick_fd;
	int version;
	struct ring tx, rx;
	struct sl_pktring_page *page;
	struct sl_client_info info;
	/* V3 receive: where in the block */
	uint32_t left;	 /* packets */
	uint32_t offset; /* of the next one */
};

static uint8_t *
slot_at(const struct ring *r, uint32_t n)
{
	return r->addr + (size_t)(n / r->per_block) * r->block_size +
	       (size_t)(n % r->per_block) * r->frame_size;
}

/* Geometry for at least that many frames. V3 receive rings count blocks. */
static void
ring_ask(const struct sl_client_conf *conf, uint32_t frames, struct ring *r,
	struct tpacket_req3 *req)
{
	uint32_t blocks;

	if (frames == 0)
		return;
	r->frame_size = conf->frame_size != 0 ? conf->frame_size : FRAME_SIZE;
	r->block_size = (r->frame_size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
	r->per_block = r->block_size / r->frame_size;
	blocks = (frames + r->per_block - 1) / r->per_block;
	r->frames = blocks * r->per_block;
	*req = (struct tpacket_req3){.tp_block_size = r->block_size,
		.tp_block_nr = blocks,
		.tp_frame_size = r->frame_size,
		.tp_frame_nr = r->frames};
}

static int
check_conf(const struct sl_client_conf *conf)
{
	uint32_t frame = conf->frame_size;

	if (conf->path == NULL || conf->version < TPACKET_V1 || conf->version > TPACKET_V3)
		return -EINVAL;
	if (strlen(conf->path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return -ENAMETOOLONG;
	if (frame % TPACKET_ALIGNMENT != 0 || frame > 1 << 20 || conf->tx_frames > 1 << 20 ||
		conf->rx_frames > 1 << 20)
		return -EINVAL;
	return 0;
}

static int
dial(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = sl_sys(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	int ret;

	if (fd < 0)
		return fd;
	memcpy(addr.sun_path, path, strlen(path) + 1);
	ret = sl_sys(connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	if (ret != 0) {
		close(fd);
		return ret;
	}
	return fd;
}

/* The answer, and the descriptors that come with it: -1 where there is none. */
static int
answer_receive(int fd, struct sl_pktring_answer *a, int fds[SL_PKTRING_FDS])
{
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(SL_PKTRING_FDS * sizeof(int))];
	} control;
	struct iovec v = {.iov_base = a, .iov_len = sizeof(*a)};
	struct msghdr msg = {.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	int n = sl_sys((int)recvmsg(fd, &msg, MSG_CMSG_CLOEXEC));
	const struct cmsghdr *c = n >= 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	if (n < 0)
		return n;
	if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	if (n != (int)sizeof(*a) || a->magic != SL_PKTRING_MAGIC || a->type != SL_PKTRING_ANSWER)
		return -EPROTO;
	if (a->error != 0)
		return a->error < 0 ? a->error : -EPROTO;
	return fds[SL_PKTRING_FDS - 1] >= 0 ? 0 : -EPROTO;
}

static void *
map(int fd, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int
map_all(struct sl_client *c, const struct sl_pktring_answer *a, const int *fds)
{
	c->tx.bytes = c->tx.frames > 0 ? a->tx_bytes : 0;
	c->rx.bytes = c->rx.frames > 0 ? a->rx_bytes : 0;
	/* Smaller than asked for would end in a fault. */
	if (c->tx.bytes < (size_t)c->tx.frames * c->tx.frame_size ||
		c->rx.bytes < (size_t)c->rx.frames * c->rx.frame_size)
		return -EPROTO;
	if (c->tx.bytes > 0 && (c->tx.addr = map(fds[0], c->tx.bytes)) == NULL)
		return -ENOMEM;
	if (c->rx.bytes > 0 && (c->rx.addr = map(fds[1], c->rx.bytes)) == NULL)
		return -ENOMEM;
	c->page = map(fds[2], PAGE_BYTES);
	return c->page != NULL ? 0 : -ENOMEM;
}

static int
talk(struct sl_client *c, const struct sl_pktring_hello *hello, const char **why)
{
	static thread_local struct sl_pktring_answer a;
	int fds[SL_PKTRING_FDS] = {-1, -1, -1, -1};
	int ret;

	memset(&a, 0, sizeof(a));
	ret = sl_sys((int)send(c->fd, hello, sizeof(*hello), MSG_NOSIGNAL));

	if (ret >= 0)
		ret = answer_receive(c->fd, &a, fds);
	if (ret < 0 && a.text[0] != '\0' && why != NULL) {
		a.text[sizeof(a.text) - 1] = '\0';
		*why = a.text;
	}
	if (ret == 0)
		ret = map_all(c, &a, fds);
	if (ret == 0) {
		c->kick_fd = fds[3];
		fds[3] = -1;
		c->info.queue = a.queue;
		c->info.mtu = a.mtu;
		memcpy(c->info.mac, a.mac, sizeof(a.mac));
	}
	for (int i = 0; i < SL_PKTRING_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return ret;
}

int
sl_client_connect(const struct sl_client_conf *conf, struct sl_client **out, const char **why)
{
	struct sl_pktring_hello hello = {.magic = SL_PKTRING_MAGIC,
		.type = SL_PKTRING_HELLO,
		.queue = conf->queue,
		.oldest = SL_PKTRING_PROTOCOL,
		.newest = SL_PKTRING_PROTOCOL,
		.version = (uint32_t)conf->version,
		.flags = conf->loss ? SL_PKTRING_LOSS : 0};
	int ret = check_conf(conf);
	struct sl_client *c;

	if (why != NULL)
		*why = NULL;
	if (ret != 0)
		return ret;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	c->kick_fd = -1;
	c->version = conf->version;
	ring_ask(conf, conf->tx_frames, &c->tx, &hello.tx);
	ring_ask(conf, conf->rx_frames, &c->rx, &hello.rx);
	c->fd = dial(conf->path);
	ret = c->fd < 0 ? c->fd : talk(c, &hello, why);
	if (ret != 0) {
		sl_client_close(c);
		return ret;
	}
	c->info.tx_frames = c->tx.frames;
	c->info.rx_frames = c->rx.frames;
	c->info.tx_room = c->tx.frames > 0 ? c->tx.frame_size - sl_pktring_data(c->version) : 0;
	*out = c;
	return 0;
}

void
sl_client_close(struct sl_client *c)
{
	if (c == NULL)
		return;
	if (c->fd >= 0)
		close(c->fd);
	if (c->kick_fd >= 0)
		close(c->kick_fd);
	if (c->tx.addr != NULL)
		munmap(c->tx.addr, c->tx.bytes);
	if (c->rx.addr != NULL)
		munmap(c->rx.addr, c->rx.bytes);
	if (c->page != NULL)
		munmap(c->page, PAGE_BYTES);
	free(c);
}

void
sl_client_info(const struct sl_client *c, struct sl_client_info *info)
{
	*info = c->info;
}

static struct sl_client_ring
describe(const struct ring *r)
{
	return (struct sl_client_ring){.addr = r->addr,
		.bytes = r->bytes,
		.block_size = r->block_size,
		.frame_size = r->frame_size,
		.frames = r->frames};
}

void
sl_client_tx_ring(const struct sl_client *c, struct sl_client_ring *ring)
{
	*ring = describe(&c->tx);
}

void
sl_client_rx_ring(const struct sl_client *c, struct sl_client_ring *ring)
{
	*ring = describe(&c->rx);
}

uint8_t *
sl_client_tx_next(struct sl_client *c)
{
	uint8_t *slot;

	if (c->tx.frames == 0)
		return NULL;
	slot = slot_at(&c->tx, c->tx.next);
	if (!sl_pktring_is_available(c->version, slot))
		return NULL;
	c->tx.lent = true;
	return slot + sl_pktring_data(c->version);
}

void
sl_client_tx_submit(struct sl_client *c, uint32_t len)
{
	if (!c->tx.lent)
		return;
	c->tx.lent = false;
	sl_pktring_request(c->version, slot_at(&c->tx, c->tx.next), len);
	c->tx.next = c->tx.next + 1 < c->tx.frames ? c->tx.next + 1 : 0;
}

void
sl_client_kick(struct sl_client *c)
{
	uint64_t one = 1;

	sl_fence_seq_cst(); /* PR6: the requests, then the look at the server's word */
	if (sl_load_relaxed(&c->page->server_sleeps) == 0)
		return;
	if (write(c->kick_fd, &one, sizeof(one)) < 0)
		return; /* full: it wakes all the same */
}

static uint32_t
count_slots(const struct sl_client *c, uint64_t bits)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->tx.frames; i++)
		n += (sl_pktring_status(c->version, slot_at(&c->tx, i)) & bits) != 0;
	return n;
}

uint32_t
sl_client_tx_busy(const struct sl_client *c)
{
	return count_slots(c, TP_STATUS_SEND_REQUEST | TP_STATUS_SENDING);
}

uint32_t
sl_client_tx_refused(const struct sl_client *c)
{
	return count_slots(c, TP_STATUS_WRONG_FORMAT);
}

static int
rx_flat(struct sl_client *c, struct sl_client_frame *f)
{
	const uint8_t *slot = slot_at(&c->rx, c->rx.next);
	const struct tpacket_hdr *h1 = (const void *)slot;
	const struct tpacket2_hdr *h2 = (const void *)slot;
	uint64_t status = sl_pktring_status(c->version, slot);

	if (status == TP_STATUS_KERNEL)
		return 0;
	f->status = (uint32_t)status;
	if (c->version == TPACKET_V1) {
		f->data = slot + h1->tp_mac;
		f->len = h1->tp_snaplen;
		f->wire_len = h1->tp_len;
	} else {
		f->data = slot + h2->tp_mac;
		f->len = h2->tp_snaplen;
		f->wire_len = h2->tp_len;
	}
	return 1;
}

static int
rx_block(struct sl_client *c, struct sl_client_frame *f)
{
	uint8_t *start = c->rx.addr + (size_t)c->rx.next * c->rx.block_size;
	const struct tpacket_block_desc *b = (const void *)start;
	const struct tpacket3_hdr *h;

	if (c->left == 0) {
		if (sl_load_acquire(&b->hdr.bh1.block_status) == TP_STATUS_KERNEL) /* PR3 */
			return 0;
		c->left = b->hdr.bh1.num_pkts;
		c->offset = b->hdr.bh1.offset_to_first_pkt;
	}
	h = (const void *)(start + c->offset);
	f->status = h->tp_status;
	f->data = (const uint8_t *)h + h->tp_mac;
	f->len = h->tp_snaplen;
	f->wire_len = h->tp_len;
	return 1;
}

static int
look(struct sl_client *c, struct sl_client_frame *f)
{
	if (c->rx.frames == 0)
		return 0;
	return c->version == TPACKET_V3 ? rx_block(c, f) : rx_flat(c, f);
}

int
sl_client_rx_next(struct sl_client *c, struct sl_client_frame *f)
{
	int ret = look(c, f);

	c->rx.lent = ret == 1;
	return ret;
}

void
sl_client_rx_done(struct sl_client *c)
{
	struct tpacket_block_desc *b;
	const struct tpacket3_hdr *h;

	if (!c->rx.lent)
		return;
	c->rx.lent = false;
	if (c->version != TPACKET_V3) {
		sl_pktring_status_set(c->version, slot_at(&c->rx, c->rx.next), TP_STATUS_KERNEL);
		c->rx.next = c->rx.next + 1 < c->rx.frames ? c->rx.next + 1 : 0;
		return;
	}
	b = (void *)(c->rx.addr + (size_t)c->rx.next * c->rx.block_size);
	h = (const void *)((const uint8_t *)b + c->offset);
	c->offset += h->tp_next_offset;
	if (--c->left > 0)
		return;
	sl_store_release(&b->hdr.bh1.block_status, TP_STATUS_KERNEL); /* PR4 */
	c->rx.next = c->rx.next + 1 < c->rx.frames / c->rx.per_block ? c->rx.next + 1 : 0;
}

bool
sl_client_gone(struct sl_client *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};

	return sl_sys(poll(&p, 1, 0)) == 1 && (p.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
}

/* Take bells out of the socket. */
static void
hear_bells(struct sl_client *c)
{
	struct sl_pktring_bell bell;

	while (recv(c->fd, &bell, sizeof(bell), MSG_DONTWAIT) > 0)
		;
}

int
sl_client_wait(struct sl_client *c, int timeout_ms)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN | POLLRDHUP};
	struct sl_client_frame f;
	int ret;

	for (;;) {
		sl_store_relaxed(&c->page->client_sleeps, 1);
		sl_fence_seq_cst(); /* PR6: announced, then the look at the ring */
		ret = look(c, &f) == 1;
		if (ret == 0) {
			p.revents = 0;
			ret = sl_sys(poll(&p, 1, timeout_ms));
			if (ret > 0 && (p.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0)
				ret = -EPIPE;
			hear_bells(c);
		}
		sl_store_relaxed(&c->page->client_sleeps, 0);
		if (look(c, &f) == 1)
			return 0;
		if (ret <= 0)
			return ret == 0 ? -EAGAIN : ret;
	}
}
