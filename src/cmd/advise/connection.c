/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/advise/connection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cmd/ui/complain.h"

#define STEPS 1000            /* opcodes of SQLite between two looks at the clock */
#define VALUE_MAX (256 << 20) /* the most bytes of one value */

int64_t connection_clock_ns(void)
{
	return (int64_t)clock_ns(CLOCK_MONOTONIC);
}

/* --- what a statement may do -------------------------------------------------------------------- */

void touches_free(touches *all)
{
	for (size_t i = 0; i < all->count; i++) {
		free(all->items[i].table);
		free(all->items[i].column);
	}
	vector_free(all);
}

static void touch(touches *all, const char *table, const char *column, bool is_write)
{
	struct touch *added;

	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].is_write == is_write && !strcmp(all->items[i].table, table) &&
		    !strcmp(all->items[i].column, column))
			return;
	added = vector_add(all);
	if (!added)
		return;
	*added = (struct touch){ strdup(table), strdup(column), is_write };
	if (!added->table || !added->column) {
		free(added->table);
		free(added->column);
		all->count--;
	}
}

/* SQLite's own virtual tables read these tables. */
static bool is_harmless_pragma(const char *name, const char *value)
{
	return !value && (!strcmp(name, "data_version") || !strcmp(name, "page_size"));
}

static int authorize(void *context, int action, const char *a, const char *b, const char *schema,
                     const char *trigger)
{
	const struct connection *connection = context;

	(void)schema, (void)trigger;
	switch (action) {
	case SQLITE_READ:
	case SQLITE_UPDATE:
	case SQLITE_INSERT:
	case SQLITE_DELETE:
		if (connection->touched && a)
			touch(connection->touched, a, b ? b : "", action != SQLITE_READ);
		return SQLITE_OK;
	case SQLITE_SELECT:
	case SQLITE_RECURSIVE: return SQLITE_OK;
	case SQLITE_FUNCTION: return b && !sqlite3_stricmp(b, "load_extension") ? SQLITE_DENY : SQLITE_OK;
	case SQLITE_PRAGMA:
		return !connection->is_recorded || is_harmless_pragma(a, b) ? SQLITE_OK : SQLITE_DENY;
	case SQLITE_ATTACH:
	case SQLITE_DETACH: return SQLITE_DENY;
	default: return connection->is_recorded ? SQLITE_DENY : SQLITE_OK;
	}
}

static int on_progress(void *context)
{
	const struct connection *connection = context;

	return connection->end_ns && connection_clock_ns() > connection->end_ns;
}

/* --- opening ---------------------------------------------------------------------------------------- */

