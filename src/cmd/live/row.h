/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row of sql/live/runs.sql or transactions.sql, by the names of its columns, and words for people.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* "" if it is NULL, or there is no such column. Valid until the next step. */
const char *row_text(sqlite3_stmt *row, const char *name);
int64_t row_number(sqlite3_stmt *row, const char *name); /* 0 */
bool row_has(sqlite3_stmt *row, const char *name);       /* whether it is neither NULL nor '' */

#define ROW_WORDS 512
#define ROW_DURATION 40

/* "1.5 s"; "" if it is NULL. */
const char *row_duration(sqlite3_stmt *row, const char *name, char words[ROW_DURATION]);

/* The state of a run's thread: "on CPU", "waits 3.1 s for a lock (RESERVED)", "not known". */
const char *row_doing(sqlite3_stmt *row, char words[ROW_WORDS]);

/* The purpose of a transaction's locks: "writes", "oldest reader", "reads". */
const char *row_access(sqlite3_stmt *row);

/* The holder of the lock that a run waits for, and what the holder's thread does; "" if the run waits for
 * no lock. */
const char *row_holder(sqlite3_stmt *row, char words[ROW_WORDS]);
