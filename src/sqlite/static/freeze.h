/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes all other threads stand still, for as long as code is changed that they may run.
 *
 * A thread that has executed some of the instructions that a jump is to replace would go on in
 * the middle of the jump, whatever the order of writing. So nothing is written before each thread
 * was seen to be elsewhere: a child that shares the process's memory stops them by ptrace(), as LeakSanitizer
 * does, reads where they are, and writes. It needs none of the host's signals, and threads that
 * block all of them are stopped, too. At the child's end, whatever brings it, the kernel lets all
 * threads go on.
 */
#ifndef QUERYPROF_SQLITE_STATIC_FREEZE_H
#define QUERYPROF_SQLITE_STATIC_FREEZE_H

#include <stddef.h>

#include "sqlite/static/find.h"

/* Calls `change(context)` while the other threads stand still, and none is inside of one of the
 * ranges or in what was called from there. `change` must not take locks or memory: a thread may
 * hold what it waits for. Returns the result of `change`, or why it was not called; within a second. */
const char *freeze_others(const struct static_range *ranges, size_t count, const char *(*change)(void *),
                          void *context);

#endif
