/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/read/baseline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/file/out_file.h"
#include "cmd/file/run_sql.h"
#include "cmd/line/command.h"
#include "store/file/database.h"

static const struct output silent = { .table.is_bare = true };

#define BASELINE_TABLE                                                                                       \
	"DROP TABLE IF EXISTS temp.baseline; CREATE TEMP TABLE baseline (check_name TEXT, statement TEXT)"
#define SELECT_BASELINE                                                                                      \
	"SELECT DISTINCT check_name || ' ' || printf('%016x', hash) || ' ' || trim(replace(replace(query, "  \
	"char(10), ' '), char(13), ' ')) FROM temp.violations WHERE NOT unknown ORDER BY 1"

int baseline_write(sqlite3 *db, const char *path, const char *trace)
{
	const char *const sources[] = { trace, NULL };
	struct out_file out;
	sqlite3_stmt *rows = NULL;
	int64_t count = 0;
	int code;

	if (out_file_open(&out, path, sources))
		return COMMAND_FAILED;
	fprintf(out.stream, "# What queryprof check --baseline does not report: limit, statement, text.\n");
	code = sqlite3_prepare_v2(db, SELECT_BASELINE, -1, &rows, NULL);
	while (!code && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		fprintf(out.stream, "%s\n", (const char *)sqlite3_column_text(rows, 0));
		count++;
		code = SQLITE_OK;
	}
	if (code != SQLITE_DONE)
		complain("check: %s", sqlite3_errmsg(db));
	sqlite3_finalize(rows);
	if (out_file_close(&out, code == SQLITE_DONE) || code != SQLITE_DONE)
		return COMMAND_FAILED;
	printf("%s: %lld %s\n", path, (long long)count, count == 1 ? "violation" : "violations");
	return COMMAND_FINE;
}

/* Reads one line: "LIMIT STATEMENT" and any text after it. COMMAND_FAILED after a complaint. */
static int read_line(sqlite3 *db, const char *path, const char *line, int number)
{
	char name[16], statement[17];

	if (*line == '#' || *line == '\n')
		return COMMAND_FINE;
	if (sscanf(line, "%15[a-z-] %16[0-9a-f]", name, statement) != 2 || strlen(statement) != 16)
		return complain(
			"%s:%d: expected a limit and the 16 digits of a statement's id, as --update writes "
			"them",
			path, number);
	const struct sql_parameter parameters[] = { { ":name", name },
		                                    { ":statement", statement },
		                                    { NULL, NULL } };
	return run_sql(db, "INSERT INTO temp.baseline VALUES (:name, :statement)", parameters, &silent);
}

static int read_file(sqlite3 *db, const char *path)
{
	FILE *from = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	int number = 0, result = COMMAND_FINE;

	if (!from)
		return complain("%s: %s; queryprof check --baseline FILE --update writes it", path,
		                strerror(errno));
	result = run_sql(db, BASELINE_TABLE, NULL, &silent);
	while (!result && getline(&line, &room, from) > 0)
		result = read_line(db, path, line, ++number);
	free(line);
	fclose(from);
	return result;
}

int baseline_apply(sqlite3 *db, const char *path)
{
	int result = read_file(db, path);
	const int64_t needless =
		result ? 0
		       : database_number(
				 db,
				 "SELECT count(*) FROM temp.baseline WHERE (check_name, statement) NOT IN "
				 "(SELECT check_name, printf('%016x', hash) FROM temp.violations)",
				 0);

	if (needless)
		complain("%s: %lld %s no limit any more; --update removes %s", path, (long long)needless,
		         needless == 1 ? "entry exceeds" : "entries exceed", needless == 1 ? "it" : "them");
	return result ? result
	              : run_sql(db,
	                        "DELETE FROM temp.violations WHERE (check_name, printf('%016x', hash)) IN "
	                        "(SELECT check_name, statement FROM temp.baseline)",
	                        NULL, &silent);
}
