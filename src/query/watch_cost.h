/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of watching to the host's threads, beside samples: its calls are counted already, as the
 * statements' runs and rows, and one costs what it was calibrated to. No query does anything for it.
 */
#ifndef QUERYPROF_QUERY_WATCH_COST_H
#define QUERYPROF_QUERY_WATCH_COST_H

#include <stdint.h>

/* Once; takes some ten us. */
void watch_cost_calibrate(void);

/* The cost of so many runs with so many rows in all; 0 before it is calibrated. */
uint64_t watch_cost_of(uint64_t runs, uint64_t rows);

/* The cost of all statements so far. */
uint64_t watch_cost_so_far(void);

#endif
