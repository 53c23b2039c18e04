/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's threads have a separate descriptor table (descriptors.h). So if the host's copy of
 * SQLite also has the trace file open, its locks belong to another process from the point of view of
 * queryprof. Within queryprof's table any close() of the file drops all POSIX locks on it, and
 * open_file() closes one when it refuses a file. Therefore there is a guard, another descriptor of
 * the file with an open file description lock on SQLite's "shared" bytes, which makes queryprof look
 * like any other reader: no process can consider the file unused. It is an ordinary lock of SQLite's
 * protocol; so are those of the log's index (wal_index.c).
 *
 * A new file is a copy of an image that the build has made (file_image.h), because SQLite would parse
 * the schema twice to make it. If another process has the empty file, SQLite makes it in one
 * transaction of a rollback journal, and it is set to WAL after that. In both cases a killed process
 * can leave only an empty database.
 *
 * synchronous is NORMAL: a power loss may cost the newest transactions, not the file, and the flusher
 * syncs the log periodically instead of at each transaction. A temporary file needs no syncs.
 */
#include "store/file/database.h"

#include <errno.h>
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
#include "store/file/contention.h"
#include "store/file/file_image.h"
#include "store/file/upgrade.h"
#include "store/file/wal_index.h"
#include "store_schema.h"

/* Where SQLite's locks on the database file begin. Part of SQLite's file format. */
#define PENDING_BYTE 0x40000000
#define SHARED_FIRST (PENDING_BYTE + 2)
#define SHARED_SIZE 510

#define BUSY_TIMEOUT_MS 1000

/* While a file is opened, and another process has it. */
enum { NAPS_BUSY = 500, NAPS_SETUP = 1000, NAPS_GUARD = 250, NAPS_MODE = 250 };

