/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of statements: no run is lost, even if threads count, take and fold at the same time.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "query/statement_stats.h"
#include "collect/ring_reader.h"
#include "../lib/seed.h"

struct ring *state_ring; /* defined in collect/state.c, which is not linked */

/* --- the flusher's sums -------------------------------------------------------------------- */

struct sums {
	uint64_t calls, execution_ns, histogram;
	double square;
	int statements;
};

static void add(struct sums *sums, const struct statement_stats *stats)
{
	sums->calls += stats->counts->sums[STATEMENT_CALLS];
	sums->execution_ns += stats->counts->sums[STATEMENT_EXECUTION_NS];
	for (int i = 0; i < STATEMENT_BUCKETS; i++)
		sums->histogram += stats->counts->runs[i];
	sums->square += stats->counts->squares[SQUARE_EXECUTION];
	sums->statements++;
}

static int add_taken(void *sums, const struct statement_stats *stats)
{
	add(sums, stats);
	return 0;
}

static void add_live(void *sums, const struct statement_stats *stats)
{
	add(sums, stats);
}

static void take(struct sums *sums)
{
	assert_int_equal(statement_stats_next(add_taken, sums), 0);
	statement_stats_commit(true);
}

static struct sums live(void)
{
	struct sums sums = { 0 };

	statement_stats_each(add_live, &sums);
	return sums;
}

/* --- one statement --------------------------------------------------------------------------- */

struct wanted {
	const char *text, *database;
	struct statement_counts counts;
	bool found, is_cut;
	size_t size;
};

static void find_text(void *context, const struct statement_stats *stats)
{
	struct wanted *wanted = context;

	if (strncmp(stats->text, wanted->text, strlen(wanted->text)) ||
	    (wanted->database && strcmp(stats->database, wanted->database)))
		return;
	wanted->found = true;
	wanted->is_cut = stats->is_cut;
	wanted->size = strlen(stats->text);
	wanted->counts = *stats->counts;
}

static struct wanted find(const char *text, const char *database)
{
	struct wanted wanted = { .text = text, .database = database };

	statement_stats_each(find_text, &wanted);
	return wanted;
}

static uint64_t count(const char *text, const char *database, uint64_t execution_ns)
{
	const struct statement_name name = { .text = text, .database = database };
	const struct statement_run run = {
		.sums = { [STATEMENT_CALLS] = 1, [STATEMENT_EXECUTION_NS] = execution_ns },
		.seen_ns = 1000 + execution_ns,
	};

	uint64_t statement = statement_stats_find(&name);

	statement_stats_add(statement, 1, &run);
	return statement;
}

static int begin(void **state)
{
	(void)state;
	statement_stats_reset_in_child();
	statement_stats_set_max(STATEMENTS_MAX_DEFAULT);
	state_ring = ring_create(1 << 16);
	return state_ring ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	ring_destroy(state_ring);
	state_ring = NULL;
	return 0;
}

static void literals_are_one_statement(void **state)
{
	struct wanted found;
	uint64_t first = count("SELECT a FROM one WHERE b = 1", "x.db", 1000);

	(void)state;
	assert_int_equal(count("select a from one where b = 'x'", "x.db", 3000), first);
	assert_int_not_equal(count("SELECT a FROM one WHERE b = 1", "y.db", 5000), first);
	found = find("SELECT a FROM one", "x.db");
	assert_true(found.found);
	assert_int_equal(found.counts.sums[STATEMENT_CALLS], 2);
	assert_int_equal(found.counts.sums[STATEMENT_EXECUTION_NS], 4000);
	assert_int_equal(statement_least(&found.counts, LEAST_EXECUTION_NS), 1000);
	assert_int_equal(found.counts.most[MOST_EXECUTION_NS], 3000);
	assert_int_equal(statement_least(&found.counts, LEAST_SEEN_NS), 2000);
	assert_int_equal(found.counts.most[MOST_SEEN_NS], 4000);
	assert_true(found.counts.squares[SQUARE_EXECUTION] == 1e6 + 9e6);
	assert_int_equal(find("SELECT a FROM one", "y.db").counts.sums[STATEMENT_CALLS], 1);
}

