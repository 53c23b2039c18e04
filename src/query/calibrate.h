/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the cost of the wrappers for watch_cost.h.
 */
#ifndef QUERYPROF_QUERY_CALIBRATE_H
#define QUERYPROF_QUERY_CALIBRATE_H

/* Once; takes some ten us. */
void calibrate_watch_cost(void);

#endif
