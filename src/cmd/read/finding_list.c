/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A finding is two files of sql/findings: NAME.sql selects it, NAME.txt is its text (see sql/README.md). The
 * build lists them; no code depends on a single one.
 */
#include "cmd/read/finding_list.h"

#include <string.h>

#include "base/sql_token.h"
#include "cmd/file/run_sql.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "findings_list.h" /* made by the build */
#include "sql_findings.h"
#include "sql_inside.h"
#include "sql_statement_lines.h"

static const struct finding {
	const char *name, *sql, *text;
} findings[] = { FINDINGS };

/* --- the functions of its SQL ---------------------------------------------------------------- */

/* Whether a table's name may follow. */
static bool precedes_table(const struct sql_token *token)
{
	static const char *const words[] = { "FROM", "JOIN", "INTO", "UPDATE", "TABLE", NULL };

	return sql_token_is_one_of(token, words) ||
	       (token->kind == SQL_SIGN && (*token->at == ',' || *token->at == '('));
}

/* tableOf(QUERY, NAME): the table that the query calls NAME, by its own name or an alias; '' if not
 * known. */
static void table_of(sqlite3_context *context, int count, sqlite3_value **values)
{
	static const char *const as[] = { "AS", NULL };
	const char *query = (const char *)sqlite3_value_text(values[0]);
	const char *end = query ? query + sqlite3_value_bytes(values[0]) : NULL;
	const char *name = (const char *)sqlite3_value_text(values[1]);
	const size_t size = name ? strlen(name) : 0;
	/* The newest tokens; the last one may be NAME. */
	struct sql_token last[4] = { { SQL_SIGN, "", 0 }, { SQL_SIGN, "", 0 }, { SQL_SIGN, "", 0 } };

	(void)count;
	sqlite3_result_text(context, "", 0, SQLITE_STATIC);
	for (; size && (last[3] = sql_token_next(query, end)).size; query = last[3].at + last[3].size) {
		const struct sql_token found = sql_token_bare(&last[3]);
		size_t at = 3;

		if (last[3].kind == SQL_COMMENT)
			continue;
		if (sql_token_is_name(&last[3]) && found.size == size &&
		    !sqlite3_strnicmp(found.at, name, (int)size) && *last[2].at != '.' &&
		    (last[3].at + last[3].size == end || last[3].at[last[3].size] != '.')) {
			if (!precedes_table(&last[2]))
				at = sql_token_is_one_of(&last[2], as) ? 1 : 2;
			if (at == 3 || (sql_token_is_name(&last[at]) && precedes_table(&last[at - 1]))) {
				const struct sql_token table = sql_token_bare(&last[at]);

				sqlite3_result_text(context, table.at, (int)table.size, SQLITE_TRANSIENT);
				return;
			}
		}
		memmove(last, last + 1, 3 * sizeof(last[0]));
	}
}

static int add_functions(sqlite3 *db)
{
	const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;

	return sqlite3_create_function(db, "tableOf", 2, flags, NULL, table_of, NULL, NULL)
	               ? complain("findings: %s", sqlite3_errmsg(db))
	               : COMMAND_FINE;
}

/* --- finding ----------------------------------------------------------------------------------- */

static const char *column_of(sqlite3_stmt *row, const char *name, size_t size)
{
	for (int i = 0; i < sqlite3_column_count(row); i++) {
		const char *column = sqlite3_column_name(row, i);

		if (strlen(column) == size && !strncmp(column, name, size))
			return (const char *)sqlite3_column_text(row, i);
	}
	return NULL;
}

