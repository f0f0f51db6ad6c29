/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

bool ctl_json;
void (*ctl_before_fail)(void);

/* A group of commands is a file cmd_GROUP.c. */
static const struct ctl_command *const groups[] = {ctl_show_commands, ctl_net_commands,
	ctl_bridge_commands, ctl_backend_commands, ctl_daemon_commands, ctl_diff_commands,
	ctl_top_commands, ctl_follow_commands};

static const char help_head[] = "sluicectl [--name NAME | --socket PATH] [--json] COMMAND ...\n";
static const char help_tail[] =
	"  --name NAME     the daemon whose [sluiced] section has this name\n"
	"  --socket PATH   its control socket, as it says at start\n"
	"  --json          JSON; failures too: {\"error\": CODE, \"message\": ...}\n"
	"  --help          this; behind a COMMAND, what it takes\n"
	"  --version       of this program; \"info\" has the daemon's\n"
	"Exit status: 0; 1 the audit or diff found a difference; 2 a failure.\n";

/* Words of the command line may be no UTF-8, which JSON is. */
static void
print_failure(const char *code, char *text)
{
	json_t *o = json_pack("{s:s, s:s}", "error", code, "message", text);

	if (o == NULL) {
		for (char *c = text; *c != '\0'; c++)
			*c = (unsigned char)*c < 0x80 ? *c : '?';
		o = json_pack("{s:s, s:s}", "error", code, "message", text);
	}
	if (o != NULL)
		json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
}

void
ctl_fail(const char *code, const char *format, ...)
{
	void (*before)(void) = ctl_before_fail;
	char text[1024];
	va_list args;

	ctl_before_fail = NULL;
	if (before != NULL)
		before();
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fflush(stdout);
	if (ctl_json)
		print_failure(code, text);
	else
		fprintf(stderr, "sluicectl: %s\n", text);
	exit(CTL_EXIT_FAILED);
}

void
ctl_flush(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return;
	fprintf(stderr, "sluicectl: standard output cannot be written: %s.\n", strerror(errno));
	exit(CTL_EXIT_FAILED);
}

static void
print_command(const struct ctl_command *c)
{
	int used = printf("  %s%s%s", c->name, c->args[0] != '\0' ? " " : "", c->args);

	if (used > 13)
		used = printf("\n") - 1;
	printf("%*s%s\n", 14 - used, "", c->help);
}

static void
print_help(void)
{
	fputs(help_head, stdout);
	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
		for (const struct ctl_command *c = groups[g]; c->name != NULL; c++)
			print_command(c);
	fputs(help_tail, stdout);
}

/* What may follow the command is asked for where it would stand. */
static bool
asks_for_help(int argc, char **argv)
{
	return argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
}

static int
run(const char *path, int argc, char **argv)
{
	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
		for (const struct ctl_command *c = groups[g]; c->name != NULL; c++) {
			if (strcmp(c->name, argv[0]) != 0)
				continue;
			if (asks_for_help(argc, argv)) {
				print_command(c);
				return 0;
			}
			if (c->args[0] == '\0' && argc > 1)
				ctl_fail("usage", "%s takes no argument; --help lists commands.",
					c->name);
			return c->run(ctl_connect(path), argc, argv);
		}
	}
	ctl_fail("usage", "\"%s\" is not a command; --help lists them.", argv[0]);
}

/* Take --json out, wherever it is, so that also a mistake in an option is told as asked for. */
static int
take_json(int argc, char **argv)
{
	int n = 1;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			ctl_json = true;
		else
			argv[n++] = argv[i];
	}
	argv[n] = NULL;
	return n;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {{"name", required_argument, NULL, 'n'},
		{"socket", required_argument, NULL, 's'}, {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'}, {NULL, 0, NULL, 0}};
	char path[512];
	int opt;

	argc = take_json(argc, argv);
	ctl_path("", path, sizeof(path));
	opterr = 0;
	/* Options behind the command are the command's own. */
	while ((opt = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (opt == 'n') {
			ctl_path(optarg, path, sizeof(path));
		} else if (opt == 's') {
			snprintf(path, sizeof(path), "%s", optarg);
		} else if (opt == 'h') {
			print_help();
			ctl_flush();
			return 0;
		} else if (opt == 'v') {
			puts("sluicectl " CTL_VERSION);
			ctl_flush();
			return 0;
		} else {
			ctl_fail("usage",
				"%s is not an option, or lacks its value; --help lists them.",
				argv[optind - 1]);
		}
	}
	if (optind == argc)
		ctl_fail("usage", "takes a command; --help lists them.");
	opt = run(path, argc - optind, argv + optind);
	ctl_flush();
	return opt;
}
