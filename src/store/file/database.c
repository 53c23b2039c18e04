/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A new file is a copy of an image that the build has made (file_image.h), because SQLite would parse the
 * schema twice to make it. If another process has the empty file open, SQLite makes the tables in one
 * transaction of a rollback journal, and sets the file to WAL mode after that. In both cases a killed process
 * leaves at worst an empty database.
 *
 * synchronous is NORMAL: a power loss may cost the newest transactions, but not the file. The flusher syncs
 * the log periodically instead of at each transaction. A temporary file needs no syncs.
 */
#include "store/file/database.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/text.h"
#include "queryprof.h"
#include "store/file/file_image.h"
#include "store/file/schema.h"
#include "store/file/upgrade.h"
#include "store/file/wal_index.h"

/* While a file is opened that another process has locked. */
enum { NAPS_BUSY = 500, NAPS_MODE = 250 };

static int on_busy(void *limit, int naps)
{
	return contention_nap(limit, naps, NAPS_BUSY);
}

/* --- the store's copy of SQLite ----------------------------------------------- */

static void start_sqlite(void)
{
	/* One thread at a time uses a connection; memory statistics are not read. */
	sqlite3_config(SQLITE_CONFIG_MULTITHREAD);
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	sqlite3_initialize();
	wal_index_register();
}

/* SQLite's VFS for memory shares a database between connections if its name begins with "/". */
#define MEMORY_NAME "/memory of queryprof/"

char *database_memory_name(void)
{
	/* A forked child has its parent's database, too. */
	return text_format(MEMORY_NAME "%d", (int)getpid());
}

bool database_is_in_memory(const char *path)
{
	return !strncmp(path, MEMORY_NAME, sizeof(MEMORY_NAME) - 1);
}

void database_distrust(sqlite3 *db)
{
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_limit(db, SQLITE_LIMIT_LENGTH, DATABASE_VALUE_MAX);
}

static int refuse(sqlite3 **db, const char *path, char **error)
{
	*error = database_error(*db, path);
	sqlite3_close(*db);
	*db = NULL;
	return QP_STORE;
}

