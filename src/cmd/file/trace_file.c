/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace files, opened without changing them.
 *
 * A reader of a file in WAL mode needs the log's index next to the file and would create it. So a file
 * without a log and a writer is opened as immutable. SQLite then creates nothing, and can read a file in a
 * folder that is not writable.
 *
 * The file may come from a stranger: its content is data, and its schema is not trusted.
 */
#include "cmd/file/trace_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vector.h"
#include "cmd/file/stack_frames.h"
#include "cmd/file/table_pages.h"
#include "cmd/file/words.h"
#include "cmd/line/nearest.h"
#include "cmd/ui/complain.h"
#include "cmd/ui/progress.h"
#include "sql/trace_file_functions.h"
#include "store/file/database.h"
#include "store/file/file_image.h"
#include "store/file/schema.h"
#include "store/file/upgrade.h"
#include "store/store.h"

/* A writer holds SQLite's shared lock on the file, a range past the first gigabyte. */
bool trace_file_is_in_use(const char *path)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000002, .l_len = 510 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool used = fd < 0 || fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;

	if (fd >= 0)
		close(fd);
	return used;
}

char *trace_file_log(const char *path)
{
	char *real = realpath(path, NULL);
	char *log = text_format("%s-wal", real ? real : path);

	free(real);
	return log;
}

static bool has_log(const char *path)
{
	struct stat status;
	char *log = trace_file_log(path);
	bool has = log && stat(log, &status) == 0 && status.st_size > 0;

	free(log);
	return has;
}

char *trace_file_uri(const char *path)
{
	sqlite3_str *uri = sqlite3_str_new(NULL);

	/* After two slashes, a path would begin with a host. */
	sqlite3_str_appendall(uri, path[0] == '/' ? "file://" : "file:");
	for (const char *at = path; *at; at++)
		if (strchr("%?#", *at)) /* special in URIs */
			sqlite3_str_appendf(uri, "%%%02x", *at);
		else
			sqlite3_str_appendchar(uri, 1, *at);
	sqlite3_str_appendall(uri, "?mode=ro");
	if (!trace_file_is_in_use(path) && !has_log(path))
		sqlite3_str_appendall(uri, "&immutable=1");
	return sqlite3_str_finish(uri);
}

bool trace_file_is_immutable(sqlite3 *db)
{
	return sqlite3_uri_boolean(sqlite3_db_filename(db, "main"), "immutable", 0);
}

/* SQLite does not read the file yet. */
static int open_unread(const char *path, sqlite3 **db)
{
	char *uri = trace_file_uri(path);
	int code = uri ? sqlite3_open_v2(uri, db,
	                                 SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, "unix")
	               : SQLITE_NOMEM;
	sqlite3_free(uri);
	return code;
}

static int open_connection(const char *path, sqlite3 **db)
{
	int code = open_unread(path, db);

	if (code == SQLITE_OK) {
		sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
		sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
		database_distrust(*db);
		/* Data that is read more than once, or sorted, mostly stays in memory. */
		sqlite3_exec(*db,
		             "PRAGMA cell_size_check = 1; PRAGMA cache_size = -32000; PRAGMA temp.cache_size "
		             "= -32000",
		             NULL, NULL, NULL);
		sqlite3_busy_timeout(*db, 5000);
	}
	return code;
}

/* False after a complaint. */
static bool check_identity(sqlite3 *db, const char *path)
{
	int64_t application, version;
	char *error = NULL;

	application = database_number(db, "PRAGMA application_id", -1);
	if (application < 0) {
		if (sqlite3_errcode(db) == SQLITE_NOTADB)
			complain("%s: not a database; " TRACE_FILE_EXPECTED, path);
		else
			complain("%s: %s", path, sqlite3_errmsg(db));
		return false;
	}
	if (application != STORE_APPLICATION_ID) {
		complain("%s: not a trace file of queryprof; " TRACE_FILE_EXPECTED, path);
		return false;
	}
	version = database_number(db, "PRAGMA user_version", 0);
	if (version > STORE_SCHEMA_VERSION) {
		complain("%s: written by a newer queryprof (format %lld, this one reads up to %d)", path,
		         (long long)version, STORE_SCHEMA_VERSION);
		return false;
	}
	if (database_check_tables(db, path, &error)) {
		complain("%s", error ? error : "out of memory");
		free(error);
		return false;
	}
	return true;
}

/* SQLite gives its routines only to extensions. This extension takes them. */
static const sqlite3_api_routines *routines;

/* The open files, each with the meaning of its addresses. */
struct open_file {
	sqlite3 *db;
	const struct address_space *space; /* the connection's functions own it */
	struct stack_frames *frames;       /* owned likewise; NULL: none */
};
static VECTOR(struct open_file) files;

static int set_routines(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
	(void)db, (void)error;
	routines = api;
	return SQLITE_OK;
}

/* Adds the library's functions to the connection, as if the library had been loaded. */
static int add_functions(sqlite3 *db, char **error)
{
	struct open_file file = { .db = db };
	sqlite3 *scratch = NULL;
	int code;

	if (!routines) {
		sqlite3_auto_extension((void (*)(void))set_routines);
		sqlite3_open(":memory:", &scratch);
		sqlite3_close(scratch);
		sqlite3_cancel_auto_extension((void (*)(void))set_routines);
	}
	code = routines ? trace_file_functions_attach(db, error, routines, &file.space) : SQLITE_NOMEM;
	return code == SQLITE_OK && !vector_push(&files, file) ? SQLITE_NOMEM : code;
}

