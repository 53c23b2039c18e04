/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system.plan_times: the view plan_times of sql/store_schema.sql.
 */
#include "sql/tables.h"

static const struct column plan_times_columns[] = {
	{ "query_id", "TEXT", COLUMN_SEARCHED },
	{ "normalized_query_hash", "INTEGER", 0 },
	{ "plan_hash", "INTEGER", 0 },
	{ "node", "INTEGER", 0 },
	{ "parent", "INTEGER", 0 },
	{ "detail", "TEXT", 0 },
	{ "self_ms", "REAL", 0 },
	{ "total_ms", "REAL", 0 },
	{ "self_percent", "REAL", 0 },
	{ "total_percent", "REAL", 0 },
	{ "error_ms", "REAL", 0 },
	{ "wait_ms", "REAL", 0 },
	{ "samples", "INTEGER", 0 },
	{ "session_id", "INTEGER", 0 },
	{ "compared", "TEXT", 0 },
	{ "loops", "INTEGER", 0 },
	{ "rows", "INTEGER", 0 },
};

const struct table table_plan_times = { .name = "plan_times",
	                                TABLE_COLUMNS(plan_times_columns),
	                                .log = "plan_times" };
