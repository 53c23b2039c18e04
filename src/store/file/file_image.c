/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that loses power writes sectors in any order between two syncs. So the order is: the first
 * sector of an empty database; all other sectors, which that database does not have; the first sector
 * of the image.
 */
#include "store/file/file_image.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct piece {
	uint32_t at, size; /* in the image; in `bytes` the pieces follow each other */
};

#include "file_image_bytes.h" /* made by the build, by make_file_image.c */

#define SECTOR 512
#define PAGE 4096u

/* Bytes of the image from `at` on. Not its identity, which is random. */
static void fill(unsigned char *to, uint32_t at, uint32_t size)
{
	const unsigned char *bytes = file_image_bytes;

	memset(to, 0, size);
	for (size_t i = 0; i < sizeof(file_image_pieces) / sizeof(*file_image_pieces); i++) {
		const struct piece *piece = &file_image_pieces[i];
		uint32_t from = piece->at > at ? piece->at : at;
		uint32_t end = piece->at + piece->size < at + size ? piece->at + piece->size : at + size;

		if (from < end)
			memcpy(to + (from - at), bytes + (from - piece->at), end - from);
		bytes += piece->size;
	}
}

/* SQLite writes less than 128 KiB at a time. */
#define WRITE_MAX (64 << 10)

static bool put(sqlite3_file *file, const unsigned char *bytes, int size, int at)
{
	int code = SQLITE_OK;

	for (int done = 0, part; done < size && !code; done += part) {
		part = size - done < WRITE_MAX ? size - done : WRITE_MAX;
		code = file->pMethods->xWrite(file, bytes + done, part, at + done);
	}
	return !code && !file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
}

/* A log, index or journal next to an empty file is left over from a file that was renamed or removed. SQLite
 * removes such a log when it opens an empty file. Next to a file with the image, it would read the other
 * file's pages from the log, and share the index with processes that still have the other file open. */
static bool remove_others_log(sqlite3 *db)
{
	const char *name = sqlite3_db_filename(db, "main");
	char *index = sqlite3_mprintf("%s-shm", name);
	const char *const names[] = { sqlite3_filename_wal(name), sqlite3_filename_journal(name), index };
	sqlite3_vfs *vfs = NULL;
	bool is_removed = index && !sqlite3_file_control(db, "main", SQLITE_FCNTL_VFS_POINTER, &vfs);

	for (size_t i = 0; is_removed && i < sizeof(names) / sizeof(*names); i++) {
		int code = vfs->xDelete(vfs, names[i], true);

		is_removed = !code || code == SQLITE_IOERR_DELETE_NOENT;
	}
	sqlite3_free(index);
	return is_removed;
}

static bool write_image(sqlite3 *db, sqlite3_file *file)
{
	unsigned char *image = calloc(1, FILE_IMAGE_SIZE);
	sqlite3_int64 size;
	bool is_written;

	if (!image || file->pMethods->xFileSize(file, &size) || size || !remove_others_log(db)) {
		free(image);
		return false;
	}
	fill(image, 0, FILE_IMAGE_SIZE);
	sqlite3_randomness(FILE_IMAGE_IDENTITY_SIZE, image + FILE_IMAGE_IDENTITY);
	is_written = put(file, file_image_empty, SECTOR, 0) &&
	             put(file, image + SECTOR, FILE_IMAGE_SIZE - SECTOR, SECTOR) &&
	             put(file, image, SECTOR, 0);
	if (!is_written)
		file->pMethods->xTruncate(file, 0);
	free(image);
	return is_written;
}

/* NULL: it has none. */
static sqlite3_file *file_of(sqlite3 *db)
{
	sqlite3_file *file = NULL;

	return !sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) && file && file->pMethods
	               ? file
	               : NULL;
}

bool file_image_write(sqlite3 *db)
{
	sqlite3_file *file = file_of(db);
	bool is_written = false;

	if (!file)
		return false;
	if (!file->pMethods->xLock(file, SQLITE_LOCK_SHARED)) {
		is_written = !file->pMethods->xLock(file, SQLITE_LOCK_EXCLUSIVE) && write_image(db, file);
		file->pMethods->xUnlock(file, SQLITE_LOCK_NONE);
	}
	return is_written;
}

/* Page by page: memory that a process has not touched yet costs more than to read the file. */
static bool is_image(sqlite3_file *file)
{
	unsigned char wanted[PAGE], found[PAGE];

	_Static_assert(FILE_IMAGE_SIZE % PAGE == 0, "whole pages");
	for (uint32_t at = 0; at < FILE_IMAGE_SIZE; at += PAGE) {
		if (file->pMethods->xRead(file, found, PAGE, at))
			return false;
		fill(wanted, at, PAGE);
		for (uint32_t i = FILE_IMAGE_IDENTITY; i < FILE_IMAGE_IDENTITY + FILE_IMAGE_IDENTITY_SIZE;
		     i++)
			if (i - at < PAGE)
				found[i - at] = wanted[i - at] = 0;
		if (memcmp(wanted, found, PAGE) != 0)
			return false;
	}
	return true;
}

static bool has_log(sqlite3 *db)
{
	struct stat status;

	return !stat(sqlite3_filename_wal(sqlite3_db_filename(db, "main")), &status) && status.st_size;
}

bool file_image_is_untouched(sqlite3 *db)
{
	sqlite3_file *file = file_of(db);
	sqlite3_int64 size;
	bool is_untouched;

	if (!file || file->pMethods->xFileSize(file, &size) || size != FILE_IMAGE_SIZE || has_log(db) ||
	    file->pMethods->xLock(file, SQLITE_LOCK_SHARED))
		return false;
	is_untouched = is_image(file) && !has_log(db);
	file->pMethods->xUnlock(file, SQLITE_LOCK_NONE);
	return is_untouched;
}
