/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose first thread has ended by pthread_exit() ends with its last one. Ours
 * must not be what keeps it.
 */
#ifndef QUERYPROF_STORE_LAST_THREAD_H
#define QUERYPROF_STORE_LAST_THREAD_H

#include <stdbool.h>

/* Whether the first thread has ended and only queryprof's threads, which are `ours`, are left. */
bool last_thread_is_ours(int ours);

#endif
