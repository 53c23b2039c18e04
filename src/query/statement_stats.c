/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries are never freed (statement_memory.h), because threads keep their numbers. A number is an
 * entry's index and its generation, which changes with the statement of the entry.
 *
 * The table (statement_table.h) is read and changed under the lock. In front of it is a cache of
 * numbers without a lock, by the hash of a text and by that of a shape: a known text costs its hash,
 * a new text of a known shape costs the normalization.
 */
#include "query/statement_stats.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/lock.h"
#include "base/vector.h"
#include "base/hot_path.h"
#include "collect/state.h"
#include "handler/ring.h"
#include "query/normalize.h"
#include "query/statement_table.h"
#include "queryprof.h"
#include "settings/setting.h"
#include "wire/record.h"
#include "wire/statement_memory.h"

#define CACHED 32768u /* a power of two */

#define OTHER STATEMENT_OTHER

/* Failures of a code that have a line in the log each. */
#define FAILURES_LOGGED 10u

LOCK_DEFINE(fold_lock, LOCK_STATEMENTS_FOLD);
LOCK_DEFINE(table_lock, LOCK_STATEMENTS, .in_child = statement_stats_reset_in_child);
static uint64_t folded; /* atomic */

size_t statement_stats_most = STATEMENTS_MAX_DEFAULT;
bool statement_stats_announced;

void statement_stats_set_max(size_t wanted)
{
	__atomic_store_n(&statement_stats_most, wanted < STATEMENTS_MAX_MOST ? wanted : STATEMENTS_MAX_MOST,
	                 __ATOMIC_RELAXED);
}

static int set_max(const struct setting_value *value, char **reason)
{
	(void)reason;
	statement_stats_set_max((size_t)value->number);
	return QP_OK;
}

SETTING_NUMBER(most, "", 16, STATEMENTS_MAX_MOST, STATEMENTS_MAX_DEFAULT, .name = "log_statements_max",
               .zero = "nothing is counted", .apply = set_max,
               .description = "Statements that statement_stats counts separately; the least used are "
                              "counted as \"(other)\"");

size_t statement_stats_max(void)
{
	return __atomic_load_n(&statement_stats_most, __ATOMIC_RELAXED);
}

uint64_t statement_stats_counter(enum statement_counter_name which)
{
	return which == STATEMENTS_KEPT ? statement_table_kept() : __atomic_load_n(&folded, __ATOMIC_RELAXED);
}

/* --- numbers ------------------------------------------------------------------------------ */

static uint32_t index_of(uint64_t statement)
{
	return (uint32_t)statement;
}

static uint32_t generation_of(uint64_t statement)
{
	return (uint32_t)(statement >> 32);
}

static uint64_t number_of(uint32_t index)
{
	uint32_t generation = __atomic_load_n(&entry_at(index)->counter.generation, __ATOMIC_RELAXED);

	return (uint64_t)generation << 32 | index;
}

static bool is_current(uint64_t statement)
{
	return number_of(index_of(statement)) == statement;
}

/* --- the cache ------------------------------------------------------------------------------ */

/* Two words, written and read separately, that belong together only if the check confirms it. 79
 * bits of a hash identify a text; a text with the same bits would count for the other one. */
static struct cached {
	uint64_t check, statement;
} cache[CACHED];

static uint64_t cache_find(struct hash key)
{
	const struct cached *at = &cache[key.first & (CACHED - 1)];
	/* Acquire: the entry was initialised before. */
	uint64_t statement = __atomic_load_n(&at->statement, __ATOMIC_ACQUIRE);

	if (!statement || (__atomic_load_n(&at->check, __ATOMIC_RELAXED) ^ statement) != key.second)
		return 0;
	return is_current(statement) &&
	                       !__atomic_load_n(&entry_at(index_of(statement))->is_over, __ATOMIC_RELAXED)
	               ? statement
	               : 0;
}

static void cache_put(struct hash key, uint64_t statement)
{
	struct cached *at = &cache[key.first & (CACHED - 1)];

	__atomic_store_n(&at->check, key.second ^ statement, __ATOMIC_RELAXED);
	__atomic_store_n(&at->statement, statement, __ATOMIC_RELEASE);
}

