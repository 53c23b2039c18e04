/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger, added up.
 */
#pragma once

#include <stdint.h>

#include "wire/ledger.h"

/* The sum over all threads that have ever existed. */
uint64_t ledger_read(enum ledger_counter which);

/* All counters at one moment, so that the results of signals add up to the signals. Reads again if
 * handlers run meanwhile, a hundred times at most. */
void ledger_read_all(uint64_t counters[LEDGER_COUNTERS]);

/* In a forked child: all counters start again from 0. No handler may run. */
void ledger_reset_in_child(void);