/* An engine's names may be any texts, so a query's text may equal another query's database. */
static void names_are_not_mixed_up(void **state)
{
	(void)state;
	assert_int_not_equal(count("users", "users", 1), count("orders", "orders", 1));
	assert_int_not_equal(count("users", "orders", 1), count("orders", "users", 1));
	assert_int_equal(count("users", "users", 1), count("users", "users", 1));
	assert_int_equal(live().statements, 4);
}

static void buckets_are_powers_of_two(void **state)
{
	const char *text = "SELECT bucket";
	struct wanted found;

	(void)state;
	count(text, "", 0);
	count(text, "", 1023);
	count(text, "", 1024);
	count(text, "", 2047);
	count(text, "", 2048);
	count(text, "", UINT32_MAX);
	count(text, "", 1ull << 40);
	found = find(text, "");
	assert_int_equal(found.counts.runs[0], 2);
	assert_int_equal(found.counts.runs[1], 2);
	assert_int_equal(found.counts.runs[2], 1);
	assert_int_equal(found.counts.runs[22], 1);
	assert_int_equal(found.counts.runs[STATEMENT_BUCKETS - 1], 1);
}

/* Finds a statement, as its preparation does. A preparation does not count as a run. */
static uint64_t found(const char *text)
{
	return statement_stats_find(&(struct statement_name){ .text = text, .database = "d" });
}

/* Both ways to count a run have the same result. */
static void a_plain_run_is_counted_as_any(void **state)
{
	const struct statement_plain_run runs[] = { { 3, 5000, 4000, 3000, 6000, 70, 8, 100 },
		                                    { 0, 900, 0, 0, 900, 1, 0, 50 },
		                                    { 1, 1ull << 40, 1ull << 39, 7, 1ull << 41, 9, 2, 200 } };
	uint64_t plain = found("SELECT plain"), any = found("SELECT any_other");
	struct wanted one, other;

	(void)state;
	/* The counter belongs to the first thread that adds to it. */
	assert_null(statement_stats_enter(plain, 1));
	for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
		const struct statement_plain_run *run = &runs[i];
		const struct statement_run same = {
			.sums = { 1, run->rows, run->execution_ns, run->cpu_ns, run->cpu_estimated_ns,
			          run->duration_ns, run->vm_steps, run->fullscan_steps },
			.seen_ns = run->seen_ns,
			.is_plain = true,
		};
		struct statement_counts *own = statement_stats_enter(plain, 1);

		statement_stats_add(any, 1, &same);
		if (!i) {
			assert_null(own);
			statement_stats_add(plain, 1, &same);
			continue;
		}
		assert_non_null(own);
		statement_counts_add_plain(own, run);
		statement_stats_detach(own);
	}
	one = find("SELECT plain", "d");
	other = find("SELECT any_other", "d");
	assert_memory_equal(&one.counts, &other.counts, sizeof(one.counts));
	assert_int_equal(one.counts.sums[STATEMENT_CALLS], sizeof(runs) / sizeof(*runs));
	/* Refused: another thread, and a number that belongs to another statement. */
	assert_null(statement_stats_enter(plain, 2));
	assert_null(statement_stats_enter(plain + (1ull << 32), 1));
	assert_null(statement_stats_enter(0, 1));
}

static void a_preparation_has_no_time_of_a_run(void **state)
{
	const struct statement_name name = { .text = "SELECT prepared", .database = NULL };
	const struct statement_run run = { .sums = {
						   [STATEMENT_PREPARES] = 1, [STATEMENT_EXECUTION_NS] = 7 } };
	struct wanted found;

	(void)state;
	statement_stats_add(statement_stats_find(&name), 1, &run);
	found = find(name.text, "");
	assert_int_equal(found.counts.sums[STATEMENT_EXECUTION_NS], 7);
	assert_int_equal(found.counts.most[MOST_EXECUTION_NS], 0);
	assert_int_equal(statement_least(&found.counts, LEAST_EXECUTION_NS), 0);
	assert_int_equal(found.counts.runs[0], 0);
}

static void a_long_text_is_cut_between_characters(void **state)
{
	char text[STATEMENT_TEXT_MAX + 100];
	struct wanted found;

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, "SELECT \"", 8);
	memcpy(text + STATEMENT_TEXT_MAX - 1, "\xc3\xa4", 2);
	text[sizeof(text) - 1] = '\0';
	count(text, "", 1);
	found = find("SELECT \"aaaa", "");
	assert_true(found.is_cut);
	assert_int_equal(found.size, STATEMENT_TEXT_MAX - 1);
}

