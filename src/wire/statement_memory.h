/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the counters of statements and their texts. Under `record` the command also holds it
 * (handover/shared_ring.h), so values that have not been stored yet survive the process. Statements
 * that do not fit there, and without `record` all, are in private memory.
 */
#pragma once

#include <stddef.h>

#include "base/vector.h"
#include "wire/statement_counts.h"

/* Error codes that a statement counts separately; the last counts all others. */
#define STATEMENT_FAILURE_CODES 4

struct statement_entry {
	struct statement_counter counter;
	struct {
		int code; /* 0: none yet */
		uint32_t count;
	} failures[STATEMENT_FAILURE_CODES];

	/* Changed by the thread that makes the entry, or frees it; under the lock. */
	uint64_t hash;
	const char *database, *text; /* text NULL: the entry is free */
	bool is_cut;
	bool is_over;  /* atomic: a part with another layout followed it */
	bool is_mixed; /* layouts of the statement change too often: it has one part for each */
	struct statement_part part;
	uint32_t next; /* of the chain, or of the free ones */
};

/* The index of "(other)". */
#define STATEMENT_OTHER 0u

/* --- entries -------------------------------------------------------------------------------- */

#define STATEMENT_BLOCK 64u
#define STATEMENT_BLOCKS (STATEMENTS_MAX_MOST / STATEMENT_BLOCK + 2)

extern struct statement_entry *statement_blocks[STATEMENT_BLOCKS]; /* atomic */

/* Any thread. `index`: of an entry that is made. */
static inline struct statement_entry *entry_at(uint32_t index)
{
	/* Acquire: the block was zeroed before. */
	return &__atomic_load_n(&statement_blocks[index / STATEMENT_BLOCK],
	                        __ATOMIC_ACQUIRE)[index % STATEMENT_BLOCK];
}

/* `statement` is not 0. */
HOT_INLINE struct statement_entry *statement_entry_of(uint64_t statement)
{
	return entry_at((uint32_t)statement);
}

HOT_INLINE bool statement_is_current(const struct statement_counter *counter, uint64_t statement)
{
	return __atomic_load_n(&counter->generation, __ATOMIC_RELAXED) == (uint32_t)(statement >> 32);
}

/* How many there are. */
uint32_t statement_memory_made(void);

/* One more, zeroed except its generation, which no entry had before a fork. NULL: out of memory.
 * One thread at a time. */
struct statement_entry *statement_memory_add(void);

/* In a forked child, whose shared memory is new already: no entries. */
void statement_memory_reset_in_child(void);

/* --- texts, not by two threads at a time -------------------------------------------------------- */

/* A copy with a final zero. NULL: no memory. */
const char *statement_memory_copy(const char *text, size_t size);
void statement_memory_free(const char *text); /* NULL: nothing */

/* An entry is about to be freed, and its text with it; and it is, or not. One thread at a time. */
void statement_memory_begin_fold(void);
void statement_memory_end_fold(void);

/* --- what a reader has stored ---------------------------------------------------------------------- */

/* Of each entry, by its index. Zeros: nothing yet. */
struct statement_reading {
	VECTOR(struct statement_read) entries;
	bool has_newer;
};

struct statement_read {
	uint32_t generation;
	bool is_newer; /* becomes the stored state at the next commit */
	struct statement_counts counts, newer;
};

/* First, for each entry with its generation: if that has changed, the stored counts have become
 * part of "(other)". False: out of memory. */
bool statement_reading_follow(struct statement_reading *reading, uint32_t index, uint32_t generation);

/* The entry's additional counts since they were stored; `now` are its counts. False: none; or they
 * are being moved to "(other)", and are available the next time. */
bool statement_reading_since(const struct statement_reading *reading, uint32_t index,
                             const struct statement_counts *now, struct statement_counts *since);

/* That is being stored; and it is stored, with all others, or not. */
void statement_reading_keep(struct statement_reading *reading, uint32_t index,
                            const struct statement_counts *now);
void statement_reading_commit(struct statement_reading *reading, bool is_stored);

/* Nothing is stored. */
void statement_reading_reset(struct statement_reading *reading);
void statement_reading_free(struct statement_reading *reading);

/* --- shared memory -------------------------------------------------------------------------------- */

/* For so many statements. */
size_t statement_memory_bytes(size_t most);

/* Before any statement is counted; in a forked child before anything else. `memory` is zeroed,
 * and stays. */
void statement_memory_attach(void *memory, size_t size);

/* In a forked child that gets no such memory, before anything else: statements are not counted. */
void statement_memory_detach_in_child(void);

/* `memory` is a copy of another process's, which is gone or runs. Calls `each` for each statement whose
 * counts are not all stored; `counts` has the missing ones. Counts of an unknown statement are "(other)"'s.
 * Stops at a result that is not 0 and returns it; statement_reading_commit() follows. */
int statement_memory_read(const void *memory, size_t size, struct statement_reading *reading,
                          int (*each)(void *context, const struct statement_stats *stats), void *context);

/* The number of freed entries so far; odd: one is being freed. If it differs before and after
 * copying, texts in the copy may belong to another statement. */
uint64_t statement_memory_folds(const void *memory);
