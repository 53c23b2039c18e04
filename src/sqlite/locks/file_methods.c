/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/locks/file_methods.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/own_calls.h"
#include "hook/hook.h"
#include "sqlite/locks/locks.h"
#include "sqlite/locks/wal.h"
#include "sqlite/pages/page_io.h"

#define TABLES_MAX 8 /* two a library */

LOCK_DEFINE(lock, LOCK_DATABASE_METHODS, .at_fork = LOCK_LEFT);
static struct file_methods tables[TABLES_MAX];

/* --- reads and writes -------------------------------------------------------------------- */

static inline int read_with(const struct file_methods *real, sqlite3_file *file, void *data, int amount,
                            sqlite3_int64 offset)
{
	const int rc = real->read(file, data, amount, offset);

	if (rc == SQLITE_OK && page_io_is_seen())
		page_io_see_read(file, data, amount, offset);
	return rc;
}

static inline int write_with(const struct file_methods *real, sqlite3_file *file, const void *data,
                             int amount, sqlite3_int64 offset)
{
	const int rc = __builtin_expect(wal_is_watched(thread_current, amount), 0)
	                       ? wal_write(file, data, amount, offset, real->write)
	                       : real->write(file, data, amount, offset);

	if (rc == SQLITE_OK && page_io_is_seen())
		page_io_see_write(file, data, amount, offset);
	return rc;
}

/* --- tables ------------------------------------------------------------------------------ */

/* Each method knows its table, because a file's own table may be a copy. */
#define METHODS(number)                                                                                      \
	static int queryprof_lock_##number(sqlite3_file *file, int level)                                    \
	{                                                                                                    \
		return locks_lock_with(&tables[number], file, level);                                        \
	}                                                                                                    \
	static int queryprof_unlock_##number(sqlite3_file *file, int level)                                  \
	{                                                                                                    \
		return locks_unlock_with(&tables[number], file, level);                                      \
	}                                                                                                    \
	static int queryprof_shm_lock_##number(sqlite3_file *file, int first, int count, int flags)          \
	{                                                                                                    \
		return locks_shm_lock_with(&tables[number], file, first, count, flags);                      \
	}                                                                                                    \
	static int queryprof_close_##number(sqlite3_file *file)                                              \
	{                                                                                                    \
		return locks_close_with(&tables[number], file);                                              \
	}                                                                                                    \
	static int queryprof_shm_unmap_##number(sqlite3_file *file, int removes)                             \
	{                                                                                                    \
		return locks_shm_unmap_with(&tables[number], file, removes);                                 \
	}                                                                                                    \
	static int queryprof_read_##number(sqlite3_file *file, void *data, int amount, sqlite3_int64 offset) \
	{                                                                                                    \
		return read_with(&tables[number], file, data, amount, offset);                               \
	}                                                                                                    \
	static int queryprof_write_##number(sqlite3_file *file, const void *data, int amount,                \
	                                    sqlite3_int64 offset)                                            \
	{                                                                                                    \
		return write_with(&tables[number], file, data, amount, offset);                              \
	}                                                                                                    \
	static int queryprof_truncate_##number(sqlite3_file *file, sqlite3_int64 size)                       \
	{                                                                                                    \
		return locks_truncate_with(&tables[number], file, size);                                     \
	}                                                                                                    \
	static int queryprof_sync_##number(sqlite3_file *file, int flags)                                    \
	{                                                                                                    \
		return locks_sync_with(&tables[number], file, flags);                                        \
	}
METHODS(0)
METHODS(1)
METHODS(2)
METHODS(3)
METHODS(4)
METHODS(5)
METHODS(6)
METHODS(7)

#define OURS(number)                                                                                         \
	{                                                                                                    \
		NULL, queryprof_close_##number, queryprof_lock_##number, queryprof_unlock_##number,          \
			queryprof_shm_lock_##number, queryprof_shm_unmap_##number, queryprof_read_##number,  \
			queryprof_write_##number, queryprof_truncate_##number, queryprof_sync_##number       \
	}
static const struct file_methods ours[TABLES_MAX] = { OURS(0), OURS(1), OURS(2), OURS(3),
	                                              OURS(4), OURS(5), OURS(6), OURS(7) };

bool file_methods_see_unmap(const struct file_methods *real, const sqlite3_file *file)
{
	return real->shm_unmap && file->pMethods->xShmUnmap == ours[real - tables].shm_unmap;
}

/* All that is replaced in a table, with these methods. Returns the number. When a file is closed, its entry
 * must be removed first, so this comes first. */
