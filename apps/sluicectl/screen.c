/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Sluice developers
 */

/* The escape sequences are those that every terminal of today and terminfo's "xterm" have: another
 * screen, the cursor off, go home, clear to the end of the line and of the screen. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "top.h"

#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"
#define HOME "\033[H"
#define LINE_END "\033[K\n"
#define REST "\033[J"
#define CTRL_C 3

static struct termios before;
static bool taken;
static int signals = -1;

static void
give_back(void)
{
	if (!taken)
		return;
	taken = false;
	fputs(LEAVE, stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
}

/* Signals that end us come as an event, so that the end is in order. */
static void
catch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (signals < 0)
		ctl_fail("failed", "no descriptor for signals: %s.", strerror(errno));
}

void
screen_open(void)
{
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &before) != 0)
		ctl_fail("failed", "the terminal: %s.", strerror(errno));
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	taken = true;
	atexit(give_back);
	ctl_before_fail = give_back;
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs(ENTER, stdout);
}

void
screen_size(unsigned int *width, unsigned int *height)
{
	struct winsize w;

	*width = 80;
	*height = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 && w.ws_row > 0) {
		*width = w.ws_col;
		*height = w.ws_row;
	}
}

void
screen_show(const char *text)
{
	fputs(HOME, stdout);
	for (; *text != '\0'; text++) {
		if (*text != '\n')
			putchar(*text);
		else if (text[1] != '\0') /* behind the last line the screen would scroll */
			fputs(LINE_END, stdout);
	}
	fputs("\033[K" REST, stdout);
	fflush(stdout);
}

static long
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (long)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Is a key that was pressed, or the end of the terminal, an end? */
static bool
key_ends(void)
{
	char key;
	ssize_t n = read(STDIN_FILENO, &key, 1);

	return n <= 0 || key == 'q' || key == 'Q' || key == CTRL_C;
}

bool
screen_wait(unsigned int ms)
{
	long end = now_ms() + (long)ms;

	if (signals < 0)
		catch_signals();
	for (;;) {
		struct pollfd p[] = {{.fd = signals, .events = POLLIN},
			{.fd = taken ? STDIN_FILENO : -1, .events = POLLIN}};
		long left = end - now_ms();
		int n = poll(p, 2, left > 0 ? (int)left : 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0;
		if (p[0].revents != 0 || key_ends())
			return true;
	}
}
