/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open files whose pages are counted: databases, WALs and rollback journals of sessions, as SQLite's
 * structures. Each belongs to a database, which the connections of the process share that have it open.
 */
#pragma once

#include <stdbool.h>
#include <sqlite3ext.h>
#include <stdint.h>

#include "sqlite/pages/page_owners.h"

struct run;

#define PAGE_FILES 4096u /* a power of two */
#define PAGE_DATABASES 512u
#define PAGE_PATH_BYTES 1024
#define WAL_BLOCKS 16u /* of the index whose place is kept */
#define WAL_BLOCK_FRAMES 4096u
#define WAL_INDEX_HEAD 34u /* words before the first frame's page */

struct page_database {
	uint64_t device, inode;
	uint32_t files, wals; /* open ones; under the lock; wals: atomic */
	uint32_t life;        /* atomic; another one each time that it is opened anew */
	uint32_t sums;        /* atomic: sums of threads that need its names */
	uint32_t page_size;   /* atomic; 0: not known yet */
	uint32_t path_size;
	char path[PAGE_PATH_BYTES];
	struct page_owners owners;
};

static inline uint32_t page_database_life(const struct page_database *database)
{
	return __atomic_load_n(&database->life, __ATOMIC_RELAXED);
}

enum page_file_role { PAGE_FILE_OTHER, PAGE_FILE_DATABASE, PAGE_FILE_WAL, PAGE_FILE_JOURNAL };

/* The calls of its connection change it, one at a time. */
struct page_file {
	enum page_file_role role;
	struct page_database *database; /* NULL: of other files */
	/* Of a WAL: the connection's database, whose methods tell where its index is, and places of the
	 * index that they have told; where the frame begins whose header was written last, and its page, 0:
	 * not known. */
	const sqlite3_file *database_file;
	const volatile uint32_t *blocks[WAL_BLOCKS];
	sqlite3_int64 frame_at;
	uint32_t frame_page;
};

struct page_files {
	const void *keys[PAGE_FILES]; /* of base/pointer_slots.h */
	struct page_file files[PAGE_FILES];
	uint32_t used;
	struct page_database *databases[PAGE_DATABASES];
};

/* What is read or written of a file. */
struct page_access {
	sqlite3_file *file;
	const void *data;
	uint32_t bytes;
	sqlite3_int64 offset;
	bool is_write;
	const struct run *run; /* NULL: not known */
};

/* The entry, which is made if the run's connection has the file. NULL: it is not known which file it is. */
struct page_file *page_files_find(struct page_files *files, const struct page_access *access);

/* The file will be closed. */
void page_files_remove(struct page_files *files, const sqlite3_file *file);

/* All of them. */
void page_files_forget(struct page_files *files);

/* Their pages may have been written without being seen. */
void page_files_forget_pages(struct page_files *files);

/* The connection unmaps the index of its WAL. */
void page_files_unmap(struct page_files *files, const sqlite3_file *database_file);

/* The same as page_files_frame_page() for a place of the index that is known; else 0. */
static inline uint32_t page_files_known_frame(const struct page_file *wal, uint32_t frame)
{
	const uint32_t at = frame - 1 + WAL_INDEX_HEAD, number = at / WAL_BLOCK_FRAMES;
	const volatile uint32_t *block = number < WAL_BLOCKS ? wal->blocks[number] : NULL;

	return block ? block[at % WAL_BLOCK_FRAMES] : 0;
}

/* The page that a frame of the WAL has, as its index has it; 0: not known. The connection reads the frame, so
 * it has the index mapped and looked into it just now. */
uint32_t page_files_frame_page(struct page_file *wal, uint32_t frame);
