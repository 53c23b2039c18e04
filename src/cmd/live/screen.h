/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A terminal that shows lines and delivers keys.
 *
 * It needs four controls, which every terminal of the last forty years obeys (ECMA-48): go home, clear a
 * line, clear what is below, and reverse a line. So there is no library and no terminfo here, which a
 * container may not have: nothing is needed at run time but libc.
 *
 * The terminal is as it was after every end: a return, exit(), a signal, a stop (^Z). Only SIGKILL leaves it.
 */
#ifndef QUERYPROF_CMD_LIVE_SCREEN_H
#define QUERYPROF_CMD_LIVE_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False: standard input or output is no terminal. */
bool screen_open(void);
void screen_close(void); /* idempotent */

struct screen_size {
	int rows, columns; /* at least 1 */
};
struct screen_size screen_size(void);

/* Shows the lines from the first row on, each cut to the width, and nothing else. What would drive a terminal
 * in them is blank. */
struct screen_line {
	const char *text;
	bool is_reversed;
};
void screen_draw(const struct screen_line *lines, size_t count);

enum screen_key {
	KEY_NONE,   /* the time is over */
	KEY_RESIZE, /* the size has changed, or the terminal was another program's */
	KEY_END,    /* there is no more input */
	KEY_UP,
	KEY_DOWN,
	KEY_ENTER,
	KEY_ESCAPE,
	KEY_CHARACTER,
};

/* The next key, for which it waits until `until_ns` (CLOCK_MONOTONIC). Other keys, and bytes that are none,
 * are ignored. */
enum screen_key screen_key(uint64_t until_ns, char *character);

#endif
