/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system.plan_times: the view plan_times of sql/schema/store_schema.sql.
 */
#include "sql/tables.h"

static const struct column plan_times_columns[] = {
	{ "query_id", "TEXT", COLUMN_SEARCHED | COLUMN_KEY },
	{ "normalized_query_hash", "INTEGER", 0 },
	{ "plan_hash", "INTEGER", COLUMN_KEY },
	{ "node", "INTEGER", COLUMN_KEY },
	{ "parent", "INTEGER", 0 },
	{ "detail", "TEXT", 0 },
	{ "self_ms", "REAL", 0 },
	{ "total_ms", "REAL", COLUMN_KEY },
	{ "self_percent", "REAL", 0 },
	{ "total_percent", "REAL", 0 },
	{ "error_ms", "REAL", 0 },
	{ "wait_ms", "REAL", 0 },
	{ "samples", "INTEGER", COLUMN_KEY },
	{ "session_id", "INTEGER", COLUMN_KEY },
	{ "compared", "TEXT", 0 },
	{ "loops", "INTEGER", 0 },
	{ "rows", "INTEGER", 0 },
};

const struct table table_plan_times = { .name = "plan_times",
	                                TABLE_COLUMNS(plan_times_columns),
	                                .log = "plan_times" };
