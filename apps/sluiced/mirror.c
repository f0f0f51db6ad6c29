/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <linux/if_packet.h>
#include <rte_ether.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_ring_elem.h>

#include "mirror.h"
#include "pcapng.h"
#include "sl_errno.h"
#include "sl_inet.h"
#include "sl_shared.h"

#define BURST 32u
#define EMPTY_SLEEP_NS 2000000
#define PATH_LEN 512
#define BUFFER_LEN (BURST * (PCAPNG_BLOCK + 65536u + 128u))
#define FILE_MODE 0600 /* what others said to us is not for everybody */

struct item {
	struct rte_mbuf *m;
	uint64_t ns;
};

struct mirror {
	char file[PATH_LEN];	  /* (c) "": an interface */
	uint64_t file_size;	  /* (c) */
	uint32_t files;		  /* (c) */
	struct rte_mempool *pool; /* (c) */
	struct rte_ring *ring;	  /* lcore to thread */
	pthread_t thread;
	bool stop;	 /* (a) release by control: nothing is put any more */
	bool begun;	 /* (a) release by control: the file has its name; the thread may rotate */
	int fd;		 /* the thread's: file, or packet socket */
	uint64_t length; /* the thread's: of the file */
	uint8_t *buffer; /* the thread's */
	/* (l) Under the lock, which the thread takes before and after it writes, not while it does.
	 */
	pthread_mutex_t lock;
	uint64_t in_hand;
	uint64_t counts[MIRROR_OUTCOMES];
	struct mirror *next; /* of this process; control's */
};

/* Control's: all of this process. */
static struct mirror *mirrors;

const struct mirror_end mirror_end[MIRROR_ENDS] = {
	{MIRROR_WRITTEN, "mirror_written", false},
	{MIRROR_FILE_FULL, "mirror_file_full", true},
	{MIRROR_FAILED, "mirror_failed", true},
};

/* ---- file ---- */

/* Write all of it, or let the file be what it was. */
static bool
append(struct mirror *m, const uint8_t *bytes, uint64_t n)
{
	uint64_t done = 0;

	while (done < n) {
		ssize_t k = write(m->fd, bytes + done, n - done);

		if (k <= 0) {
			/* A part of a block would make the rest unreadable. */
			if (ftruncate(m->fd, (off_t)m->length) == 0)
				(void)lseek(m->fd, (off_t)m->length, SEEK_SET);
			return false;
		}
		done += (uint64_t)k;
	}
	m->length += n;
	return true;
}

static int
file_open(struct mirror *m, const char *path)
{
	uint8_t head[PCAPNG_HEAD_MAX];
	uint32_t n = pcapng_head(head);

	/* A new one, and no FIFO, device or link: somebody may have put one there. */
	m->fd = sl_sys(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE));
	if (m->fd < 0)
		return m->fd;
	m->length = 0;
	if (append(m, head, n)) {
		/* Other processes see that it is in use, as long as we live. */
		(void)flock(m->fd, LOCK_EX | LOCK_NB);
		return 0;
	}
	(void)unlink(path);
	close(m->fd);
	m->fd = -1;
	return -EIO;
}

/* PATH to PATH.1, PATH.1 to PATH.2 ...; the last one goes. */
static void
rotate(const struct mirror *m)
{
	char from[PATH_LEN + 16], to[PATH_LEN + 16];

	for (uint32_t i = m->files - 1; i > 0; i--) {
		snprintf(to, sizeof(to), "%s.%u", m->file, i);
		snprintf(from, sizeof(from), i > 1 ? "%s.%u" : "%s", m->file, i - 1);
		/* One that is not there is none to keep. */
		(void)rename(from, to);
	}
	if (m->files == 1)
		(void)unlink(m->file);
}

/* What the file is called until it is begun. */
static void
draft_name(const struct mirror *m, char *path)
{
	snprintf(path, PATH_LEN + 16, "%s.new", m->file);
}

/* A regular file of that name may go; is there anything else? */
static int
regular_or_none(const char *path)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return 0;
	return S_ISREG(st.st_mode) ? 1 : -EEXIST;
}

