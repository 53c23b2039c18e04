/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite maps the WAL index. If another process truncates a mapped file, the thread that reads it gets
 * SIGBUS, which would end the host. So each connection has a copy of the index in its heap, which this file
 * reads and writes with pread() and pwrite(). Other processes still map the file; the page cache is the same
 * for both.
 *
 * SQLite orders its accesses to the index by locks, which is sufficient for a copy:
 *
 *  - Acquiring a lock loads the copy. A shared lock loads the head, and the rest if the head has
 *    changed; an exclusive lock loads everything.
 *  - Before a lock is acquired or released, SQLite's changes under its exclusive locks are published.
 *    Hash tables come first and the first copy of the header comes last, so a reader that finds the
 *    new header finds the tables that belong to it.
 *
 * SQLite reads the header once without a lock, when a transaction begins. It compares that with the index
 * under its read lock, and begins again if they differ.
 *
 * If another process truncates or overwrites the index, the size, the header's checksum, or reading back the
 * published parts shows it. Then the index is invalidated, and the next transaction builds it again from the
 * log, which contains all commits.
 *
 * The locks are open file description locks, and each connection has its own description. They also exclude
 * other connections of the same process, and other processes see ordinary locks of SQLite's protocol. The
 * numbers here are those of SQLite's file format for the WAL index.
 */
#include "store/file/wal_index.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vector.h"
#include "store/file/lock_bytes.h"

#define REGION_BYTES 32768
#define PAGE_BYTES 4096

/* The head of the first region: the header twice, then the fields by which checkpoints and readers
 * communicate. */
#define HEADER_BYTES 48
#define CHECKPOINT_START 96
#define HEAD_BYTES 136

/* Attempts to load an index that another process keeps changing. */
#define LOAD_TRIES 10

#define WRITE_LOCK 0
#define OPEN_LOCK 8 /* every connection holds it; the first one finds it free */

struct region {
	unsigned char *bytes; /* SQLite's copy */
	unsigned char *known; /* the file's content when it was last read */
};

/* Consecutive publications that failed. One failure may be chance, and the index is built again. */
#define REFUSED_MOST 4

/* Placed after SQLite's own file object, which has `base->szOsFile` bytes. */
struct wal_index {
	sqlite3_io_methods methods; /* the file's own, some replaced by those below */
	int (*lock_database)(sqlite3_file *file, int level);
	const char *database; /* SQLite keeps the name while the file is open */
	int fd;               /* of the index; -1: not open */
	unsigned exclusive;   /* exclusive locks that are held, a bit each */
	bool is_stale;        /* the next load must be complete */
	unsigned refused;     /* consecutive publications that the file did not accept */
	VECTOR(struct region) regions;
};

static sqlite3_vfs *base;

static struct wal_index *index_of(sqlite3_file *file)
{
	return (struct wal_index *)((char *)file + base->szOsFile);
}

/* --- the copy and the file ----------------------------------------------------------- */

/* Bytes beyond the end of the file read as zeros, and SQLite rebuilds such an index. False: the disk fails,
 * so no index would be reliable. */
static bool read_file(const struct wal_index *index, void *to, size_t size, off_t offset)
{
	ssize_t got = pread(index->fd, to, size, offset);

	memset((char *)to + (got < 0 ? 0 : got), 0, size - (size_t)(got < 0 ? 0 : got));
	return got >= 0;
}

static bool is_short(const struct wal_index *index)
{
	struct stat status;

	return fstat(index->fd, &status) || status.st_size < (off_t)index->regions.count * REGION_BYTES;
}

static bool load_region(struct wal_index *index, size_t number)
{
	struct region *region = &index->regions.items[number];
	bool is_read = read_file(index, region->bytes, REGION_BYTES, (off_t)number * REGION_BYTES);

	memcpy(region->known, region->bytes, REGION_BYTES);
	return is_read;
}

/* A header may exist although the content after it was truncated. */
static bool read_head(const struct wal_index *index, unsigned char *head)
{
	bool is_read = read_file(index, head, HEAD_BYTES, 0);

	if (is_short(index))
		memset(head, 0, CHECKPOINT_START);
	return is_read;
}

