/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings of the processes of a recording. A thread of the command stores the records while they arrive,
 * and the rest when a process has ended. See handover/handover.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/collector.h"

/* From here on, processes with the environment hand over their rings. Without a socket, they store their
 * records themselves. */
void rings_open(void);

/* If no process has begun: removes what rings_open() has made. */
void rings_cancel(void);

/* Begins to store, on a separate thread with all signals blocked. */
void rings_watch(const char *path, int64_t max_bytes);

/* Ends it. Records from before the call are stored afterwards. collection_fold() follows, before this
 * process has a child. */
struct collection *rings_finish(void);

/* Whether the path no longer leads to the file that was there when rings_watch() began to store. */
bool rings_file_is_gone(void);

/* After that: the remaining processes go on and are not recorded any more. */
void rings_leave(void);

/* Or: how many processes are still recorded. */
size_t rings_left(void);

/* Then: continues in a separate process until the last process of the recording has ended. `is_any_left`:
 * whether one runs. The separate process calls `at_begin`, and at its end `at_end`, which folds the
 * collection. Returns in the calling process only. The process that ends last removes what rings_open() has
 * made. */
void rings_go_on(bool (*is_any_left)(void), void (*at_begin)(const char *path),
                 void (*at_end)(struct collection *collection));
