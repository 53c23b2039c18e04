/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/push/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "sql_span_texts.h"
#include "store/file/database.h"
#include "store/file/schema.h"

struct push_files push_files;

/* --- how they look ---------------------------------------------------------------- */

/* False: the file does not exist or cannot be seen; errno. */
static bool inspect(const char *path, struct push_sight *sight)
{
	struct stat status, log_status;
	char *log = trace_file_log(path);
	bool has_log = log && stat(log, &log_status) == 0;

	free(log);
	*sight = (struct push_sight){ .inode = 0 };
	if (stat(path, &status) != 0)
		return false;
	/* Not if the log's rights changed: SQLite sets its owner at each opening, if root opens it. */
	*sight = (struct push_sight){
		.device = (int64_t)status.st_dev,
		.inode = (int64_t)status.st_ino,
		.size = status.st_size,
		.changed_ns = (int64_t)ns_of_timespec(status.st_ctim), /* also where its rights change */
		.log_size = has_log ? log_status.st_size : 0,
		.log_changed_ns = has_log ? (int64_t)ns_of_timespec(log_status.st_mtim) : 0,
	};
	return true;
}

static bool is_same(const struct push_sight *one, const struct push_sight *other)
{
	return memcmp(one, other, sizeof(*one)) == 0;
}

/* --- opening ---------------------------------------------------------------------- */

static void close_file(struct push_file *file)
{
	if (!file->db)
		return;
	push_stacks_end(&file->stacks);
	trace_file_close(file->db);
	file->db = NULL;
}

static void close_state(struct push_file *file)
{
	if (file->has_state)
		push_state_close(&file->state);
	file->has_state = false;
}

static int64_t newest_name(const struct push_file *file)
{
	return database_number(file->db, "SELECT max(id) FROM names", 0);
}

/* If no process wrote to a file when it was opened, SQLite does not check it again, although another file
 * may have its name now. Stacks that were read before names were added have no names. */
static bool must_reopen(const struct push_file *file, const struct push_sight *now)
{
	return now->inode != file->seen.inode || now->device != file->seen.device ||
	       (trace_file_is_immutable(file->db) ? !is_same(now, &file->seen)
	                                          : newest_name(file) != file->newest_name);
}

int push_files_open(struct push_file *file)
{
	struct push_sight now;
	bool is_there = inspect(file->path, &now);

	if (!is_there && errno == ENOENT && (file->db || file->is_removed || file->is_of_folder)) {
		file->is_removed = true;
		return COMMAND_FINE;
	}
	if (!is_there)
		return trace_file_complain(file->path);
	file->is_removed = false;
	if (file->db && must_reopen(file, &now))
		close_file(file);
	file->seen = now;
	if (file->db)
		return COMMAND_FINE;
	file->db = trace_file_open(file->path);
	if (!file->db)
		return COMMAND_FAILED;
	file->newest_name = newest_name(file);
	if (sqlite3_exec(file->db, sql_span_texts, NULL, NULL, NULL) != SQLITE_OK)
		complain("%s: %s", file->path, sqlite3_errmsg(file->db));
	else if (push_stacks_begin(&file->stacks, file->db, trace_file_space(file->db)))
		return COMMAND_FINE;
	trace_file_close(file->db);
	file->db = NULL;
	return COMMAND_FAILED;
}

void push_files_close_removed(struct push_file *file)
{
	if (!file->is_removed)
		return;
	close_file(file);
	close_state(file);
}

/* --- those that cannot be read ---------------------------------------------------- */

bool push_files_is_skipped(struct push_file *file)
{
	struct push_sight now;

	if (file->is_skipped) {
		inspect(file->path, &now);
		file->is_skipped = is_same(&now, &file->seen);
	}
	return file->is_skipped;
}

