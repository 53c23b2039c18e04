/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which thread looks at the budget (handler/budget.h). While there is little to do, it is the
 * flusher, between its waits. Above half of a limit it is a thread of the store's own, the pacer:
 * the flusher may wait for a disk, or for a processor. When there is nothing to do for a while the
 * pacer sleeps, and the flusher looks again.
 */
#ifndef QUERYPROF_STORE_PACER_H
#define QUERYPROF_STORE_PACER_H

#include <stdbool.h>

/* The flusher; may start the pacer. True: there is no pacer, and the caller is to look again soon,
 * though nothing comes. */
bool pacer_check(void);

/* The flusher, at its end: no pacer any more. */
void pacer_end(void);

bool pacer_has_thread(void);

/* In a forked child, which has no such thread. */
void pacer_after_fork(void);

#endif
