/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <numa.h>

#include <rte_common.h>

#include "frag_priv.h"

#define WORKERS_MAX 1024u
#define CHUNK_MIN 4096u
#define CHUNKS_MAX (1u << 20)

static int
conf_check(const struct sl_frag_conf *conf, uint32_t chunk_size)
{
	if (conf->mode > SL_FRAG_PAGE || conf->lock > SL_FRAG_MCS)
		return -EINVAL;
	if (conf->workers == 0 || conf->workers > WORKERS_MAX)
		return -EINVAL;
	if (chunk_size < CHUNK_MIN || chunk_size > SL_FRAG_CHUNK_MAX ||
		(chunk_size & (chunk_size - 1)) != 0)
		return -EINVAL;
	if (conf->chunks == 0 || conf->chunks > CHUNKS_MAX)
		return -EINVAL;
	if ((uintptr_t)conf->memory % SL_CACHE_LINE != 0)
		return -EINVAL;
	return 0;
}

static void *
alloc_zeroed(size_t bytes)
{
	void *p = aligned_alloc(SL_CACHE_LINE, bytes);

	if (p != NULL)
		memset(p, 0, bytes);
	return p;
}

static size_t
chunks_bytes(const struct sl_frag *f)
{
	return (size_t)f->chunks * f->chunk_size;
}

/* Touched here, so that no burst takes a page fault. */
static int
memory_get(struct sl_frag *f, int socket)
{
	if (f->rest->given != NULL) {
		f->memory = f->rest->given;
		return 0;
	}
	f->rest->on_node = socket >= 0 && numa_available() >= 0 && socket <= numa_max_node();
	f->memory = f->rest->on_node ? numa_alloc_onnode(chunks_bytes(f), socket)
				     : aligned_alloc(CHUNK_MIN, chunks_bytes(f));
	if (f->memory == NULL)
		return -ENOMEM;
	memset(f->memory, 0, chunks_bytes(f));
	return 0;
}

static void
memory_put(struct sl_frag *f)
{
	if (f->memory == NULL)
		return;
	if (f->rest->given == NULL && f->rest->on_node)
		numa_free(f->memory, chunks_bytes(f));
	else if (f->rest->given == NULL)
		free(f->memory);
	else if (f->rest->memory_free != NULL)
		f->rest->memory_free(f->rest->given, f->rest->memory_arg);
}

void
frag_free_all(struct sl_frag *f)
{
	if (f->rest != NULL)
		memory_put(f);
	free(f->rest);
	free(f->home);
	free(f->chunk);
	free(f->cursors);
	free(f);
}

/* All chunks in one list, the stock. */
static void
chunks_init(struct sl_frag *f)
{
	for (uint32_t i = 0; i < f->chunks; i++) {
		f->chunk[i].frag = f;
		f->chunk[i].next = i + 1 < f->chunks ? i + 2 : 0;
	}
	f->rest->stock = 1;
}

static void
rest_init(struct sl_frag *f, const struct sl_frag_conf *conf)
{
	struct frag_rest *r = f->rest;

	rte_spinlock_init(&r->spin);
	rte_spinlock_init(&r->stock_lock);
	r->lock = conf->lock;
	r->keep = RTE_MAX(1u, f->chunks / (2 * f->workers));
	/* A chunk gives at most chunk_size / 64 slices, so the allocator's share stays above 0. The
	 * rest of the 16 bits is for references that the users of mbufs add. */
	r->bias = (uint16_t)(f->chunk_size / SL_CACHE_LINE + 1);
	r->open = f->workers + 1;
	r->given = conf->memory;
	r->memory_free = conf->memory_free;
	r->memory_arg = conf->memory_arg;
}

static int
parts_create(struct sl_frag *f, const struct sl_frag_conf *conf)
{
	f->cursors = alloc_zeroed((f->workers + (size_t)1) * sizeof(*f->cursors));
	f->chunk = alloc_zeroed(f->chunks * sizeof(*f->chunk));
	f->home = alloc_zeroed(f->workers * sizeof(*f->home));
	f->rest = alloc_zeroed(sizeof(*f->rest));
	if (f->cursors == NULL || f->chunk == NULL || f->home == NULL || f->rest == NULL)
		return -ENOMEM;
	rest_init(f, conf);
	chunks_init(f);
	return memory_get(f, conf->socket);
}

int
sl_frag_create(const struct sl_frag_conf *conf, struct sl_frag **out)
{
	uint32_t chunk_size = conf->chunk_size != 0	   ? conf->chunk_size
			      : conf->mode == SL_FRAG_PAGE ? SL_FRAG_PAGE_DEFAULT
							   : SL_FRAG_CHUNK_DEFAULT;
	struct sl_frag *f;
	int ret = conf_check(conf, chunk_size);

	if (ret != 0)
		return ret;
	f = alloc_zeroed(RTE_ALIGN_CEIL(sizeof(*f), (size_t)SL_CACHE_LINE));
	if (f == NULL)
		return -ENOMEM;
	f->mode = conf->mode;
	f->workers = conf->workers;
	f->chunk_size = chunk_size;
	f->chunks = conf->chunks;
	ret = parts_create(f, conf);
	if (ret != 0) {
		/* A caller's memory stays the caller's when creation fails. */
		if (f->rest != NULL)
			f->rest->memory_free = NULL;
		frag_free_all(f);
		return ret;
	}
	*out = f;
	return 0;
}

