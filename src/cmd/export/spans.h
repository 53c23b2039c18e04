/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spans of a trace file, for the formats that take them.
 */
#pragma once

#include <sqlite3.h>

#include "export/export.h"

/* When the first span or sample of the file was, ns since 1970; 0: there is none. */
int64_t export_spans_first(sqlite3 *db);

/* Hands the spans of the open file to the writer: those of the traces that a selected run is in, all where
 * none are selected (sql/export/spans.sql). A command_result. */
int export_spans(sqlite3 *db, const char *path, const struct export_format *format, void *writer);

/* The span of a row with the columns of sql/export/spans.sql; its texts are the row's. */
struct export_span export_spans_read(sqlite3_stmt *row);