/* --- the flusher -------------------------------------------------------------------------------- */

static void what_was_not_stored_is_taken_again(void **state)
{
	struct sums first = { 0 }, again = { 0 }, nothing = { 0 };

	(void)state;
	count("SELECT again", "", 5);
	statement_stats_next(add_taken, &first);
	statement_stats_commit(false);
	count("SELECT again", "", 6);
	take(&again);
	take(&nothing);
	assert_int_equal(first.calls, 1);
	assert_int_equal(again.calls, 2);
	assert_int_equal(again.execution_ns, 11);
	assert_int_equal(nothing.statements, 0);
}

static int records(void)
{
	unsigned kind;
	size_t size;
	int count = 0;

	for (; ring_peek(state_ring, &kind, &size); count++)
		ring_consume(state_ring);
	return count;
}

static void the_flusher_learns_of_it_once(void **state)
{
	struct sums sums = { 0 };

	(void)state;
	assert_int_equal(records(), 0);
	for (int i = 0; i < 1000; i++)
		count("SELECT announced", "", 1);
	assert_int_equal(records(), 1);
	take(&sums);
	count("SELECT announced", "", 1);
	assert_int_equal(records(), 1);
	statement_stats_discard();
	count("SELECT announced", "", 1);
	assert_int_equal(records(), 1);
}

/* --- the bound ------------------------------------------------------------------------------------ */

static uint64_t count_shape(int shape, uint64_t execution_ns)
{
	char text[64];

	snprintf(text, sizeof(text), "SELECT a FROM t%d", shape);
	return count(text, "bound.db", execution_ns);
}

static void the_least_used_become_other(void **state)
{
	struct sums taken = { 0 };
	uint64_t calls = 0;

	(void)state;
	statement_stats_set_max(16);
	for (int shape = 0; shape < 100; shape++) {
		/* Every tenth statement is used often. */
		for (int i = 0; i < (shape % 10 ? 1 : 50); i++, calls++)
			count_shape(shape, 3);
		take(&taken);
		assert_true(statement_stats_counter(STATEMENTS_KEPT) <= 16);
	}
	assert_int_equal(taken.calls, calls);
	assert_int_equal(taken.execution_ns, 3 * calls);
	assert_int_equal(live().calls, calls);
	assert_int_equal(live().histogram, calls);
	for (int shape = 0; shape < 100; shape += 10) {
		char text[64];

		snprintf(text, sizeof(text), "SELECT a FROM t%d", shape);
		assert_true(find(text, "bound.db").found);
	}
	assert_true(find("(other)", "").counts.sums[STATEMENT_CALLS] >= 74);
	assert_true(statement_stats_counter(STATEMENTS_FOLDED) >= 74);
}

/* After its statement was folded, a number belongs to "(other)". */
static void an_old_number_is_not_anothers(void **state)
{
	const struct statement_name name = { .text = "SELECT a FROM old", .database = "bound.db" };
	const struct statement_run run = { .sums = { [STATEMENT_CALLS] = 1 } };
	uint64_t old = statement_stats_find(&name), calls;
	struct sums taken = { 0 };

	(void)state;
	statement_stats_set_max(16);
	statement_stats_add(old, 1, &run);
	for (int shape = 200; shape < 240; shape++) {
		for (int i = 0; i < 5; i++)
			count_shape(shape, 1);
		take(&taken);
	}
	assert_false(find(name.text, NULL).found);
	calls = find("(other)", "").counts.sums[STATEMENT_CALLS];
	statement_stats_add(old, 1, &run);
	assert_int_equal(find("(other)", "").counts.sums[STATEMENT_CALLS], calls + 1);
	assert_int_not_equal(statement_stats_find(&name), old);
}

/* --- parts -------------------------------------------------------------------------------------- */

struct taken_parts {
	struct {
		struct statement_part part;
		uint64_t calls;
	} items[64];
	int count;
};

static int add_part(void *context, const struct statement_stats *stats)
{
	struct taken_parts *parts = context;

	assert_true(parts->count < 64);
	parts->items[parts->count].part = stats->part;
	parts->items[parts->count++].calls = stats->counts->sums[STATEMENT_CALLS];
	return 0;
}

static struct taken_parts take_parts(void)
{
	struct taken_parts parts = { .count = 0 };

	assert_int_equal(statement_stats_next(add_part, &parts), 0);
	statement_stats_commit(true);
	return parts;
}

