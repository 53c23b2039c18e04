/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdict of `analyze` on two ways to run a statement, whose times are made up here. So the true
 * difference is known, and the load of the machine does not matter: cmd/advise/turns.c runs with a clock and
 * statements of this file. A verdict is right if it is "faster" or "slower" at a difference of 5 %, and "no
 * difference" if there is none.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/seed.h"
#include "cmd/advise/turns.h"

#define TRIALS 1000
#define RIGHT 0.95 /* of them */

#define RUN_NS 5e6
#define LIMIT_NS INT64_C(5000000000) /* what analyze takes for one comparison without --for */

/* Factors of a run's time. */
struct noise {
	const char *name;
	double spread;             /* the standard deviation of its logarithm */
	double outliers, outlying; /* the share of runs that take that many times as long */
	double bursts; /* in every other period of PERIOD_RUNS runs, both ways take that many times as long */
	double drift;  /* at the end of the limit, in addition to 1 */
};

#define PERIOD_RUNS 37

static const struct noise noises[] = {
	{ "quiet", 0.005, 0, 1, 1, 0 },
	{ "usual", 0.05, 0.01, 1.5, 1, 0 },
	{ "bursts", 0.03, 0.01, 1.5, 1.4, 0 },
	{ "warming up", 0.03, 0, 1, 1, -0.3 },
};

static const struct noise *noise;
static struct connection connections[2];
static double difference; /* of the second way, as a part of the first one's time */
static double now_ns;
static int runs;

static uint64_t seed;

/* At random, from 0 to before 1. */
static double unit(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (double)(seed >> 11) / (double)(UINT64_C(1) << 53);
}

/* --- what turns.c calls --------------------------------------------------------------------------------- */

int64_t connection_clock_ns(void)
{
	return (int64_t)now_ns;
}

int connection_time(struct connection *connection, sqlite3_stmt *statement, int64_t most_ns, double *ns,
                    int64_t *written)
{
	const double normal = sqrt(-2 * log(1 - unit())) * cos(2 * M_PI * unit());

	(void)statement, (void)most_ns, (void)written;
	*ns = RUN_NS * exp(noise->spread * normal) * (1 + noise->drift * now_ns / (double)LIMIT_NS);
	if (unit() < noise->outliers)
		*ns *= noise->outlying;
	if (runs++ / PERIOD_RUNS & 1)
		*ns *= noise->bursts;
	if (connection == &connections[1])
		*ns *= 1 + difference;
	now_ns += *ns;
	return SQLITE_DONE;
}

int sqlite3_finalize(sqlite3_stmt *statement)
{
	(void)statement;
	return SQLITE_OK;
}

static sqlite3_stmt *prepare(const struct side *side, int variant)
{
	(void)variant;
	return (sqlite3_stmt *)side->connection; /* not NULL */
}

/* --- trials ------------------------------------------------------------------------------------------------
 */

/* Counts right verdicts, and verdicts whose stated error is too small: the truth is more than three errors
 * away. */
static void try(const char *expected, int *right, int *beyond)
{
	const struct side sides[2] = { { &connections[0], prepare, NULL },
		                       { &connections[1], prepare, NULL } };
	const struct turns_limit limit = { LIMIT_NS, LIMIT_NS, 30, TURNS_ENOUGH };
	struct turns turns;

	now_ns = 0;
	runs = 0;
	assert_true(turns_take(&turns, sides, 1, &limit));
	*right += !strcmp(turns_verdict(&turns), expected);
	*beyond += fabs(turns.saved.mean + difference * turns.before.mean) > 3 * sums_error(&turns.saved);
}

static void is_right(void **state)
{
	static const struct {
		double difference;
		const char *expected;
	} cases[] = { { 0.05, "slower" }, { -0.05, "faster" }, { 0, "no difference" } };

	(void)state;
	for (size_t i = 0; i < sizeof(noises) / sizeof(noises[0]); i++)
		for (size_t j = 0; j < sizeof(cases) / sizeof(cases[0]); j++) {
			int right = 0, beyond = 0;

			noise = &noises[i];
			difference = cases[j].difference;
			for (int trial = 0; trial < TRIALS; trial++)
				try(cases[j].expected, &right, &beyond);
			printf("%s, %+.0f %%: %d of %d right, %d beyond three errors\n", noise->name,
			       100 * difference, right, TRIALS, beyond);
			assert_true(right >= RIGHT * TRIALS);
			assert_true(beyond <= 0.02 * TRIALS);
		}
}

/* With so much noise that the time does not suffice, the verdict may be missing, but it is not wrong. */
static void is_not_wrong(void **state)
{
	static const struct noise much = { "much", 1, 0.05, 5, 1, 0 };
	int slower = 0, faster = 0, beyond = 0;

	(void)state;
	noise = &much;
	difference = 0.05;
	for (int trial = 0; trial < TRIALS; trial++) {
		int is_slower = 0, is_faster = 0;

		try("slower", &is_slower, &beyond);
		try("faster", &is_faster, &beyond);
		slower += is_slower;
		faster += is_faster;
	}
	printf("%d slower, %d faster\n", slower, faster);
	assert_true(slower < RIGHT * TRIALS); /* else this is no such noise */
	assert_true(faster <= 0.01 * TRIALS);
	assert_true(beyond <= 0.02 * 2 * TRIALS);
}

/* One pair of runs has no error. */
static void is_not_known(void **state)
{
	struct turns turns = { .is_cut = true };

	(void)state;
	sums_add(&turns.before, 2);
	sums_add(&turns.after, 1);
	sums_add(&turns.saved, 1);
	assert_string_equal(turns_verdict(&turns), "not known");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_right),
		cmocka_unit_test(is_not_wrong),
		cmocka_unit_test(is_not_known),
	};

	seed = test_seed(20261130);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