/* --- room ------------------------------------------------------------------------------------------ */

static bool was_counted(const struct statement_counts *counts)
{
	return counts->sums[STATEMENT_CALLS] || counts->sums[STATEMENT_PREPARES];
}

struct use {
	uint64_t calls, seen_ns;
	uint32_t index;
};

static int compare_use(const void *left, const void *right)
{
	const struct use *a = left, *b = right;

	if (a->calls != b->calls)
		return a->calls < b->calls ? -1 : 1;
	return (a->seen_ns > b->seen_ns) - (a->seen_ns < b->seen_ns);
}

/* Its counts, in the file or not, are "(other)"'s from now on. A reader that comes in between finds that
 * counts have become fewer, and looks again later. */
static bool fold(uint32_t index)
{
	struct statement_entry *entry = entry_at(index);
	struct statement_counts counts;
	bool is_renewed;

	/* No thread finds it now, and threads with its number see that the generation has changed. */
	lock_acquire(&table_lock);
	statement_table_unlink(index);
	lock_release(&table_lock);
	is_renewed = statement_counter_renew(&entry->counter, &counts);
	if (is_renewed) {
		statement_counter_merge(&entry_at(OTHER)->counter, &counts);
		memset(entry->failures, 0, sizeof(entry->failures));
	}
	lock_acquire(&table_lock);
	if (is_renewed) {
		statement_table_free(index);
	} else {
		statement_table_link(index);
	}
	lock_release(&table_lock);
	return is_renewed;
}

static void fold_least_used(struct use *uses, size_t number, uint64_t count, uint64_t wanted)
{
	qsort(uses, number, sizeof(*uses), compare_use);
	statement_memory_begin_fold();
	for (size_t i = 0; i < number && count > wanted; i++)
		if (fold(uses[i].index)) {
			count--;
			__atomic_fetch_add(&folded, 1, __ATOMIC_RELAXED);
		}
	statement_memory_end_fold();
}

/* If the table is full, frees a 16th of it, so that this is rare. It runs on a thread with a new
 * statement and waits for no reader; the next one tries again. */
static void make_room(void)
{
	size_t limit = statement_stats_max(), count = statement_stats_counter(STATEMENTS_KEPT);
	VECTOR(struct use) uses = { 0 };

	if (count < limit || !vector_reserve(&uses, count))
		return;
	if (!lock_try(&fold_lock)) {
		vector_free(&uses);
		return;
	}
	for (uint32_t i = 1; i < statement_memory_made(); i++) {
		struct statement_counts counts;

		statement_counter_read(&entry_at(i)->counter, &counts);
		if (was_counted(&counts)) /* the others are new */
			vector_push(&uses, (struct use){ counts.sums[STATEMENT_CALLS],
			                                 counts.most[MOST_SEEN_NS], i });
	}
	fold_least_used(uses.items, uses.count, count, limit - limit / 16);
	lock_release(&fold_lock);
	vector_free(&uses);
}

/* --- finding ---------------------------------------------------------------------------------- */

static uint64_t find_or_add(uint64_t hash, const char *text, size_t size, const char *database,
                            const struct statement_part *part)
{
	uint64_t statement = 0;

	make_room();
	lock_acquire(&table_lock);
	if (statement_table_begin())
		statement = number_of(
			statement_table_find(statement_stats_max(), hash, text, size, database, *part));
	lock_release(&table_lock);
	return statement;
}

static struct hash hash_once(struct hash computed, const char *text)
{
	return computed.second ? computed : hash_bytes(text, strlen(text));
}

