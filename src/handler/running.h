/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of a thread's queries runs, as the stack shows it.
 *
 * A query runs inside the frame of the call that started it. One thread may have several
 * stacks (coroutines), on each of them a call that is not finished, and the calls may end
 * in any order. So neither the newest tag nor the oldest one says what runs: the frames do.
 */
#ifndef QUERYPROF_HANDLER_RUNNING_H
#define QUERYPROF_HANDLER_RUNNING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/frame_location.h"
#include "handler/thread.h"

/* The innermost query that runs where the thread's stack ends at `sp`, NULL: none. Then
 * `*waits` says whether one may go on without a push: it is between two steps that cannot
 * be hooked, or on another stack. Async-signal-safe; on the thread itself. */
const struct query_tag *query_running(const struct thread *thread, uintptr_t sp, bool *waits);

#endif