void push_files_skip(struct push_file *file, char *failure, bool is_followed)
{
	if (!file->failure || !failure || strcmp(file->failure, failure) != 0)
		complain("%s%s", failure ? failure : "out of memory",
		         is_followed ? " (skipped until it changes)" : "");
	free(file->failure);
	file->failure = failure;
	file->is_skipped = true;
	close_file(file);
}

void push_files_is_read(struct push_file *file)
{
	free(file->failure);
	file->failure = NULL;
}

bool push_files_has_bad(void)
{
	for (size_t i = 0; i < push_files.list.count; i++)
		if (push_files.list.items[i].is_skipped)
			return true;
	return false;
}

bool push_files_has_sound(void)
{
	for (size_t i = 0; i < push_files.list.count; i++)
		if (!push_files.list.items[i].is_skipped)
			return true;
	return push_files.folders.count > 0;
}

/* --- which there are -------------------------------------------------------------- */

/* Not of files that are open here, because closing one would drop SQLite's locks. */
static bool is_trace_file(const char *path)
{
	char head[16] = "", *uri = NULL;
	struct stat status;
	int fd = regular_file_open(path, &status);
	bool is_one = fd >= 0 && read(fd, head, sizeof(head)) == sizeof(head) &&
	              !memcmp(head, "SQLite format 3", sizeof(head));
	sqlite3 *db = NULL;

	if (fd >= 0)
		close(fd);
	if (is_one && (uri = trace_file_uri(path)))
		is_one = sqlite3_open_v2(uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, "unix") ==
		                 SQLITE_OK &&
		         database_number(db, "PRAGMA application_id", 0) == STORE_APPLICATION_ID;
	sqlite3_free(uri);
	sqlite3_close(db);
	return is_one;
}

static bool is_known(const char *path)
{
	for (size_t i = 0; i < push_files.list.count; i++)
		if (!strcmp(push_files.list.items[i].path, path))
			return true;
	return false;
}

/* False: no memory. */
static bool add_path(const char *path, bool is_of_folder)
{
	struct push_file *file;
	char *copy;

	if (is_known(path))
		return true;
	copy = strdup(path);
	file = copy ? vector_add(&push_files.list) : NULL;
	if (!file) {
		free(copy);
		return false;
	}
	file->path = copy;
	file->is_of_folder = is_of_folder;
	file->state.fd = -1;
	return true;
}

/* False: no memory. */
static bool add_folder(const char *folder)
{
	DIR *entries = opendir(folder);
	struct dirent *entry;
	bool fine = true;

	while (fine && entries && (entry = readdir(entries))) {
		char *path = text_format("%s/%s", folder, entry->d_name);

		fine = path && (is_known(path) || !is_trace_file(path) || add_path(path, true));
		free(path);
	}
	if (entries)
		closedir(entries);
	return fine;
}

int push_files_acquire(int count, char **paths)
{
	struct stat status;

	for (int i = 0; i < count; i++) {
		if (stat(paths[i], &status) != 0)
			return trace_file_complain(paths[i]);
		if (S_ISDIR(status.st_mode) ? !vector_push(&push_files.folders, paths[i])
		                            : !add_path(paths[i], false))
			return complain("out of memory");
	}
	return COMMAND_FINE;
}

static void free_file(struct push_file *file)
{
	close_file(file);
	close_state(file);
	free(file->failure);
	free(file->path);
}

static void forget_removed(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < push_files.list.count; i++) {
		struct push_file *file = &push_files.list.items[i];

		if (file->is_removed && file->is_of_folder && !file->db)
			free_file(file);
		else
			push_files.list.items[kept++] = *file;
	}
	push_files.list.count = kept;
}

bool push_files_scan(void)
{
	forget_removed();
	for (size_t i = 0; i < push_files.folders.count; i++)
		if (!add_folder(push_files.folders.items[i]))
			return false;
	return true;
}

void push_files_free(void)
{
	for (size_t i = 0; i < push_files.list.count; i++)
		free_file(&push_files.list.items[i]);
	vector_free(&push_files.list);
	vector_free(&push_files.folders);
}