bool connection_open(struct connection *connection, const char *command, const char *given, const char *path)
{
	*connection = (struct connection){ .db = NULL };
	int code =
		sqlite3_open_v2(path, &connection->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, "unix");

	if (!code) {
		sqlite3_limit(connection->db, SQLITE_LIMIT_ATTACHED, 0);
		sqlite3_limit(connection->db, SQLITE_LIMIT_WORKER_THREADS, 0);
		sqlite3_limit(connection->db, SQLITE_LIMIT_LENGTH, VALUE_MAX);
		sqlite3_limit(connection->db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000);
		sqlite3_db_config(connection->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
		sqlite3_db_config(connection->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
		sqlite3_db_config(connection->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
		sqlite3_set_authorizer(connection->db, authorize, connection);
		sqlite3_progress_handler(connection->db, STEPS, on_progress, connection);
		code = connection_run(connection, "PRAGMA synchronous = 0; PRAGMA cell_size_check = 1; "
		                                  "SELECT count(*) FROM sqlite_schema");
	}
	if (!code)
		return true;
	complain("%s: %s: %s", command, given, sqlite3_errmsg(connection->db));
	connection_close(connection);
	return false;
}

void connection_close(struct connection *connection)
{
	sqlite3_close(connection->db);
	connection->db = NULL;
}

/* --- running ------------------------------------------------------------------------------------------ */

int connection_run(struct connection *connection, const char *sql)
{
	return sqlite3_exec(connection->db, sql, NULL, NULL, NULL);
}

sqlite3_value *connection_value(struct connection *connection, const char *sql)
{
	sqlite3_stmt *row = NULL;
	sqlite3_value *value = NULL;

	if (sql)
		sqlite3_prepare_v2(connection->db, sql, -1, &row, NULL);
	if (row && sqlite3_step(row) == SQLITE_ROW)
		value = sqlite3_value_dup(sqlite3_column_value(row, 0));
	sqlite3_finalize(row);
	return value;
}

int64_t connection_number(struct connection *connection, const char *sql, int64_t otherwise)
{
	sqlite3_value *value = connection_value(connection, sql);

	if (value)
		otherwise = sqlite3_value_int64(value);
	sqlite3_value_free(value);
	return otherwise;
}

/* Cut, because the message may contain the text of a statement. */
static void keep_error(struct connection *connection)
{
	const char *text = sqlite3_errmsg(connection->db);

	snprintf(connection->error, sizeof(connection->error), "%.*s",
	         (int)text_fit(text, sizeof(connection->error) - 1), text);
	text_blank_controls(connection->error);
}

bool connection_can_run(const char *text)
{
	static const char *const words[] = { "SELECT",  "INSERT", "UPDATE", "DELETE",
		                             "REPLACE", "WITH",   "VALUES" };

	text = text_skip_comments(text);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!sqlite3_strnicmp(text, words[i], (int)strlen(words[i])))
			return true;
	return false;
}

sqlite3_stmt *connection_prepare(struct connection *connection, const char *sql)
{
	sqlite3_stmt *statement = NULL;

	connection->is_recorded = true;
	if (sqlite3_prepare_v2(connection->db, sql, -1, &statement, NULL) != SQLITE_OK)
		keep_error(connection);
	connection->is_recorded = false;
	return statement;
}

char *connection_plan(struct connection *connection, const char *sql)
{
	char *explain = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql);
	sqlite3_stmt *rows = explain ? connection_prepare(connection, explain) : NULL;
	sqlite3_str *plan = sqlite3_str_new(connection->db);
	char *text;

	sqlite3_free(explain);
	connection->is_recorded = true; /* SQLite may prepare the statement again */
	while (rows && sqlite3_step(rows) == SQLITE_ROW)
		sqlite3_str_appendf(plan, "%s\n", sqlite3_column_text(rows, 3));
	connection->is_recorded = false;
	text = sqlite3_str_finish(plan);
	if (rows && !text)
		text = sqlite3_mprintf("");
	sqlite3_finalize(rows);
	return text;
}

/* What the transaction writes until now. Its pages go to the database or its WAL, from which ROLLBACK removes
 * them. */
static int64_t written_bytes(struct connection *connection)
{
	int pages = 0, highest;

	if (sqlite3_db_cacheflush(connection->db) != SQLITE_OK ||
	    sqlite3_db_status(connection->db, SQLITE_DBSTATUS_CACHE_WRITE, &pages, &highest, 1) != SQLITE_OK)
		return -1;
	return pages * connection_number(connection, "PRAGMA page_size", 0);
}

int connection_time(struct connection *connection, sqlite3_stmt *statement, int64_t most_ns, double *ns,
                    int64_t *written)
{
	int pages, highest;
	const bool is_write = !sqlite3_stmt_readonly(statement);
	const int64_t end = connection->end_ns, limit = connection_clock_ns() + most_ns;
	uint64_t began;
	int code;

	if (is_write && connection_run(connection, "BEGIN IMMEDIATE") != SQLITE_OK) {
		keep_error(connection);
		return sqlite3_errcode(connection->db);
	}
	if (written)
		sqlite3_db_status(connection->db, SQLITE_DBSTATUS_CACHE_WRITE, &pages, &highest, 1);
	connection->is_recorded = true;
	connection->end_ns = end && end < limit ? end : limit;
	began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	while ((code = sqlite3_step(statement)) == SQLITE_ROW)
		;
	*ns = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - began);
	connection->is_recorded = false;
	connection->end_ns = 0; /* from here on nothing is interrupted */
	if (code != SQLITE_DONE)
		keep_error(connection);
	sqlite3_reset(statement);
	if (written)
		*written = code == SQLITE_DONE ? written_bytes(connection) : -1;
	if (is_write && !sqlite3_get_autocommit(connection->db))
		connection_run(connection, "ROLLBACK");
	connection->end_ns = end;
	return code;
}
