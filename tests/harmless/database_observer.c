/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host that prints everything that it can notice of its databases and connections: files,
 * schema, versions, locks, hooks, open objects, memory. Two runs print the same.
 *
 *   database_observer FOLDER [LIBRARY [first | all | named]]
 *
 * The host loads LIBRARY into its first connection, or into all. With `named`, each connection then
 * names a table of the library.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *folder, *library;
static int load_all, name_tables, loaded;
static char scene[64];

static void print_state(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void print_state(const char *key, const char *format, ...)
{
	va_list arguments;

	printf("%s | %s | ", scene, key);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
}

static uint64_t hash(const void *bytes, size_t size)
{
	uint64_t value = 0xcbf29ce484222325;

	for (size_t i = 0; i < size; i++)
		value = (value ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3;
	return value;
}

static void load(sqlite3 *db)
{
	char *error = NULL;

	if (!library || (loaded && !load_all))
		return;
	loaded = 1;
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
	if (sqlite3_load_extension(db, library, "sqlite3_queryprof_init", &error)) {
		fprintf(stderr, "%s\n", error);
		exit(1);
	}
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	if (name_tables) /* another connection may have locked the database, so errors are ignored */
		sqlite3_exec(db, "SELECT 1 FROM system.settings", NULL, NULL, NULL);
}

static sqlite3 *open_database(const char *name, int flags)
{
	sqlite3 *db;
	char path[256];

	if (strchr(name, ':'))
		snprintf(path, sizeof(path), name, folder); /* a name or a URI */
	else
		snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (sqlite3_open_v2(path, &db, flags | SQLITE_OPEN_URI, NULL)) {
		fprintf(stderr, "%s: %s\n", path, sqlite3_errmsg(db));
		exit(1);
	}
	load(db);
	return db;
}

static int tell_row(void *key, int count, char **values, char **names)
{
	(void)names;
	printf("%s | %s | ", scene, (const char *)key);
	for (int i = 0; i < count; i++) {
		const char *value = values[i] ? values[i] : "NULL";

		printf("%s ", strncmp(value, folder, strlen(folder)) ? value : value + strlen(folder));
	}
	putchar('\n');
	return 0;
}

/* Runs SQL, and prints its rows and its error. */
static void run(sqlite3 *db, const char *sql)
{
	int rc = sqlite3_exec(db, sql, tell_row, (void *)sql, NULL);

	if (rc)
		print_state(sql, "error %d %d %s", rc, sqlite3_extended_errcode(db), sqlite3_errmsg(db));
}

static void look_at_files(void)
{
	struct dirent **entries;
	int count = scandir(folder, &entries, NULL, alphasort);

	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;
		char path[512];
		struct stat status;
		int fd;

		snprintf(path, sizeof(path), "%s/%s", folder, name);
		if (*name == '.' || stat(path, &status))
			continue;
		fd = open(path, O_RDONLY);
		char *bytes = malloc((size_t)status.st_size + 1);
		ssize_t size = pread(fd, bytes, (size_t)status.st_size, 0);

		/* Journals and logs contain random numbers. */
		if (strstr(name, "-wal") || strstr(name, "-journal") || strstr(name, "-shm"))
			print_state("file", "%s %zd", name, size);
		else
			print_state("file", "%s %zd %016llx", name, size,
			            (unsigned long long)hash(bytes, (size_t)size));
		free(bytes);
		close(fd);
	}
	free(entries);
}

static void look_at(sqlite3 *db)
{
	static const char *const questions[] = {
		"PRAGMA database_list",
		"PRAGMA schema_version",
		"PRAGMA data_version",
		"PRAGMA user_version",
		"PRAGMA application_id",
		"PRAGMA page_count",
		"PRAGMA freelist_count",
		"PRAGMA journal_mode",
		"PRAGMA locking_mode",
		"PRAGMA synchronous",
		"PRAGMA encoding",
		"PRAGMA cache_size",
		"PRAGMA integrity_check",
		"PRAGMA foreign_key_check",
		"PRAGMA compile_options",
		"SELECT type, name, rootpage, sql FROM sqlite_schema",
		"SELECT name, sql FROM temp.sqlite_schema",
		"SELECT schema, name FROM pragma_table_list ORDER BY 1, 2",
		"SELECT count(*) FROM pragma_function_list",
		"SELECT count(*) FROM pragma_module_list",
		"SELECT count(*) FROM pragma_collation_list",
	};
	static const struct {
		const char *name;
		int which;
	} statuses[] = {
		{ "statement memory", SQLITE_DBSTATUS_STMT_USED },
		{ "schema memory", SQLITE_DBSTATUS_SCHEMA_USED },
		{ "cache memory", SQLITE_DBSTATUS_CACHE_USED },
		{ "cache writes", SQLITE_DBSTATUS_CACHE_WRITE },
		{ "cache spills", SQLITE_DBSTATUS_CACHE_SPILL },
		{ "cache hits", SQLITE_DBSTATUS_CACHE_HIT },
		{ "cache misses", SQLITE_DBSTATUS_CACHE_MISS },
	};

	print_state("counts", "changes %d, total %d, last rowid %lld", sqlite3_changes(db),
	            sqlite3_total_changes(db), (long long)sqlite3_last_insert_rowid(db));
	print_state("error", "%d %d at %d: %s", sqlite3_errcode(db), sqlite3_extended_errcode(db),
	            sqlite3_error_offset(db), sqlite3_errmsg(db));
	print_state("transaction", "autocommit %d, state %d", sqlite3_get_autocommit(db),
	            sqlite3_txn_state(db, NULL));
	print_state("file name", "%s",
	            sqlite3_db_filename(db, "main") +
	                    (strncmp(sqlite3_db_filename(db, "main"), folder, strlen(folder))
	                             ? 0
	                             : strlen(folder)));
	print_state("read-only", "%d %d", sqlite3_db_readonly(db, "main"), sqlite3_db_readonly(db, "system"));
	print_state("limit", "attached %d, functions' arguments %d",
	            sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, -1),
	            sqlite3_limit(db, SQLITE_LIMIT_FUNCTION_ARG, -1));
	int statements = 0;
	for (sqlite3_stmt *stmt = NULL; (stmt = sqlite3_next_stmt(db, stmt));)
		print_state("statement", "%d %s, busy %d", statements++, sqlite3_sql(stmt),
		            sqlite3_stmt_busy(stmt));
	for (size_t i = 0; i < sizeof(questions) / sizeof(*questions); i++)
		run(db, questions[i]);
	for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
		int now, most;

		sqlite3_db_status(db, statuses[i].which, &now, &most, 0);
		print_state(statuses[i].name, "%d", now);
	}
	look_at_files();
}

