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
#include "sqlite/library/host.h"
#include "sqlite/locks/lock_holders.h"
#include "sqlite/locks/locks.h"
#include "sqlite/locks/opened_files.h"
#include "sqlite/locks/wal.h"
#include "sqlite/pages/page_io.h"

#define TABLES_MAX 8 /* two a library */

/* Replacing takes the lock of dl_iterate_phdr(), and the host's callback of that may open a database: a
 * thread that opens one does not wait for this lock. The next file or session tries again. */
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

/* The slots of a table that have a method of `from`, which one of `to` will replace: what the host has put
 * there remains. Returns the number. When a file is closed, its entry must be removed first, so this comes
 * first. */
#define SLOTS 9
static int slots_of(const sqlite3_io_methods *table, const struct file_methods *from,
                    const struct file_methods *to, struct hook_slot slots[SLOTS])
{
	const struct hook_slot all[SLOTS] = {
		{ (void **)(uintptr_t)&table->xClose, (void *)from->close, (void *)to->close },
		{ (void **)(uintptr_t)&table->xUnlock, (void *)from->unlock, (void *)to->unlock },
		{ (void **)(uintptr_t)&table->xLock, (void *)from->lock, (void *)to->lock },
		{ (void **)(uintptr_t)&table->xRead, (void *)from->read, (void *)to->read },
		{ (void **)(uintptr_t)&table->xWrite, (void *)from->write, (void *)to->write },
		{ (void **)(uintptr_t)&table->xTruncate, (void *)from->truncate, (void *)to->truncate },
		{ (void **)(uintptr_t)&table->xSync, (void *)from->sync, (void *)to->sync },
		{ (void **)(uintptr_t)&table->xShmUnmap, (void *)from->shm_unmap, (void *)to->shm_unmap },
		{ (void **)(uintptr_t)&table->xShmLock, (void *)from->shm_lock, (void *)to->shm_lock },
	};
	const int most = table->iVersion >= 2 && table->xShmLock ? SLOTS : SLOTS - 2;
	int count = 0;

	for (int i = 0; i < most; i++)
		if (*all[i].at == all[i].was)
			slots[count++] = all[i];
	return count;
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
	count = slots_of(table, &tables[i], &ours[i], slots);
	if (!count)
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

bool file_methods_replace(const struct host_library *library, const sqlite3_file *file)
{
	const struct file_methods *real;
	const sqlite3_io_methods *other;

	if (!file->pMethods || !host_is_within(library, file->pMethods))
		return false;
	if (!lock_try(&lock))
		return true;
	if ((real = replace(file->pMethods)) && (other = find_without_locks(real)))
		replace(other);
	lock_release(&lock);
	return true;
}

static const struct file_methods *table_of(const sqlite3_io_methods *table)
{
	for (int i = 0; table && i < TABLES_MAX; i++)
		if (__atomic_load_n(&tables[i].table, __ATOMIC_ACQUIRE) == table)
			return &tables[i];
	return NULL;
}

bool file_methods_are_alike(const sqlite3_file *database, const sqlite3_file *journal)
{
	const struct file_methods *one = table_of(database->pMethods), *other = table_of(journal->pMethods);

	return one && journal->pMethods && one->read == (other ? other->read : journal->pMethods->xRead);
}

/* --- opening files ----------------------------------------------------------------------- */

#define VFSES 4

typedef int (*open_function)(sqlite3_vfs *, const char *, sqlite3_file *, int, int *);

/* Of a library: its VFSes of the kernel's files, which have one function, and the function. */
static struct opening {
	open_function real;
	sqlite3_vfs *vfses[VFSES];
} openings[HOST_LIBRARIES_MAX];

static int open_with(int number, sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
	const int rc = openings[number].real(vfs, name, file, flags, out);
	const int saved_errno = errno;

	if (rc == SQLITE_OK && file_methods_replace(&host_libraries[number], file)) {
		/* The file before it in the same memory may have been closed without being seen. */
		wal_see_close(file);
		page_io_see_open(file);
		lock_file_remove(file);
		opened_files_see(file, name, flags);
	}
	errno = saved_errno;
	return rc;
}

#define OPEN(number)                                                                                         \
	static int queryprof_open_##number(sqlite3_vfs *vfs, const char *name, sqlite3_file *file,           \
	                                   int flags, int *out)                                              \
	{                                                                                                    \
		return open_with(number, vfs, name, file, flags, out);                                       \
	}
OPEN(0)
OPEN(1)
OPEN(2)
OPEN(3)
static const open_function opens[HOST_LIBRARIES_MAX] = { queryprof_open_0, queryprof_open_1, queryprof_open_2,
	                                                 queryprof_open_3 };
_Static_assert(HOST_LIBRARIES_MAX == 4, "a function for each library");

/* Under the lock. The host may set a function of its own, which remains. */
static void set_open(const struct opening *opening, open_function expected, open_function value)
{
	for (int i = 0; i < VFSES && opening->vfses[i]; i++) {
		const struct hook_slot slot = { (void **)(uintptr_t)&opening->vfses[i]->xOpen,
			                        (void *)expected, (void *)value };

		if (opening->vfses[i]->xOpen == expected)
			hook_try_set(&slot, 1);
	}
}

static void find_opening(const struct host_library *library, struct opening *found)
{
	static const char *const names[VFSES] = { "unix", "unix-excl", "unix-dotfile", "unix-none" };
	int count = 0;

	/* SQLite never frees them. It looks them up under a mutex of its own. */
	host_enter_statics();
	for (int i = 0; i < VFSES; i++) {
		sqlite3_vfs *vfs = sqlite3_vfs_find(names[i]);

		if (!vfs || !host_is_within(library, vfs) ||
		    !host_is_within(library, (void *)(uintptr_t)vfs->xOpen) ||
		    (count && vfs->xOpen != found->real))
			continue;
		found->real = vfs->xOpen;
		found->vfses[count++] = vfs;
	}
	host_leave_statics();
}

void file_methods_replace_open(const struct host_library *library)
{
	const int number = (int)(library - host_libraries);
	struct opening *opening = &openings[number], found = { 0 };

	/* Acquire: with the store below. */
	if (!__atomic_load_n(&opening->real, __ATOMIC_ACQUIRE))
		find_opening(library, &found);
	if (!lock_try(&lock))
		return;
	if (!opening->real && found.real) {
		memcpy(opening->vfses, found.vfses, sizeof(found.vfses));
		__atomic_store_n(&opening->real, found.real, __ATOMIC_RELEASE);
	}
	if (opening->real)
		set_open(opening, opening->real, opens[number]);
	lock_release(&lock);
}

void file_methods_restore(void)
{
	lock_acquire(&lock);
	for (int i = 0; i < HOST_LIBRARIES_MAX; i++)
		if (openings[i].real)
			set_open(&openings[i], opens[i], openings[i].real);
	for (int i = 0; i < TABLES_MAX && tables[i].table; i++) {
		const sqlite3_io_methods *table = tables[i].table;
		struct hook_slot slots[SLOTS];
		const int count = slots_of(table, &ours[i], &tables[i], slots);

		if (count)
			hook_try_set(slots, count);
	}
	lock_release(&lock);
}