static int on_busy(void *limits, int naps)
{
	return contention_nap(limits, naps, NAPS_BUSY);
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

/* SQLite's VFS for memory shares a database between connections when its name begins so. */
#define MEMORY_NAME "/memory of queryprof/"

char *database_memory_name(void)
{
	/* A forked child has a copy of its parent's. */
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
	sqlite3_busy_timeout(*db, BUSY_TIMEOUT_MS);
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

/* --- whose file it is -------------------------------------------------------- */

static uint32_t read_big_endian(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static int check_identity(const char *path, uint32_t application, uint32_t version, char **error)
{
	if (application != STORE_APPLICATION_ID) {
		*error = text_format("%s: a SQLite database, but not a trace file", path);
		return QP_STORE;
	}
	if (version > STORE_SCHEMA_VERSION) {
		*error = text_format("%s: written by a newer queryprof (schema %u; this version reads up to "
		                     "%d)",
		                     path, version, STORE_SCHEMA_VERSION);
		return QP_TOO_NEW;
	}
	return QP_OK;
}

/* A database of one page, which holds no table, with neither id nor version: what
 * setting auto_vacuum leaves, or a copy of the image that was not finished. Whether it is so is seen again
 * before it is used. */
static bool is_blank(const unsigned char *header, off_t size)
{
	off_t page = (off_t)header[16] << 8 | header[17];
	bool is_one_page = size == (page == 1 ? 65536 : page) || read_big_endian(header + 28) == 1;

	return is_one_page && !read_big_endian(header + 60) && !read_big_endian(header + 68);
}

/* From the header alone: opening a file with SQLite may already change things next
 * to it. An empty file may become a trace file. */
static int check_header(int fd, off_t size, const char *path, char **error)
{
	unsigned char header[100];

	if (!size)
		return QP_OK;
	if (pread(fd, header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    memcmp(header, "SQLite format 3", 16) != 0) {
		*error = text_format("%s: not a trace file", path);
		return QP_STORE;
	}
	if (is_blank(header, size))
		return QP_OK;
	return check_identity(path, read_big_endian(header + 68), read_big_endian(header + 60), error);
}

/* After every byte that SQLite locks or could write. */
#define SETUP_BYTE ((off_t)1 << 62)

/* `type` as for fcntl(). 0, or errno: EAGAIN when another has a lock in the way. */
static int set_lock(int fd, short type, off_t start, off_t size)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = size };

	if (!fcntl(fd, F_OFD_SETLK, &lock))
		return 0;
	return errno == EACCES ? EAGAIN : errno;
}

/* Processes that open one file together take turns until each has it ready: half-made,
 * it looks like another program's, and its journal mode can be changed only by one that
 * has it alone. False: another has not finished in time. */
static bool lock_setup(int fd, const struct database_limits *limits)
{
	for (int naps = 0; set_lock(fd, F_WRLCK, SETUP_BYTE, 1) == EAGAIN; naps++)
		if (!contention_nap(limits, naps, NAPS_SETUP))
			return false;
	return true; /* taken, or no such locks here: continue without */
}

/* Other users could read a file that they have put at the path, or next to it, while it grows. A
 * file of root may be written, because root can read everything. */
static int check_owners(const char *path, const struct stat *status, char **error)
{
	static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
	char *real = realpath(path, NULL); /* if `path` is a link, SQLite has its files next to the target */
	int code = QP_OK;

	for (size_t i = 0; !code && i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		char *name = text_format("%s%s", real ? real : path, suffixes[i]);
		struct stat seen = *status;
		bool is_there = !i || (name && !lstat(name, &seen));

		free(name);
		if (!is_there || seen.st_uid == geteuid() || seen.st_uid == 0)
			continue;
		*error = text_format("%s%s: belongs to user %u; user %u may write only to its own files",
		                     path, suffixes[i], (unsigned)seen.st_uid, (unsigned)geteuid());
		code = QP_STORE;
	}
	free(real);
	return code;
}

/* The file, made with mode 0600 if it does not exist, and with the lock of the set-up. */
static int open_file(const char *path, const struct database_limits *limits, struct database *database,
                     char **error)
{
	const int flags = O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	struct stat status;
	int fd, code;

	fd = open(path, flags | O_CREAT | O_EXCL, 0600);
	if (fd >= 0)
		fchmod(fd, 0600); /* whatever the umask */
	else if (errno == EEXIST)
		fd = open(path, flags);
	if (fd < 0 || fstat(fd, &status)) {
		*error = text_format("%s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return QP_STORE;
	}
	if (!S_ISREG(status.st_mode)) {
		*error = text_format("%s: not a regular file", path);
		code = QP_STORE;
	} else if (check_owners(path, &status, error)) {
		code = QP_STORE;
	} else if (!lock_setup(fd, limits)) {
		*error = text_format("%s: locked by another process", path);
		code = DATABASE_LOCKED;
	} else {
		if (fstat(fd, &status)) /* its size, now that no other process is making it */
			status.st_size = 0;
		code = check_header(fd, status.st_size, path, error);
	}
	if (code) {
		close(fd);
		return code;
	}
	if (status.st_mode & 077)
		fchmod(fd, status.st_mode & 0700); /* it will have texts of queries */
	database->guard = fd;
	database->device = status.st_dev;
	database->inode = status.st_ino;
	return QP_OK;
}

static bool lock_guard(int fd, const struct database_limits *limits)
{
	/* A process that closes the file as its last user holds it for a moment. */
	int naps = 0, error;

	while ((error = set_lock(fd, F_RDLCK, SHARED_FIRST, SHARED_SIZE)) == EAGAIN &&
	       contention_nap(limits, naps++, NAPS_GUARD))
		;
	return error == 0 || error == EINVAL || error == ENOLCK; /* without such locks: continue without */
}

/* --- opening ----------------------------------------------------------------- */

static int set_identity(sqlite3 *db)
{
	char identity[96];

	snprintf(identity, sizeof(identity), "PRAGMA application_id = %d; PRAGMA user_version = %d",
	         STORE_APPLICATION_ID, STORE_SCHEMA_VERSION);
	return sqlite3_exec(db, identity, NULL, NULL, NULL);
}

int database_check_tables(sqlite3 *db, const char *path, char **error)
{
	static const char sql[] =
		"SELECT tbl_name FROM sqlite_schema AS s "
		"WHERE type = 'table' AND (rootpage = 0 OR EXISTS ("
		"SELECT 1 FROM pragma_table_xinfo(s.name) WHERE hidden > 1 OR dflt_value GLOB '*(*')) "
		"OR type = 'index' AND ("
		"EXISTS (SELECT 1 FROM pragma_index_xinfo(s.name) WHERE cid = -2) OR EXISTS ("
		"SELECT 1 FROM pragma_index_list(s.tbl_name) AS i WHERE i.name = s.name AND partial))";
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

int database_make_tables(sqlite3 *db)
{
	return sqlite3_exec(db, store_schema, NULL, NULL, NULL);
}

static int make_schema(sqlite3 *db)
{
	int code = database_make_tables(db);

	return code ? code : set_identity(db);
}

/* A failure's transaction ends with the connection, which keeps the failure's own words until then. */
static int end_transaction(sqlite3 *db, int code)
{
	return code ? code : sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
}

/* In one exclusive transaction: of several processes that start together one makes
 * the schema, the others find it. */
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
		code = set_identity(db);
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

	/* Also the removal of a journal: one that reappeared after a loss of power would undo
	 * later writes. */
	sqlite3_exec(db, "PRAGMA synchronous = EXTRA", NULL, NULL, NULL);
	code = make_schema_once(db);
	if (!code) {
		identity = check_identity(path, (uint32_t)database_number(db, "PRAGMA application_id", 0),
		                          (uint32_t)database_number(db, "PRAGMA user_version", 0), error);
		if (!identity)
			identity = database_check_tables(db, path, error);
		if (identity)
			return identity;
		code = upgrade_schema_once(db);
	}

	/* Changing the mode needs the file alone; another that starts now has it too,
	 * for a moment. */
	for (int naps = 0; !code && !is_wal(db); naps++) {
		code = sqlite3_errcode(db);
		if (code == SQLITE_OK || code == SQLITE_BUSY)
			code = contention_nap(limits, naps, NAPS_MODE) ? SQLITE_OK : SQLITE_BUSY;
	}
	if (code) {
		*error = database_error(db, path);
		return (code & 0xff) == SQLITE_BUSY ? DATABASE_LOCKED : QP_STORE;
	}
	return QP_OK;
}

/* A statement that needs no table opens the log, and SQLite does not parse the schema, which takes 2 ms. */
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

/* `is_checked`: the file was checked, and has this version's tables and the limits. */
static int open_with(struct database *database, const char *path, const struct database_limits *limits,
                     bool is_checked, char **error)
{
	int code;

	*database = (struct database){ .guard = -1 };
	code = open_file(path, limits, database, error);
	if (!code)
		code = open_connection(path, SQLITE_OPEN_READWRITE, &database->db, error);
	if (!code) {
		sqlite3_busy_handler(database->db, on_busy, (void *)limits);
		database->is_made = file_image_write(database->db);
		code = is_checked && !database->is_made ? prepare_file(database->db, path, limits, error)
		                                        : open_log(database->db, path, error);
	}
	if (!code && !lock_guard(database->guard, limits)) {
		*error = text_format("%s: locked by another process", path);
		code = DATABASE_LOCKED;
	}
	if (code) {
		database_close(database, false);
		return code;
	}
	set_lock(database->guard, F_UNLCK, SETUP_BYTE, 1);
	sqlite3_busy_timeout(database->db, BUSY_TIMEOUT_MS);
	if (is_checked)
		database_set_limits(database, limits);
	return QP_OK;
}

int database_open(struct database *database, const char *path, const struct database_limits *limits,
                  char **error)
{
	if (!database_is_in_memory(path))
		return open_with(database, path, limits, true, error);
	*database = (struct database){ .guard = -1 };
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

	/* The log restarts from its beginning after a checkpoint: it reaches half the limit plus
	 * one transaction. */
	snprintf(
		text, sizeof(text),
		"PRAGMA synchronous = %s; PRAGMA wal_autocheckpoint = %lld; PRAGMA journal_size_limit = %lld",
		limits->temporary ? "OFF" : "NORMAL", (long long)pages, (long long)limits->wal_bytes);
	sqlite3_exec(database->db, text, NULL, NULL, NULL);
}

static void close_guard(struct database *database)
{
	if (database->guard >= 0)
		close(database->guard);
	database->guard = -1;
}

void database_close(struct database *database, bool last)
{
	if (database->db) {
		if (last) {
			/* Folding back needs the file without the guard on it. */
			sqlite3_db_config(database->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
			close_guard(database);
		}
		sqlite3_close(database->db);
	}
	close_guard(database);
	*database = (struct database){ .guard = -1 };
}

bool database_is_linked(const struct database *database)
{
	struct stat status;

	return !fstat(database->guard, &status) && status.st_nlink;
}

bool database_is_at(const struct database *database, const char *path)
{
	struct stat status;

	return !stat(path, &status) && status.st_dev == database->device && status.st_ino == database->inode;
}

int database_open_reader(const char *path, sqlite3 **db, char **error)
{
	int code = open_connection(path ? path : ":memory:", SQLITE_OPEN_READWRITE, db, error);

	if (code)
		return code;
	if (!path && make_schema(*db))
		return refuse(db, "empty trace log", error);
	if (path && !database_is_in_memory(path) && upgrade_view(*db))
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
