/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writing connection: its statements, prepared once per file, its state of the file, and how it
 * waits for other processes. batch.c and the files that it calls provide the rows.
 */
#include "store/write/writer.h"

#include <stdlib.h>

#include "base/sys.h"
#include "store/control/control.h"
#include "store/file/contention.h"

/* --- prepared statements ------------------------------------------------------- */

/* Prepared at its first use, because a short process uses a third of them. */
static void prepare(struct writer *writer, struct prepared *prepared)
{
	if (!prepared->statement)
		sqlite3_prepare_v3(writer->database.db, prepared->sql, -1, SQLITE_PREPARE_PERSISTENT,
		                   &prepared->statement, NULL);
}

struct prepared *writer_bind(struct writer *writer, struct prepared *prepared)
{
	prepare(writer, prepared);
	prepared->bound = 0;
	return prepared;
}

int writer_step(struct writer *writer, struct prepared *prepared)
{
	prepare(writer, prepared);
	prepared_check_all(prepared);
	return prepared->statement ? sqlite3_step(prepared->statement)
	                           : sqlite3_extended_errcode(writer->database.db);
}

int writer_run(struct writer *writer, struct prepared *prepared)
{
	int code = writer_step(writer, prepared);

	sqlite3_reset(prepared->statement);
	return code == SQLITE_DONE || code == SQLITE_ROW ? SQLITE_OK : code;
}

int64_t writer_insert(struct writer *writer, struct prepared *prepared)
{
	int code = writer_run(writer, prepared);

	return code ? -code : sqlite3_last_insert_rowid(writer->database.db);
}

int64_t writer_number(struct writer *writer, struct prepared *prepared)
{
	int code = writer_step(writer, prepared);
	int64_t number = 0;

	if (code == SQLITE_ROW)
		number = sqlite3_column_int64(prepared->statement, 0);
	else if (code != SQLITE_DONE)
		number = -code;
	sqlite3_reset(prepared->statement);
	return number;
}

/* Prepares it if necessary, and binds. SQLITE_OK or the error. */
static int find_kept(struct writer *writer, const char *sql, int64_t a, int64_t b, sqlite3_stmt **statement)
{
	struct kept_statement *kept = writer->kept.items;
	const struct kept_statement *end = kept + writer->kept.count;
	int code;

	while (kept < end && kept->sql != sql)
		kept++;
	if (kept == end) {
		kept = vector_add(&writer->kept);
		if (!kept)
			return SQLITE_NOMEM;
		code = sqlite3_prepare_v3(writer->database.db, sql, -1, SQLITE_PREPARE_PERSISTENT,
		                          &kept->statement, NULL);
		if (code) {
			writer->kept.count--;
			return code;
		}
		kept->sql = sql;
	}
	*statement = kept->statement;
	sqlite3_bind_int64(*statement, 1, a); /* refused if there is no such parameter */
	sqlite3_bind_int64(*statement, 2, b);
	return SQLITE_OK;
}

int writer_run_sql(struct writer *writer, const char *sql, int64_t a, int64_t b)
{
	sqlite3_stmt *statement;
	int code = find_kept(writer, sql, a, b, &statement);

	if (code)
		return code;
	sqlite3_step(statement);
	return sqlite3_reset(statement);
}

int64_t writer_ask_sql(struct writer *writer, const char *sql, int64_t a, int64_t otherwise)
{
	sqlite3_stmt *statement;
	int64_t number = otherwise;

	if (find_kept(writer, sql, a, 0, &statement))
		return otherwise;
	if (sqlite3_step(statement) == SQLITE_ROW)
		number = sqlite3_column_int64(statement, 0);
	sqlite3_reset(statement);
	return number;
}

void writer_roll_back(struct writer *writer)
{
	free(writer->failure);
	writer->failure = database_error(writer->database.db, writer->path);
	/* If the disk was full, SQLite has already rolled back. */
	if (!sqlite3_get_autocommit(writer->database.db))
		writer_run(writer, &writer->sql.rollback);
}

int writer_end(struct writer *writer, int code)
{
	if (!code)
		code = writer_run(writer, &writer->sql.commit);
	if (code)
		writer_roll_back(writer);
	return code;
}

char *writer_failure(struct writer *writer)
{
	char *failure = writer->failure;

	writer->failure = NULL;
	return failure ? failure : database_error(writer->database.db, writer->path);
}

/* --- the transaction ------------------------------------------------------------------------- */

void writer_init_transaction(struct writer *writer)
{
	writer->sql.begin.sql = "BEGIN IMMEDIATE";
	writer->sql.commit.sql = "COMMIT";
	writer->sql.rollback.sql = "ROLLBACK";
	writer->sql.state.sql =
		"SELECT removals, (SELECT max(id) FROM epochs), identity, (SELECT max(id) FROM "
		"batches), (SELECT max(id) FROM queries), statement_batches, program_removals FROM state";
	writer->sql.add_batch.sql =
		"INSERT INTO batches (id, process, before_ns, first_ns, last_ns, samples, total, thread)"
		" VALUES (:id, :process, :before_ns, :first_ns, :last_ns, :samples, :samples +"
		" coalesce((SELECT total FROM batches ORDER BY id DESC LIMIT 1), 0),"
		" coalesce((SELECT max(id) FROM threads), 0))";
	writer->sql.begin_epoch.sql =
		"INSERT INTO epochs (start_ns) SELECT 1 + coalesce(max(timestamp_ns), 0) FROM samples";
}

/* --- connection -------------------------------------------------------------------- */

#define CONTENDED_NS 1000000000

static int on_busy(void *context, int count)
{
	struct writer *writer = context;

	writer->contended_until_ns = control_now_ns() + CONTENDED_NS;
	return contention_nap(&writer->contention, count, CONTENTION_NAPS_MAX);
}

void writer_let_others(struct writer *writer)
{
	if (control_now_ns() < writer->contended_until_ns)
		contention_yield();
}

void writer_wait_when_busy(struct writer *writer)
{
	sqlite3_busy_handler(writer->database.db, on_busy, writer);
}

int writer_rows(sqlite3 *db, void *writer, void *memory, void *rows, uint64_t used, char **error)
{
	(void)db, (void)memory, (void)used, (void)error;
	*(struct writer **)rows = writer;
	return SQLITE_OK;
}

int writer_sync(struct writer *writer)
{
	sqlite3_file *log = NULL; /* the write-ahead log, which has the rows stored since it began */

	if (sqlite3_file_control(writer->database.db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) || !log ||
	    !log->pMethods)
		return SQLITE_OK;
	return log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
}
