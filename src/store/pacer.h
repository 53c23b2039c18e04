/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which thread checks the budget (handler/budget.h). If there is little to do, it is the flusher, between its
 * waits. Above half of a limit it is a separate thread of the store, the pacer, because the flusher may wait
 * for a disk or a processor. After a while with nothing to do, the pacer sleeps, and the flusher checks
 * again.
 */
#pragma once

#include <stdbool.h>

/* For the flusher; may start the pacer. True: there is no pacer, and the caller must check again
 * soon, even without records. */
bool pacer_check(void);

/* Called by the flusher at its end: stops the pacer. */
void pacer_end(void);

bool pacer_has_thread(void);

/* In a forked child, which has no such thread. */
void pacer_after_fork(void);
