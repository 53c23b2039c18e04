/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `push --follow` and `live` in the background of a recording, as processes of their own. A process ends with
 * the command, however that ends.
 */
#pragma once

#include <stdbool.h>

enum background { BACKGROUND_PUSH, BACKGROUND_LIVE, BACKGROUNDS };

/* Starts this command again, with these arguments; `argv` ends with NULL. Its messages and what it prints go
 * to stderr; `quiet`: only complaints do. False after a complaint. */
bool background_start(enum background which, const char *const *argv, bool quiet);

/* Lets it finish its work and ends it. Does nothing if it was not started. */
void background_end(enum background which);

/* Blocks the signals that end background_wait(): one that comes before it is not lost. */
void background_hold_signals(void);

/* Waits until it has ended, or a signal ends the command. These signals are blocked from then on. */
void background_wait(enum background which);

/* Ends all immediately, because nothing was recorded. */
void background_cancel(void);
