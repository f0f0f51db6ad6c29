/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#ifndef SLUICED_CONF_PRIV_H
#define SLUICED_CONF_PRIV_H

/**
 * @file
 * Keys: each has a function that takes its value into the configuration, or tells the mistake.
 */

#include "conf.h"

/** A key with its value, and where it is. */
struct conf_at {
	struct conf *conf;
	void *item; /**< what the section's keys fill in, if it has a begin: a struct conf_port, ...
		     */
	struct mistakes *m;
	const char *section;
	const char *key;
	const char *value;
	uint32_t line;
};

struct conf_key {
	const char *name;
	const char *example; /**< NULL: may be left out */
	void (*take)(struct conf_at *at);
};

/** A kind of section. */
struct conf_section {
	const char *word; /**< "port" of [port NAME] */
	bool named;	  /**< has a NAME behind the word, and so may come more than once */
	const struct conf_key *keys;
	/**
	 * A section begins in at->line: make room for it. NULL when it has no item.
	 *
	 * @param name   what stands behind the word; "" unless `named`
	 * @return       at->item for its keys; NULL with the mistake told
	 */
	void *(*begin)(struct conf_at *at, const char *name);
};

/** All kinds of sections (conf.c); the last one has no word. A new kind is a row there, and a file
 * of its own with its keys. */
extern const struct conf_section conf_sections[];

void *conf_port_begin(struct conf_at *at, const char *name);
void *conf_vlan_begin(struct conf_at *at, const char *name);
void *conf_tapvu_begin(struct conf_at *at, const char *name);
void *conf_pktring_begin(struct conf_at *at, const char *name);
void *conf_route_begin(struct conf_at *at, const char *name);
void *conf_service_begin(struct conf_at *at, const char *name);
void *conf_metrics_begin(struct conf_at *at, const char *name);
void *conf_backend_begin(struct conf_at *at, const char *name);
void *conf_bridge_begin(struct conf_at *at, const char *name);

/** Tell that there are more sections of a kind than max; what: "ports". */
void conf_too_many(struct conf_at *at, unsigned int max, const char *what);

/** Keys of each kind of section; the last one has no name. */
extern const struct conf_key conf_sluiced_keys[];
extern const struct conf_key conf_port_keys[];
extern const struct conf_key conf_vlan_keys[];
extern const struct conf_key conf_tapvu_keys[];
extern const struct conf_key conf_pktring_keys[];
extern const struct conf_key conf_route_keys[];
extern const struct conf_key conf_service_keys[];
extern const struct conf_key conf_metrics_keys[];

/** Keys of ports, VLANs and frontends (conf_link.c). */
void conf_take_exception(struct conf_at *at);
void conf_take_on(struct conf_at *at);
void conf_take_path(struct conf_at *at);
void conf_take_mac(struct conf_at *at);
void conf_take_client(struct conf_at *at);
void conf_take_pairs(struct conf_at *at);
void conf_take_frag(struct conf_at *at);
void conf_take_lend(struct conf_at *at);

/** Is an address in that network? */
bool conf_on_link(const struct conf_cidr *c, const struct sl_addr *a);
/** Is it the broadcast address of one of the port's networks? */
bool conf_is_broadcast(const struct conf_port *p, const struct sl_addr *a);

/** What VLANs, taps, sockets and routes contradict (conf_link_cross.c). conf_cross calls it. */
void conf_link_cross(struct conf *conf, struct mistakes *m);
extern const struct conf_key conf_backend_keys[];
extern const struct conf_key conf_bridge_keys[];
/** Those of a [service] section that only kind = forward has, by enum conf_forward_key; the example
 * of one that may be needed is for the message that it is lacking. */
extern const struct conf_key conf_forward_keys[CONF_FORWARD_KEYS];

/** Take the value of any key of kind = forward. */
void conf_forward_take(struct conf_at *at);

/** What conf_cross does about back ends and services of kind = forward. */
void conf_forward_cross(struct conf *conf, struct mistakes *m);

/** Memory that a service of kind = forward takes of the daemon's, in bytes; 0 for other kinds. */
uint64_t conf_forward_bytes(const struct conf *conf, const struct conf_service *s);

/** What conf_cross and conf_restart_only do about bridges; conf_bridge_cross also says which ports
 * need an address. */
void conf_bridge_cross(struct conf *conf, struct mistakes *m);
void conf_bridge_restart_only(const struct conf *now, const struct conf *next, struct mistakes *m);

/** Memory that the tables of bridges take, in bytes. */
uint64_t conf_bridge_bytes(const struct conf *conf);

/** Take the values of the keys of kind = mirror. */
void conf_mirror_take_file(struct conf_at *at);
void conf_mirror_take_file_size(struct conf_at *at);
void conf_mirror_take_files(struct conf_at *at);
void conf_mirror_take_interface(struct conf_at *at);

/** What conf_cross and conf_machine do about mirrors. */
void conf_mirror_cross(struct conf *conf, struct mistakes *m);
void conf_mirror_machine(const struct conf *conf, struct mistakes *m);

/** Why a host on a link cannot have an address, as "is a loopback address", or NULL. */
const char *conf_addr_unfit(const struct sl_addr *a, uint8_t prefix);

/** Tell a mistake about a key's value: "[SECTION] KEY = VALUE: " comes before the sentence. */
void conf_wrong(struct conf_at *at, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** A whole number in range into *value; false, with the mistake told, if it is none. */
bool conf_number(struct conf_at *at, uint64_t min, uint64_t max, uint64_t *value);

/** One of the words, its index into *value. choices: "poll or backoff" for the sentence. */
bool conf_word(struct conf_at *at, const char *const *words, size_t n, const char *choices,
	unsigned int *value);

/** "1,3-5" or "1 3". */
void conf_lcores(struct conf_at *at, struct conf_lcores *lcores);

/** The next word of a list that blanks or commas divide; false at its end. *text moves on. */
bool conf_next(const char **text, char *word, size_t size);

/** A name of a section, a port or a daemon: letters, digits, "-", "_" and ".". */
bool conf_name_good(const char *name);

/** The ith of all ports and then all VLANs. */
const struct conf_port *conf_nth_port(const struct conf *conf, uint16_t i);

/** Is cpu among them? */
bool conf_lcores_have(const struct conf_lcores *lcores, uint16_t cpu);

#endif