/* False: the file cannot be read. */
static bool load(struct wal_index *index, bool all)
{
	unsigned char head[HEAD_BYTES];
	struct region *first = index->regions.items;
	bool is_read;

	if (!index->regions.count)
		return true;
	is_read = read_head(index, head);
	for (int tries = 0; all || index->is_stale || memcmp(head, first->known, CHECKPOINT_START) != 0;
	     tries++) {
		index->is_stale = all = false;
		for (size_t i = index->regions.count; i-- > 0;)
			is_read &= load_region(index, i);
		/* The previous header matches the tables, or is newer. */
		memcpy(first->bytes, head, HEAD_BYTES);
		memcpy(first->known, head, HEAD_BYTES);
		is_read &= read_head(index, head);
		if (tries == LOAD_TRIES) {
			memset(head, 0, CHECKPOINT_START);
			break;
		}
	}
	memcpy(first->bytes, head, HEAD_BYTES);
	memcpy(first->known, head, HEAD_BYTES);
	index->is_stale |= !is_read;
	return is_read;
}

static bool has_changed(const struct region *region, size_t start, size_t size)
{
	return memcmp(region->bytes + start, region->known + start, size) != 0;
}

static void publish_bytes(struct wal_index *index, size_t number, size_t start, size_t size)
{
	struct region *region = &index->regions.items[number];

	if (!has_changed(region, start, size))
		return;
	if (pwrite(index->fd, region->bytes + start, size, (off_t)number * REGION_BYTES + (off_t)start) !=
	    (ssize_t)size)
		index->is_stale = true;
	memcpy(region->known + start, region->bytes + start, size);
}

/* From the first change to the last: no other process writes here while this one has the lock. */
static void publish_hash_table(struct wal_index *index, size_t number, size_t start)
{
	struct region *region = &index->regions.items[number];
	size_t end = REGION_BYTES;

	if (!has_changed(region, start, end - start))
		return;
	while (!has_changed(region, start, 8))
		start += 8;
	while (!has_changed(region, end - 8, 8))
		end -= 8;
	publish_bytes(index, number, start, end - start);
}

/* Whether the file has the expected tables and headers. */
static bool is_as_known(const struct wal_index *index)
{
	unsigned char bytes[REGION_BYTES];

	if (is_short(index))
		return false;
	for (size_t i = 0; i < index->regions.count; i++) {
		const unsigned char *known = index->regions.items[i].known;
		size_t start = i ? 0 : HEAD_BYTES;

		if (!read_file(index, bytes, sizeof(bytes), (off_t)i * REGION_BYTES) ||
		    memcmp(bytes + start, known + start, sizeof(bytes) - start) != 0 ||
		    (!i && memcmp(bytes, known, CHECKPOINT_START) != 0))
			return false;
	}
	return true;
}

static bool has_frames_to_publish(const struct wal_index *index)
{
	bool any = has_changed(&index->regions.items[0], 0, CHECKPOINT_START) ||
	           has_changed(&index->regions.items[0], HEAD_BYTES, REGION_BYTES - HEAD_BYTES);

	for (size_t i = 1; !any && i < index->regions.count; i++)
		any = has_changed(&index->regions.items[i], 0, REGION_BYTES);
	return any;
}

/* Writes a header without a checksum, so the next connection builds the index again. */
static void invalidate(struct wal_index *index)
{
	static const unsigned char zeros[CHECKPOINT_START];

	ssize_t written = pwrite(index->fd, zeros, sizeof(zeros), 0);

	(void)written; /* a file that cannot be written is left unchanged */
	index->is_stale = true;
}

/* Only the holder of the write lock changes this part of the file. So if it differs from the known content,
 * SQLite did not change it. */
static void publish_frames(struct wal_index *index)
{
	if (!has_frames_to_publish(index))
		return;
	for (size_t i = index->regions.count; i-- > 0;)
		publish_hash_table(index, i, i ? 0 : HEAD_BYTES);
	if (is_as_known(index)) {
		publish_bytes(index, 0, HEADER_BYTES, HEADER_BYTES);
		publish_bytes(index, 0, 0, HEADER_BYTES);
		if (is_as_known(index)) {
			index->refused = 0;
			return;
		}
	}
	index->refused++;
	invalidate(index);
}

/* Fields with locks of their own, each written separately. The two that a reader uses without a lock are
 * written as 8 bytes, which the kernel copies in one step; their second half never changes. */