/* --- the host's own hooks ------------------------------------------------------ */

static int on_authorize(void *context, int action, const char *a, const char *b, const char *c, const char *d)
{
	(void)context;
	print_state("authorizer", "%d %s %s %s %s", action, a ? a : "-", b ? b : "-", c ? c : "-",
	            d ? d : "-");
	return SQLITE_OK;
}

static int on_trace(unsigned event, void *context, void *p, void *x)
{
	(void)context;
	if (event == SQLITE_TRACE_STMT)
		print_state("trace", "%s", (const char *)x);
	else
		print_state("trace", "event %u %s", event, event == SQLITE_TRACE_CLOSE ? "" : sqlite3_sql(p));
	return 0;
}

static void on_update(void *context, int action, const char *schema, const char *table, sqlite3_int64 row)
{
	(void)context;
	print_state("update hook", "%d %s %s %lld", action, schema, table, (long long)row);
}

static int on_commit(void *context)
{
	(void)context;
	print_state("commit hook", "commit");
	return 0;
}

static int on_wal(void *context, sqlite3 *db, const char *schema, int pages)
{
	(void)context, (void)db;
	print_state("wal hook", "%s %d", schema, pages);
	return 0;
}

static int progress;

static int on_progress(void *context)
{
	(void)context;
	progress++;
	return 0;
}

static void with_hooks(sqlite3 *db, int on)
{
	sqlite3_set_authorizer(db, on ? on_authorize : NULL, NULL);
	sqlite3_trace_v2(
		db, on ? SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE | SQLITE_TRACE_ROW | SQLITE_TRACE_CLOSE : 0,
		on ? on_trace : NULL, NULL);
	sqlite3_update_hook(db, on ? on_update : NULL, NULL);
	sqlite3_commit_hook(db, on ? on_commit : NULL, NULL);
	sqlite3_wal_hook(db, on ? on_wal : NULL, NULL);
	sqlite3_progress_handler(db, on ? 100 : 0, on ? on_progress : NULL, NULL);
	if (!on)
		print_state("progress handler", "%d calls", progress);
	progress = 0;
}

/* --- scenes -------------------------------------------------------------------- */

#define RW (SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
#define FILL                                                                                                 \
	"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3000) "                    \
	"INSERT INTO t(a, b) SELECT x, hex(x * 7919) FROM c"

static void work(sqlite3 *db)
{
	sqlite3_stmt *open;

	run(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b); CREATE INDEX i ON t(b); CREATE TABLE log(a)");
	run(db, "CREATE TRIGGER tr AFTER DELETE ON t BEGIN INSERT INTO log VALUES (old.a); END");
	run(db, FILL);
	run(db, "CREATE TEMP TABLE x AS SELECT * FROM t WHERE a % 100 = 0; PRAGMA user_version = 7");
	with_hooks(db, 1);
	run(db, "BEGIN; UPDATE t SET b = 'x' WHERE a = 5; DELETE FROM t WHERE a BETWEEN 10 AND 12; COMMIT");
	run(db, "SAVEPOINT s; INSERT INTO t(a) VALUES (1), (2); ROLLBACK TO s; RELEASE s");
	run(db, "SELECT count(*), max(b) FROM t WHERE a > 1000");
	run(db, "SELECT * FROM missing");
	with_hooks(db, 0);
	sqlite3_prepare_v2(db, "SELECT a FROM t ORDER BY a", -1, &open, NULL);
	sqlite3_step(open);
	look_at(db); /* in the middle of a statement */
	sqlite3_finalize(open);
	run(db, "BEGIN IMMEDIATE; INSERT INTO t(a) VALUES (77)");
	look_at(db); /* in a transaction */
	run(db, "ROLLBACK");
	run(db, "VACUUM");
}

