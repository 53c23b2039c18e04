/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values and rows of the tables in sql/live.
 */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

/* NULL: NULL. The text is copied. */
void live_bind_text(sqlite3_stmt *row, const char *name, const char *text);

/* A number that is too large becomes the largest that SQLite has. */
void live_bind_number(sqlite3_stmt *row, const char *name, uint64_t number);

/* Inserts the row; `code` is the first SQLite result that is an error. */
void live_insert(sqlite3_stmt *row, int *code);