uint64_t statement_stats_find(const struct statement_name *name)
{
	const char *text = name->text ? name->text : "", *database = name->database ? name->database : "";
	struct hash of_database = hash_once(name->database_hash, database),
		    key = hash_once(name->text_hash, text), shape;
	struct statement_part part = { .layout = name->layout };
	uint64_t statement, hash;
	size_t size;

	if (!statement_stats_max())
		return 0;
	/* A text may equal the name of a database: the two are not interchangeable, and do not
	 * cancel each other. */
	key.first += 3 * of_database.first + part.layout;
	key.second += 3 * of_database.second + part.layout;
	statement = cache_find(key);
	if (statement)
		return statement;
	size = strlen(text);
	hash = normalize_hash(text, size);
	part.labels = normalize_comments(text, size);
	shape = hash_words(
		(uint64_t[]){ hash, of_database.first, of_database.second, part.layout, part.labels }, 5);
	statement = cache_find(shape);
	if (!statement) {
		statement = find_or_add(hash, text, size, database, &part);
		/* If it is full now, it may have space the next time. */
		if (!statement || index_of(statement) == OTHER)
			return statement;
		cache_put(shape, statement);
	}
	cache_put(key, statement);
	return statement;
}

/* --- counting --------------------------------------------------------------------------------- */

/* A record brings the flusher to its next flush. With a ring that is full a flush is coming. */
void statement_stats_announce(void)
{
	struct ring *ring = sampler_ring();
	void *record;

	if (!ring || __atomic_exchange_n(&statement_stats_announced, true, __ATOMIC_RELAXED))
		return;
	record = ring_try_reserve(ring, sizeof(uint64_t));
	if (record)
		ring_commit(ring, record, RECORD_STATEMENTS);
}

void statement_stats_add(uint64_t statement, uint32_t thread, const struct statement_run *run)
{
	if (!statement)
		return;
	while (!statement_counter_add(&entry_at(index_of(statement))->counter, generation_of(statement),
	                              thread, run))
		statement = number_of(OTHER);
	statement_stats_announce_new();
}

uint64_t statement_stats_hash(uint64_t statement)
{
	return statement && is_current(statement) ? entry_at(index_of(statement))->hash : 0;
}

