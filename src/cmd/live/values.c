/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/live/values.h"

void live_bind_text(sqlite3_stmt *row, const char *name, const char *text)
{
	const int index = sqlite3_bind_parameter_index(row, name);

	if (text)
		sqlite3_bind_text(row, index, text, -1, SQLITE_TRANSIENT);
	else
		sqlite3_bind_null(row, index);
}

void live_bind_number(sqlite3_stmt *row, const char *name, uint64_t number)
{
	sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, name),
	                   number <= INT64_MAX ? (int64_t)number : INT64_MAX);
}

void live_insert(sqlite3_stmt *row, int *code)
{
	const int result = sqlite3_step(row);

	if (result != SQLITE_DONE && !*code)
		*code = result;
	sqlite3_reset(row);
}
