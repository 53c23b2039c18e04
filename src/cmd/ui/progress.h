/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress of a command, shown after a second on a line of stderr, which is cleared at the end. Only if
 * stderr is a terminal.
 *
 * One thing is in progress from a progress_begin() to the next one or to progress_end(). Code that writes to
 * a terminal in between calls progress_end() first; complain() does.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

void progress_begin(const char *doing); /* "reading samples"; stays valid */

/* The number of finished things, if known. Cheap: call it for each. */
void progress_count(int64_t count, const char *things);

void progress_end(void);
void progress_stop(void); /* hides it permanently */

/* Ends it if stdout is a terminal as well, because output would appear in its line. */
void progress_clear(void);

/* Statements of this connection show the progress while they run. */
void progress_watch(sqlite3 *db);

/* Such statements end as interrupted after so many seconds from now. */
void progress_limit(int seconds);
bool progress_is_late(void); /* that time is over */