bool statement_stats_is_first_failure(uint64_t statement, int code)
{
	struct statement_entry *entry;
	int i, none;

	if (!statement)
		return false;
	entry = entry_at(is_current(statement) ? index_of(statement) : OTHER);
	for (i = 0; i < STATEMENT_FAILURE_CODES - 1; i++) {
		none = 0;
		if (__atomic_load_n(&entry->failures[i].code, __ATOMIC_RELAXED) == code ||
		    __atomic_compare_exchange_n(&entry->failures[i].code, &none, code, false,
		                                __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
		    none == code)
			break;
	}
	/* Saturates, because it would wrap around. */
	return __atomic_load_n(&entry->failures[i].count, __ATOMIC_RELAXED) < FAILURES_LOGGED &&
	       __atomic_fetch_add(&entry->failures[i].count, 1, __ATOMIC_RELAXED) < FAILURES_LOGGED;
}

/* --- reading ------------------------------------------------------------------------------------ */

static struct statement_stats describe(const struct statement_entry *entry,
                                       const struct statement_counts *counts)
{
	return (struct statement_stats){ entry->hash,   entry->text, entry->database,
		                         entry->is_cut, counts,      entry->part };
}

static void read_parts(uint32_t first, struct statement_counts *counts)
{
	struct statement_counts part;

	statement_counter_read(&entry_at(first)->counter, counts);
	for (uint32_t i = first; first != OTHER && (i = statement_table_next(i)) != OTHER;) {
		statement_counter_read(&entry_at(i)->counter, &part);
		statement_counts_add(counts, &part);
	}
}

void statement_stats_each(void (*each)(void *context, const struct statement_stats *stats), void *context)
{
	uint32_t count = statement_memory_made();

	/* Counts that moved to "(other)" after the entry was read would be in no entry. */
	lock_acquire(&fold_lock);
	for (uint32_t i = 0; i < count; i++) {
		struct statement_entry *entry = entry_at(i);
		struct statement_counts counts;
		struct statement_stats stats;

		/* One at a time, which bounds the wait of a thread with a new statement. */
		lock_acquire(&table_lock);
		if (entry->text && (i == OTHER || statement_table_first(entry->hash, entry->database) == i)) {
			read_parts(i, &counts);
			stats = describe(entry, &counts);
			if (was_counted(&counts))
				each(context, &stats);
		}
		lock_release(&table_lock);
	}
	lock_release(&fold_lock);
}

/* --- the flusher ---------------------------------------------------------------------------------- */

/* The flusher's. */
static struct statement_reading stored;
static bool are_due;

/* A thread that adds after this point, and that the following read does not see, announces again.
 * The fence: a thread that finds a counter's lock taken has no lock that orders the two. */
__attribute__((no_sanitize("thread"))) /* it knows no fences */
static void
expect_announcement(void)
{
	__atomic_store_n(&statement_stats_announced, false, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	biased_lock_barrier();
}

/* The counts of "(other)" belong to the generations of that moment. The number of entries that are followed.
 */
static uint32_t follow(struct statement_counts *other)
{
	uint32_t count, followed = 0;

	/* Under the lock: "(other)" has its texts a moment after its entry is made. */
	lock_acquire(&table_lock);
	count = statement_memory_made();
	lock_release(&table_lock);
	lock_acquire(&fold_lock);
	while (followed < count &&
	       statement_reading_follow(&stored, followed, entry_at(followed)->counter.generation))
		followed++;
	if (followed)
		statement_counter_read(&entry_at(OTHER)->counter, other);
	lock_release(&fold_lock);
	return followed;
}

/* The description of the entry, if it still belongs to the statement that was followed. Its texts
 * may be freed after the lock is released, so they are copied into `*texts`, which the caller
 * frees. */
static bool read_entry(uint32_t index, struct statement_counts *now, struct statement_stats *stats,
                       char **texts)
{
	struct statement_entry *entry = entry_at(index);
	size_t size;

	lock_acquire(&fold_lock);
	statement_counter_read(&entry->counter, now);
	lock_acquire(&table_lock);
	*texts = NULL;
	if (entry->text && entry->counter.generation == stored.entries.items[index].generation &&
	    !statement_counts_are_same(now, &stored.entries.items[index].counts)) {
		size = strlen(entry->text) + 1;
		*texts = malloc(size + strlen(entry->database) + 1);
	}
	if (*texts) {
		*stats = describe(entry, now);
		stats->text = strcpy(*texts, entry->text);
		stats->database = strcpy(*texts + size, entry->database);
	}
	lock_release(&table_lock);
	lock_release(&fold_lock);
	return *texts != NULL;
}

static int hand_over(uint32_t index, const struct statement_counts *now, struct statement_stats *stats,
                     int (*each)(void *context, const struct statement_stats *stats), void *context)
{
	struct statement_counts since;
	int code;

	if (!statement_reading_since(&stored, index, now, &since))
		return 0;
	stats->counts = &since;
	code = each(context, stats);
	if (!code)
		statement_reading_keep(&stored, index, now);
	return code;
}

int statement_stats_next(int (*each)(void *context, const struct statement_stats *stats), void *context)
{
	struct statement_counts now;
	struct statement_stats stats;
	uint32_t count;
	int code = 0;

	expect_announcement();
	count = follow(&now);
	if (count) {
		stats = describe(entry_at(OTHER), &now);
		code = hand_over(OTHER, &now, &stats, each, context);
	}
	for (uint32_t i = OTHER + 1; !code && i < count; i++) {
		char *texts;

		if (read_entry(i, &now, &stats, &texts))
			code = hand_over(i, &now, &stats, each, context);
		free(texts);
	}
	return code;
}

void statement_stats_commit(bool is_stored)
{
	statement_reading_commit(&stored, is_stored);
	if (is_stored)
		are_due = false;
	else
		statement_stats_discard();
}

void statement_stats_discard(void)
{
	are_due = true;
	__atomic_store_n(&statement_stats_announced, false, __ATOMIC_RELAXED);
}

bool statement_stats_are_due(void)
{
	return are_due;
}

/* An empty table: what the parent's flusher may have been at does not matter. */
void statement_stats_reset_in_child(void)
{
	statement_table_reset_in_child();
	statement_memory_reset_in_child();
	statement_reading_reset(&stored);
	are_due = false;
	statement_stats_announced = false;
	folded = 0;
}
