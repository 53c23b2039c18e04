/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger, added up.
 */
#pragma once

#include <stdint.h>

#include "wire/ledger.h"

/* The sum over all threads there ever were. */
uint64_t ledger_read(enum ledger_counter which);

/* All counters, of one moment: what the signals became adds up to the signals. Handlers that run
 * meanwhile have it read again, a hundred times at most. */
void ledger_read_all(uint64_t counters[LEDGER_COUNTERS]);

/* In a forked child: all counters start again from 0. No handler may run. */
void ledger_reset_in_child(void);