/* From now on chunks are not listed, but counted out. */
static void
home_close(struct sl_frag *f, uint32_t i)
{
	struct frag_home *h = &f->home[i];
	uint32_t out = f->cursors[i].taken - sl_load_relaxed(&h->collected);
	uint64_t old = sl_load_relaxed(&h->head), now;

	do {
		now = FRAG_CLOSED | (out - (uint32_t)(old >> 32));
		/* FR3: closing and the last return meet in this word, so exactly one of them finds
		 * that nothing is out. */
	} while (!sl_cas_weak_acq_rel(&h->head, &old, now));
	if (now == FRAG_CLOSED)
		sl_fetch_sub_acq_rel(&f->rest->open, 1u); /* not the last: the owner's is there */
}

void
sl_frag_destroy(struct sl_frag *f)
{
	if (f == NULL)
		return;
	for (uint32_t i = 0; i <= f->workers; i++)
		frag_retire(f, &f->cursors[i]);
	for (uint32_t i = 0; i < f->workers; i++) {
		frag_retire_parked(f, i);
		home_close(f, i);
	}
	if (sl_fetch_sub_acq_rel(&f->rest->open, 1u) == 1) /* FR3 */
		frag_free_all(f);
}

static void
stats_add(const struct sl_frag_cursor *c, struct sl_frag_stats *s)
{
	s->slices += sl_load_relaxed(&c->slices) + sl_load_relaxed(&c->handed);
	s->carved += sl_load_relaxed(&c->carved) + sl_load_relaxed(&c->offset);
	s->tail += sl_load_relaxed(&c->tail);
	s->refills += sl_load_relaxed(&c->refills);
	s->stolen += sl_load_relaxed(&c->stolen);
	s->exhausted += sl_load_relaxed(&c->exhausted);
}

void
sl_frag_stats(const struct sl_frag *f, uint32_t worker, struct sl_frag_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	for (uint32_t i = 0; i <= f->workers; i++)
		if (worker == UINT32_MAX || i == worker || i == f->workers)
			stats_add(&f->cursors[i], stats);
	for (uint32_t i = 0; i < f->workers; i++)
		stats->returned += sl_load_relaxed(&f->home[i].returned);
	stats->wasted = sl_load_relaxed(&f->rest->wasted);
}

/* Marks the chunks of a list; false for one that was met before or is not free. */
static bool
list_check(const struct sl_frag *f, uint32_t list, uint8_t *seen, uint32_t *count)
{
	for (; list != 0; list = f->chunk[list - 1].next) {
		if (list > f->chunks || seen[list - 1]++ != 0 ||
			f->chunk[list - 1].state != FRAG_FREE)
			return false;
		(*count)++;
	}
	return true;
}

/* A chunk that is under a cursor, or parked; index + 1, 0: there is none. */
static bool
used_check(const struct sl_frag *f, uint32_t link, uint32_t offset, uint32_t handed, uint8_t *seen,
	uint64_t *in_flight)
{
	const struct frag_chunk *k;

	if (link == 0)
		return true;
	if (link > f->chunks || seen[link - 1]++ != 0)
		return false;
	k = &f->chunk[link - 1];
	*in_flight += offset - sl_load_relaxed(&k->wasted);
	return k->state == FRAG_CURRENT && offset <= f->chunk_size &&
	       sl_load_relaxed(&k->shared.refcnt) >= f->rest->bias - handed;
}

static bool
cursor_check(const struct sl_frag *f, uint32_t i, uint8_t *seen, uint64_t *in_flight)
{
	const struct sl_frag_cursor *c = &f->cursors[i];
	uint32_t count = 0;

	return list_check(f, c->own, seen, &count) && count == c->owned &&
	       used_check(f, c->limit != 0 ? c->chunk + 1 : 0, c->offset, c->handed, seen,
		       in_flight) &&
	       used_check(f, c->parked, c->parked_offset, c->parked_handed, seen, in_flight) &&
	       (c->parked == 0 || f->chunk[c->parked - 1].home == i);
}

static bool
places_check(struct sl_frag *f, uint8_t *seen, uint64_t *in_flight)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i <= f->workers; i++)
		if (!cursor_check(f, i, seen, in_flight))
			return false;
	for (uint32_t i = 0; i < f->workers; i++) {
		uint64_t head = sl_load_acquire(&f->home[i].head); /* FR2 */

		count = 0;
		if (!list_check(f, (uint32_t)head, seen, &count) || count != head >> 32)
			return false;
	}
	if (!list_check(f, f->rest->stock, seen, &count))
		return false;
	for (uint32_t i = 0; i < f->chunks; i++) {
		const struct frag_chunk *k = &f->chunk[i];

		if (seen[i] != 0)
			continue;
		if (k->state != FRAG_OUT || sl_load_relaxed(&k->shared.refcnt) == 0)
			return false;
		*in_flight += k->carved - sl_load_relaxed(&k->wasted);
	}
	return true;
}

bool
sl_frag_check(struct sl_frag *f, uint64_t *in_flight)
{
	uint8_t *seen = calloc(f->chunks, 1);
	struct sl_frag_stats s;
	uint64_t bytes = 0;
	bool good;

	if (seen == NULL)
		return false;
	good = places_check(f, seen, &bytes);
	free(seen);
	sl_frag_stats(f, UINT32_MAX, &s);
	if (in_flight != NULL)
		*in_flight = bytes;
	return good && s.carved == bytes + s.wasted + s.returned;
}

size_t
sl_frag_memory(const struct sl_frag *f)
{
	return chunks_bytes(f) + f->chunks * sizeof(*f->chunk);
}
