/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/advise/workload.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cmd/advise/compared.h"
#include "cmd/file/trace_file.h"
#include "cmd/ui/complain.h"
#include "sql_advise_database.h"
#include "sql_advise_statements.h"
#include "sql_advise_texts.h"

#define STATEMENTS_MAX 200

/* --- reading ------------------------------------------------------------------------------------- */

static char *column_text(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);

	return strdup(text ? text : "");
}

/* Finds the name under which the database was recorded, for workload->database. */
static int find_database(struct workload *workload, sqlite3 *trace, const char *path, const char *database)
{
	char *real = realpath(database, NULL);
	sqlite3_stmt *row = NULL;

	sqlite3_prepare_v2(trace, sql_advise_database, -1, &row, NULL);
	sqlite3_bind_text(row, 1, real ? real : database, -1, SQLITE_STATIC);
	if (row && sqlite3_step(row) == SQLITE_ROW && sqlite3_column_int(row, 1)) {
		workload->database = column_text(row, 0);
		workload->seconds = sqlite3_column_int64(row, 2);
		workload->has_foreign_keys = sqlite3_column_int(row, 3) != 0;
	} else {
		const char *other = row ? (const char *)sqlite3_column_text(row, 0) : NULL;

		complain("advise: %s has no statements that ran on %s%s%s", path, database,
		         other ? "; most of them ran on " : "", other ? other : "");
	}
	sqlite3_finalize(row);
	free(real);
	return workload->database ? COMMAND_FINE : COMMAND_FAILED;
}

