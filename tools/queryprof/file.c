/*
 * Trace files, opened to be read and left as they are.
 *
 * A reader of a file in WAL mode needs the log's index beside it and would make
 * it. So a file that nobody writes and that has no log is opened as one that does
 * not change: then nothing is made, and a file in a folder or on a medium that
 * cannot be written can be read. Otherwise the log is read with it.
 *
 * The file may come from anybody: what it contains is data, and what its schema
 * says is not trusted.
 */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "progress.h"
#include "store/file/database.h"
#include "store/store.h"
#include "store/file/upgrade.h"
#include "trace/process_space.h"

/* --- the file's address space ------------------------------------------------- */

struct place {
	uint64_t base, extent;
	struct store_location object; /* of the base; strings are ours */
};

static struct place *places;
static size_t place_count;

static int compare_places(const void *left, const void *right)
{
	const struct place *a = left, *b = right;
	return (a->base > b->base) - (a->base < b->base);
}

/* NULL: in none. */
static const struct place *find_place(uint64_t address)
{
	size_t low = 0, high = place_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (places[middle].base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || address - places[low - 1].base >= places[low - 1].extent)
		return NULL;
	return &places[low - 1];
}

static bool locate(uint64_t address, struct store_location *location)
{
	const struct place *place = find_place(address);

	if (!place)
		return false;
	*location = place->object;
	location->offset = address - place->base;
	location->address += location->offset;
	return true;
}

bool trace_file_module(uint64_t address, struct trace_module *module)
{
	const struct place *place = find_place(address);

	if (place)
		*module = (struct trace_module){
			.path = place->object.path,
			.build_id = place->object.build_id,
			.start = place->base,
			.end = place->base + place->extent,
		};
	return place;
}

static char *copy_column(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	return strdup(text ? text : "");
}

static int read_places(sqlite3 *db)
{
	sqlite3_stmt *row;
	int code = sqlite3_prepare_v2(db,
	                              "SELECT base, extent, elf_start, path, build_id, file_size, "
	                              "mtime_ns FROM modules",
	                              -1, &row, NULL);

	while (code == SQLITE_OK && (code = sqlite3_step(row)) == SQLITE_ROW) {
		struct place *grown = reallocarray(places, place_count + 1, sizeof(*places));
		code = grown ? SQLITE_OK : SQLITE_NOMEM;
		if (!grown)
			break;
		places = grown;
		struct place *place = &places[place_count];
		*place = (struct place){
			.base = (uint64_t)sqlite3_column_int64(row, 0),
			.extent = (uint64_t)sqlite3_column_int64(row, 1),
			.object = { .address = (uint64_t)sqlite3_column_int64(row, 2),
			            .path = copy_column(row, 3),
			            .build_id = copy_column(row, 4),
			            .file_size = (uint64_t)sqlite3_column_int64(row, 5),
			            .mtime_ns = sqlite3_column_int64(row, 6) },
		};
		place_count++;
		if (!place->object.path || !place->object.build_id)
			code = SQLITE_NOMEM;
	}
	sqlite3_finalize(row);
	if (place_count)
		qsort(places, place_count, sizeof(*places), compare_places);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static void forget_places(void)
{
	for (size_t i = 0; i < place_count; i++) {
		free((char *)places[i].object.path);
		free((char *)places[i].object.build_id);
	}
	free(places);
	places = NULL;
	place_count = 0;
}

/* --- opening ------------------------------------------------------------------ */

/* Whether a process has the file open in WAL mode: it then holds SQLite's shared
 * lock on it, a range past the first gigabyte. */
static bool is_in_use(const char *path)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000002, .l_len = 510 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool used = fd < 0 || fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;

	if (fd >= 0)
		close(fd);
	return used;
}

static bool has_log(const char *path)
{
	struct stat status;
	char *log = sqlite3_mprintf("%s-wal", path);
	bool has = log && stat(log, &status) == 0 && status.st_size > 0;

	sqlite3_free(log);
	return has;
}

static int open_connection(const char *path, sqlite3 **db)
{
	/* As an URI, in which some characters of the path have a meaning. */
	sqlite3_str *uri = sqlite3_str_new(NULL);

	sqlite3_str_appendall(uri, "file:");
	for (const char *at = path; *at; at++)
		if (strchr("%?#", *at))
			sqlite3_str_appendf(uri, "%%%02x", *at);
		else
			sqlite3_str_appendchar(uri, 1, *at);
	sqlite3_str_appendall(uri, "?mode=ro");
	if (!is_in_use(path) && !has_log(path))
		sqlite3_str_appendall(uri, "&immutable=1");
	char *text = sqlite3_str_finish(uri);
	int code = text ? sqlite3_open_v2(text, db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, "unix")
	                : SQLITE_NOMEM;
	sqlite3_free(text);
	if (code == SQLITE_OK) {
		sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
		sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
		sqlite3_exec(*db, "PRAGMA cell_size_check = 1", NULL, NULL, NULL);
		sqlite3_busy_timeout(*db, 5000);
	}
	return code;
}

/* False after a complaint. */
static bool check_identity(sqlite3 *db, const char *path)
{
	int64_t application, version;

	application = database_number(db, "PRAGMA application_id", -1);
	if (application < 0) {
		complain("%s: %s", path, sqlite3_errmsg(db));
		return false;
	}
	if (application != STORE_APPLICATION_ID) {
		complain("%s: not a trace file of queryprof's", path);
		return false;
	}
	version = database_number(db, "PRAGMA user_version", 0);
	if (version > STORE_SCHEMA_VERSION) {
		complain("%s: written by a newer queryprof (format %lld, this one reads up to %d)", path,
		         (long long)version, STORE_SCHEMA_VERSION);
		return false;
	}
	if (version < STORE_SCHEMA_VERSION && upgrade_view(db) != SQLITE_OK) {
		complain("%s: %s", path, sqlite3_errmsg(db));
		return false;
	}
	return true;
}

sqlite3 *trace_file_open(const char *path)
{
	struct stat status;
	sqlite3 *db = NULL;
	char *error = NULL;

	if (stat(path, &status) != 0) {
		complain("%s: %s", path, strerror(errno));
		return NULL;
	}
	if (!S_ISREG(status.st_mode)) {
		complain("%s: not a file", path);
		return NULL;
	}
	if (open_connection(path, &db) != SQLITE_OK) {
		complain("%s: %s", path, sqlite3_errmsg(db));
	} else if (!check_identity(db, path)) {
		/* has complained */
	} else if (read_places(db) != SQLITE_OK) {
		complain("%s: %s", path, sqlite3_errmsg(db));
	} else if (trace_functions_add(db, &error) != SQLITE_OK) {
		complain("%s", error ? error : "out of memory");
	} else if (trace_names_open(db) != SQLITE_OK || trace_frames_add(db) != SQLITE_OK) {
		complain("%s: %s", path, sqlite3_errmsg(db));
	} else {
		address_use_locator(locate);
		progress_watch(db);
		return db;
	}
	sqlite3_free(error);
	trace_file_close(db);
	return NULL;
}

void trace_file_close(sqlite3 *db)
{
	trace_names_close();
	sqlite3_close(db);
	trace_functions_free();
	address_use_locator(NULL);
	forget_places();
}