static const struct {
	unsigned char start, size;
} checkpoint_fields[] = { { 96, 8 }, { 104, 4 }, { 108, 4 }, { 112, 4 }, { 116, 4 }, { 128, 8 } };

static void publish(struct wal_index *index)
{
	if (!index->exclusive || !index->regions.count)
		return;
	if (index->exclusive & 1u << WRITE_LOCK)
		publish_frames(index);
	for (size_t i = 0; !index->is_stale && i < sizeof(checkpoint_fields) / sizeof(*checkpoint_fields);
	     i++)
		publish_bytes(index, 0, checkpoint_fields[i].start, checkpoint_fields[i].size);
}

/* Writes a byte in each page, so that the disk reserves space for all of them. A hole that cannot be filled
 * would raise SIGBUS in processes that map it. */
static bool extend_file(const struct wal_index *index, size_t regions)
{
	struct stat status;

	if (fstat(index->fd, &status))
		return false;
	for (off_t page = status.st_size / PAGE_BYTES; page < (off_t)regions * REGION_BYTES / PAGE_BYTES;
	     page++)
		if (pwrite(index->fd, "", 1, (page + 1) * PAGE_BYTES - 1) != 1)
			return false;
	return true;
}

/* --- opening -------------------------------------------------------------------------- */

static bool set_lock(int fd, short type, int first, int count)
{
	struct flock lock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = LOCK_BYTE_OF_INDEX + first, .l_len = count
	};

	return !fcntl(fd, F_OFD_SETLK, &lock);
}

/* The name of the index, malloc'ed. */
static char *make_name(const struct wal_index *index)
{
	char *name;

	return asprintf(&name, "%s-shm", index->database) < 0 ? NULL : name;
}

/* With the database's owner and mode, independent of the umask. -1 and errno. */
static int open_file(const struct wal_index *index, const char *name)
{
	struct stat database, status;
	int fd;

	if (stat(index->database, &database))
		return -1;
	fd = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, database.st_mode & 0777);
	if (fd < 0 || fstat(fd, &status) || status.st_size)
		return fd;
	if ((status.st_mode & 0777) != (database.st_mode & 0777))
		fchmod(fd, database.st_mode & 0777);
	if (!geteuid() && (status.st_uid != database.st_uid || status.st_gid != database.st_gid) &&
	    fchown(fd, database.st_uid, database.st_gid))
		return fd; /* the file then belongs to root */
	return fd;
}

/* The first of all processes' connections empties the file, whose content may be older than a power loss. An
 * SQLite result. */
static int attach(const struct wal_index *index)
{
	struct flock other = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_BYTE_OF_INDEX + OPEN_LOCK, .l_len = 1
	};

	if (fcntl(index->fd, F_OFD_GETLK, &other))
		return SQLITE_IOERR_LOCK;
	if (other.l_type == F_WRLCK)
		return SQLITE_BUSY;
	if (other.l_type == F_UNLCK) {
		if (!set_lock(index->fd, F_WRLCK, OPEN_LOCK, 1))
			return SQLITE_BUSY;
		if (ftruncate(index->fd, 3))
			return SQLITE_IOERR_SHMOPEN;
	}
	return set_lock(index->fd, F_RDLCK, OPEN_LOCK, 1) ? SQLITE_OK : SQLITE_BUSY;
}

static int open_index(struct wal_index *index)
{
	char *name = make_name(index);
	int code;

	if (!name)
		return SQLITE_NOMEM;
	index->fd = open_file(index, name);
	free(name);
	if (index->fd < 0)
		return SQLITE_CANTOPEN;
	code = attach(index);
	if (code) {
		close(index->fd);
		index->fd = -1;
	}
	return code;
}

static bool add_region(struct wal_index *index)
{
	struct region region = { .bytes = malloc(REGION_BYTES), .known = malloc(REGION_BYTES) };

	if (!region.bytes || !region.known || !vector_push(&index->regions, region)) {
		free(region.bytes);
		free(region.known);
		return false;
	}
	if (!load_region(index, index->regions.count - 1))
		index->is_stale = true;
	return true;
}

/* --- SQLite's methods ------------------------------------------------------------------ */