static int read_statements(struct workload *workload, sqlite3 *trace)
{
	sqlite3_stmt *rows = NULL;
	int code = sqlite3_prepare_v2(trace, sql_advise_statements, -1, &rows, NULL);

	sqlite3_bind_text(rows, 1, workload->database, -1, SQLITE_STATIC);
	while (!code && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		struct recorded *one = vector_add(&workload->statements);

		code = one ? SQLITE_OK : SQLITE_NOMEM;
		if (!one)
			break;
		one->hash = sqlite3_column_int64(rows, 0);
		one->runs = sqlite3_column_int64(rows, 1);
		one->ns = sqlite3_column_double(rows, 2);
		one->texts[0] = column_text(rows, 3);
		one->written = column_text(rows, 3);
		workload->ns += one->ns;
	}
	sqlite3_finalize(rows);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* The texts of its logged runs, the newest first; with values, if they were logged. Without such runs,
 * texts[0] remains the text of statement_counters. */
static int read_texts(struct recorded *one, sqlite3_stmt *rows, const char *database)
{
	int code, count = 0;

	sqlite3_reset(rows);
	sqlite3_bind_int64(rows, 1, one->hash);
	sqlite3_bind_text(rows, 2, database, -1, SQLITE_STATIC);
	while (count < VARIANTS && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		if (count == 0)
			free(one->texts[0]);
		one->texts[count++] = column_text(rows, 0);
	}
	one->variants = count ? count : 1;
	return count == VARIANTS || code == SQLITE_DONE ? SQLITE_OK : code;
}

int workload_read(struct workload *workload, const char *path, const char *database)
{
	sqlite3 *trace = trace_file_open(path);
	sqlite3_stmt *texts = NULL;
	int result, code;

	*workload = (struct workload){ 0 };
	if (!trace)
		return COMMAND_FAILED;
	result = find_database(workload, trace, path, database);
	if (!result) {
		code = read_statements(workload, trace);
		if (!code)
			code = sqlite3_prepare_v2(trace, sql_advise_texts, -1, &texts, NULL);
		for (size_t i = 0; !code && i < workload->statements.count; i++)
			code = read_texts(&workload->statements.items[i], texts, workload->database);
		if (code)
			result = complain("advise: %s: %s", path, sqlite3_errmsg(trace));
		sqlite3_finalize(texts);
	}
	trace_file_close(trace);
	return result;
}

/* --- preparing ------------------------------------------------------------------------------------ */

static void refuse(struct recorded *one, const char *reason)
{
	one->variants = 0;
	if (!one->reason)
		one->reason = strdup(reason);
}

/* --- values for parameters whose recorded values are not known ------------------------------------ */

/* Values are drawn from the columns that the statement compares them with, by a fixed seed. All values of
 * a table in one set belong to one row, as a program's values mostly do. */

/* SplitMix64: the same values in each run. */
static uint64_t hash_of(uint64_t number)
{
	number += UINT64_C(0x9e3779b97f4a7c15);
	number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
	return number ^ number >> 31;
}

/* A value of the row. If the row is to be inserted, a value of a column that must be unique becomes
 * another value. */
#define BY_ROWID                                                                                             \
	"SELECT %s FROM \"%w\" WHERE rowid >= (SELECT min(rowid) FROM \"%w\") + %lld %% (1 + (SELECT "       \
	"max(rowid) FROM "                                                                                   \
	"\"%w\") - (SELECT min(rowid) FROM \"%w\")) LIMIT 1"
#define BY_PLACE "SELECT %s FROM \"%w\" LIMIT 1 OFFSET %lld %% max(1, (SELECT count(*) FROM \"%w\"))"
#define IS_UNIQUE                                                                                            \
	"SELECT EXISTS (SELECT 1 FROM pragma_index_list(%Q) AS l, pragma_index_info(l.name) AS i "           \
	"WHERE l.\"unique\" AND i.name = %Q) OR EXISTS (SELECT 1 FROM pragma_table_info(%Q) WHERE name = "   \
	"%Q AND pk)"

static char *expression_of(struct connection *connection, const struct parameter *parameter, int set)
{
	const char *column = parameter->column;
	char *sql = sqlite3_mprintf(IS_UNIQUE, parameter->table, column, parameter->table, column),
	     *expression;

	if (sql && parameter->is_inserted && connection_number(connection, sql, 0))
		expression = sqlite3_mprintf("iif(typeof(\"%w\") = 'integer', (SELECT max(\"%w\") FROM "
		                             "\"%w\") + %d, \"%w\" || '~%d')",
		                             column, column, parameter->table, set + 1, column, set);
	else
		expression = sqlite3_mprintf("\"%w\"", column);
	sqlite3_free(sql);
	return expression;
}

static sqlite3_value *draw(struct connection *connection, const struct parameter *parameter, int set)
{
	char *expression = expression_of(connection, parameter, set);
	sqlite3_value *value = NULL;

	for (int way = 0; expression && !value && way < 2; way++) {
		const char *table = parameter->table;
		const long long number = (long long)(hash_of((uint64_t)set) >> 2);
		char *sql = way ? sqlite3_mprintf(BY_PLACE, expression, table, number, table)
		                : sqlite3_mprintf(BY_ROWID, expression, table, table, number, table, table);

		value = connection_value(connection, sql);
		sqlite3_free(sql);
	}
	sqlite3_free(expression);
	return value;
}

/* The name of the column for which the text has only a position. */
static void name_column(struct connection *connection, struct parameter *parameter)
{
	char *sql = sqlite3_mprintf("SELECT name FROM pragma_table_info(%Q) LIMIT 1 OFFSET %lld",
	                            parameter->table, (long long)parameter->number);
	sqlite3_value *name = connection_value(connection, sql);

	if (name)
		parameter->column = sqlite3_mprintf("%s", sqlite3_value_text(name));
	sqlite3_value_free(name);
	sqlite3_free(sql);
}

/* `sets` times as many values as the statement has parameters. NULL: *unknown (malloc'ed) has the reason. */
static sqlite3_value **draw_values(struct connection *connection, sqlite3_stmt *statement,
                                   struct compared *compared, int sets, char **unknown)
{
	const size_t parameters = (size_t)sqlite3_bind_parameter_count(statement);
	sqlite3_value **values = NULL;

	if (!vector_reserve(&compared->parameters, parameters) ||
	    !vector_at(&compared->parameters, parameters - 1))
		return NULL;
	for (size_t p = 0; p < parameters; p++) {
		struct parameter *parameter = &compared->parameters.items[p];

		if (parameter->is_known && parameter->table && !parameter->column)
			name_column(connection, parameter);
		if (!parameter->is_known || (parameter->table && !parameter->column)) {
			*unknown =
				text_format("the value of parameter %zu is not known; record with --setting "
			                    "log_query_parameters=1",
			                    p + 1);
			return NULL;
		}
	}
	compared->parameters.count = parameters;
	values = calloc((size_t)sets * parameters, sizeof(*values));
	for (size_t i = 0; values && i < (size_t)sets * parameters; i++) {
		const struct parameter *parameter = &compared->parameters.items[i % parameters];
		char number[24];

		if (parameter->table) {
			values[i] = draw(connection, parameter, (int)(i / parameters));
			continue;
		}
		sqlite3_snprintf(sizeof(number), number, "SELECT %lld", (long long)parameter->number);
		values[i] = connection_value(connection, number);
	}
	return values;
}

static void prepare_one(struct recorded *one, struct connection *connection)
{
	struct compared written;
	sqlite3_stmt *statement;
	char *unknown = NULL;

	if (!connection_can_run(one->texts[0])) {
		one->is_other = true;
		one->variants = 0;
		return;
	}
	connection->touched = &one->touched;
	statement = connection_prepare(connection, one->texts[0]);
	connection->touched = NULL;
	if (!statement) {
		refuse(one, connection->error);
		return;
	}
	one->is_write = !sqlite3_stmt_readonly(statement);
	compared_find(&one->compared, one->texts[0], &one->touched, statement);
	compared_find(&written, one->written, &one->touched, statement);
	compared_keep_conditions(&one->compared, &written);
	compared_free(&written);
	if (sqlite3_bind_parameter_count(statement) > 0) {
		one->is_drawn = true;
		one->variants = VARIANTS;
		one->values = draw_values(connection, statement, &one->compared, VARIANTS, &unknown);
		if (!one->values)
			refuse(one, unknown ? unknown : "out of memory");
	}
	free(unknown);
	sqlite3_finalize(statement);
}

/* Runs each variant once and drops those that fail, such as an INSERT of a row that exists already. */
static void try_variants(struct recorded *one, struct connection *connection, int64_t run_ns, int64_t all_ns)
{
	const int64_t end = connection_clock_ns() + all_ns;
	int kept = 0, tried = 0;

	for (int i = 0; i < one->variants; i++, tried++) {
		sqlite3_stmt *statement = workload_statement(one, connection, i);
		double ns;
		int code =
			statement ? connection_time(connection, statement, run_ns, &ns, NULL) : SQLITE_ERROR;

		sqlite3_finalize(statement);
		if (code == SQLITE_DONE || code == SQLITE_INTERRUPT) {
			const int parameters = (int)one->compared.parameters.count;

			if (one->is_drawn)
				for (int p = 0; p < parameters; p++) {
					sqlite3_value *other = one->values[kept * parameters + p];

					one->values[kept * parameters + p] = one->values[i * parameters + p];
					one->values[i * parameters + p] = other;
				}
			else if (kept != i) {
				free(one->texts[kept]);
				one->texts[kept] = one->texts[i];
				one->texts[i] = NULL;
			}
			kept++;
		}
		if (kept && connection_clock_ns() > end)
			break;
	}
	if (kept == 0 && one->variants)
		refuse(one, connection->error);
	one->variants = kept;
}

void workload_prepare(struct workload *workload, struct connection *connection, int64_t ns)
{
	const int64_t end = connection_clock_ns() + ns;

	for (size_t i = 0; i < workload->statements.count; i++) {
		struct recorded *one = &workload->statements.items[i];

		if (i >= STATEMENTS_MAX)
			refuse(one, "only the 200 statements that took the most time are replayed");
		else
			prepare_one(one, connection);
		if (one->variants && connection_clock_ns() > end)
			refuse(one, "no time was left; --for TIME gives more");
		if (one->variants)
			try_variants(one, connection, ns / 4, ns / (int64_t)workload->statements.count);
	}
}

sqlite3_stmt *workload_statement(const struct recorded *one, struct connection *connection, int variant)
{
	sqlite3_stmt *statement = connection_prepare(connection, one->texts[one->is_drawn ? 0 : variant]);
	const int parameters = statement ? sqlite3_bind_parameter_count(statement) : 0;

	for (int p = 0; one->is_drawn && p < parameters; p++)
		if (one->values[variant * parameters + p]) /* NULL: the table has no row to draw it from */
			sqlite3_bind_value(statement, p + 1, one->values[variant * parameters + p]);
	return statement;
}

static bool touches_table(const struct recorded *one, const char *table, bool only_writes)
{
	for (size_t i = 0; table && i < one->touched.count; i++)
		if (one->touched.items[i].is_write >= only_writes &&
		    !sqlite3_stricmp(one->touched.items[i].table, table))
			return true;
	return false;
}

bool workload_touches(const struct recorded *one, const char *table)
{
	return touches_table(one, table, false);
}

bool workload_writes(const struct recorded *one, const char *table)
{
	return touches_table(one, table, true);
}

double workload_scale(const struct recorded *one, double run_ns)
{
	const double runs = (double)one->runs;

	return one->is_write && runs * run_ns > one->ns ? one->ns / run_ns : runs;
}

void workload_free(struct workload *workload)
{
	for (size_t i = 0; i < workload->statements.count; i++) {
		struct recorded *one = &workload->statements.items[i];

		for (int t = 0; t < VARIANTS; t++)
			free(one->texts[t]);
		free(one->reason);
		free(one->written);
		for (size_t p = 0; one->values && p < VARIANTS * one->compared.parameters.count; p++)
			sqlite3_value_free(one->values[p]);
		free(one->values);
		compared_free(&one->compared);
		touches_free(&one->touched);
	}
	vector_free(&workload->statements);
	free(workload->database);
}
