/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The estimated time of runs whose rows are not all measured, compared with the sum of all their rows. Rows
 * and readings are simulated.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "query/rows.h"
#include "../lib/seed.h"

#define ROWS 1000000
#define READING_NS 9

static uint64_t random_state;

static uint64_t random_up_to(uint64_t most)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % (most + 1);
}

static bool one_in(uint64_t n)
{
	return random_up_to(n - 1) == 0;
}

/* A row's time in SQLite and in the program before it, and whether the thread lost its flag in that part. */
struct row {
	double ns[ROWS_PARTS];
	bool is_disturbed[ROWS_PARTS];
};

static struct row plain_row(uint64_t number)
{
	(void)number;
	return (struct row){ .ns = { 20 + (double)random_up_to(4), 80 + (double)random_up_to(400) } };
}

/* The program computes with each row. */
static struct row slow_consumer(uint64_t number)
{
	(void)number;
	return (struct row){ .ns = { 500 + (double)random_up_to(20000), 200 + (double)random_up_to(40) } };
}

/* Both parts vary by much more than their usual time. */
static struct row rough_row(uint64_t number)
{
	(void)number;
	return (struct row){ .ns = { one_in(50) ? 4000 : 60, one_in(100) ? 20000 : 150 } };
}

/* Rows become slower, and the program faster. */
static struct row drifting_row(uint64_t number)
{
	double part = (double)number / ROWS;

	return (struct row){ .ns = { 1000 - 900 * part + (double)random_up_to(50),
		                     100 + 2000 * part + (double)random_up_to(200) } };
}

/* The middle row and some others take a second, and the program sleeps between some rows. */
static struct row row_with_long_ones(uint64_t number)
{
	struct row row = plain_row(number);

	if (number == ROWS / 2 || one_in(ROWS / 8)) {
		row.ns[ROWS_INSIDE] = 1e9;
		row.is_disturbed[ROWS_INSIDE] = true;
	}
	if (one_in(ROWS / 8)) {
		row.ns[ROWS_PROGRAM] = 3e8;
		row.is_disturbed[ROWS_PROGRAM] = true;
	}
	return row;
}

/* Other threads take the processor for a long turn now and then, also while all rows are measured. */
static struct row row_with_turns(uint64_t number)
{
	struct row row = plain_row(number);

	for (int part = ROWS_PROGRAM; part < ROWS_PARTS; part++)
		if (number == ROWS_LEARNED_FROM + 10u * (unsigned)(part + 1) || one_in(ROWS / 20)) {
			row.ns[part] += 4e8;
			row.is_disturbed[part] = true;
		}
	return row;
}

/* A timer's signal takes the flag in either part. */
static struct row row_with_signals(uint64_t number)
{
	struct row row = rough_row(number);

	row.is_disturbed[ROWS_INSIDE] = one_in(2000);
	row.is_disturbed[ROWS_PROGRAM] = one_in(20000);
	return row;
}

struct estimate {
	double inside_ns, program_ns; /* of all rows */
	double estimated_ns, error_ns;
	uint64_t readings;
};

/* Uses row_times in the same way as query.c. */
static struct estimate follow(struct row (*next)(uint64_t), uint64_t rows_wanted, uint64_t random)
{
	struct row_times rows = { .from = ROWS_LEARNED_FROM };
	struct estimate all = { 0 };
	double exact = 0, passed = 0; /* exact: all.inside_ns includes all readings, too */
	bool is_whole = true;

	for (uint64_t number = 0; number < rows_wanted; number++) {
		struct row row = next(number);
		const double parts[ROWS_PARTS] = { row.ns[ROWS_PROGRAM] + READING_NS,
			                           row.ns[ROWS_INSIDE] + READING_NS };

		all.inside_ns += row.ns[ROWS_INSIDE];
		all.program_ns += row.ns[ROWS_PROGRAM];
		if (!rows.is_on) {
			exact += row.ns[ROWS_INSIDE];
			all.readings += 2;
			if (number >= rows.from &&
			    rows_learn(&rows, number, all.inside_ns + all.program_ns,
			               row.is_disturbed[ROWS_PROGRAM] || row.is_disturbed[ROWS_INSIDE]
			                       ? NULL
			                       : parts)) {
				rows.reading_ns = READING_NS;
				rows_start(&rows, random, (uint64_t)exact, (uint64_t)exact);
			}
			continue;
		}
		for (int part = ROWS_PROGRAM; part < ROWS_PARTS; part++) {
			passed += row.ns[part];
			is_whole &= !row.is_disturbed[part];
			if (is_whole && (part == ROWS_INSIDE ? rows_may_pass(&rows) : !rows.is_measured)) {
				rows.left -= part == ROWS_INSIDE;
				continue;
			}
			/* A reading adds to the program's time at most. */
			rows_pass(&rows, &(struct rows_passed){ .ns = passed + READING_NS,
			                                        .part = (enum rows_part)part,
			                                        .is_whole = is_whole });
			all.readings++;
			(part == ROWS_INSIDE ? &all.inside_ns : &all.program_ns)[0] += READING_NS;
			passed = 0;
			is_whole = true;
			if (part == ROWS_INSIDE) {
				rows_next(&rows, number + 1, all.inside_ns + all.program_ns);
				exact = (double)rows_execution_ns(&rows);
			}
		}
	}
	if (rows.is_on) {
		rows_pass(&rows,
		          &(struct rows_passed){ .ns = passed, .part = ROWS_INSIDE, .is_whole = true });
		exact = (double)rows_execution_ns(&rows);
	}
	all.estimated_ns = exact;
	all.error_ns = (double)rows_error_ns(&rows);
	return all;
}

static double square(double value)
{
	return value * value;
}

