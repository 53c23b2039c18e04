/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a trace file for the tables of sql/clickhouse. SQL selects them, with columns named like the
 * table's, and they are encoded in the types that the server reports for the table.
 */
#pragma once

#include <sqlite3.h>

#include "cmd/push/stacks.h"
#include "cmd/push/state.h"

enum push_table {
	PUSH_TRACE_LOG,
	PUSH_QUERY_LOG,
	PUSH_STATEMENT_STATS,
	PUSH_SPAN_LOG,
	PUSH_LOCK_WAITS,
	PUSH_CHECKPOINTS,
	PUSH_WAL_LOG,
	PUSH_MODULE_ROWS,
	PUSH_LOSSES,
	PUSH_TABLES
};

struct push_batch {
	int64_t rows[PUSH_TABLES];
	int64_t missed; /* samples that were removed before they could be sent */
};

/* Asks the server for its version and the columns of its tables; `url` with ?database= and other
 * parameters. A command_result. */
int push_clickhouse_begin(const char *url, bool is_zstd);
void push_clickhouse_end(void);

/* Reads the data between the two positions and keeps it to be sent. service NULL: the name of each
 * program. is_counted: the position `since` is known to have been sent. A command_result. */
int push_clickhouse_read(sqlite3 *db, const char *path, const struct push_position *since,
                         const struct push_position *until, const char *service, bool is_counted,
                         struct push_stacks *stacks, struct push_batch *batch);

/* Sends the data that was read; may be called again. A command_result. */
int push_clickhouse_send(void);

const char *push_table_name(enum push_table table);
