/* SPDX-License-Identifier: Apache-2.0 */
#include "store/file/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "queryprof.h"
#include "store/file/lock_bytes.h"
#include "store/file/schema.h"

/* While another process has the file locked. */
enum { NAPS_SETUP = 1000, NAPS_GUARD = 250 };

static uint32_t read_big_endian(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* A database of one page without tables, id and version. Setting auto_vacuum leaves such a file, and so does
 * an unfinished copy of the image. The caller checks again before it uses the file. */
static bool is_blank(const unsigned char *header, off_t size)
{
	off_t page = (off_t)header[16] << 8 | header[17];
	bool is_one_page = size == (page == 1 ? 65536 : page) || read_big_endian(header + 28) == 1;

	return is_one_page && !read_big_endian(header + 60) && !read_big_endian(header + 68);
}

/* Reads only the header, because opening a file with SQLite may already change files next to it. An empty
 * file may become a trace file. */
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
	return schema_check_identity(path, read_big_endian(header + 68), read_big_endian(header + 60), error);
}

/* After all bytes that SQLite locks or could write. */
#define SETUP_BYTE ((off_t)1 << 62)

/* `type` as for fcntl(). 0, or errno; EAGAIN if another process has a conflicting lock. */
static int set_lock(int fd, short type, off_t start, off_t size)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = size };

	if (!fcntl(fd, F_OFD_SETLK, &lock))
		return 0;
	return errno == EACCES ? EAGAIN : errno;
}

/* Processes that open one file together do it one after the other. A half-made file looks like another
 * program's, and only a process that has the file for itself can change its journal mode. False: another
 * process has not finished in time. */
static bool lock_setup(int fd, const struct contention_limit *limit)
{
	for (int naps = 0; set_lock(fd, F_WRLCK, SETUP_BYTE, 1) == EAGAIN; naps++)
		if (!contention_nap(limit, naps, NAPS_SETUP))
			return false;
	return true; /* locked, or the file system has no such locks: continue without */
}

/* Other users could put a file at the path, or next to it, and read it while it grows. Root's files are
 * accepted, because root can read everything. */
static int check_owners(const char *path, const struct stat *status, char **error)
{
	static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
	char *real = realpath(path, NULL); /* if `path` is a link, SQLite's files are next to the target */
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

int guard_open(struct guard *guard, const char *path, const struct contention_limit *limit, char **error)
{
	const int flags = O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	struct stat status;
	int fd, code;

	fd = open(path, flags | O_CREAT | O_EXCL, 0600);
	if (fd >= 0)
		fchmod(fd, 0600); /* independent of the umask */
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
	} else if (!lock_setup(fd, limit)) {
		*error = text_format("%s: locked by another process", path);
		code = DATABASE_LOCKED;
	} else {
		if (fstat(fd, &status)) /* the size, now that no other process can be making it */
			status.st_size = 0;
		code = check_header(fd, status.st_size, path, error);
	}
	if (code) {
		close(fd);
		return code;
	}
	if (status.st_mode & 077)
		fchmod(fd, status.st_mode & 0700); /* it will contain texts of queries */
	*guard = (struct guard){ .fd = fd, .device = status.st_dev, .inode = status.st_ino };
	return QP_OK;
}

bool guard_lock(const struct guard *guard, const struct contention_limit *limit)
{
	/* A process that closes the file as its last user locks it for a moment. */
	int naps = 0, error;

	while ((error = set_lock(guard->fd, F_RDLCK, LOCK_BYTE_SHARED, LOCK_BYTES_SHARED)) == EAGAIN &&
	       contention_nap(limit, naps++, NAPS_GUARD))
		;
	return error == 0 || error == EINVAL || error == ENOLCK; /* no such locks here: continue without */
}

void guard_end_setup(const struct guard *guard)
{
	set_lock(guard->fd, F_UNLCK, SETUP_BYTE, 1);
}

void guard_close(struct guard *guard)
{
	if (guard->fd >= 0)
		close(guard->fd);
	*guard = GUARD_CLOSED;
}

bool guard_is_linked(const struct guard *guard)
{
	struct stat status;

	return !fstat(guard->fd, &status) && status.st_nlink;
}

bool guard_is_at(const struct guard *guard, const char *path)
{
	struct stat status;

	return !stat(path, &status) && status.st_dev == guard->device && status.st_ino == guard->inode;
}
