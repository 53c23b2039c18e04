/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress of a command, shown after a second on a line of stderr, which is cleared at the
 * end. Only where stderr is a terminal.
 *
 * One thing is in progress from a progress_begin() to the next one or to progress_end().
 * Code that writes to a terminal in between calls progress_end() first; complain() does.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

void progress_begin(const char *doing); /* "reading samples"; stays valid */

/* How many of them are done, where that is known. Cheap: call it for each. */
void progress_count(int64_t count, const char *things);

void progress_end(void);
void progress_stop(void); /* and nothing is shown after that */

/* Ends it where stdout is a terminal, too: output that comes now would stand in its line. */
void progress_clear(void);

/* Statements of this connection show it while they run. */
void progress_watch(sqlite3 *db);

/* From now on such statements end as interrupted once so many seconds have passed. */
void progress_limit(int seconds);
bool progress_is_late(void); /* they have */
