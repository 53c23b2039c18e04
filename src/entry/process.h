/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts and stops the parts in the order in which samples pass through them.
 */
#ifndef QUERYPROF_ENTRY_PROCESS_H
#define QUERYPROF_ENTRY_PROCESS_H

#include <stdbool.h>

/* Between qp_init() and qp_shutdown(). Any thread. */
bool process_running(void);

#endif