static void copy(sqlite3 *db, const char *name)
{
	char into[80], sql[128];
	sqlite3_int64 size;
	unsigned char *image = sqlite3_serialize(db, "main", &size, 0);
	sqlite3 *to;

	print_state("serialize", "%lld bytes %016llx", (long long)size,
	            (unsigned long long)(image ? hash(image, (size_t)size) : 0));
	sqlite3_free(image);
	snprintf(sql, sizeof(sql), "VACUUM INTO '%s/%s.into'", folder, name);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL))
		print_state("VACUUM INTO", "%s", sqlite3_errmsg(db));
	snprintf(into, sizeof(into), "%s.backup", name);
	to = open_database(into, RW);
	sqlite3_backup *backup = sqlite3_backup_init(to, "main", db, "main");
	int steps = 0;
	while (sqlite3_backup_step(backup, 5) == SQLITE_OK)
		steps++;
	print_state("backup", "%d steps, %d", steps, sqlite3_backup_finish(backup));
	sqlite3_close(to);
}

static void in_journal_mode(const char *mode, const char *locking)
{
	char name[64], sql[128];
	sqlite3 *db, *other;

	snprintf(scene, sizeof(scene), "%s %s", mode, locking);
	snprintf(name, sizeof(name), "%s-%s.db", mode, locking);
	db = open_database(name, RW);
	snprintf(sql, sizeof(sql), "PRAGMA main.locking_mode = %s", locking);
	run(db, sql);
	snprintf(sql, sizeof(sql), "PRAGMA journal_mode = %s", mode);
	run(db, sql);
	look_at(db);
	work(db);
	copy(db, name);
	other = open_database(name, RW);
	run(other, "INSERT INTO t(a) VALUES (99)"); /* refused if the lock is kept */
	run(db, "INSERT INTO t(a) VALUES (99)");
	run(other, "PRAGMA data_version; PRAGMA wal_checkpoint");
	look_at(other);
	print_state("close", "%d", sqlite3_close(other));
	look_at(db);
	print_state("close", "%d", sqlite3_close(db));
	look_at_files();
}

static void in_kind(const char *kind, const char *name, int flags, int writes)
{
	sqlite3 *db;

	snprintf(scene, sizeof(scene), "%s", kind);
	db = open_database(name, flags);
	if (writes)
		work(db);
	else
		run(db, "SELECT count(*) FROM t; INSERT INTO t(a) VALUES (1)");
	look_at(db);
	print_state("close", "%d", sqlite3_close(db));
}

static void with_attached(void)
{
	sqlite3 *db;
	char sql[64];

	snprintf(scene, sizeof(scene), "attached");
	db = open_database(":memory:", RW);
	for (int i = 1; i <= 11; i++) {
		snprintf(sql, sizeof(sql), "ATTACH ':memory:' AS a%d", i);
		run(db, sql);
	}
	run(db, "PRAGMA database_list; DETACH a1");
	run(db, "ATTACH ':memory:' AS system");
	run(db, "CREATE TABLE system.own(x); SELECT name FROM system.sqlite_schema");
	sqlite3_close(db);
	/* a connection that uses the name before the library is loaded */
	snprintf(scene, sizeof(scene), "named system");
	const char *kept = library;
	library = NULL;
	db = open_database(":memory:", RW);
	library = kept;
	run(db, "ATTACH ':memory:' AS system; CREATE TABLE system.own(x)");
	load(db);
	run(db,
	    "SELECT name FROM system.sqlite_schema; INSERT INTO system.own VALUES (5); SELECT x FROM own");
	run(db, "PRAGMA database_list; DETACH system; PRAGMA database_list");
	sqlite3_close(db);
}

int main(int argc, char **argv)
{
	static const char *const modes[] = { "delete", "truncate", "persist", "wal", "memory", "off" };
	sqlite3 *first;

	if (argc < 2)
		return 2;
	folder = argv[1];
	library = argc > 2 ? argv[2] : NULL;
	name_tables = argc > 3 && !strcmp(argv[3], "named");
	load_all = name_tables || (argc > 3 && !strcmp(argv[3], "all"));
	sqlite3_soft_heap_limit64(0);
	first = open_database(":memory:", RW);
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		in_journal_mode(modes[i], "normal");
		in_journal_mode(modes[i], "exclusive");
	}
	in_kind("memory", ":memory:", RW, 1);
	in_kind("temporary", "file:", RW, 1);
	in_kind("shared cache", "file:shared?mode=memory&cache=shared", RW, 1);
	in_kind("read-only", "delete-normal.db", SQLITE_OPEN_READONLY, 0);
	in_kind("immutable", "file:%s/delete-normal.db?immutable=1", SQLITE_OPEN_READONLY, 0);
	with_attached();
	sqlite3_close(first);
	return 0;
}
