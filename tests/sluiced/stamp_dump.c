/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/*
 * A stateless reflector on standard input, for programs that check what it answers.
 *
 * Arguments: ntp|ptp|sender, session ids 0|1, clock synchronised 0|1, its error in nanoseconds, TAI
 * - UTC. A line in: source port, TTL, T2 and T3 in nanoseconds since 1970, the request in
 * hexadecimal. A line out: the outcome's name, what lies in the buffer afterwards in hexadecimal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "stamp.h"

int
main(int argc, char **argv)
{
	static char hex[4096];
	struct stamp_conf conf = {.sequence = STAMP_STATELESS};
	struct stamp_clock clock;
	struct stamp *s;
	unsigned int sport, ttl;
	unsigned long long rx_ns, tx_ns;

	if (argc != 6)
		return 2;
	conf.format = strcmp(argv[1], "ntp") == 0   ? STAMP_NTP
		      : strcmp(argv[1], "ptp") == 0 ? STAMP_PTP
						    : STAMP_SENDER;
	conf.session_id = atoi(argv[2]) != 0;
	clock.synchronised = atoi(argv[3]) != 0;
	clock.error_ns = strtoull(argv[4], NULL, 10);
	clock.tai_s = atoi(argv[5]);
	if (stamp_create(&conf, &s) != 0)
		return 1;
	stamp_set_clock(s, &clock);
	while (scanf("%u %u %llu %llu %4095s", &sport, &ttl, &rx_ns, &tx_ns, hex) == 5) {
		struct stamp_seen seen = {.sport = htons((uint16_t)sport),
			.ttl = (uint8_t)ttl,
			.rx_ns = rx_ns,
			.tx_ns = tx_ns};
		size_t len = strlen(hex) / 2;
		uint8_t data[sizeof(hex) / 2];
		unsigned int octet;

		for (size_t i = 0; i < len && sscanf(hex + 2 * i, "%2x", &octet) == 1; i++)
			data[i] = (uint8_t)octet;
		printf("%s ", stamp_outcome_name(stamp_reflect(s, &seen, data, len)));
		for (size_t i = 0; i < len; i++)
			printf("%02x", data[i]);
		printf("\n");
	}
	stamp_destroy(s);
	return 0;
}
