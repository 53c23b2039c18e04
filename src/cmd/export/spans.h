/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spans of a trace file, for formats with spans.
 */
#pragma once

#include <sqlite3.h>

#include "export/export.h"

/* The time of the file's first span or sample, ns since 1970; 0: none. */
int64_t export_spans_first(sqlite3 *db);

/* Passes the spans of the open file to the writer: those of the traces that contain a selected run, or all if
 * no run is selected (sql/export/spans.sql). A command_result. */
int export_spans(sqlite3 *db, const char *path, const struct export_format *format, void *writer);

/* The span of a row with the columns of sql/export/spans.sql; the row owns its texts. */
struct export_span export_spans_read(sqlite3_stmt *row);