static int map(sqlite3_file *file, int number, int size, int extend, void volatile **memory)
{
	struct wal_index *index = index_of(file);
	int code = index->fd < 0 ? open_index(index) : SQLITE_OK;

	*memory = NULL;
	if (code)
		return code;
	if (size != REGION_BYTES)
		return SQLITE_MISUSE;
	if (extend && !extend_file(index, (size_t)number + 1))
		return SQLITE_IOERR_SHMSIZE;
	while (index->regions.count <= (size_t)number)
		if (!add_region(index))
			return SQLITE_NOMEM;
	*memory = index->regions.items[number].bytes;
	return SQLITE_OK;
}

static int lock(sqlite3_file *file, int first, int count, int flags)
{
	struct wal_index *index = index_of(file);
	bool exclusive = flags & SQLITE_SHM_EXCLUSIVE;
	unsigned locks = ((1u << count) - 1) << first;

	if (index->fd < 0)
		return SQLITE_IOERR_SHMLOCK;
	publish(index);
	if (flags & SQLITE_SHM_UNLOCK) {
		index->exclusive &= ~locks;
		return set_lock(index->fd, F_UNLCK, first, count) ? SQLITE_OK : SQLITE_IOERR_SHMLOCK;
	}
	/* Otherwise SQLite would rebuild the index repeatedly, for ten seconds. */
	if (exclusive && index->refused >= REFUSED_MOST) {
		index->refused = 0;
		return SQLITE_IOERR_SHMLOCK;
	}
	if (!set_lock(index->fd, exclusive ? F_WRLCK : F_RDLCK, first, count))
		return SQLITE_BUSY;
	if (exclusive && (locks & 1u << WRITE_LOCK) && is_short(index)) {
		invalidate(index);
		if (!extend_file(index, index->regions.count)) {
			set_lock(index->fd, F_UNLCK, first, count);
			return SQLITE_IOERR_SHMSIZE;
		}
	}
	if (!load(index, exclusive)) {
		set_lock(index->fd, F_UNLCK, first, count);
		return SQLITE_IOERR_SHMLOCK;
	}
	if (exclusive)
		index->exclusive |= locks;
	return SQLITE_OK;
}

/* Only this connection uses the memory, and publish() defines the order that others see. */
static void barrier(sqlite3_file *file)
{
	(void)file;
}

static int unmap(sqlite3_file *file, int remove)
{
	struct wal_index *index = index_of(file);
	char *name = remove ? make_name(index) : NULL;

	if (name)
		unlink(name);
	free(name);
	for (size_t i = 0; i < index->regions.count; i++) {
		free(index->regions.items[i].bytes);
		free(index->regions.items[i].known);
	}
	vector_free(&index->regions);
	if (index->fd >= 0)
		close(index->fd);
	index->exclusive = 0;
	index->fd = -1;
	return SQLITE_OK;
}

/* The last connection to close the database checkpoints the log without any lock on the index. */
static int lock_database(sqlite3_file *file, int level)
{
	struct wal_index *index = index_of(file);
	int code = index->lock_database(file, level);

	if (!code && level == SQLITE_LOCK_EXCLUSIVE && index->fd >= 0 && !load(index, true))
		code = SQLITE_IOERR_LOCK;
	return code;
}

static int open_database(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *out)
{
	struct wal_index *index = index_of(file);
	int code = base->xOpen(base, name, file, flags, out);

	(void)vfs;
	if (code || !(flags & SQLITE_OPEN_MAIN_DB) || file->pMethods->iVersion < 2)
		return code;
	*index = (struct wal_index){
		.methods = *file->pMethods, .lock_database = file->pMethods->xLock, .database = name, .fd = -1
	};
	index->methods.xLock = lock_database;
	index->methods.xShmMap = map;
	index->methods.xShmLock = lock;
	index->methods.xShmBarrier = barrier;
	index->methods.xShmUnmap = unmap;
	file->pMethods = &index->methods;
	return code;
}

void wal_index_register(void)
{
	static sqlite3_vfs vfs;

	base = sqlite3_vfs_find("unix");
	if (!base)
		return;
	vfs = *base; /* its other methods read only copied fields */
	vfs.zName = WAL_INDEX_VFS;
	vfs.szOsFile += (int)sizeof(struct wal_index);
	vfs.xOpen = open_database;
	vfs.pNext = NULL;
	sqlite3_vfs_register(&vfs, 0);
}
