/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waits of the host's code, which the signals of real-time samples would cut short.
 *
 * A sleep or a poll that a signal interrupts ends with EINTR, whatever SA_RESTART requires, and much
 * code treats that as its end: SQLite's busy handler counts its sleeps, not the time, and gives up
 * after 59 ms of 5 s under a timer of 1 ms; other code starts the whole time again and never
 * finishes.
 *
 * So these functions are hooked, including SQLite's own calls. Inside a query, a wait that
 * queryprof's signal ended continues for the rest of its time; the host's own signals end it as
 * usual. Outside, the thread's timer is stopped before it waits.
 */
#pragma once

#include "hook/import.h"

#define WAITS_HOOKS_MAX 12

/* Fills the hooks; returns their number. */
int waits_hooks(struct import_hook hooks[WAITS_HOOKS_MAX]);