/* Over many runs, the estimates have no bias, and their errors are as stated and small. */
static void check(const char *name, struct row (*next)(uint64_t), double readings_most)
{
	/* tools/test --long makes 200. */
	const long runs = test_rounds(12);
	double off = 0, squares = 0, stated = 0, part = 0, readings = 0;

	for (long run = 0; run < runs; run++) {
		struct estimate all = follow(next, ROWS, random_up_to(UINT64_MAX - 1));
		double by = all.estimated_ns - all.inside_ns;

		off += by;
		squares += square(by);
		stated += square(all.error_ns);
		part += all.error_ns / (all.inside_ns + all.program_ns) / (double)runs;
		readings += (double)all.readings / ROWS / (double)runs;
		/* An error's own error is at most half of it. The readings of single rows add less than a
		 * thousandth. */
		assert_true(square(by) < square(5 * all.error_ns + all.inside_ns / 1000));
		assert_true(all.error_ns < 0.01 * (all.inside_ns + all.program_ns));
	}
	printf("%s: off by %.0f, stated %.0f, mean %.0f us; error %.2f %%, %.3f readings a row\n", name,
	       1e-3 * __builtin_sqrt(squares / (double)runs), 1e-3 * __builtin_sqrt(stated / (double)runs),
	       1e-3 * off / (double)runs, 100 * part, readings);
	assert_true(square(off) < 16 * stated + square(1e-4 * (double)runs * ROWS * 100));
	assert_true(readings < readings_most);
}

static void plain_rows_are_seldom_measured(void **state)
{
	(void)state;
	check("plain rows", plain_row, 0.1);
}

static void a_slow_consumer_is_told_apart(void **state)
{
	(void)state;
	check("slow consumer", slow_consumer, 0.1);
}

static void rough_rows_are_measured_more_often(void **state)
{
	(void)state;
	check("rough rows", rough_row, 1.2);
}

static void rows_may_drift(void **state)
{
	(void)state;
	check("drifting rows", drifting_row, 0.8);
}

static void long_rows_and_sleeps_are_found(void **state)
{
	(void)state;
	check("long rows", row_with_long_ones, 0.2);
}

static void turns_of_others_are_no_usual_rows(void **state)
{
	(void)state;
	check("turns of others", row_with_turns, 0.2);
}

static void signals_do_not_matter(void **state)
{
	(void)state;
	check("signals", row_with_signals, 1.2);
}

/* Learns rows that do not vary, up to the first row that may pass unmeasured. */
static uint64_t learn(struct row_times *rows)
{
	uint64_t count = ROWS_LEARNED_FROM;

	*rows = (struct row_times){ .from = ROWS_LEARNED_FROM };
	while (!rows_learn(rows, count, (double)(count + 1) * 12000, (const double[]){ 2000, 10000 }))
		count++;
	return count + 1;
}

/* Other statements run between the rows. */
static void disturbed_rows_are_all_measured(void **state)
{
	struct row_times rows;
	uint64_t count = learn(&rows), first = count;

	(void)state;
	assert_int_equal(count, 2 * ROWS_EXACT);
	rows_start(&rows, 1, count * 10000, count * 10000);
	while (rows.is_on) {
		rows_pass(&rows, &(struct rows_passed){ .ns = 2000, .part = ROWS_PROGRAM });
		rows_pass(&rows, &(struct rows_passed){ .ns = 10000, .part = ROWS_INSIDE, .is_whole = true });
		count++;
		rows_next(&rows, count, (double)count * 12000);
		assert_true(count <= first + ROWS_TRIED);
	}
	assert_true(rows.from == ROWS_ALL);
	assert_in_range(rows_execution_ns(&rows), count * 10000 - 100, count * 10000 + 100);
	assert_true(rows_error_ns(&rows) < 100);
}

/* A slow time without a break between two readings may belong to either part. */
static void what_is_not_known_is_in_the_error(void **state)
{
	struct row_times rows;

	(void)state;
	learn(&rows);
	rows_start(&rows, 1, 640000, 640000);
	rows.is_measured = false;
	rows.has_program = true;
	rows.left_then = 20;
	rows.left = 11;
	rows_pass(&rows, &(struct rows_passed){ .ns = 5e6, .part = ROWS_INSIDE, .is_whole = true });
	assert_true(rows_error_ns(&rows) > 4800000);
	assert_true(rows_execution_ns(&rows) <= 5640000);
}

static struct row varying_row(uint64_t number)
{
	(void)number;
	return (struct row){ .ns = { (double)random_up_to(400), (double)random_up_to(400) } };
}

/* In a run of few such rows, an estimate's error would exceed the allowed error. */
static void rows_that_vary_are_exact_at_first(void **state)
{
	struct estimate few, many;

	(void)state;
	few = follow(varying_row, 500, 1);
	assert_true(few.estimated_ns == few.inside_ns);
	assert_int_equal(few.readings, 2 * 500);
	assert_true(few.error_ns == 0);
	many = follow(varying_row, ROWS, 1);
	assert_true(many.error_ns > 0);
	assert_true(many.readings < ROWS / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_rows_are_seldom_measured),
		cmocka_unit_test(a_slow_consumer_is_told_apart),
		cmocka_unit_test(rough_rows_are_measured_more_often),
		cmocka_unit_test(rows_may_drift),
		cmocka_unit_test(long_rows_and_sleeps_are_found),
		cmocka_unit_test(turns_of_others_are_no_usual_rows),
		cmocka_unit_test(signals_do_not_matter),
		cmocka_unit_test(disturbed_rows_are_all_measured),
		cmocka_unit_test(what_is_not_known_is_in_the_error),
		cmocka_unit_test(rows_that_vary_are_exact_at_first),
	};

	random_state = test_seed(UINT64_C(0x2545f4914f6cdd1d));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