/* NULL: it is not a trace file, or was opened without functions. */
static struct open_file *find_file(const sqlite3 *db)
{
	for (size_t i = 0; i < files.count; i++)
		if (files.items[i].db == db)
			return &files.items[i];
	return NULL;
}

const struct address_space *trace_file_space(sqlite3 *db)
{
	const struct open_file *file = find_file(db);

	return file ? file->space : NULL;
}

/* Adds the functions and this version's views to a connection, if the database is a trace file. False after a
 * complaint. */
static bool adopt(sqlite3 *db, const char *path)
{
	char *error = NULL;
	bool fine = false;

	if (!check_identity(db, path)) {
		/* has complained */
	} else if (upgrade_view(db, database_number(db, "PRAGMA user_version", 0)) != SQLITE_OK) {
		complain("%s: %s", path, sqlite3_errmsg(db));
	} else if (add_functions(db, &error) != SQLITE_OK) {
		complain("%s: %s", path, error ? error : "out of memory");
	} else if (words_add(db) != SQLITE_OK || table_pages_add(db) != SQLITE_OK ||
	           stack_frames_add(db, trace_file_space(db), &find_file(db)->frames) != SQLITE_OK) {
		complain("%s: %s", path, sqlite3_errmsg(db));
	} else {
		progress_watch(db);
		fine = true;
	}
	sqlite3_free(error);
	return fine;
}

bool trace_file_use_tables(sqlite3 *db, const char *path)
{
	if (words_add(db) != SQLITE_OK) {
		complain("%s: %s", path, sqlite3_errmsg(db));
		return false;
	}
	progress_watch(db);
	return true;
}

static bool adopt_tables(sqlite3 *db, const char *path)
{
	return check_identity(db, path) && trace_file_use_tables(db, path);
}

/* Finds a file in the same folder with a similar name. */
static bool find_near(const char *path, char *near, size_t size)
{
	const char *slash = strrchr(path, '/');
	const int folder = slash ? (int)(slash - path) + 1 : 0;
	struct nearest nearest = { .word = path + folder };
	char *name = text_format("%.*s", folder, path);
	DIR *found = name ? opendir(folder ? name : ".") : NULL;

	for (const struct dirent *file; found && (file = readdir(found));)
		if (file->d_type == DT_REG)
			nearest_try(&nearest, file->d_name);
	if (found)
		closedir(found);
	free(name);
	return nearest.best[0] && snprintf(near, size, "%.*s%s", folder, path, nearest.best) < (int)size;
}

int trace_file_complain(const char *path)
{
	const char *reason = strerror(errno);

	if (strncmp(path, "http://", 7) == 0 || strncmp(path, "https://", 8) == 0)
		return complain(
			"%s: %s; expected a file, which `queryprof pull URL` writes from data that push "
			"sent to ClickHouse",
			path, reason);
	if (errno == ENOENT) {
		char near[PATH_MAX];

		return find_near(path, near, sizeof(near))
		               ? complain("%s: %s; did you mean %s?", path, reason, near)
		               : complain("%s: %s; " TRACE_FILE_EXPECTED, path, reason);
	}
	return complain("%s: %s", path, reason);
}

/* A trace file contains texts of queries, and is created for its owner alone. In containers, owners may have
 * no name. False after a complaint. */
static bool check_right(const char *path, const struct stat *status)
{
	if (access(path, R_OK) == 0)
		return true;
	if (errno != EACCES) {
		trace_file_complain(path);
	} else if (status->st_uid != geteuid()) {
		const struct passwd *owner = getpwuid(status->st_uid);
		char number[16];

		snprintf(number, sizeof(number), "%u", (unsigned)status->st_uid);
		complain("%s: %s: it belongs to user %s, mode %04o: run queryprof as that user, or ask for a "
		         "copy",
		         path, strerror(EACCES), owner ? owner->pw_name : number,
		         (unsigned)status->st_mode & 07777);
	} else {
		complain("%s: %s: its mode is %04o", path, strerror(EACCES),
		         (unsigned)status->st_mode & 07777);
	}
	return false;
}

static sqlite3 *open_with(const char *path, bool (*prepare)(sqlite3 *db, const char *path))
{
	struct stat status;
	sqlite3 *db = NULL;

	if (stat(path, &status) != 0) {
		trace_file_complain(path);
		return NULL;
	}
	if (!S_ISREG(status.st_mode)) {
		complain("%s: not a file; " TRACE_FILE_EXPECTED, path);
		return NULL;
	}
	if (!check_right(path, &status))
		return NULL;
	if (open_connection(path, &db) != SQLITE_OK)
		complain("%s: %s", path, sqlite3_errmsg(db));
	else if (prepare(db, path))
		return db;
	trace_file_close(db);
	return NULL;
}

sqlite3 *trace_file_open(const char *path)
{
	return open_with(path, adopt);
}

sqlite3 *trace_file_open_tables(const char *path)
{
	return open_with(path, adopt_tables);
}

bool trace_file_is_untouched(const char *path)
{
	sqlite3 *db = NULL;
	bool is_untouched = open_unread(path, &db) == SQLITE_OK && file_image_is_untouched(db);

	sqlite3_close(db);
	return is_untouched;
}

bool trace_file_is_pulled(sqlite3 *db)
{
	return database_number(db, "SELECT EXISTS (SELECT 1 FROM missing_plans WHERE program = -1)", 0) == 1;
}

void trace_file_close(sqlite3 *db)
{
	struct open_file *file = find_file(db);

	if (file) {
		stack_frames_end(file->frames);
		*file = files.items[--files.count];
	}
	sqlite3_close(db);
}
