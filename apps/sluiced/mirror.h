/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_MIRROR_H
#define SLUICED_MIRROR_H

/**
 * @file
 * A mirror keeps what it is given: in a pcapng file, or by sending it out of a kernel interface.
 *
 *     lcore: mirror_put -> bounded ring -> a thread of the mirror's own: file or packet socket
 *
 * The lcore never waits: a packet that finds the ring full is dropped and counted. The thread may
 * be as slow as the disk is.
 *
 * A datagram becomes the whole frame that it came in where its headers are still in front of it
 * and say what the datagram does; else (they lie elsewhere, or whoever shares the memory has
 * changed them) a frame with headers made anew: MAC addresses of zeros, identification zero, no
 * options, IPv4 without a UDP checksum.
 *
 * A file has a size that it does not exceed. When it is reached, with files = 1 all further packets
 * are dropped and counted; else PATH becomes PATH.1, that PATH.2 and so on, files in all, and a new
 * PATH is begun. So it is at the start with a PATH that is there already; with files = 1 that is
 * overwritten. Until then the file is PATH.new: a reload that is refused in the end has changed
 * nothing.
 */

#include "sl_base.h"

struct rte_mbuf;
struct rte_mempool;
struct sl_dgram;

/** Packets that wait for the thread at most. */
#define MIRROR_DEPTH 4096u
/** A file takes at least one packet. */
#define MIRROR_FILE_MIN 65536u
#define MIRROR_FILES_MAX 100u

enum mirror_outcome {
	MIRROR_TAKEN,	  /**< given to the thread */
	MIRROR_NO_ROOM,	  /**< dropped: the ring is full */
	MIRROR_NO_MBUF,	  /**< dropped: no packet for the copy, where the received one may not be
			     written */
	MIRROR_WRITTEN,	  /**< of those taken: in the file, or sent */
	MIRROR_FILE_FULL, /**< of those taken: dropped, the file has its size */
	MIRROR_FAILED,	  /**< of those taken: file or interface refused it */
	MIRROR_OUTCOMES
};

/** What became of packets that the thread was given. */
struct mirror_end {
	enum mirror_outcome outcome;
	const char *name;
	bool lost;
};

#define MIRROR_ENDS (MIRROR_OUTCOMES - MIRROR_WRITTEN)

extern const struct mirror_end mirror_end[MIRROR_ENDS];

struct mirror_conf {
	const char *name;	  /**< of the service, for the thread's name */
	const char *file;	  /**< path; NULL with an interface */
	uint64_t file_size;	  /**< bytes, MIRROR_FILE_MIN at least */
	uint32_t files;		  /**< 1..MIRROR_FILES_MAX */
	const char *interface;	  /**< name; NULL with a file */
	struct rte_mempool *pool; /**< of copies */
};

struct mirror;

/**
 * Open an interface or a new file, and start the thread. The file is PATH.new as yet, and what is
 * there of its name stays: a mirror that this one is to replace may write to it.
 *
 * @param out   set on success only
 * @return      0; -EINVAL; -ENOMEM; -EEXIST for what is no regular file; -EBUSY for one that
 *              another process's mirror writes; the error of opening: -EACCES, -ENOENT, -ENODEV,
 *              -EPERM ...
 * Caller: control path.
 */
int mirror_create(const struct mirror_conf *conf, struct mirror **out) SL_MUST_CHECK;

/**
 * Give the file its name, now that it is known to be used: a file that has the name is the next
 * older one afterwards, or gone if there is to be one alone. Nothing for an interface.
 *
 * @return   0; -errno, and what is written goes on to PATH.new
 * Caller: control path, once, when no other mirror writes to a file of that name. Packets may have
 * been put already.
 */
int mirror_begin(struct mirror *m) SL_MUST_CHECK;

/**
 * Write what waits, and close. A file that was not begun is gone.
 *
 * @param counts   as of mirror_counts: all of them in the end; may be NULL
 * Caller: control path; nobody puts any more. m may be NULL. May wait for the disk.
 */
void mirror_destroy(struct mirror *m, uint64_t *counts);

/**
 * Keep a datagram.
 *
 * @param g    its buf, an mbuf, is the mirror's afterwards
 * @param ns   when it came, since 1970
 * @return     MIRROR_TAKEN, MIRROR_NO_ROOM or MIRROR_NO_MBUF: the caller counts it
 * Caller: one lcore; never blocks.
 */
enum mirror_outcome mirror_put(struct mirror *m, const struct sl_dgram *g, uint64_t ns);

/**
 * What became of those taken.
 *
 * @param counts   MIRROR_OUTCOMES; MIRROR_WRITTEN and on are added to
 * @return         how many are neither: they wait, or are being written
 * Caller: any thread; does not wait for the disk.
 */
uint64_t mirror_counts(struct mirror *m, uint64_t *counts);

/* ---- mirror_frame.c ---- */

/** Ethernet, two tags, IPv4 with options, UDP. */
#define MIRROR_HEADERS_MAX 96u

/**
 * Find or make the headers of a datagram.
 *
 * @param headers   MIRROR_HEADERS_MAX bytes
 * @param whole     set: are they those that it came with, from Ethernet on? Else they begin with IP
 * @return          their length
 */
uint32_t mirror_headers(const struct sl_dgram *g, uint8_t *headers, bool *whole);

#endif
