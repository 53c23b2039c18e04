/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See lossy_disk.h. A recording is a list of events in memory, appended under a lock. disk_make() replays it
 * from its start for three files: the database, its rollback journal and its write-ahead log. The shared
 * memory file is not recorded because SQLite makes it again.
 */
#include "lossy_disk.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

#define SECTOR 512

enum event_kind { WRITE, TRUNCATE, SYNC, REMOVE };

static const char *const suffixes[] = { "", "-journal", "-wal" };
#define FILES 3
#define LOG_FILE 2

struct event {
	enum event_kind kind;
	bool kept; /* REMOVE: the directory was synced */
	int file;
	int64_t offset; /* TRUNCATE: the size */
	size_t size;
	void *bytes;
	uint64_t noted; /* SYNC */
};

static struct {
	pthread_mutex_t lock;
	char *path; /* NULL: nothing is recorded */
	uint64_t (*note)(void);
	struct event *events;
	size_t count, room;
} disk = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- recording ------------------------------------------------------------------- */

/* Returns -1 for a file of another database. */
static int which_file(const char *path)
{
	size_t size = disk.path ? strlen(disk.path) : 0;

	for (int i = 0; path && size && i < FILES; i++) {
		if (!strncmp(path, disk.path, size) && !strcmp(path + size, suffixes[i]))
			return i;
	}
	return -1;
}

static void append(struct event event, const void *bytes)
{
	pthread_mutex_lock(&disk.lock);
	if (!disk.path) {
		pthread_mutex_unlock(&disk.lock);
		return;
	}
	if (disk.count == disk.room) {
		disk.room = disk.room ? 2 * disk.room : 1024;
		disk.events = realloc(disk.events, disk.room * sizeof(*disk.events));
	}
	if (bytes) {
		event.bytes = malloc(event.size);
		memcpy(event.bytes, bytes, event.size);
	}
	disk.events[disk.count++] = event;
	pthread_mutex_unlock(&disk.lock);
}

void disk_record(const char *path, uint64_t (*note)(void))
{
	pthread_mutex_lock(&disk.lock);
	if (path) {
		for (size_t i = 0; i < disk.count; i++)
			free(disk.events[i].bytes);
		disk.count = 0;
	}
	free(disk.path);
	disk.path = path ? strdup(path) : NULL;
	disk.note = note;
	pthread_mutex_unlock(&disk.lock);
}

size_t disk_moments(void)
{
	size_t count;

	pthread_mutex_lock(&disk.lock);
	count = disk.count;
	pthread_mutex_unlock(&disk.lock);
	return count;
}

uint64_t disk_noted(size_t moment)
{
	uint64_t noted = 0;

	pthread_mutex_lock(&disk.lock);
	while (moment-- > 0) {
		if (disk.events[moment].kind == SYNC && disk.events[moment].file == LOG_FILE) {
			noted = disk.events[moment].noted;
			break;
		}
	}
	pthread_mutex_unlock(&disk.lock);
	return noted;
}

/* --- the VFS ------------------------------------------------------------------------ */

static sqlite3_vfs *real;

struct file {
	sqlite3_file base;
	int which;
	sqlite3_file *real; /* in the memory after this struct */
};

static sqlite3_file *real_of(sqlite3_file *file)
{
	return ((struct file *)file)->real;
}

#define FORWARD(file, method, ...) real_of(file)->pMethods->method(real_of(file), ##__VA_ARGS__)

static int disk_close(sqlite3_file *file)
{
	return FORWARD(file, xClose);
}

static int disk_read(sqlite3_file *file, void *bytes, int size, sqlite3_int64 offset)
{
	return FORWARD(file, xRead, bytes, size, offset);
}

static int disk_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset)
{
	struct event event = {
		.kind = WRITE, .file = ((struct file *)file)->which, .offset = offset, .size = (size_t)size
	};

	if (event.file >= 0)
		append(event, bytes);
	return FORWARD(file, xWrite, bytes, size, offset);
}

static int disk_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	struct event event = { .kind = TRUNCATE, .file = ((struct file *)file)->which, .offset = size };

	if (event.file >= 0)
		append(event, NULL);
	return FORWARD(file, xTruncate, size);
}

static int disk_sync(sqlite3_file *file, int flags)
{
	struct event event = { .kind = SYNC, .file = ((struct file *)file)->which };

	if (event.file >= 0) {
		event.noted = disk.note ? disk.note() : 0;
		append(event, NULL);
	}
	return FORWARD(file, xSync, flags);
}

static int disk_size(sqlite3_file *file, sqlite3_int64 *size)
{
	return FORWARD(file, xFileSize, size);
}

static int disk_lock(sqlite3_file *file, int level)
{
	return FORWARD(file, xLock, level);
}

static int disk_unlock(sqlite3_file *file, int level)
{
	return FORWARD(file, xUnlock, level);
}

static int disk_check_reserved(sqlite3_file *file, int *result)
{
	return FORWARD(file, xCheckReservedLock, result);
}

static int disk_control(sqlite3_file *file, int operation, void *argument)
{
	return FORWARD(file, xFileControl, operation, argument);
}

static int disk_sector_size(sqlite3_file *file)
{
	return FORWARD(file, xSectorSize);
}

static int disk_characteristics(sqlite3_file *file)
{
	return FORWARD(file, xDeviceCharacteristics);
}

static int disk_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **memory)
{
	return FORWARD(file, xShmMap, page, size, extend, memory);
}

static int disk_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
	return FORWARD(file, xShmLock, offset, count, flags);
}

static void disk_shm_barrier(sqlite3_file *file)
{
	FORWARD(file, xShmBarrier);
}

static int disk_shm_unmap(sqlite3_file *file, int remove)
{
	return FORWARD(file, xShmUnmap, remove);
}

