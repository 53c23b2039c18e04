/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `queryprof push --follow` in the background of a recording, as a process of its own.
 */
#pragma once

#include <stdbool.h>

/* Its messages go to stderr; `quiet`: only complaints do. False after a complaint. */
bool push_background_start(const char *trace_file, const char *url, bool quiet);

/* It sends what is there still, and ends. */
void push_background_end(void);

/* It ends at once: nothing was recorded. */
void push_background_cancel(void);
