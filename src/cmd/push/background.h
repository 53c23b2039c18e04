/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `queryprof push --follow` in the background of a recording, as a separate process.
 */
#pragma once

#include <stdbool.h>

/* Its messages go to stderr; `quiet`: only complaints do. False after a complaint. */
bool push_background_start(const char *trace_file, const char *url, bool quiet);

/* Sends the remaining data and ends it. */
void push_background_end(void);

/* Ends it immediately, because nothing was recorded. */
void push_background_cancel(void);
