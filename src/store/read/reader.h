/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the current trace file of this process's store. A store without a file reads as an empty one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "store/read/column_type.h"
#include "store/control/waiting.h"

/* A read-only statement on its own connection, which comes from a pool. `sql` sees the tables and views of
 * sql/schema/store_schema.sql. Only one thread at a time may use a cursor. */
struct store_cursor;

/* `wait` (copied; NULL: 60 s) limits how long this call and each store_step() wait without progress. NULL
 * with a message in `*error` (free() it): it failed. */
struct store_cursor *store_select(const char *sql, const struct store_wait *wait, char **error);
void store_bind_int64(struct store_cursor *cursor, int index, int64_t value); /* from 1 */
void store_bind_double(struct store_cursor *cursor, int index, double value);
void store_bind_text(struct store_cursor *cursor, int index, const char *text, size_t size); /* copied */
void store_bind_null(struct store_cursor *cursor, int index);

/* 1: a row; 0: the end; -1: it failed, see store_cursor_error(). */
int store_step(struct store_cursor *cursor);
const char *store_cursor_error(const struct store_cursor *cursor);

enum store_type store_column_type(struct store_cursor *cursor, int column); /* from 0 */
int64_t store_column_int64(struct store_cursor *cursor, int column);
double store_column_double(struct store_cursor *cursor, int column);
/* Valid until the next store_step() or store_close(). */
const char *store_column_bytes(struct store_cursor *cursor, int column, size_t *size);
void store_close(struct store_cursor *cursor);
