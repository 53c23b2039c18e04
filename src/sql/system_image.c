/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run by the build: prints the databases with which the schema `system` is filled, one for
 * each encoding that a host's databases can have, as arrays of C. Each is one page, which
 * says CREATE VIRTUAL TABLE for every table.
 *
 * With the argument `columns` it prints the columns of the logs instead, which are those of the views.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "sql/table_names.h"
#include "store_schema.h"

/* The flags of tables.h that columns have, in one log or ('') in any. */
static const char marks_sql[] =
	"CREATE TEMP TABLE marks (log, flags, columns); INSERT INTO marks VALUES"
	" ('', 'COLUMN_TIME', 'event_date event_time event_time_microseconds query_start_time_microseconds"
	" start_time_microseconds finish_date'),"
	" ('', 'COLUMN_OF_HOLDER', 'holder_query_id holder_query stopped_by waited_for'),"
	" ('', 'COLUMN_HIDDEN | COLUMN_SYMBOLS', 'symbols'), ('', 'COLUMN_HIDDEN | COLUMN_LINES', 'lines'),"
	" ('trace_log', 'COLUMN_SEARCHED', 'timestamp_ns query_id'),"
	" ('trace_log', 'COLUMN_ORDERED | COLUMN_KEY', 'timestamp_ns'),"
	" ('query_log', 'COLUMN_SEARCHED', 'query_id'),"
	" ('query_log', 'COLUMN_KEY', 'query_id query_start_time_microseconds query_duration_ns thread_id'),"
	" ('span_log', 'COLUMN_KEY', 'trace_id span_id'),"
	" ('traces', 'COLUMN_KEY', 'trace_id'),"
	" ('lock_waits', 'COLUMN_SEARCHED', 'timestamp_ns query_id'),"
	" ('lock_waits', 'COLUMN_KEY', 'timestamp_ns hostname process_id thread_id'),"
	" ('transaction_log', 'COLUMN_SEARCHED', 'timestamp_ns session_id transaction_number'),"
	" ('transaction_log', 'COLUMN_KEY', 'timestamp_ns hostname process_id transaction_number'),"
	" ('checkpoints', 'COLUMN_SEARCHED', 'timestamp_ns query_id'),"
	" ('checkpoints', 'COLUMN_KEY', 'id timestamp_ns hostname process_id thread_id'),"
	" ('wal_log', 'COLUMN_SEARCHED', 'timestamp_ns query_id'),"
	" ('wal_log', 'COLUMN_KEY', 'timestamp_ns hostname process_id thread_id'),"
	" ('connections', 'COLUMN_SEARCHED', 'timestamp_ns session_id'),"
	" ('connections', 'COLUMN_KEY', 'timestamp_ns hostname process_id thread_id'),"
	" ('page_io', 'COLUMN_SEARCHED', 'timestamp_ns'),"
	" ('page_io', 'COLUMN_KEY', 'timestamp_ns hostname process_id thread_id'),"
	" ('open_statements', 'COLUMN_SEARCHED', 'timestamp_ns session_id'),"
	" ('open_statements', 'COLUMN_KEY', 'timestamp_ns hostname process_id thread_id'),"
	" ('label_history', 'COLUMN_MIXED', 'value'),"
	" ('label_history', 'COLUMN_KEY', 'hostname process_id trampoline key from_ns'),"
	" ('plan_times', 'COLUMN_SEARCHED', 'query_id'),"
	" ('plan_times', 'COLUMN_KEY', 'query_id plan_hash node total_ms samples session_id')";

/* An expression of a view has the type of its CAST. Without a CAST it is TEXT. */
static const char columns_sql[] =
	"SELECT printf('\t{ \"%s\", \"%s\", %s },', name,"
	" CASE type WHEN 'INT' THEN 'INTEGER' WHEN '' THEN 'TEXT' ELSE type END,"
	" coalesce((SELECT group_concat(flags, ' | ') FROM marks"
	" WHERE log IN ('', ?1) AND instr(' ' || columns || ' ', ' ' || name || ' ')), '0'))"
	" FROM pragma_table_info(?1, 'temp')";

static void run(sqlite3 *db, const char *sql)
{
	char *error = NULL;

	if (!sqlite3_exec(db, sql, NULL, NULL, &error))
		return;
	fprintf(stderr, "%s: %s\n", sql, error);
	exit(1);
}

static void add_table(sqlite3 *db, const char *name)
{
	char *sql = sqlite3_mprintf("INSERT INTO sqlite_schema VALUES ('table', %Q, %Q, 0, "
	                            "'CREATE VIRTUAL TABLE %s USING " TABLES_MODULE_PREFIX "%s')",
	                            name, name, name, name);

	run(db, sql);
	sqlite3_free(sql);
}

static void print_image(const char *encoding, const char *variable)
{
	sqlite3_int64 size = 0;
	unsigned char *image;
	char *pragma = sqlite3_mprintf("PRAGMA page_size = 4096; PRAGMA encoding = %Q", encoding);
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db))
		exit(1);
	run(db, pragma);
	/* A real table first: with it SQLite writes encoding and format into the header. */
	run(db, "CREATE TABLE made(x); PRAGMA writable_schema = ON");
#define ADD(name) add_table(db, #name);
	EACH_TABLE(ADD)
#undef ADD
	run(db, "PRAGMA writable_schema = OFF; DROP TABLE made; VACUUM");
	image = sqlite3_serialize(db, "main", &size, 0);
	if (!image)
		exit(1);
	printf("static const unsigned char %s[] = {", variable);
	for (sqlite3_int64 i = 0; i < size; i++)
		printf("%s%u,", i % 32 ? "" : "\n\t", image[i]);
	printf("\n};\n");
	sqlite3_free(image);
	sqlite3_free(pragma);
	sqlite3_close(db);
}

static void print_columns(sqlite3 *db, const char *log)
{
	char *sql = sqlite3_mprintf("CREATE TEMP TABLE %s AS SELECT * FROM main.%s LIMIT 0", log, log);
	sqlite3_stmt *columns;

	run(db, sql);
	sqlite3_free(sql);
	if (sqlite3_prepare_v2(db, columns_sql, -1, &columns, NULL))
		exit(1);
	sqlite3_bind_text(columns, 1, log, -1, SQLITE_STATIC);
	printf("static const struct column %s_columns[] = {\n", log);
	while (sqlite3_step(columns) == SQLITE_ROW)
		puts((const char *)sqlite3_column_text(columns, 0));
	sqlite3_finalize(columns);
	printf("};\n_Static_assert(sizeof(%s_columns) / sizeof(*%s_columns) <= TABLE_COLUMNS_MAX, "
	       "\"columns\");\n"
	       "const struct table table_%s = { .name = \"%s\", TABLE_COLUMNS(%s_columns), .log = \"%s\" "
	       "};\n",
	       log, log, log, log, log, log);
}

static void print_logs(void)
{
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db))
		exit(1);
	run(db, store_schema);
	run(db, marks_sql);
#define PRINT(name) print_columns(db, #name);
	EACH_LOG(PRINT)
#undef PRINT
	sqlite3_close(db);
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		print_logs();
		return ferror(stdout) || fflush(stdout) ? 1 : 0;
	}
	print_image("UTF-8", "image_utf8");
	print_image("UTF-16le", "image_utf16le");
	print_image("UTF-16be", "image_utf16be");
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