static int open_connection(const char *path, int flags, sqlite3 **db, char **error)
{
	static struct once once;
	const char *vfs = database_is_in_memory(path) ? "memdb" : WAL_INDEX_VFS;
	const bool is_of_disk = !database_is_in_memory(path) && strcmp(path, ":memory:") != 0;
	int code;

	once_do(&once, start_sqlite);
	code = sqlite3_open_v2(path, db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, vfs);
	if (code)
		return refuse(db, path, error);
	sqlite3_extended_result_codes(*db, 1);
	sqlite3_busy_timeout(*db, DATABASE_BUSY_MS);
	/* The file may come from anywhere, so its SQL must not run. */
	sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(*db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	if (is_of_disk)
		database_distrust(*db);
	/* A close for fork must be quick; the last close resets this. */
	sqlite3_db_config(*db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	/* No temporary files, and no mapping of the file: a page that another process truncates
	 * would raise SIGBUS in the host. */
	sqlite3_exec(*db,
	             "PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0; PRAGMA secure_delete = OFF; "
	             "PRAGMA ignore_check_constraints = ON",
	             NULL, NULL, NULL);
	return QP_OK;
}

/* --- words ------------------------------------------------------------------- */

char *database_error(sqlite3 *db, const char *path)
{
	int code = db ? sqlite3_extended_errcode(db) : SQLITE_NOMEM;
	int number = db ? sqlite3_system_errno(db) : 0;
	bool of_system = (code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN;
	struct rlimit limit;

	if ((code & 0xff) == SQLITE_IOERR && !getrlimit(RLIMIT_FSIZE, &limit) &&
	    limit.rlim_cur != RLIM_INFINITY)
		return text_format(
			"%s: %s%s%s (files of this process can have %llu bytes at most: ulimit -f)", path,
			sqlite3_errstr(code & 0xff), number ? ", " : "", number ? strerror(number) : "",
			(unsigned long long)limit.rlim_cur);
	if (of_system && number)
		return text_format("%s: %s (%s)", path, sqlite3_errstr(code & 0xff), strerror(number));
	return text_format("%s: %s", path, db ? sqlite3_errmsg(db) : sqlite3_errstr(code));
}

int64_t database_number(sqlite3 *db, const char *sql, int64_t otherwise)
{
	sqlite3_stmt *statement = NULL;
	int64_t number = otherwise;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return number;
}

/* --- opening ----------------------------------------------------------------- */

int database_check_tables(sqlite3 *db, const char *path, char **error)
{
	static const char sql[] =
		"SELECT tbl_name FROM sqlite_schema AS s WHERE type = 'table' AND (rootpage = 0 OR EXISTS "
		"(SELECT 1 FROM pragma_table_xinfo(s.name) WHERE hidden > 1 OR dflt_value GLOB '*(*')) OR "
		"type = 'index' AND (EXISTS (SELECT 1 FROM pragma_index_xinfo(s.name) WHERE cid = -2) OR "
		"EXISTS (SELECT 1 FROM pragma_index_list(s.tbl_name) AS i WHERE i.name = s.name AND "
		"partial))";
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);

	if (!code)
		code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		*error = text_format("%s: not a trace file of queryprof: its table %s is computed", path,
		                     (const char *)sqlite3_column_text(statement, 0));
	else if (code != SQLITE_DONE)
		*error = database_error(db, path);
	sqlite3_finalize(statement);
	if ((code & 0xff) == SQLITE_BUSY)
		return DATABASE_LOCKED;
	return code == SQLITE_DONE ? QP_OK : QP_STORE;
}

static int make_schema(sqlite3 *db)
{
	int code = schema_make_tables(db);

	return code ? code : schema_set_identity(db);
}

/* The transaction of a failure ends when the connection is closed, because the connection keeps the failure's
 * message until then. */
static int end_transaction(sqlite3 *db, int code)
{
	return code ? code : sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
}

/* In one exclusive transaction: if several processes start together, one makes the schema, and the others
 * find it. */
static int make_schema_once(sqlite3 *db)
{
	int code;

	if (database_number(db, "PRAGMA application_id", 0) == STORE_APPLICATION_ID)
		return SQLITE_OK;
	/* Lets the file shrink when its bound is lowered; must come first. */
	sqlite3_exec(db, "PRAGMA auto_vacuum = INCREMENTAL", NULL, NULL, NULL);
	code = sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL);
	if (code)
		return code;
	if (database_number(db, "SELECT count(*) FROM sqlite_schema", -1) == 0)
		code = make_schema(db);
	return end_transaction(db, code);
}

/* In one transaction. A process of the older version that has the file open can continue. */
static int upgrade_schema_once(sqlite3 *db)
{
	int code;

	if (database_number(db, "PRAGMA user_version", 0) >= STORE_SCHEMA_VERSION)
		return SQLITE_OK;
	code = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
	if (code)
		return code;
	if (database_number(db, "PRAGMA user_version", 0) < STORE_SCHEMA_VERSION &&
	    !(code = upgrade_file(db)))
		code = schema_set_identity(db);
	return end_transaction(db, code);
}

static bool is_wal(sqlite3 *db)
{
	sqlite3_stmt *statement = NULL;
	bool wal = false;

	if (sqlite3_prepare_v2(db, "PRAGMA journal_mode = WAL", -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		wal = !strcmp((const char *)sqlite3_column_text(statement, 0), "wal");
	sqlite3_finalize(statement);
	return wal;
}

static int prepare_file(sqlite3 *db, const char *path, const struct database_limits *limits, char **error)
{
	int code, identity;

	/* This also syncs the removal of a journal: one that reappeared after a power loss would undo later
	 * writes. */
	sqlite3_exec(db, "PRAGMA synchronous = EXTRA", NULL, NULL, NULL);
	code = make_schema_once(db);
	if (!code) {
		identity =
			schema_check_identity(path, (uint32_t)database_number(db, "PRAGMA application_id", 0),
		                              (uint32_t)database_number(db, "PRAGMA user_version", 0), error);
		if (!identity)
			identity = database_check_tables(db, path, error);
		if (identity)
			return identity;
		code = upgrade_schema_once(db);
	}

	/* Changing the mode requires that no other process uses the file; another one that starts now uses it
	 * for a moment. */
	for (int naps = 0; !code && !is_wal(db); naps++) {
		code = sqlite3_errcode(db);
		if (code == SQLITE_OK || code == SQLITE_BUSY)
			code = contention_nap(&limits->contention, naps, NAPS_MODE) ? SQLITE_OK : SQLITE_BUSY;
	}
	if (code) {
		*error = database_error(db, path);
		return (code & 0xff) == SQLITE_BUSY ? DATABASE_LOCKED : QP_STORE;
	}
	return QP_OK;
}

/* A statement without a table opens the log without parsing the schema, which takes 2 ms. */
static int open_log(sqlite3 *db, const char *path, char **error)
{
	int code = sqlite3_exec(db, "BEGIN IMMEDIATE; COMMIT", NULL, NULL, NULL);

	if (!code)
		return QP_OK;
	*error = database_error(db, path);
	return (code & 0xff) == SQLITE_BUSY ? DATABASE_LOCKED : QP_STORE;
}

static int open_in_memory(struct database *database, const char *path, const struct database_limits *limits,
                          char **error)
{
	int code = open_connection(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &database->db, error);

	if (code)
		return code;
	if (make_schema_once(database->db)) {
		*error = database_error(database->db, path);
		database_close(database, false);
		return QP_STORE;
	}
	database_set_limits(database, limits);
	return QP_OK;
}

/* `is_checked`: the file was checked; it has this version's tables and the limits. */
static int open_with(struct database *database, const char *path, const struct database_limits *limits,
                     bool is_checked, char **error)
{
	int code;

	*database = DATABASE_CLOSED;
	code = guard_open(&database->guard, path, &limits->contention, error);
	if (!code)
		code = open_connection(path, SQLITE_OPEN_READWRITE, &database->db, error);
	if (!code) {
		sqlite3_busy_handler(database->db, on_busy, (void *)&limits->contention);
		database->is_made = file_image_write(database->db);
		code = is_checked && !database->is_made && !file_image_is_untouched(database->db)
		               ? prepare_file(database->db, path, limits, error)
		               : open_log(database->db, path, error);
	}
	if (!code && !guard_lock(&database->guard, &limits->contention)) {
		*error = text_format("%s: locked by another process", path);
		code = DATABASE_LOCKED;
	}
	if (code) {
		database_close(database, false);
		return code;
	}
	guard_end_setup(&database->guard);
	sqlite3_busy_timeout(database->db, DATABASE_BUSY_MS);
	if (is_checked)
		database_set_limits(database, limits);
	return QP_OK;
}

int database_open(struct database *database, const char *path, const struct database_limits *limits,
                  char **error)
{
	if (!database_is_in_memory(path))
		return open_with(database, path, limits, true, error);
	*database = DATABASE_CLOSED;
	return open_in_memory(database, path, limits, error);
}

int database_touch(const char *path, const struct database_limits *limits, bool *is_made, char **error)
{
	struct database database;
	int code = open_with(&database, path, limits, false, error);

	*is_made = !code && database.is_made;
	if (!code)
		database_close(&database, true);
	return code;
}

void database_set_limits(struct database *database, const struct database_limits *limits)
{
	char text[160];
	int64_t pages = limits->wal_bytes / 2 / 4096;

	/* After a checkpoint the log restarts from its beginning, so it reaches half the limit plus one
	 * transaction. */
	snprintf(
		text, sizeof(text),
		"PRAGMA synchronous = %s; PRAGMA wal_autocheckpoint = %lld; PRAGMA journal_size_limit = %lld",
		limits->temporary ? "OFF" : "NORMAL", (long long)pages, (long long)limits->wal_bytes);
	sqlite3_exec(database->db, text, NULL, NULL, NULL);
}

void database_close(struct database *database, bool last)
{
	const struct guard *guard = &database->guard;

	if (database->db) {
		const char *path = sqlite3_db_filename(database->db, "main");

		if (guard_is_linked(guard) && !guard_is_at(guard, path)) {
			/* A renamed file is separated from its log, which SQLite finds by the name. */
			sqlite3_wal_checkpoint_v2(database->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL,
			                          NULL);
		} else if (last) {
			/* A checkpoint at the close requires that the guard does not hold the file. */
			sqlite3_db_config(database->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
			guard_close(&database->guard);
		}
		sqlite3_close(database->db);
	}
	guard_close(&database->guard);
	*database = DATABASE_CLOSED;
}

int database_open_reader(const char *path, sqlite3 **db, char **error)
{
	int code = open_connection(path ? path : ":memory:", SQLITE_OPEN_READWRITE, db, error);

	if (code)
		return code;
	if (!path && make_schema(*db))
		return refuse(db, "empty trace log", error);
	if (path && !database_is_in_memory(path) &&
	    upgrade_view(*db, database_number(*db, "PRAGMA user_version", 0)))
		return refuse(db, path, error);
	sqlite3_exec(*db, "PRAGMA query_only = ON; PRAGMA cache_size = -4000", NULL, NULL, NULL);
	return QP_OK;
}

int64_t database_bytes(const struct database *database, const char *path)
{
	struct stat status;
	int64_t bytes = 0;

	if (database_is_in_memory(path))
		return database_number(
			database->db,
			"SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", 0);
	if (!stat(path, &status))
		bytes += status.st_size;
	/* If `path` is a link, the log is next to the link's target. */
	if (!stat(sqlite3_filename_wal(sqlite3_db_filename(database->db, "main")), &status))
		bytes += status.st_size;
	return bytes;
}
