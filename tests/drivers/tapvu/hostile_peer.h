/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef HOSTILE_PEER_H
#define HOSTILE_PEER_H

/*
 * A vhost-user frontend that says and writes whatever it is told to. One pair of split or packed
 * rings of RING_SIZE entries, in the first of two regions that follow each other in its addresses
 * but not in anybody's memory:
 *
 *     REGION 0   | ring 0: descriptors, driver's, device's part | ring 1 likewise | data |
 *     REGION 1   | data |
 */
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <linux/virtio_ring.h>

#include "sl_base.h"
#include "sl_shared.h"
#include "sl_test.h"

#define RING_SIZE 16u
#define REGION 0x10000u
#define GUEST 0x100000u
#define PART 0x1000u
#define DATA 0x8000u /* in region 0 */
#define PROTOCOL_FEATURES 30
#define AVAIL (1u << 7)

enum peer_request {
	REQ_GET_FEATURES = 1,
	REQ_SET_FEATURES = 2,
	REQ_SET_OWNER = 3,
	REQ_SET_MEM_TABLE = 5,
	REQ_SET_VRING_NUM = 8,
	REQ_SET_VRING_ADDR = 9,
	REQ_SET_VRING_BASE = 10,
	REQ_SET_VRING_KICK = 12,
	REQ_SET_VRING_CALL = 13,
	REQ_SET_VRING_ENABLE = 18,
};

struct peer_message {
	uint32_t request, flags, size;
	union {
		uint64_t number;
		struct {
			uint32_t index, value;
		} state;
		struct {
			uint32_t index, flags;
			uint64_t desc, used, avail, log;
		} addr;
		struct {
			uint32_t count, padding;
			struct {
				uint64_t guest, size, user, offset;
			} region[10];
		} memory;
	};
} __attribute__((packed));

#define MESSAGE_HEAD 12u

struct peer {
	int socket;
	int memory_fd[2], kick[2], call[2];
	uint8_t *memory[2];
	bool packed;
	uint16_t used[2]; /* split: where the rings stand, as far as a frontend can know */
};

/* False when the other side has closed the connection: it need not listen to everything. */
static inline bool
peer_say(struct peer *p, struct peer_message *m, uint32_t request, uint32_t size, const int *fd,
	int fds)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(10 * sizeof(int))];
	} control;
	struct iovec iov = {m, MESSAGE_HEAD + size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	m->request = request;
	m->flags = 1;
	m->size = size;
	if (fds > 0) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE((size_t)fds * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN((size_t)fds * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fd, (size_t)fds * sizeof(int));
	}
	return sendmsg(p->socket, &msg, MSG_NOSIGNAL) == (ssize_t)(MESSAGE_HEAD + size);
}

static inline bool
peer_ask(struct peer *p, uint32_t request, uint64_t *answer)
{
	struct peer_message m = {0};

	if (!peer_say(p, &m, request, 0, NULL, 0) ||
		recv(p->socket, &m, MESSAGE_HEAD + 8, MSG_WAITALL) != (ssize_t)(MESSAGE_HEAD + 8))
		return false;
	*answer = m.number;
	return true;
}

/* What was said before an answer comes has been dealt with. */
static inline bool
peer_settled(struct peer *p)
{
	uint64_t features;

	return peer_ask(p, REQ_GET_FEATURES, &features);
}

static inline bool
peer_state(struct peer *p, uint32_t request, uint32_t index, uint32_t value)
{
	struct peer_message m = {.state = {index, value}};

	return peer_say(p, &m, request, 8, NULL, 0);
}

static inline bool
peer_fd(struct peer *p, uint32_t request, uint32_t index, int fd)
{
	struct peer_message m = {.number = index};

	return peer_say(p, &m, request, 8, &fd, 1);
}

/* Its own addresses are told as GUEST + offset too, which makes both kinds the same number. */
static inline bool
peer_memory(struct peer *p)
{
	struct peer_message m = {.memory = {.count = 2}};

	for (uint32_t i = 0; i < 2; i++) {
		m.memory.region[i].guest = GUEST + i * REGION;
		m.memory.region[i].size = REGION;
		m.memory.region[i].user = GUEST + i * REGION;
	}
	return peer_say(p, &m, REQ_SET_MEM_TABLE, 8 + 2 * 32, p->memory_fd, 2);
}