#define SLOTS 9
static int slots_of(const sqlite3_io_methods *table, const struct file_methods *methods,
                    struct hook_slot slots[SLOTS])
{
	const struct hook_slot all[SLOTS] = {
		{ (void **)(uintptr_t)&table->xClose, (void *)methods->close },
		{ (void **)(uintptr_t)&table->xUnlock, (void *)methods->unlock },
		{ (void **)(uintptr_t)&table->xLock, (void *)methods->lock },
		{ (void **)(uintptr_t)&table->xRead, (void *)methods->read },
		{ (void **)(uintptr_t)&table->xWrite, (void *)methods->write },
		{ (void **)(uintptr_t)&table->xTruncate, (void *)methods->truncate },
		{ (void **)(uintptr_t)&table->xSync, (void *)methods->sync },
		{ (void **)(uintptr_t)&table->xShmUnmap, (void *)methods->shm_unmap },
		{ (void **)(uintptr_t)&table->xShmLock, (void *)methods->shm_lock },
	};

	memcpy(slots, all, sizeof(all));
	return table->iVersion >= 2 && table->xShmLock ? SLOTS : SLOTS - 2;
}

static bool is_replaced(const struct hook_slot *slots, int count)
{
	for (int i = 0; i < count; i++)
		if (*slots[i].at != slots[i].value)
			return false;
	return true;
}

/* Once an entry is used, the real methods are never read again: if a slot could not be written, or
 * in the child of a fork in between, some of them are already replaced. NULL: nothing had
 * to be done. */
static const struct file_methods *replace(const sqlite3_io_methods *table)
{
	struct hook_slot slots[SLOTS];
	int i = 0, count;

	while (i < TABLES_MAX && tables[i].table && tables[i].table != table)
		i++;
	if (i == TABLES_MAX)
		return NULL;
	if (!tables[i].table) {
		tables[i] = (struct file_methods){ NULL,
			                           table->xClose,
			                           table->xLock,
			                           table->xUnlock,
			                           table->iVersion >= 2 ? table->xShmLock : NULL,
			                           table->iVersion >= 2 ? table->xShmUnmap : NULL,
			                           table->xRead,
			                           table->xWrite,
			                           table->xTruncate,
			                           table->xSync };
		/* After the methods, also for the child of a fork. */
		__atomic_store_n(&tables[i].table, table, __ATOMIC_RELEASE);
	}
	count = slots_of(table, &ours[i], slots);
	if (is_replaced(slots, count))
		return NULL;
	hook_try_set(slots, count);
	return &tables[i];
}

/* The words of a table that SQLite's tables have in common. */
static bool is_like(const sqlite3_io_methods *one, const struct file_methods *real,
                    const sqlite3_io_methods *other)
{
	return one->iVersion >= 1 && one->iVersion <= 3 && one->xRead == real->read &&
	       one->xWrite == real->write && one->xTruncate == real->truncate && one->xSync == real->sync &&
	       one->xFileSize == other->xFileSize && one->xSectorSize == other->xSectorSize;
}

/*
 * SQLite defines the table for files without locks next to the one for databases. It is replaced before the
 * first of these files is opened, whose pointer is not known earlier. The kernel copies the memory around a
 * table, of which nothing else is known.
 */
static const sqlite3_io_methods *find_without_locks(const struct file_methods *real)
{
	enum { AROUND = 64, WORDS = 2 * AROUND + sizeof(sqlite3_io_methods) / sizeof(void *) };
	void *const *table = (void *const *)real->table;
	void *copy[WORDS];
	const struct iovec local = { copy, sizeof(copy) };
	const struct iovec remote = { (void *)(uintptr_t)(table - AROUND), sizeof(copy) };
	const int saved_errno = errno;
	const bool is_read = !own_call_is_forbidden(SYS_process_vm_readv) &&
	                     process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)sizeof(copy);

	errno = saved_errno;
	for (int distance = 1; is_read && distance <= AROUND; distance++)
		for (int sign = 1; sign >= -1; sign -= 2) {
			sqlite3_io_methods candidate;

			memcpy(&candidate, &copy[AROUND + sign * distance], sizeof(candidate));
			if (is_like(&candidate, real, real->table))
				return (const sqlite3_io_methods *)(table + sign * distance);
		}
	return NULL;
}

bool file_methods_replace(const struct session *session, const sqlite3_file *file)
{
	const struct file_methods *real;
	const sqlite3_io_methods *other;

	if (!file->pMethods || !host_is_within(session->library, file->pMethods))
		return false;
	lock_acquire(&lock);
	if ((real = replace(file->pMethods)) && (other = find_without_locks(real)))
		replace(other);
	lock_release(&lock);
	return true;
}

void file_methods_restore(void)
{
	lock_acquire(&lock);
	for (int i = 0; i < TABLES_MAX && tables[i].table; i++) {
		const sqlite3_io_methods *table = tables[i].table;
		struct hook_slot slots[SLOTS];

		if (!is_replaced(slots, slots_of(table, &ours[i], slots)))
			continue;
		hook_try_set(slots, slots_of(table, &tables[i], slots));
	}
	lock_release(&lock);
}
