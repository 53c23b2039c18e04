/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the cost of the wrappers for watch_cost.h.
 */
#pragma once

/* Once; takes some ten us. */
void calibrate_watch_cost(void);