static void count_layout(const char *text, uint64_t layout, int runs)
{
	const struct statement_name name = { .text = text, .database = "parts.db", .layout = layout };
	const struct statement_run run = { .sums = { [STATEMENT_CALLS] = 1, [STATEMENT_EXECUTION_NS] = 1 } };

	for (int i = 0; i < runs; i++)
		statement_stats_add(statement_stats_find(&name), 1, &run);
}

static void each_change_of_the_layout_begins_a_part(void **state)
{
	struct taken_parts parts;

	(void)state;
	count_layout("SELECT parts", 7, 5);
	count_layout("SELECT parts", 8, 6);
	count_layout("SELECT parts", 7, 30);
	count_layout("SELECT parts", 0, 2); /* layout not known, so no change */
	count_layout("SELECT parts", 7, 1);
	parts = take_parts();
	assert_int_equal(parts.count, 4);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(parts.items[i].part.period, i);
		assert_int_equal(parts.items[i].part.layout, i == 1 ? 8 : 7);
	}
	assert_int_equal(parts.items[0].calls, 5);
	assert_int_equal(parts.items[1].calls, 6);
	assert_int_equal(parts.items[2].calls, 31);
	assert_int_equal(parts.items[3].calls, 2);
	/* Readers see one statement. */
	assert_int_equal(find("SELECT parts", "parts.db").counts.sums[STATEMENT_CALLS], 44);
	assert_int_equal(live().statements, 1);
}

/* A caller that already has the hashes of the text and the database finds the same part. */
static void hashes_that_are_given_are_used(void **state)
{
	const char *const text = "SELECT hashed", *const database = "hashed.db";
	const struct statement_name name = { .text = text, .database = database, .layout = 7 };
	struct statement_name given = { .text = text,
		                        .database = database,
		                        .layout = 7,
		                        .text_hash = hash_bytes(text, strlen(text)),
		                        .database_hash = hash_bytes(database, strlen(database)) };
	const uint64_t found = statement_stats_find(&name);

	(void)state;
	assert_true(statement_stats_is_found(found));
	/* The texts of a known statement are not read again. */
	given.text = given.database = "not read";
	assert_int_equal(statement_stats_find(&given), found);
	given.text_hash = hash_bytes("SELECT other", 12);
	given.text = "SELECT other";
	given.database = database;
	assert_int_not_equal(statement_stats_find(&given), found);
}

/* Two connections or literals may alternate. Their layouts are not changes of the plan. */
static void layouts_that_alternate_have_a_part_each(void **state)
{
	struct taken_parts parts;
	uint64_t calls = 0;

	(void)state;
	for (int i = 0; i < 1000; i++)
		count_layout("SELECT alternating", 1 + (uint64_t)i % 2, 1);
	parts = take_parts();
	assert_in_range(parts.count, 2, 9);
	for (int i = 0; i < 2000; i++)
		count_layout("SELECT alternating", 1 + (uint64_t)i, 1);
	parts = take_parts();
	assert_in_range(parts.count, 2, 25);
	for (int i = 0; i < parts.count; i++)
		calls += parts.items[i].calls;
	assert_int_equal(calls, 2000);
	assert_int_equal(live().calls, 3000);
}

static void each_comment_has_a_part(void **state)
{
	char text[128];
	struct taken_parts parts;

	(void)state;
	for (int i = 0; i < 50; i++) {
		snprintf(text, sizeof(text), "SELECT c /*route='a',traceparent='00-%032x-%016x-01'*/", i, i);
		count_layout(text, 7, 1);
	}
	count_layout("SELECT c /*route='b'*/", 7, 3);
	count_layout("SELECT c", 7, 4);
	parts = take_parts();
	assert_int_equal(parts.count, 3);
	assert_int_equal(parts.items[0].calls, 50);
	assert_int_equal(parts.items[1].calls, 3);
	assert_int_equal(parts.items[2].calls, 4);
	assert_int_equal(parts.items[2].part.labels, 0);
	assert_int_equal(parts.items[2].part.period, 0);
	/* If the comment differs each time, there is not a part for each. */
	for (int i = 0; i < 500; i++) {
		snprintf(text, sizeof(text), "SELECT c /*request='%d'*/", i);
		count_layout(text, 7, 1);
	}
	assert_in_range(take_parts().count, 2, 25);
	assert_int_equal(live().calls, 557);
}

