/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops all other threads while code is changed that they may run.
 *
 * A thread that has executed some of the instructions that a jump replaces would continue in the
 * middle of the jump, whatever the order of writing. So nothing is written before each thread was
 * seen elsewhere: a child that shares the process's memory stops them by ptrace(), as LeakSanitizer
 * does, reads their positions, and writes. It needs none of the host's signals, and also stops
 * threads that block all of them. When the child ends, in whatever way, the kernel resumes all
 * threads.
 */
#pragma once

#include <stddef.h>

#include "sqlite/static/object.h"

/* Calls `change(context)` while the other threads are stopped, and none is inside one of the
 * ranges or in a function called from there. `change` must not take locks or memory, because a
 * stopped thread may hold them. Returns the result of `change`, or why it was not called; within a
 * second. */
const char *freeze_others(const struct static_range *ranges, size_t count, const char *(*change)(void *),
                          void *context);