static inline bool
peer_rings(struct peer *p)
{
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t at = GUEST + i * 3 * PART;
		struct peer_message m = {.addr = {i, 0, at, at + 2 * PART, at + PART, 0}};
		uint32_t base = p->packed ? 0x80008000u : p->used[i]; /* wrap counters are 1 */

		if (!peer_state(p, REQ_SET_VRING_NUM, i, RING_SIZE) ||
			!peer_state(p, REQ_SET_VRING_BASE, i, base) ||
			!peer_say(p, &m, REQ_SET_VRING_ADDR, 40, NULL, 0) ||
			!peer_fd(p, REQ_SET_VRING_CALL, i, p->call[i]) ||
			!peer_fd(p, REQ_SET_VRING_KICK, i, p->kick[i]) ||
			!peer_state(p, REQ_SET_VRING_ENABLE, i, 1))
			return false;
	}
	return peer_settled(p);
}

static inline bool
peer_features(struct peer *p)
{
	struct peer_message m = {0};
	uint64_t offered, wanted = UINT64_C(1) << VIRTIO_F_VERSION_1 |
				   UINT64_C(1) << VIRTIO_RING_F_INDIRECT_DESC |
				   UINT64_C(1) << VIRTIO_NET_F_MRG_RXBUF |
				   UINT64_C(1) << VIRTIO_NET_F_CSUM |
				   UINT64_C(1) << PROTOCOL_FEATURES;

	if (p->packed)
		wanted |= UINT64_C(1) << VIRTIO_F_RING_PACKED;
	if (!peer_say(p, &m, REQ_SET_OWNER, 0, NULL, 0) || !peer_ask(p, REQ_GET_FEATURES, &offered))
		return false;
	CHECK_EQ(wanted & ~offered, 0);
	m.number = wanted;
	return peer_say(p, &m, REQ_SET_FEATURES, 8, NULL, 0);
}

/* False when nobody listens there. */
static inline bool
peer_connect(struct peer *p, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = 20};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	p->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	REQUIRE(p->socket >= 0);
	REQUIRE(setsockopt(p->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0);
	if (connect(p->socket, (struct sockaddr *)&address, sizeof(address)) == 0)
		return true;
	close(p->socket);
	return false;
}

/* Memory of zeros, and descriptors to kick and to call with. */
static inline void
peer_make(struct peer *p, bool packed)
{
	memset(p, 0, sizeof(*p));
	p->packed = packed;
	for (int i = 0; i < 2; i++) {
		p->memory_fd[i] = memfd_create("peer", MFD_CLOEXEC);
		p->kick[i] = eventfd(0, EFD_NONBLOCK);
		p->call[i] = eventfd(0, EFD_NONBLOCK);
		REQUIRE(p->memory_fd[i] >= 0 && ftruncate(p->memory_fd[i], REGION) == 0);
		p->memory[i] =
			mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED, p->memory_fd[i], 0);
		REQUIRE(p->memory[i] != MAP_FAILED && p->kick[i] >= 0 && p->call[i] >= 0);
	}
}

/* Connected, with memory of zeros; nothing said yet. */
static inline void
peer_open(struct peer *p, const char *path, bool packed)
{
	peer_make(p, packed);
	REQUIRE(peer_connect(p, path));
}

/* All that a decent frontend says until its rings run. */
static inline void
peer_start(struct peer *p, const char *path, bool packed)
{
	peer_open(p, path, packed);
	REQUIRE(peer_features(p) && peer_memory(p) && peer_rings(p));
}

static inline void
peer_close(struct peer *p)
{
	close(p->socket);
	for (int i = 0; i < 2; i++) {
		munmap(p->memory[i], REGION);
		close(p->memory_fd[i]);
		close(p->kick[i]);
		close(p->call[i]);
	}
}

/* ---- rings ---- */

static inline void *
peer_part(struct peer *p, uint32_t ring, uint32_t part)
{
	return p->memory[0] + (ring * 3 + part) * PART;
}

/* A descriptor, not yet made available where the ring is split. `next`: link, or packed: id. */
static inline void
peer_desc(struct peer *p, uint32_t ring, uint32_t at, uint64_t addr, uint32_t len, uint16_t flags,
	uint16_t next)
{
	if (p->packed) {
		struct vring_packed_desc *d =
			(struct vring_packed_desc *)peer_part(p, ring, 0) + at;

		d->addr = addr;
		d->len = len;
		d->id = next;
		sl_store_release(&d->flags, (uint16_t)(flags | AVAIL)); /* VR1 */
	} else {
		struct vring_desc *d = (struct vring_desc *)peer_part(p, ring, 0) + at;

		*d = (struct vring_desc){addr, len, flags, next};
	}
}

/* Split: heads 0, 1 ... are available, up to an index; packed rings have no such thing. */
static inline void
peer_avail(struct peer *p, uint32_t ring, uint16_t head, uint16_t index)
{
	struct vring_avail *a = peer_part(p, ring, 1);

	if (p->packed)
		return;
	a->ring[0] = head;
	sl_store_release(&a->idx, index); /* VR1 */
}

#endif