static const sqlite3_io_methods methods = {
	.iVersion = 2,
	.xClose = disk_close,
	.xRead = disk_read,
	.xWrite = disk_write,
	.xTruncate = disk_truncate,
	.xSync = disk_sync,
	.xFileSize = disk_size,
	.xLock = disk_lock,
	.xUnlock = disk_unlock,
	.xCheckReservedLock = disk_check_reserved,
	.xFileControl = disk_control,
	.xSectorSize = disk_sector_size,
	.xDeviceCharacteristics = disk_characteristics,
	.xShmMap = disk_shm_map,
	.xShmLock = disk_shm_lock,
	.xShmBarrier = disk_shm_barrier,
	.xShmUnmap = disk_shm_unmap,
};

static int disk_open(sqlite3_vfs *vfs, sqlite3_filename path, sqlite3_file *base, int flags, int *out)
{
	struct file *file = (struct file *)base;
	int code;

	(void)vfs;
	file->real = (sqlite3_file *)(file + 1);
	file->which = which_file(path);
	code = real->xOpen(real, path, file->real, flags, out);
	file->base.pMethods = file->real->pMethods ? &methods : NULL;
	return code;
}

static int disk_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
	struct event event = { .kind = REMOVE, .file = which_file(path), .kept = sync };

	(void)vfs;
	if (event.file >= 0)
		append(event, NULL);
	return real->xDelete(real, path, sync);
}

static int disk_set_system_call(sqlite3_vfs *vfs, const char *name, sqlite3_syscall_ptr call)
{
	(void)vfs;
	return real->xSetSystemCall(real, name, call);
}

static sqlite3_syscall_ptr disk_get_system_call(sqlite3_vfs *vfs, const char *name)
{
	(void)vfs;
	return real->xGetSystemCall(real, name);
}

void disk_install(void)
{
	static sqlite3_vfs vfs;

	real = sqlite3_vfs_find("unix");
	vfs = *real; /* the other methods do not use their VFS argument */
	vfs.szOsFile += (int)sizeof(struct file);
	vfs.pNext = NULL;
	vfs.xOpen = disk_open;
	vfs.xDelete = disk_delete;
	vfs.xSetSystemCall = disk_set_system_call;
	vfs.xGetSystemCall = disk_get_system_call;
	sqlite3_vfs_register(&vfs, 1); /* first in the list, so the name of both finds it */
}

/* --- after the loss ------------------------------------------------------------------- */

struct image {
	uint8_t *bytes;
	size_t size, room;
	bool exists;
};

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void resize(struct image *image, size_t size)
{
	if (size > image->room) {
		image->room = 2 * size;
		image->bytes = realloc(image->bytes, image->room);
	}
	if (size > image->size)
		memset(image->bytes + image->size, 0, size - image->size);
	image->size = size;
	image->exists = true;
}

/* A write in progress or not synced: each of its sectors is written or not, at random. */
static void write_torn(struct image *image, const struct event *event, uint64_t *random)
{
	size_t done = 0;

	while (done < event->size) {
		size_t offset = (size_t)event->offset + done;
		size_t size = SECTOR - offset % SECTOR;

		if (size > event->size - done)
			size = event->size - done;
		if (next_random(random) & 1) {
			if (image->size < offset + size)
				resize(image, offset + size);
			memcpy(image->bytes + offset, (uint8_t *)event->bytes + done, size);
		}
		done += size;
	}
}

static void apply(struct image *image, const struct event *event)
{
	switch (event->kind) {
	case WRITE:
		if (image->size < (size_t)event->offset + event->size)
			resize(image, (size_t)event->offset + event->size);
		memcpy(image->bytes + event->offset, event->bytes, event->size);
		break;
	case TRUNCATE: resize(image, (size_t)event->offset); break;
	case REMOVE:
		image->size = 0;
		image->exists = false;
		break;
	case SYNC: break;
	}
}

/* Applies an event after the last sync, or loses it. */
static void apply_or_lose(struct image *image, const struct event *event, enum disk_loss loss,
                          uint64_t *random)
{
	if (loss == LOSE_NOTHING || (event->kind == REMOVE && event->kept)) {
		apply(image, event);
	} else if (loss == LOSE_RANDOMLY) {
		switch (next_random(random) % 3) {
		case 0: break;
		case 1: apply(image, event); break;
		default:
			if (event->kind == WRITE)
				write_torn(image, event, random);
			else
				apply(image, event);
		}
	}
}

static void save(const char *path, const char *suffix, const struct image *image)
{
	char name[300];
	FILE *file;

	snprintf(name, sizeof(name), "%s%s", path, suffix);
	unlink(name);
	if (!image->exists)
		return;
	file = fopen(name, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(image->bytes, 1, image->size, file), image->size);
	fclose(file);
}

void disk_make(const char *path, size_t moment, enum disk_loss loss, uint64_t seed)
{
	static struct image images[FILES];
	uint64_t random = seed * 2654435761u + 88172645463325252u;
	char name[300];

	for (int file = 0; file < FILES; file++) {
		struct image *image = &images[file];
		size_t safe = 0; /* events up to here are durable */

		image->size = 0;
		image->exists = false;
		for (size_t i = 0; i < moment; i++) {
			const struct event *event = &disk.events[i];

			if (event->file == file &&
			    (event->kind == SYNC || (event->kind == REMOVE && event->kept)))
				safe = i;
		}
		for (size_t i = 0; i < moment; i++) {
			const struct event *event = &disk.events[i];

			if (event->file != file)
				continue;
			if (i <= safe)
				apply(image, event);
			else
				apply_or_lose(image, event, loss, &random);
		}
		save(path, suffixes[file], image);
	}
	snprintf(name, sizeof(name), "%s-shm", path);
	unlink(name);
}
