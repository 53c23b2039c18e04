/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/file/run_sql.h"

#include "cmd/line/command.h"

void run_sql_bind(sqlite3_stmt *statement, const struct sql_parameter *parameters)
{
	for (; parameters && parameters->name; parameters++) {
		int index = sqlite3_bind_parameter_index(statement, parameters->name);
		if (index && parameters->value)
			sqlite3_bind_text(statement, index, parameters->value, -1, SQLITE_TRANSIENT);
	}
}

int run_sql(sqlite3 *db, const char *sql, const struct sql_parameter *parameters, const struct output *output)
{
	while (*sql) {
		sqlite3_stmt *statement;
		int code = sqlite3_prepare_v2(db, sql, -1, &statement, &sql);
		if (code == SQLITE_OK && statement) {
			run_sql_bind(statement, parameters);
			code = output_rows(statement, output);
		}
		if (code != SQLITE_OK) {
			complain("%s", sqlite3_errmsg(db));
			sqlite3_finalize(statement);
			return COMMAND_FAILED;
		}
		sqlite3_finalize(statement);
	}
	return COMMAND_FINE;
}