static void nothing_is_counted_at_0(void **state)
{
	(void)state;
	statement_stats_set_max(0);
	assert_int_equal(count("SELECT off", "", 1), 0);
	assert_false(find("SELECT off", "").found);
}

static void failures_have_a_few_lines_each(void **state)
{
	uint64_t statement = count("SELECT failing", "", 1), other = count("SELECT failing, too", "", 1);
	int lines[3] = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++) {
		lines[0] += statement_stats_is_first_failure(statement, 19);
		lines[1] += statement_stats_is_first_failure(statement, 5);
		lines[2] += statement_stats_is_first_failure(other, 19);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(lines[i], 10);
}

/* --- several threads at the same time ------------------------------------------------------------------ */

#define THREADS 6

struct work {
	long runs;
	int shapes;
	uint64_t seed;
	bool keeps_number;
	uint32_t thread;
	struct sums done;
};

static void *work(void *context)
{
	struct work *work = context;
	uint64_t random = work->seed, known = 0;

	for (long i = 0; i < work->runs; i++) {
		struct statement_run run = { .sums = { [STATEMENT_CALLS] = 1 }, .seen_ns = 1 };
		char text[64];
		const struct statement_name name = { .text = text, .database = "threads.db" };

		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		snprintf(text, sizeof(text), "SELECT a FROM s%d",
		         work->keeps_number ? 0 : (int)(random % (unsigned)work->shapes));
		run.sums[STATEMENT_EXECUTION_NS] = random >> 40;
		if (!known || !work->keeps_number)
			known = statement_stats_find(&name);
		statement_stats_add(known, work->thread, &run);
		work->done.calls++;
		work->done.execution_ns += random >> 40;
		work->done.square += (double)(random >> 40) * (double)(random >> 40);
	}
	return NULL;
}

static bool done;

static void *flush(void *sums)
{
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
		take(sums);
		records();
	}
	take(sums);
	return NULL;
}

