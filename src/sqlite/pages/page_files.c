/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/pages/page_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/lock.h"
#include "base/pointer_slots.h"
#include "sqlite/locks/lock_holders.h"
#include "sqlite/locks/opened_files.h"
#include "sqlite/pages/page_memory.h"

LOCK_DEFINE(lock, LOCK_PAGE_FILES);

/* --- databases ----------------------------------------------------------------------------------- */

/* Under the lock. A place that is not used: the last connection has closed it, and all sums were written. */
static struct page_database *take_place(struct page_files *files)
{
	struct page_database **unused = NULL;

	for (uint32_t i = 0; i < PAGE_DATABASES; i++) {
		struct page_database *database = files->databases[i];

		if (!database)
			return files->databases[i] = page_memory_allocate(sizeof(*database));
		if (!database->files && !__atomic_load_n(&database->sums, __ATOMIC_ACQUIRE))
			unused = &files->databases[i];
	}
	return unused ? *unused : NULL;
}

static struct page_database *find_database(const struct page_files *files, const struct stat *identity,
                                           const char *path)
{
	for (uint32_t i = 0; i < PAGE_DATABASES && files->databases[i]; i++) {
		struct page_database *database = files->databases[i];

		if (database->inode == (uint64_t)identity->st_ino &&
		    database->device == (uint64_t)identity->st_dev && !strcmp(database->path, path))
			return database;
	}
	return NULL;
}

/* Under the lock. */
static struct page_database *open_database(struct page_files *files, const struct stat *identity,
                                           const char *path)
{
	struct page_database *database = find_database(files, identity, path);

	if (!database && (database = take_place(files))) {
		database->device = identity->st_dev;
		database->inode = identity->st_ino;
		database->path_size = (uint32_t)strlen(path);
		memcpy(database->path, path, database->path_size + 1);
	}
	/* Another file may have got this one's number meanwhile, and a connection that opens it reads all
	 * anew. */
	if (database && !database->files) {
		__atomic_store_n(&database->page_size, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&database->life, database->life + 1, __ATOMIC_RELAXED);
		page_owners_forget(&database->owners,
		                   __atomic_load_n(&database->sums, __ATOMIC_ACQUIRE) != 0);
	}
	return database;
}

/* Under the lock. */
static void add_wals(struct page_database *database, int number)
{
	__atomic_store_n(&database->wals, database->wals + (uint32_t)number, __ATOMIC_RELAXED);
}

/* --- files --------------------------------------------------------------------------------------- */

/* Whether the path leads to the file that is open, and not to one that has taken its place. */
static bool identify(const sqlite3_file *database_file, const char *path, struct stat *identity)
{
	const int saved_errno = errno;
	sqlite3_file *open = (sqlite3_file *)database_file;
	int has_moved = 0;
	bool is_known = path && *path && strlen(path) < PAGE_PATH_BYTES;

	/* SQLite's method acquires no mutex for it. */
	if (is_known && open && open->pMethods)
		open->pMethods->xFileControl(open, SQLITE_FCNTL_HAS_MOVED, &has_moved);
	is_known = is_known && !has_moved && !stat(path, identity);
	errno = saved_errno;
	return is_known;
}

/* `database_file`: NULL: not known. A file whose database is not known, and remains so, has the role OTHER.
 */
static struct page_file *add(struct page_files *files, sqlite3_file *file, enum page_file_role role,
                             const sqlite3_file *database_file, const char *path)
{
	struct stat identity;
	/* Before the lock, because a file system may not answer. */
	const bool is_known = role != PAGE_FILE_OTHER && identify(database_file, path, &identity);
	struct page_database *database = NULL;
	struct page_file *added = NULL;
	uint32_t slot;

	lock_acquire(&lock);
	slot = pointer_slot_choose(files->keys, PAGE_FILES, files->used, file);
	if (is_known && slot != POINTER_SLOT_NONE)
		database = open_database(files, &identity, path);
	if (slot != POINTER_SLOT_NONE) {
		added = &files->files[slot];
		*added = (struct page_file){ .role = database ? role : PAGE_FILE_OTHER,
			                     .database = database,
			                     .frame_at = WAL_HEADER_BYTES };
		if (added->role == PAGE_FILE_WAL)
			added->database_file = database_file;
		if (database) {
			database->files++;
			add_wals(database, role == PAGE_FILE_WAL);
		}
		pointer_slot_publish(files->keys, &files->used, slot, file);
	}
	lock_release(&lock);
	return added;
}

void page_files_remove(struct page_files *files, const sqlite3_file *file)
{
	const struct page_file *removed;
	uint32_t slot;

	if (pointer_slot_find(files->keys, PAGE_FILES, file) == POINTER_SLOT_NONE)
		return;
	lock_acquire(&lock);
	/* Another thread may have forgotten all files. */
	slot = pointer_slot_find(files->keys, PAGE_FILES, file);
	if (slot != POINTER_SLOT_NONE) {
		removed = &files->files[slot];
		if (removed->database) {
			removed->database->files--;
			add_wals(removed->database, -(removed->role == PAGE_FILE_WAL));
		}
		pointer_slot_remove(files->keys, PAGE_FILES, &files->used, slot);
		page_owners_change();
	}
	lock_release(&lock);
}

