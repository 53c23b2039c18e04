/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Determines the running query of a thread by its stack.
 *
 * A query runs inside the frame of the call that started it. One thread may have several stacks
 * (coroutines), each with an unfinished call, and the calls may end in any order. So neither the
 * newest tag nor the oldest one is decisive, only the frames.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/frame_location.h"
#include "handler/thread.h"

/* The innermost query that runs if the thread's stack ends at `sp`, NULL: none. Then `*waits`
 * tells whether one may continue without a push: it is between two steps that cannot be hooked, or
 * on another stack. Async-signal-safe; on the thread itself. */
const struct query_tag *query_running(const struct thread *thread, uintptr_t sp, bool *waits);
