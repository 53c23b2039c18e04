/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the counters of statements and their texts. Under `record` that is memory that the
 * command holds, too (store/shared_ring.h): what has not come to the file yet is there when the
 * process is gone. Statements that do not fit in there, and elsewhere all, are in private memory.
 *
 * The counts of a statement in the file are known for two flushes, the newest one that is stored
 * for sure and the one that is being stored: so a process that finds the memory of a killed one
 * reads the number of its newest flush in the file, and counts nothing twice.
 */
#ifndef QUERYPROF_WIRE_STATEMENT_MEMORY_H
#define QUERYPROF_WIRE_STATEMENT_MEMORY_H

#include <stddef.h>

#include "wire/statement_counts.h"

/* Codes of failures that a statement counts apart, the last of which stands for all others. */
#define STATEMENT_FAILURE_CODES 4

/* The part of the statement's counts that the file has since this flush, 0: none. */
struct statement_stored {
	uint64_t flush;
	struct statement_counts counts;
};

struct statement_entry {
	struct statement_counter counter;
	struct {
		int code; /* 0: none yet */
		uint32_t count;
	} failures[STATEMENT_FAILURE_CODES];

	/* Changed by the flusher, or by the thread that makes the entry; under the lock. */
	uint64_t hash;
	const char *database, *text; /* text NULL: the entry is free */
	bool is_cut;
	bool is_over;  /* atomic: a part with another layout came after it */
	bool is_mixed; /* layouts of the statement change too often: it has one part for each */
	struct statement_part part;
	uint32_t next; /* of the chain, or of the free ones */

	struct statement_stored stored[2]; /* the flusher's */
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

/* How many there are. */
uint32_t statement_memory_made(void);

/* One more, zeroed but for its generation, which no entry had before a fork. NULL: no memory. Not
 * by two threads at a time. */
struct statement_entry *statement_memory_add(void);

/* In a forked child, whose shared memory is new already: no entries. */
void statement_memory_reset_in_child(void);

/* --- texts, not by two threads at a time -------------------------------------------------------- */

/* A copy with a final zero. NULL: no memory. */
const char *statement_memory_copy(const char *text, size_t size);
void statement_memory_free(const char *text); /* NULL: nothing */

/* --- what is stored, the flusher's ------------------------------------------------------------------ */

/* The number of the flush that comes, or is under way. No two of a process have the same one,
 * whatever it executes. */
uint64_t statement_memory_flush(void);

/* The counts that the file has for sure; and room for those that it has after the flush that is under way:
 * statement_memory_keep() says that this is filled, and statement_memory_drop() that it will
 * not be stored. */
struct statement_stored *statement_memory_stored(struct statement_entry *entry);
struct statement_stored *statement_memory_other(struct statement_entry *entry);
void statement_memory_keep(struct statement_stored *stored);
void statement_memory_drop(struct statement_stored *stored);

/* The flush is stored, with all that was kept. */
void statement_memory_commit(void);

/* --- shared memory -------------------------------------------------------------------------------- */

/* For so many statements. */
size_t statement_memory_bytes(size_t most);

/* Before any statement is counted; in a forked child before anything else. `memory` is zeroed,
 * and stays. */
void statement_memory_place(void *memory, size_t size);

/* In a forked child that gets no such memory, before anything else: statements are not counted. */
void statement_memory_leave_in_child(void);

/* `memory` is that of a process that is gone. Calls `each` for each statement whose counts the file
 * has not all; `counts` has the missing ones. `flush`: the number of the newest flush of the
 * process that the file has; 0: it has none. Counts of an unknown statement are "(other)"'s. Stops at
 * a result that is not 0 and returns it. */
int statement_memory_remains(const void *memory, size_t size, uint64_t flush,
                             int (*each)(void *context, const struct statement_stats *stats), void *context);

#endif