void page_files_forget_pages(struct page_files *files)
{
	lock_acquire(&lock);
	for (uint32_t i = 0; i < PAGE_DATABASES && files->databases[i]; i++)
		page_owners_forget_pages(&files->databases[i]->owners);
	page_owners_change();
	lock_release(&lock);
}

void page_files_forget(struct page_files *files)
{
	lock_acquire(&lock);
	for (uint32_t i = 0; i < PAGE_FILES; i++)
		if (pointer_slot_is_used(files->keys[i]))
			pointer_slot_remove(files->keys, PAGE_FILES, &files->used, i);
	page_owners_change();
	for (uint32_t i = 0; i < PAGE_DATABASES && files->databases[i]; i++) {
		struct page_database *database = files->databases[i];

		database->files = 0;
		__atomic_store_n(&database->wals, 0, __ATOMIC_RELAXED);
		/* Events of transactions that have not ended belong to no later recording. */
		__atomic_store_n(&database->life, database->life + 1, __ATOMIC_RELAXED);
	}
	lock_release(&lock);
}

/* A rollback journal leaves no WAL with content next to it. */
static bool is_next_to_wal(const char *path)
{
	const int saved_errno = errno;
	char wal[PAGE_PATH_BYTES + sizeof("-wal")];
	struct stat status;
	bool is_there;

	if (!path || snprintf(wal, sizeof(wal), "%s-wal", path) >= (int)sizeof(wal))
		return false;
	is_there = !stat(wal, &status) && status.st_size != 0;
	errno = saved_errno;
	return is_there;
}

/* A connection without a lock of the index may have its WAL for itself: it reads or writes the header first.
 * Or it acquired the lock before it was followed. */
static enum page_file_role role_of_journal(const sqlite3_file *database_file,
                                           const struct page_access *access, const char *path)
{
	struct lock_file *entry = database_file ? lock_file_find(database_file) : NULL;

	return (entry && lock_file_has_wal(entry)) ||
	                       (access->offset == 0 && access->bytes == WAL_HEADER_BYTES) ||
	                       is_next_to_wal(path)
	               ? PAGE_FILE_WAL
	               : PAGE_FILE_JOURNAL;
}

static __attribute__((noinline)) struct page_file *add_new(struct page_files *files,
                                                           const struct page_access *access)
{
	const struct opened_file *opened = opened_files_find(access->file);

	/* A temporary file is written first. */
	if (!opened)
		return access->is_write ? add(files, access->file, PAGE_FILE_OTHER, NULL, NULL) : NULL;
	switch (opened->role) {
	case OPENED_DATABASE: return add(files, access->file, PAGE_FILE_DATABASE, access->file, opened->path);
	case OPENED_WAL: return add(files, access->file, PAGE_FILE_WAL, opened->other, opened->path);
	case OPENED_JOURNAL: return add(files, access->file, PAGE_FILE_JOURNAL, NULL, opened->path);
	default:
		return add(files, access->file, role_of_journal(opened->other, access, opened->path),
		           opened->other, opened->path);
	}
}

struct page_file *page_files_find(struct page_files *files, const struct page_access *access)
{
	uint32_t slot = pointer_slot_find(files->keys, PAGE_FILES, access->file);

	return __builtin_expect(slot != POINTER_SLOT_NONE, 1) ? &files->files[slot] : add_new(files, access);
}

/* --- the index of a WAL: https://www.sqlite.org/walformat.html ------------------------------------ */

#define BLOCK_BYTES 32768

/* The connection has a lock of the index other than that of read mark 0, so it has mapped the index, and
 * xShmMap only tells where: it makes and locks no file -shm. With locking_mode=EXCLUSIVE the index may be on
 * the heap, and with readonly_shm=1 be a copy; there are no such locks then. */
static bool has_mapped(const sqlite3_file *database_file)
{
	const struct lock_file *entry = lock_file_find(database_file);

	return entry && lock_file_uses_index(entry) && database_file->pMethods &&
	       database_file->pMethods->iVersion >= 2;
}

uint32_t page_files_frame_page(struct page_file *wal, uint32_t frame)
{
	const uint32_t at = frame - 1 + WAL_INDEX_HEAD, number = at / WAL_BLOCK_FRAMES;
	const volatile uint32_t *block = number < WAL_BLOCKS ? wal->blocks[number] : NULL;
	sqlite3_file *file = (sqlite3_file *)wal->database_file;
	volatile void *mapped = NULL;

	if (!block && file && has_mapped(file) && file->pMethods->xShmMap &&
	    !file->pMethods->xShmMap(file, (int)number, BLOCK_BYTES, 0, &mapped) && mapped) {
		block = mapped;
		if (number < WAL_BLOCKS)
			wal->blocks[number] = block;
	}
	return block ? block[at % WAL_BLOCK_FRAMES] : 0;
}

void page_files_unmap(struct page_files *files, const sqlite3_file *database_file)
{
	for (uint32_t i = 0; i < PAGE_FILES; i++)
		if (pointer_slot_is_used(files->keys[i]) && files->files[i].database_file == database_file)
			memset(files->files[i].blocks, 0, sizeof(files->files[i].blocks));
}