/* The text's line that begins with the key, with the row's values in place of {column}. */
static char *fill(const char *text, const char *key, sqlite3_stmt *row)
{
	sqlite3_str *filled = sqlite3_str_new(NULL);
	const size_t size = strlen(key);

	while (*text && strncmp(text, key, size) != 0) {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	for (text += *text ? size : 0; *text && *text != '\n'; text++) {
		const size_t name = *text == '{' ? strcspn(text + 1, "}\n") : 0;
		const char *value = name ? column_of(row, text + 1, name) : NULL;

		if (name)
			text += name + 1;
		if (name)
			sqlite3_str_appendall(filled, value ? value : "(not known)");
		else
			sqlite3_str_appendchar(filled, 1, *text);
	}
	return sqlite3_str_finish(filled);
}

#define TABLE                                                                                                \
	"DROP TABLE IF EXISTS temp.findings; "                                                               \
	"CREATE TEMP TABLE findings (finding TEXT, saved REAL, error REAL, hash INTEGER, title TEXT, "       \
	"evidence TEXT, cure TEXT, sure TEXT, see TEXT)"

enum { INSERT_NAME = 1, INSERT_SAVED, INSERT_ERROR, INSERT_HASH, INSERT_TEXTS };
static const char *const texts[] = { "title: ", "evidence: ", "cure: ", "sure: ", "see: " };

static int insert(sqlite3_stmt *insertion, const struct finding *finding, sqlite3_stmt *row)
{
	static const char *const numbers[] = { "saved", "error", "hash" };
	int code;

	sqlite3_reset(insertion);
	sqlite3_clear_bindings(insertion);
	sqlite3_bind_text(insertion, INSERT_NAME, finding->name, -1, SQLITE_STATIC);
	for (int i = 0; i < 3; i++)
		for (int at = 0; at < sqlite3_column_count(row); at++)
			if (!strcmp(sqlite3_column_name(row, at), numbers[i]))
				sqlite3_bind_value(insertion, INSERT_SAVED + i,
				                   sqlite3_column_value(row, at));
	for (int i = 0; i < 5; i++)
		sqlite3_bind_text(insertion, INSERT_TEXTS + i, fill(finding->text, texts[i], row), -1,
		                  sqlite3_free);
	code = sqlite3_step(insertion);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int find(sqlite3 *db, const struct finding *finding, sqlite3_stmt *insertion)
{
	sqlite3_stmt *rows = NULL;
	int code = sqlite3_prepare_v2(db, finding->sql, -1, &rows, NULL);

	while (!code && (code = sqlite3_step(rows)) == SQLITE_ROW)
		code = insert(insertion, finding, rows);
	sqlite3_finalize(rows);
	if (code == SQLITE_DONE)
		return COMMAND_FINE;
	complain("findings: %s: %s", finding->name, sqlite3_errmsg(db));
	return COMMAND_FAILED;
}

static const struct output silent = { .table.is_bare = true };

int finding_list_begin(sqlite3 *db)
{
	const struct sql_parameter all[] = { { ":limit", "1000000" }, { NULL, NULL } };

	/* The columns that sql/read/findings.sql reads. Its statements cannot be prepared before the first
	 * has run. */
	run_sql_prepare(db, "SELECT hash, trace_type, wait, checkpoint, logged, is_worker, queued, value, "
	                    "spread FROM temp.selected_sums;"
	                    "SELECT hash, program, phase, trace_type, logged, is_worker, queued, value, "
	                    "spread FROM temp.selected_sums;"
	                    "SELECT hash, call_stack, trace_type, logged, value FROM temp.selected_sums");
	return run_sql(db, sql_statement_lines, all, &silent);
}

int finding_list_make(sqlite3 *db)
{
	sqlite3_stmt *insertion = NULL;
	int result = add_functions(db);

	if (!result)
		result = run_sql(db, sql_findings, NULL, &silent);
	if (!result)
		result = run_sql(db, TABLE, NULL, &silent);
	if (!result && sqlite3_prepare_v2(db, "INSERT INTO temp.findings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
	                                  -1, &insertion, NULL) != SQLITE_OK)
		result = COMMAND_FAILED;
	for (size_t i = 0; !result && i < sizeof(findings) / sizeof(*findings); i++)
		result = find(db, &findings[i], insertion);
	sqlite3_finalize(insertion);
	return result;
}

char *finding_list_inside(sqlite3 *db)
{
	sqlite3_stmt *row = NULL;
	char *text = NULL;

	/* A pulled file may have a part of the runs only. */
	if (!trace_file_is_pulled(db) && sqlite3_prepare_v2(db, sql_inside, -1, &row, NULL) == SQLITE_OK &&
	    sqlite3_step(row) == SQLITE_ROW)
		text = sqlite3_mprintf("%s", run_sql_text(row, 0));
	sqlite3_finalize(row);
	return text;
}

/* --- in a line each ------------------------------------------------------------------------------ */

int finding_list_lines(sqlite3 *db, int most, void (*print)(const char *line))
{
	sqlite3_stmt *rows = NULL;
	int code = sqlite3_prepare_v2(
		    db,
		    "SELECT iif(\"share_%\" IS NULL, '', printf('%.0f %%: ', \"share_%\")) || "
		    "title || printf(' (%s) "
		    "[%.8s]', finding, statement) FROM (" FINDING_LIST ")",
		    -1, &rows, NULL),
	    count = 0;

	while (!code && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		const char *line = (const char *)sqlite3_column_text(rows, 0);

		if (count++ < most && line)
			print(line);
		code = SQLITE_OK;
	}
	sqlite3_finalize(rows);
	return code == SQLITE_DONE ? count : -1;
}
