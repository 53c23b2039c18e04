/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/locks/opened_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/pointer_slots.h"
#include "sqlite/locks/lock_holders.h"

#define FILES 8192u /* a power of two */

/* Found without the lock. The first entry allocates the table. */
LOCK_DEFINE(lock, LOCK_OPENED_FILES);
static const void *keys[FILES];   /* of base/pointer_slots.h */
static struct opened_file *files; /* FILES of them; written before any key */
static uint32_t used;

static struct opened_file *find(const sqlite3_file *file)
{
	uint32_t slot = pointer_slot_find(keys, FILES, file);

	return slot == POINTER_SLOT_NONE ? NULL : &files[slot];
}

const struct opened_file *opened_files_find(const sqlite3_file *file)
{
	return find(file);
}

/* Under the lock. */
static void remove_file(const sqlite3_file *file)
{
	uint32_t slot = pointer_slot_find(keys, FILES, file);
	struct opened_file *other;

	if (slot == POINTER_SLOT_NONE)
		return;
	other = files[slot].other ? find(files[slot].other) : NULL;
	if (other && other->other == file)
		other->other = NULL;
	pointer_slot_remove(keys, FILES, &used, slot);
}

/* Under the lock. name: the database's, which a WAL or a journal has with an ending. */
static void add_file(const sqlite3_file *file, enum opened_role role, const char *name, size_t size,
                     const sqlite3_file *database)
{
	struct opened_file *other = database ? find(database) : NULL;
	uint32_t slot = POINTER_SLOT_NONE;

	remove_file(file);
	/* calloc() touches no page before it is used. */
	if (size < OPENED_PATH_BYTES && (files || (files = calloc(FILES, sizeof(*files)))))
		slot = pointer_slot_choose(keys, FILES, used, file);
	if (slot == POINTER_SLOT_NONE)
		return;
	files[slot].role = role;
	files[slot].other = database;
	memcpy(files[slot].path, name, size);
	files[slot].path[size] = 0;
	if (other && role != OPENED_JOURNAL)
		other->other = file;
	pointer_slot_publish(keys, &used, slot, file);
}

static bool has_path(const struct opened_file *file, const char *name, size_t size)
{
	return strlen(file->path) == size && !memcmp(file->path, name, size);
}

/* Under the lock. The database for which a WAL is opened: this thread has just locked it, to read it. If no
 * lock is known, it is the only one of that name. */
static const sqlite3_file *find_database(const char *name, size_t size)
{
	const sqlite3_file *found = NULL;
	uint32_t count = 0;

	for (uint32_t i = 0; files && i < FILES; i++) {
		const sqlite3_file *file = keys[i];
		const struct lock_file *locked;

		if (!pointer_slot_is_used(file) || files[i].role != OPENED_DATABASE || files[i].other ||
		    !has_path(&files[i], name, size))
			continue;
		locked = lock_file_find(file);
		if (locked && lock_file_is_locked_here(locked))
			return file;
		found = file;
		count++;
	}
	return count == 1 ? found : NULL;
}

void opened_files_see(const sqlite3_file *file, const char *name, int flags)
{
	static const struct {
		int flag;
		enum opened_role role;
		const char *end;
	} kinds[] = {
		{ SQLITE_OPEN_MAIN_DB, OPENED_DATABASE, "" },
		{ SQLITE_OPEN_WAL, OPENED_WAL, "-wal" },
		{ SQLITE_OPEN_MAIN_JOURNAL, OPENED_JOURNAL, "-journal" },
	};
	const size_t size = name ? strlen(name) : 0;

	lock_acquire(&lock);
	remove_file(file);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		const size_t end = strlen(kinds[i].end);

		if (!(flags & kinds[i].flag) || size <= end || strcmp(name + size - end, kinds[i].end) != 0)
			continue;
		add_file(file, kinds[i].role, name, size - end,
		         kinds[i].role == OPENED_WAL ? find_database(name, size - end) : NULL);
		break;
	}
	lock_release(&lock);
}

void opened_files_adopt(const sqlite3_file *database, const char *path, const sqlite3_file *journal)
{
	lock_acquire(&lock);
	if (!find(database))
		add_file(database, OPENED_DATABASE, path, strlen(path), NULL);
	if (journal && !find(journal))
		add_file(journal, OPENED_BEFORE, path, strlen(path), database);
	lock_release(&lock);
}

void opened_files_remove(const sqlite3_file *file)
{
	if (!find(file))
		return;
	lock_acquire(&lock);
	remove_file(file);
	lock_release(&lock);
}

void opened_files_forget(void)
{
	lock_acquire(&lock);
	for (uint32_t i = 0; i < FILES; i++)
		if (pointer_slot_is_used(keys[i]))
			pointer_slot_remove(keys, FILES, &used, i);
	lock_release(&lock);
}
