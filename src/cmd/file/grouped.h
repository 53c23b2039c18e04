/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual tables of sums, for statements that would otherwise sort millions of rows. Such a table has one row
 * for each combination of the key columns that the statement reads.
 *
 * A statement asks for its columns when it is prepared. The first step of any statement reads the source for
 * all columns requested by then, and the sums are kept. So a command that prepares its statements beforehand
 * (run_sql_prepare()) reads the source once. Keys of few values cost little: groupings that differ only in
 * them are summed up together from the source, and then separately.
 */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

#include "store/file/made_table.h"

/* The keys of a table come before its sums. */
enum grouped_kind {
	GROUPED_KEY,
	GROUPED_FEW,  /* a key of few values */
	GROUPED_BIT,  /* a key that is true or false */
	GROUPED_TEXT, /* a key that stands for a text: a number below 2^32, of few */
	GROUPED_SUM,
	GROUPED_REAL, /* a sum of doubles, in the bits of the words */
	GROUPED_LEAST,
	GROUPED_MOST
};

struct grouped;

struct grouped_table {
	const enum grouped_kind *kinds; /* of the columns */
	size_t count;                   /* of them, at most 63 */
	size_t own_size;                /* of the source's own state, zeroed initially, as old as the table */
	/* Adds all rows. `used`: bits of the columns that are needed. An SQLite result. */
	int (*read)(sqlite3 *db, void *own, struct grouped *grouped, uint64_t used);
	const char *(*text)(const void *own, int64_t word);
	void (*free_own)(void *own);
	/* Bits of columns that follow from the key `base`. They are computed for each row of sums by that
	 * key, not for each row of the source, which does not set them. */
	uint64_t following;
	size_t base;
	int (*begin_following)(sqlite3 *db, void *own); /* an SQLite result */
	int64_t (*follow)(const void *own, size_t column, int64_t base);
};

/* The words of the next row. The caller sets each used word. NULL: no memory. */
int64_t *grouped_add(struct grouped *grouped);

/* Makes the virtual table in the schema temp, replacing a view of that name. An SQLite result. */
int grouped_replace(sqlite3 *db, const struct made_table *made, const struct grouped_table *table);

/* The methods for a made_table. */
#define GROUPED_METHODS                                                                                      \
	.needs_create = true, .memory_size = GROUPED_SIZE, .rows_size = sizeof(void *), .ask = grouped_ask,  \
	.make = grouped_make, .count = grouped_count, .read = grouped_read, .free_memory = grouped_free

#define GROUPED_SIZE 64 /* at least the size of struct grouped */
void grouped_ask(void *data, void *memory, uint64_t used);
int grouped_make(sqlite3 *db, void *data, void *memory, void *rows, uint64_t used, char **error);
size_t grouped_count(const void *rows);
void grouped_read(const void *memory, const void *rows, size_t row, int column, sqlite3_context *result);
void grouped_free(void *memory);
