/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A terminal that shows lines and delivers keys.
 *
 * It uses four controls that every terminal understands (ECMA-48): go home, clear a line, clear the rest of
 * the screen, and reverse a line. So it needs neither a library nor terminfo, which a container may lack.
 *
 * The terminal is restored at every end: a return, exit(), a signal, a stop (^Z), but not after SIGKILL.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False: standard input or output is not a terminal. */
bool screen_open(void);
void screen_close(void); /* idempotent */

struct screen_size {
	int rows, columns; /* at least 1 */
};
struct screen_size screen_size(void);

/* Shows only these lines, from the first row on, each cut to the width. Characters that would control the
 * terminal become blanks. */
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

/* The next key; waits for it until `until_ns` (CLOCK_MONOTONIC). Ignores other keys and other bytes. */
enum screen_key screen_key(uint64_t until_ns, char *character);
