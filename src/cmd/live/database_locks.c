/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/live/database_locks.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cmd/ui/process_files.h"
#include "store/file/lock_bytes.h"

/* --- databases --------------------------------------------------------------------------------------- */

/* An open file of the process. */
struct open_file {
	char link[64], path[PATH_MAX];
	struct stat status;
};

static bool read_descriptor(struct open_file *file, pid_t process, int number)
{
	ssize_t size;

	snprintf(file->link, sizeof(file->link), "/proc/%d/fd/%d", (int)process, number);
	size = readlink(file->link, file->path, sizeof(file->path) - 1);
	file->path[size > 0 ? size : 0] = '\0';
	return file->path[0] == '/' && stat(file->link, &file->status) == 0 && S_ISREG(file->status.st_mode);
}

/* Whether the file begins like a database, and its journal mode. */
static bool read_header(const char *path, bool *is_wal)
{
	unsigned char header[20];
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	const bool has = fd >= 0 && pread(fd, header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
	                 memcmp(header, "SQLite format 3", 16) == 0;

	if (fd >= 0)
		close(fd);
	*is_wal = has && header[18] == 2; /* the version that a writer must support */
	return has;
}

static bool is_known(const struct database_locks *locks, const struct stat *status)
{
	for (size_t i = 0; i < locks->databases.count; i++)
		if (locks->databases.items[i].device == status->st_dev &&
		    locks->databases.items[i].inode == status->st_ino)
			return true;
	return false;
}

static void add_database(struct database_locks *locks, const struct open_file *file, bool is_wal)
{
	struct open_database added = { .path = strdup(file->path),
		                       .is_wal = is_wal,
		                       .device = file->status.st_dev,
		                       .inode = file->status.st_ino };

	if (!added.path || !vector_push(&locks->databases, added))
		free(added.path);
}

static void note_index(struct database_locks *locks, const struct open_file *file)
{
	static const char suffix[] = "-shm";
	const size_t size = strlen(file->path);

	for (size_t i = 0; i < locks->databases.count; i++) {
		struct open_database *database = &locks->databases.items[i];

		if (size == strlen(database->path) + sizeof(suffix) - 1 &&
		    strncmp(file->path, database->path, strlen(database->path)) == 0 &&
		    strcmp(file->path + strlen(database->path), suffix) == 0) {
			database->index_device = file->status.st_dev;
			database->index_inode = file->status.st_ino;
		}
	}
}

/* Calls `visit` for each regular file that the process has open. */
static void visit_files(struct database_locks *locks, pid_t process,
                        void (*visit)(struct database_locks *locks, const struct open_file *file))
{
	DIR *descriptors = process_folder(process, "fd");
	struct open_file file;

	locks->is_refused = !descriptors;
	for (int number; (number = process_next(descriptors)) >= 0;)
		if (read_descriptor(&file, process, number))
			visit(locks, &file);
}

static void visit_database(struct database_locks *locks, const struct open_file *file)
{
	bool is_wal;

	if (!is_known(locks, &file->status) && read_header(file->link, &is_wal))
		add_database(locks, file, is_wal);
}

/* --- locks ---------------------------------------------------------------------------------------- */

/* A line of /proc/locks. */
struct locked_bytes {
	bool is_exclusive;
	pid_t process;
	uint64_t device, inode, first, last;
};

static bool read_line(const char *line, struct locked_bytes *bytes)
{
	char kind[16], mode[16], end[32];
	unsigned major, minor;
	unsigned long long inode, first;
	int process;

	/* The line of a waiting process has an arrow in place of the kind. */
	if (sscanf(line, "%*s %15s %*s %15s %d %x:%x:%llu %llu %31s", kind, mode, &process, &major, &minor,
	           &inode, &first, end) != 8 ||
	    (strcmp(kind, "POSIX") != 0 && strcmp(kind, "OFDLCK") != 0))
		return false;
	*bytes = (struct locked_bytes){ .is_exclusive = strcmp(mode, "WRITE") == 0,
		                        .process = process > 0 ? process : 0,
		                        .device = makedev(major, minor),
		                        .inode = inode,
		                        .first = first,
		                        .last = strcmp(end, "EOF") == 0 ? UINT64_MAX
		                                                        : strtoull(end, NULL, 10) };
	return true;
}

static bool has_byte(const struct locked_bytes *bytes, uint64_t byte)
{
	return bytes->first <= byte && byte <= bytes->last;
}

static void add_lock(struct database_locks *locks, size_t database, const struct locked_bytes *bytes,
                     enum wait_object lock)
{
	const struct database_lock added = { database, lock, bytes->is_exclusive, bytes->process };

	for (size_t i = 0; i < locks->locks.count; i++) {
		const struct database_lock *known = &locks->locks.items[i];

		if (known->database == database && known->lock == lock && known->process == added.process &&
		    known->is_exclusive == added.is_exclusive)
			return;
	}
	(void)vector_push(&locks->locks, added);
}

/* The kernel joins neighbouring bytes of one process, so a line may represent several locks; the strongest
 * counts. */
static void add_file_lock(struct database_locks *locks, size_t database, const struct locked_bytes *bytes)
{
	if (has_byte(bytes, LOCK_BYTE_SHARED))
		add_lock(locks, database, bytes, bytes->is_exclusive ? WAIT_ON_EXCLUSIVE : WAIT_ON_SHARED);
	else if (has_byte(bytes, LOCK_BYTE_PENDING) && bytes->is_exclusive)
		add_lock(locks, database, bytes, WAIT_ON_PENDING);
	else if (has_byte(bytes, LOCK_BYTE_RESERVED) && bytes->is_exclusive)
		add_lock(locks, database, bytes, WAIT_ON_RESERVED);
}

static void add_index_lock(struct database_locks *locks, size_t database, const struct locked_bytes *bytes)
{
	for (unsigned slot = 0; slot < LOCK_BYTES_OF_INDEX; slot++)
		if (has_byte(bytes, LOCK_BYTE_OF_INDEX + slot))
			add_lock(locks, database, bytes,
			         slot < 3 ? WAIT_ON_WAL_WRITE + (enum wait_object)slot : WAIT_ON_WAL_READ);
}

static void read_locks(struct database_locks *locks)
{
	FILE *file = fopen("/proc/locks", "re");
	struct locked_bytes bytes;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (!read_line(line, &bytes))
			continue;
		for (size_t i = 0; i < locks->databases.count; i++) {
			const struct open_database *database = &locks->databases.items[i];

			if (bytes.device == database->device && bytes.inode == database->inode)
				add_file_lock(locks, i, &bytes);
			else if (database->index_inode && bytes.device == database->index_device &&
			         bytes.inode == database->index_inode)
				add_index_lock(locks, i, &bytes);
		}
	}
	if (file)
		fclose(file);
}

void database_locks_read(struct database_locks *locks, pid_t process)
{
	*locks = (struct database_locks){ .is_refused = false };
	visit_files(locks, process, visit_database);
	visit_files(locks, process, note_index);
	read_locks(locks);
}

void database_locks_free(struct database_locks *locks)
{
	for (size_t i = 0; i < locks->databases.count; i++)
		free(locks->databases.items[i].path);
	vector_free(&locks->databases);
	vector_free(&locks->locks);
}