static void run_threads(int shapes, bool keeps_number)
{
	struct work works[THREADS];
	pthread_t threads[THREADS], flusher;
	struct sums taken = { 0 }, counted = { 0 };
	uint64_t seed = test_seed(88172645463325252ull);

	done = false;
	pthread_create(&flusher, NULL, flush, &taken);
	for (int i = 0; i < THREADS; i++) {
		works[i] = (struct work){ test_rounds(40000), shapes,          seed + (unsigned)i,
			                  keeps_number,       (uint32_t)i + 1, { 0 } };
		pthread_create(&threads[i], NULL, work, &works[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		counted.calls += works[i].done.calls;
		counted.execution_ns += works[i].done.execution_ns;
		counted.square += works[i].done.square;
	}
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	pthread_join(flusher, NULL);
	assert_int_equal(taken.calls, counted.calls);
	assert_int_equal(taken.histogram, counted.calls);
	assert_int_equal(taken.execution_ns, counted.execution_ns);
	assert_true(taken.square > 0.999999 * counted.square && taken.square < 1.000001 * counted.square);
	assert_int_equal(live().calls, counted.calls);
	assert_int_equal(live().execution_ns, counted.execution_ns);
}

static void threads_add_and_the_flusher_takes(void **state)
{
	(void)state;
	run_threads(3, false);
}

static void threads_add_with_numbers(void **state)
{
	(void)state;
	run_threads(1, true);
}

static void threads_add_while_statements_are_folded(void **state)
{
	(void)state;
	statement_stats_set_max(16);
	run_threads(200, false);
	assert_true(statement_stats_counter(STATEMENTS_FOLDED) > 0);
}

static void *find_one(void *number)
{
	const struct statement_name name = { .text = "SELECT 1", .database = "first.db" };

	*(uint64_t *)number = statement_stats_find(&name);
	return NULL;
}

/* For ThreadSanitizer: the flusher reads "(other)" only after it was written. */
static void the_first_statement_comes_while_the_flusher_takes(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++) {
		struct sums taken = { 0 };
		uint64_t number = 0;
		pthread_t thread;

		statement_stats_reset_in_child();
		pthread_create(&thread, NULL, find_one, &number);
		while (!statement_stats_counter(STATEMENTS_KEPT))
			take(&taken);
		take(&taken);
		pthread_join(thread, NULL);
		assert_true(number != 0);
		assert_int_equal(taken.calls, 0);
	}
}

/* A thread is interrupted while it counts, and other counts come, maybe from its own signal handler. */
static void a_taken_lock_stops_nobody(void **state)
{
	struct statement_counter counter = { .generation = 1 };
	const struct statement_run run = { .sums = { [STATEMENT_CALLS] = 1, [STATEMENT_EXECUTION_NS] = 9 } };
	struct statement_counts counts;

	(void)state;
	assert_true(statement_counter_add(&counter, 1, 0, &run));
	counter.lock = 1;
	assert_true(statement_counter_add(&counter, 1, 0, &run));
	assert_false(statement_counter_add(&counter, 2, 0, &run));
	assert_false(statement_counter_renew(&counter, &counts));
	statement_counter_read(&counter, &counts);
	assert_int_equal(counts.sums[STATEMENT_CALLS], 2);
	counter.lock = 0;
	assert_true(statement_counter_renew(&counter, &counts));
	assert_int_equal(counts.sums[STATEMENT_EXECUTION_NS], 18);
	assert_int_equal(counts.runs[0], 2);
	assert_true(counts.squares[SQUARE_EXECUTION] == 162);
	assert_false(statement_counter_add(&counter, 1, 0, &run));
}

/* A thread that used the counter at the same time never leaves it. The counter keeps its generation. */
static void a_guest_that_never_leaves_stops_nobody(void **state)
{
	struct statement_counter counter = { .generation = 1 };
	const struct statement_run run = { .sums = { [STATEMENT_CALLS] = 1, [STATEMENT_EXECUTION_NS] = 9 } };
	struct statement_counts counts;

	(void)state;
	alarm(120); /* ends a hanging test */
	assert_true(statement_counter_add(&counter, 1, 0, &run));
	counter.guests = 1;
	assert_false(statement_counter_renew(&counter, &counts));
	alarm(0);
	assert_int_equal(counter.generation, 1);
	assert_true(statement_counter_add(&counter, 1, 0, &run));
	statement_counter_read(&counter, &counts);
	assert_int_equal(counts.sums[STATEMENT_CALLS], 2);
	counter.guests = 0;
	assert_true(statement_counter_renew(&counter, &counts));
	assert_int_equal(counts.sums[STATEMENT_CALLS], 2);
	assert_false(statement_counter_add(&counter, 1, 0, &run));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(literals_are_one_statement, begin, end),
		cmocka_unit_test_setup_teardown(names_are_not_mixed_up, begin, end),
		cmocka_unit_test_setup_teardown(buckets_are_powers_of_two, begin, end),
		cmocka_unit_test_setup_teardown(a_plain_run_is_counted_as_any, begin, end),
		cmocka_unit_test_setup_teardown(a_preparation_has_no_time_of_a_run, begin, end),
		cmocka_unit_test_setup_teardown(a_long_text_is_cut_between_characters, begin, end),
		cmocka_unit_test_setup_teardown(what_was_not_stored_is_taken_again, begin, end),
		cmocka_unit_test_setup_teardown(the_flusher_learns_of_it_once, begin, end),
		cmocka_unit_test_setup_teardown(the_least_used_become_other, begin, end),
		cmocka_unit_test_setup_teardown(an_old_number_is_not_anothers, begin, end),
		cmocka_unit_test_setup_teardown(each_change_of_the_layout_begins_a_part, begin, end),
		cmocka_unit_test_setup_teardown(hashes_that_are_given_are_used, begin, end),
		cmocka_unit_test_setup_teardown(layouts_that_alternate_have_a_part_each, begin, end),
		cmocka_unit_test_setup_teardown(each_comment_has_a_part, begin, end),
		cmocka_unit_test_setup_teardown(nothing_is_counted_at_0, begin, end),
		cmocka_unit_test_setup_teardown(failures_have_a_few_lines_each, begin, end),
		cmocka_unit_test_setup_teardown(threads_add_and_the_flusher_takes, begin, end),
		cmocka_unit_test_setup_teardown(threads_add_with_numbers, begin, end),
		cmocka_unit_test_setup_teardown(threads_add_while_statements_are_folded, begin, end),
		cmocka_unit_test_setup_teardown(the_first_statement_comes_while_the_flusher_takes, begin,
		                                end),
		cmocka_unit_test(a_taken_lock_stops_nobody),
		cmocka_unit_test(a_guest_that_never_leaves_stops_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
