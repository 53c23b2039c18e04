/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements, and the sums over all their runs. Texts that differ only in literals, white space and
 * the case of words are one statement (normalize.h), for each database.
 *
 * The thread that ends a run adds to the statement's counter and never waits (statement_counts.h). It
 * finds the statement by a hash of the text; only a text with a new shape takes a lock.
 *
 * A statement has a part for each layout of its bytecode, which distinguishes plans, and for each list
 * of labels in its comments. A change of the layout begins a new part, so that the counts before and
 * after a change of the plan are separate. Parts use at most half of the table. Beyond that, a
 * statement's runs count in the part without a layout and labels.
 *
 * The flusher takes the changes since its last flush; under `record` the command does. If a new
 * statement comes and the limit log_statements_max is reached, the least used become part of
 * "(other)", which also counts new ones while the table is full. No run is lost.
 */
#pragma once

#include <stddef.h>

#include "base/hash.h"
#include "base/hot_path.h"
#include "wire/statement_counts.h"
#include "wire/statement_memory.h"

#define STATEMENTS_MAX_DEFAULT 5000

/* The key of a statement. */
struct statement_name {
	const char *text, *database;          /* NULL: "" */
	uint64_t layout;                      /* of the bytecode: bytecode_layout(); 0: not known */
	struct hash text_hash, database_hash; /* hash_bytes() of them; 0: not computed yet */
};

/* The statement's number; 0: nothing is counted. */
uint64_t statement_stats_find(const struct statement_name *name);

/* Its normalized_query_hash; 0: it has become part of "(other)", or nothing is counted. */
uint64_t statement_stats_hash(uint64_t statement);

/* The calling thread, which has this id (0: it has no slot), adds a run to the statement with this
 * number. If that has become part of "(other)", the run counts there. */
void statement_stats_add(uint64_t statement, uint32_t thread, const struct statement_run *run);

/* Whether this failure, one of the statement with this number, is among the first of its code,
 * which have a row in query_log each. Counts it. */
bool statement_stats_is_first_failure(uint64_t statement, int code);

/* How many statements are kept; 0: nothing is counted. */
void statement_stats_set_max(size_t most);
size_t statement_stats_max(void);

/* Both atomic: the limit of statements, 0: nothing is counted; and whether the ring has a record
 * that announces new counts. The function puts one there. */
extern size_t statement_stats_most __attribute__((visibility("hidden")));
extern bool statement_stats_announced __attribute__((visibility("hidden")));
void statement_stats_announce(void);

/* The flusher will find new counts, or a run that is open. */
static inline void statement_stats_announce_new(void)
{
	/* Relaxed: statement_stats_next() has every thread pass a barrier, or the counter's lock orders
	 * this with it; a run that begins during the flusher's look may wait for the next one. */
	if (__builtin_expect(!__atomic_load_n(&statement_stats_announced, __ATOMIC_RELAXED), 0))
		statement_stats_announce();
}

/* --- nearly all runs: by the only thread that runs the statement, with nothing but the times and
 * counts that every run has. Each value goes from where it is into the statement's sums. */

/* Whether statement_stats_find() would give the number again for the same name. */
HOT_INLINE bool statement_stats_is_found(uint64_t statement)
{
	/* If it is full now, it may have space the next time. */
	return (uint32_t)statement != STATEMENT_OTHER &&
	       statement_is_current(&statement_entry_of(statement)->counter, statement) &&
	       __atomic_load_n(&statement_stats_most, __ATOMIC_RELAXED);
}

/* Between these two, the calling thread, the only one that runs the statement, adds to the result
 * of the first. NULL: find the number again if !statement_stats_is_found(), and use
 * statement_stats_add() for the run. The caller is compiled without
 * ThreadSanitizer, because another thread may be reading, see statement_counter_read(). */
HOT_INLINE struct statement_counts *statement_stats_enter(uint64_t statement, uint32_t thread)
{
	struct statement_counter *counter;

	/* "(other)": there may be space for the statement now. */
	if (__builtin_expect((uint32_t)statement == STATEMENT_OTHER ||
	                             !__atomic_load_n(&statement_stats_most, __ATOMIC_RELAXED),
	                     0))
		return NULL;
	counter = &statement_entry_of(statement)->counter;
	if (!biased_lock_reacquire(&counter->biased, thread))
		return NULL;
	if (__builtin_expect(statement_is_current(counter, statement), 1))
		return &counter->own;
	biased_lock_release(&counter->biased);
	return NULL;
}

HOT_INLINE void statement_stats_detach(struct statement_counts *own)
{
	struct statement_counter *counter =
		(struct statement_counter *)((char *)own - offsetof(struct statement_counter, own));

	biased_lock_release(&counter->biased);
	statement_stats_announce_new();
}

/* --- all statements ------------------------------------------------------------------------- */

/* Calls for each statement that has been counted. Any thread but the handler; texts are valid
 * during the call. */
void statement_stats_each(void (*each)(void *context, const struct statement_stats *stats), void *context);

/* For the flusher. Calls the function for each statement with new counts, with the difference in
 * `counts`; stops at a result other than 0 and returns it. The counts of that statement are not
 * taken. */
int statement_stats_next(int (*each)(void *context, const struct statement_stats *stats), void *context);

/* The counts that were taken are in the file, or not and will be taken again. */
void statement_stats_commit(bool is_stored);

/* The record that announced new counts was discarded. */
void statement_stats_discard(void);

/* Whether counts wait for the next flush without an announcement in the ring: it failed, or the
 * record was discarded. */
bool statement_stats_are_due(void);

enum statement_counter_name {
	STATEMENTS_KEPT,
	STATEMENTS_FOLDED, /* into "(other)" */
	STATEMENTS_COUNTERS,
};
uint64_t statement_stats_counter(enum statement_counter_name which);

/* In a forked child: counts begin at 0. */
void statement_stats_reset_in_child(void);
