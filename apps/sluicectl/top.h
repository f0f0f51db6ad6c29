/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef TOP_H
#define TOP_H

/**
 * @file
 * sluicectl top: samples of counters, what they grew by in a second, and how that looks.
 */

#include "ctl.h"

/* ---- top_rates.c: no daemon needed but by top_sample ---- */

/** All counters of the daemon, and the time in nanoseconds as "at". To be released by the caller.
 */
json_t *top_sample(int fd);

/**
 * What happened between two samples:
 *
 *   interval_s, name, uptime_s, idle
 *   lcores    lcore rx_pps served_pps cycles_per_packet busy idle asleep burst lost_pps
 *   ports     name link rx_pps rx_bps tx_pps tx_bps lost_pps ring_used ring
 *   services  name kind lcore pps bps held queue lost_pps
 *   drops     where cause pps total
 *
 * busy, idle and asleep are percent of the time; queue is the memory held, in percent of what may
 * be; burst is packets in a busy turn. A value that is not known, such as cycles without packets,
 * is null. Drops are sorted, what happens most comes first.
 *
 * @return   to be released by the caller
 */
json_t *top_rates(const json_t *before, const json_t *after);

/* ---- top_text.c ---- */

/**
 * Rates as lines of at most `width` columns; rows that do not fit into `height` lines are left out,
 * which the last line says. height 0: no limit.
 *
 * @return   to be freed by the caller
 */
char *top_text(const json_t *rates, unsigned int width, unsigned int height);

/** "9999", "12.3k", "1.2M": at most 6 characters. "-" for null. Returns text. */
const char *top_number(const json_t *value, char *text, size_t size);

/* ---- screen.c: the terminal ---- */

/** Take it over: a screen of its own, no cursor, keys without echo. Given back at the end of the
 * program, whichever way that comes. */
void screen_open(void);

/** Columns and lines. */
void screen_size(unsigned int *width, unsigned int *height);

/** Show a text in the place of what is there. */
void screen_show(const char *text);

/** Wait that long for an end: q, Ctrl-C, a signal, or the terminal's end. True if it came. Works
 * without screen_open, too: then for signals alone. */
bool screen_wait(unsigned int ms);

#endif
