/*
 * Which of a thread's queries runs, as the stack tells it.
 */
#ifndef QUERYPROF_HANDLER_RUNNING_H
#define QUERYPROF_HANDLER_RUNNING_H

#include <stdbool.h>
#include <stdint.h>

#include "handler/thread.h"

/* The innermost query that runs where the thread's stack ends at `sp`, NULL: none. Then
 * `*waits` says whether one may go on without a push: it is between two steps that cannot
 * be hooked. Async-signal-safe; on the thread itself. */
const struct query_tag *query_running(const struct thread *thread, uintptr_t sp, bool *waits);

#endif
