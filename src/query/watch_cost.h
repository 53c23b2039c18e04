/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of the wrappers to the host's threads, in addition to samples. Their calls are already
 * counted as the statements' runs and rows, and each has a calibrated cost, so queries do no work for
 * it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The cost of a call on a statement that continues, in picoseconds: calibrate.c measures it. */
void watch_cost_set(uint64_t call_ps);
bool watch_cost_is_set(void);

/* The cost of so many runs with so many rows in all; 0 before it is calibrated. */
uint64_t watch_cost_of(uint64_t runs, uint64_t rows);

/* The cost of all statements so far. */
uint64_t watch_cost_so_far(void);
