/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Prints a table: its slots, then its turns, one line each, as places in the arguments. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "maglev.h"

int
main(int argc, char **argv)
{
	static struct maglev_backend backends[MAGLEV_BACKENDS_MAX];
	struct maglev_conf conf = {.backends = backends};
	struct maglev *m;
	int ret;

	if (argc < 3) {
		fprintf(stderr, "usage: %s SLOTS SEED [NAME=WEIGHT ...]\n", argv[0]);
		return 2;
	}
	conf.slots = (uint32_t)strtoul(argv[1], NULL, 0);
	conf.seed = (uint32_t)strtoul(argv[2], NULL, 0);
	for (int i = 3; i < argc && conf.count < MAGLEV_BACKENDS_MAX; i++) {
		char *weight = strrchr(argv[i], '=');

		if (weight == NULL)
			return 2;
		*weight = '\0';
		backends[conf.count] = (struct maglev_backend){.name = argv[i],
			.weight = (uint32_t)strtoul(weight + 1, NULL, 0),
			.index = (uint16_t)conf.count};
		conf.count++;
	}
	ret = maglev_create(&conf, &m);
	if (ret != 0) {
		fprintf(stderr, "maglev_create: %d\n", ret);
		return 1;
	}
	for (uint32_t s = 0; s < m->slots; s++)
		printf("%u ", m->slot[s]);
	printf("\n");
	for (uint32_t n = 0; n < m->slots; n++)
		printf("%u ", maglev_turn(m, n));
	printf("\n");
	maglev_destroy(m);
	return 0;
}