/* Does another process write it? A mirror of ours may, which is to be replaced. */
static bool
is_foreign(const char *path)
{
	bool locked;
	int fd;

	for (const struct mirror *m = mirrors; m != NULL; m = m->next)
		if (strcmp(m->file, path) == 0)
			return false;
	fd = sl_sys(open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
	if (fd < 0)
		return false;
	locked = sl_sys(flock(fd, LOCK_SH | LOCK_NB)) == -EWOULDBLOCK;
	close(fd);
	return locked;
}

/* One that a daemon left which was killed before it began it is of no use to anybody. */
static int
draft_open(struct mirror *m)
{
	char path[PATH_LEN + 16];

	draft_name(m, path);
	if (regular_or_none(m->file) < 0)
		return -EEXIST;
	if (is_foreign(m->file))
		return -EBUSY;
	if (regular_or_none(path) > 0)
		(void)unlink(path);
	return file_open(m, path);
}

static int
draft_begin(const struct mirror *m)
{
	char path[PATH_LEN + 16];
	int there = regular_or_none(m->file);

	if (there < 0)
		return there;
	if (there > 0)
		rotate(m);
	draft_name(m, path);
	return sl_sys(rename(path, m->file));
}

static void
draft_drop(const struct mirror *m)
{
	char path[PATH_LEN + 16];

	draft_name(m, path);
	(void)unlink(path);
}

/* Names are control's until the file has its own. False if it will get none. */
static bool
wait_begun(struct mirror *m)
{
	const struct timespec pause = {.tv_nsec = EMPTY_SLEEP_NS};

	while (!sl_load_acquire(&m->begun)) {		   /* MI2 */
		if (sl_load_acquire(&m->stop))		   /* MI1 */
			return sl_load_acquire(&m->begun); /* MI2 */
		nanosleep(&pause, NULL);
	}
	return true;
}

/*
 * Begin the next file; false, and none is open, if that cannot be done now. The kept ones move only
 * once it is there with its head: on a full disk each try would drop the oldest of them otherwise.
 */
static bool
next_file(struct mirror *m)
{
	char path[PATH_LEN + 16];

	if (!wait_begun(m))
		return false;
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
	/* Not the draft's name, which a mirror that is to take our place may have. */
	snprintf(path, sizeof(path), "%s.next", m->file);
	if (regular_or_none(path) > 0)
		(void)unlink(path);
	if (file_open(m, path) != 0)
		return false;
	rotate(m);
	if (rename(path, m->file) == 0)
		return true;
	(void)unlink(path);
	close(m->fd);
	m->fd = -1;
	return false;
}

static void
write_file(struct mirror *m, const struct item *items, unsigned int n, uint64_t *counts)
{
	uint64_t used = 0, pending = 0;

	for (unsigned int i = 0; i < n; i++) {
		uint32_t len = pcapng_block_len(items[i].m->pkt_len);

		if (m->fd < 0 || m->length + used + len > m->file_size) {
			/* What belongs to the old file goes there first. */
			counts[append(m, m->buffer, used) ? MIRROR_WRITTEN : MIRROR_FAILED] +=
				pending;
			used = pending = 0;
			if (m->files == 1 || len + PCAPNG_HEAD_MAX > m->file_size) {
				counts[MIRROR_FILE_FULL]++;
				continue;
			}
			if (!next_file(m)) {
				counts[MIRROR_FAILED]++;
				continue;
			}
		}
		used += pcapng_block(m->buffer + used, items[i].m, items[i].ns);
		pending++;
	}
	if (pending > 0)
		counts[append(m, m->buffer, used) ? MIRROR_WRITTEN : MIRROR_FAILED] += pending;
}

/* ---- interface ---- */

static int
interface_open(struct mirror *m, const char *name)
{
	struct sockaddr_ll addr = {
		.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(name)};
	int ret;

	if (addr.sll_ifindex == 0)
		return -ENODEV;
	/* Protocol 0: it sends and receives nothing. */
	m->fd = sl_sys(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
	if (m->fd < 0)
		return m->fd;
	ret = sl_sys(bind(m->fd, (struct sockaddr *)&addr, sizeof(addr)));
	if (ret != 0)
		close(m->fd);
	return ret;
}

static void
write_interface(struct mirror *m, const struct item *items, unsigned int n, uint64_t *counts)
{
	for (unsigned int i = 0; i < n; i++) {
		const struct rte_mbuf *p = items[i].m;
		struct iovec iov[16];
		struct msghdr msg = {.msg_iov = iov};

		for (; p != NULL && msg.msg_iovlen < SL_COUNT_OF(iov); p = p->next)
			iov[msg.msg_iovlen++] =
				(struct iovec){rte_pktmbuf_mtod(p, void *), p->data_len};
		if (p == NULL && sendmsg(m->fd, &msg, MSG_DONTWAIT) >= 0)
			counts[MIRROR_WRITTEN]++;
		else
			counts[MIRROR_FAILED]++;
	}
}

/* ---- the thread ---- */

static unsigned int
take(struct mirror *m, struct item *items)
{
	unsigned int n;

	pthread_mutex_lock(&m->lock);
	n = rte_ring_dequeue_burst_elem(m->ring, items, sizeof(*items), BURST, NULL);
	m->in_hand = n;
	pthread_mutex_unlock(&m->lock);
	return n;
}

static void
settle(struct mirror *m, const uint64_t *counts)
{
	pthread_mutex_lock(&m->lock);
	m->in_hand = 0;
	for (int i = 0; i < MIRROR_OUTCOMES; i++)
		m->counts[i] += counts[i];
	pthread_mutex_unlock(&m->lock);
}

static void *
run(void *arg)
{
	const struct timespec pause = {.tv_nsec = EMPTY_SLEEP_NS};
	struct mirror *m = arg;
	struct item items[BURST];

	for (;;) {
		uint64_t counts[MIRROR_OUTCOMES] = {0};
		/* Before the look at the ring: what was put before it is seen there. */
		bool stop = sl_load_acquire(&m->stop); /* MI1 */
		unsigned int n = take(m, items);

		if (n == 0 && stop)
			return NULL;
		if (n == 0) {
			nanosleep(&pause, NULL);
			continue;
		}
		if (m->file[0] != '\0')
			write_file(m, items, n, counts);
		else
			write_interface(m, items, n, counts);
		for (unsigned int i = 0; i < n; i++)
			rte_pktmbuf_free(items[i].m);
		settle(m, counts);
	}
}

/* ---- life ---- */

static int
target_open(struct mirror *m, const struct mirror_conf *conf)
{
	if (conf->interface != NULL)
		return interface_open(m, conf->interface);
	if (strlen(conf->file) >= sizeof(m->file) || conf->file_size < MIRROR_FILE_MIN ||
		conf->files < 1 || conf->files > MIRROR_FILES_MAX)
		return -EINVAL;
	snprintf(m->file, sizeof(m->file), "%s", conf->file);
	m->file_size = conf->file_size;
	m->files = conf->files;
	return draft_open(m);
}

static struct rte_ring *
ring_create(void)
{
	static uint32_t serial; /* (a) DPDK wants names that are unique in the process */
	char name[32];

	snprintf(name, sizeof(name), "sluiced_mirror_%u", sl_fetch_add_relaxed(&serial, 1u));
	return rte_ring_create_elem(name, sizeof(struct item), MIRROR_DEPTH, (int)rte_socket_id(),
		RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
}

static int
thread_start(struct mirror *m, const char *name)
{
	char text[16];
	int ret;

	snprintf(text, sizeof(text), "mi-%.12s", name);
	ret = rte_ctrl_thread_create(&m->thread, text, NULL, run, m);
	return ret > 0 ? -ret : ret;
}

int
mirror_create(const struct mirror_conf *conf, struct mirror **out)
{
	struct mirror *m;
	int ret = -ENOMEM;

	if ((conf->file == NULL) == (conf->interface == NULL))
		return -EINVAL;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return ret;
	m->pool = conf->pool;
	m->fd = -1;
	pthread_mutex_init(&m->lock, NULL);
	m->ring = ring_create();
	m->buffer = malloc(BUFFER_LEN);
	if (m->ring == NULL || m->buffer == NULL)
		goto free_all;
	ret = target_open(m, conf);
	if (ret != 0)
		goto free_all;
	ret = thread_start(m, conf->name);
	if (ret == 0) {
		m->next = mirrors;
		mirrors = m;
		*out = m;
		return 0;
	}
	close(m->fd);
	if (m->file[0] != '\0')
		draft_drop(m);
free_all:
	pthread_mutex_destroy(&m->lock);
	rte_ring_free(m->ring);
	free(m->buffer);
	free(m);
	return ret;
}

int
mirror_begin(struct mirror *m)
{
	int ret = m->file[0] != '\0' ? draft_begin(m) : 0;

	/* In any case: a thread that rotates says what is wrong by its counts. */
	sl_store_release(&m->begun, true); /* MI2 */
	return ret;
}

static void
forget(const struct mirror *m)
{
	struct mirror **at = &mirrors;

	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
}

void
mirror_destroy(struct mirror *m, uint64_t *counts)
{
	if (m == NULL)
		return;
	forget(m);
	sl_store_release(&m->stop, true); /* MI1 */
	pthread_join(m->thread, NULL);
	if (m->file[0] != '\0' && !sl_load_relaxed(&m->begun))
		draft_drop(m);
	for (int i = MIRROR_WRITTEN; counts != NULL && i < MIRROR_OUTCOMES; i++)
		counts[i] += m->counts[i];
	if (m->fd >= 0)
		close(m->fd);
	pthread_mutex_destroy(&m->lock);
	rte_ring_free(m->ring);
	free(m->buffer);
	free(m);
}

uint64_t
mirror_counts(struct mirror *m, uint64_t *counts)
{
	uint64_t held;

	pthread_mutex_lock(&m->lock);
	for (int i = MIRROR_WRITTEN; i < MIRROR_OUTCOMES; i++)
		counts[i] += m->counts[i];
	held = m->in_hand + rte_ring_count(m->ring);
	pthread_mutex_unlock(&m->lock);
	return held;
}

/* ---- the lcore ---- */

/* The packet itself if it is ours to write and its first piece has room in front; else a copy. */
static struct rte_mbuf *
writable(struct mirror *mirror, struct rte_mbuf *m)
{
	bool ours = rte_pktmbuf_headroom(m) >= MIRROR_HEADERS_MAX + RTE_ETHER_HDR_LEN;
	struct rte_mbuf *copy;

	for (const struct rte_mbuf *s = m; s != NULL && ours; s = s->next)
		ours = RTE_MBUF_DIRECT(s) && rte_mbuf_refcnt_read(s) == 1;
	if (ours)
		return m;
	copy = rte_pktmbuf_copy(m, mirror->pool, 0, UINT32_MAX);
	rte_pktmbuf_free(m);
	return copy;
}

/* An Ethernet header of no addresses. */
static void
add_ethernet(struct rte_mbuf *m, bool v4)
{
	uint8_t *p = (uint8_t *)rte_pktmbuf_prepend(m, RTE_ETHER_HDR_LEN);

	memset(p, 0, RTE_ETHER_HDR_LEN);
	p[12] = v4 ? 0x08 : 0x86;
	p[13] = v4 ? 0x00 : 0xdd;
}

enum mirror_outcome
mirror_put(struct mirror *m, const struct sl_dgram *g, uint64_t ns)
{
	uint8_t headers[MIRROR_HEADERS_MAX];
	struct item item = {.ns = ns};
	bool whole;
	uint32_t len = mirror_headers(g, headers, &whole);

	item.m = writable(m, g->buf);
	if (item.m == NULL)
		return MIRROR_NO_MBUF;
	memcpy(rte_pktmbuf_prepend(item.m, (uint16_t)len), headers, len);
	if (!whole)
		add_ethernet(item.m, headers[0] >> 4 == 4);
	if (rte_ring_enqueue_elem(m->ring, &item, sizeof(item)) == 0)
		return MIRROR_TAKEN;
	rte_pktmbuf_free(item.m);
	return MIRROR_NO_ROOM;
}
