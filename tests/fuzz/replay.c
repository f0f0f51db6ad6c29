/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* Feeds every file of a folder to the fuzz target once: a corpus is a regression test too. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
replay_file(const char *folder, const char *name)
{
	static uint8_t input[1 << 20];
	char path[4096];
	uint8_t *exact;
	size_t size;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "rb");
	if (f == NULL) {
		perror(path);
		return 1;
	}
	size = fread(input, 1, sizeof(input), f);
	fclose(f);
	/* A block of the exact size, so that a sanitizer sees the first byte behind it. */
	exact = malloc(size > 0 ? size : 1);
	if (exact == NULL)
		return 1;
	memcpy(exact, input, size);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
	return 0;
}

int
main(int argc, char **argv)
{
	int passed = 0, failed = 0;
	struct dirent *entry;
	DIR *dir;

	dir = argc == 2 ? opendir(argv[1]) : NULL;
	if (dir == NULL) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		if (replay_file(argv[1], entry->d_name) == 0)
			passed++;
		else
			failed++;
	}
	closedir(dir);
	if (passed == 0)
		failed++; /* an empty corpus proves nothing */
	printf("%d passed, %d failed, 0 skipped\n", passed, failed);
	return failed != 0;
}
