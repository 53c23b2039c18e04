/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system.lock_waits and system.transaction_log: views of the store's, see sql/schema/store_schema.sql.
 */
#include "sql/tables.h"

static const struct column lock_waits_columns[] = {
	{ "event_time_microseconds", "TEXT", COLUMN_TIME },
	{ "timestamp_ns", "INTEGER", COLUMN_SEARCHED | COLUMN_KEY },
	{ "hostname", "TEXT", COLUMN_KEY },
	{ "process_id", "INTEGER", COLUMN_KEY },
	{ "thread_id", "INTEGER", COLUMN_KEY },
	{ "session_id", "INTEGER", 0 },
	{ "query_id", "TEXT", COLUMN_SEARCHED },
	{ "query", "TEXT", 0 },
	{ "database", "TEXT", 0 },
	{ "lock", "TEXT", 0 },
	{ "wait_ns", "INTEGER", 0 },
	{ "outcome", "TEXT", 0 },
	{ "holder_query_id", "TEXT", COLUMN_OF_HOLDER },
	{ "holder_query", "TEXT", COLUMN_OF_HOLDER },
	{ "holder_session_id", "INTEGER", 0 },
	{ "holder_process_id", "INTEGER", 0 },
	{ "holder_thread_id", "INTEGER", 0 },
	{ "holder_transaction", "INTEGER", 0 },
	{ "reason", "TEXT", 0 },
	{ "tries", "INTEGER", 0 },
	{ "own_transaction", "INTEGER", 0 },
	{ "own_age_ns", "INTEGER", 0 },
	{ "own_query", "TEXT", 0 },
};

static const struct column transaction_log_columns[] = {
	{ "event_time_microseconds", "TEXT", COLUMN_TIME },
	{ "timestamp_ns", "INTEGER", COLUMN_SEARCHED | COLUMN_KEY },
	{ "hostname", "TEXT", COLUMN_KEY },
	{ "process_id", "INTEGER", COLUMN_KEY },
	{ "thread_id", "INTEGER", 0 },
	{ "session_id", "INTEGER", COLUMN_SEARCHED },
	{ "transaction_number", "INTEGER", COLUMN_SEARCHED | COLUMN_KEY },
	{ "database", "TEXT", 0 },
	{ "outcome", "TEXT", 0 },
	{ "duration_ns", "INTEGER", 0 },
	{ "write_lock_ns", "INTEGER", 0 },
	{ "exclusive_lock_ns", "INTEGER", 0 },
	{ "idle_ns", "INTEGER", 0 },
	{ "statements", "INTEGER", 0 },
	{ "first_query_id", "TEXT", 0 },
	{ "first_query", "TEXT", 0 },
	{ "last_query_id", "TEXT", 0 },
	{ "last_query", "TEXT", 0 },
	{ "waits", "INTEGER", 0 },
	{ "waited_ns", "INTEGER", 0 },
	{ "pending_lock_ns", "INTEGER", 0 },
	{ "cpu_time_ns", "INTEGER", 0 },
	{ "idle_cpu_time_ns", "INTEGER", 0 },
	{ "run_delay_ns", "INTEGER", 0 },
};

const struct table table_lock_waits = { .name = "lock_waits",
	                                TABLE_COLUMNS(lock_waits_columns),
	                                .log = "lock_waits" };
const struct table table_transaction_log = { .name = "transaction_log",
	                                     TABLE_COLUMNS(transaction_log_columns),
	                                     .log = "transaction_log" };
