/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings of the processes of a recording: what comes there is stored here, by a thread of the command's,
 * and the rest when a process is gone. See handover/handover.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/collector.h"

/* From here on processes that have the environment hand their rings over. If no socket can
 * be had, they store what they record themselves. */
void rings_open(void);

/* No process has begun: removes what rings_open() has made. */
void rings_cancel(void);

/* Begins to store, on a thread of its own. With all signals blocked. */
void rings_watch(const char *path, int64_t max_bytes);

/* Ends it. All that was recorded before the call is stored afterwards. collection_fold() follows, before this
 * process has a child. */
struct collection *rings_finish(void);

/* After it: how many processes go on being recorded. */
size_t rings_left(void);

/* Then: goes on storing in a process of its own until the last process of the recording is gone;
 * `is_any_left` says whether one runs, and `at_end` is called at the end, both there. Returns in the calling
 * process only. The one that ends last removes what rings_open() has made. */
void rings_go_on(bool (*is_any_left)(void), void (*at_end)(const char *path));
