/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Do the samples of each statement add up to the CPU time that its runs used?
 *
 *   tools/bench accuracy -- [--seconds 20]
 *     [--periods 300,1000,3000,10000] [--mixes alone,mixed,bursts] [--loads quiet,busy] [--check]
 *     [--phases]
 *
 * Statements take 20 us, 100 us, 1 ms and 10 ms.
 *
 *   alone    the statements run one after the other
 *   mixed    after each statement the program computes for 0 to 1 ms
 *   bursts   the program computes after a series of equal statements; short statements then have a
 *            good part of the time, so a short measurement suffices for them
 *   quiet    the machine as it is
 *   busy     in addition, two computing processes for each processor
 *
 * The figure is sum(weight) * period / sum(cpu_time_ns) of a statement's text, from system.query_log.
 *
 * The kernel checks a CPU timer only in its tick, so the number of ticks limits the precision of a sum. Each
 * cell consists of PARTS independent parts, and the standard error of its figure comes from their
 * differences. Ticks come in clumps, so their number alone would promise too much. The variance of a sum is
 * proportional to the sum. The error is scaled to a ratio of 1. Otherwise a sum that is too small would have
 * a smaller error than a sum that is too large.
 *
 * --phases measures the machine instead, without the library: when, between two ticks, the short statements
 * of a mix run. A tick samples the code that runs at that moment, so sampling by ticks is right if the mix is
 * the same at all times. It is not quite the same, because a thread gets its processor at a tick, with caches
 * that other programs have used. Its first short statements then take longer than later ones, which the next
 * tick can hit.
 *
 * --check makes it a test: a figure may be off by 3 % or by three of its standard errors, whichever is more.
 * One figure of a hundred is further away by chance. A cell with such a figure is measured again, and fails
 * if it is wrong ROUNDS times.
 */
#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../lib/clock.h"
#include "../lib/must.h"
#include "../lib/busy.h"

#define PARTS 20
#define ROUNDS 3
#define BOUND 0.03
#define ERRORS 3
#define PROGRAM_WORK_NS 1000000 /* at most, in `mixed` */
#define BUSY_PER_PROCESSOR 2

enum { LENGTHS = 4 };

enum mix { ALONE, MIXED, BURSTS, MIXES };

static const char *const mix_names[MIXES] = { "alone", "mixed", "bursts" };

/* `turns` of the statement's loop take `ns`. In `mixed` and `bursts` a statement is drawn
 * with probability `share`, so that each is met often enough, and runs 1 to `most` times. */
static struct statement {
	const char *name;
	double ns, share[MIXES];
	int most[MIXES], turns;
} statements[LENGTHS] = {
	{ .name = "20 us",
	  .ns = 20e3,
	  .share = { [MIXED] = 0.55, [BURSTS] = 0.40 },
	  .most = { [MIXED] = 1, [BURSTS] = 50 } },
	{ .name = "100 us",
	  .ns = 100e3,
	  .share = { [MIXED] = 0.30, [BURSTS] = 0.35 },
	  .most = { [MIXED] = 1, [BURSTS] = 10 } },
	{ .name = "1 ms",
	  .ns = 1e6,
	  .share = { [MIXED] = 0.12, [BURSTS] = 0.22 },
	  .most = { [MIXED] = 1, [BURSTS] = 1 } },
	{ .name = "10 ms",
	  .ns = 10e6,
	  .share = { [MIXED] = 0.03, [BURSTS] = 0.03 },
	  .most = { [MIXED] = 1, [BURSTS] = 1 } },
};

static sqlite3 *db;
static uint64_t random_state = 1;

static double clock_s(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* In [0, 1), SplitMix64. */
static double draw(void)
{
	uint64_t x = random_state += 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

/* --- work ---------------------------------------------------------------------------- */

static double loops_per_s;

/* The program's own computing, as a number of loops. Work that ended by the wall clock would end whenever the
 * program gets a processor again, and so would keep step with the ticks. */
static void compute(double seconds)
{
	for (volatile long i = (long)(seconds * loops_per_s); i > 0; i--)
		;
}

/* --- when between two ticks ---------------------------------------------------------- */

#define PHASES 8
#define PROGRAM LENGTHS /* everything outside of statements */
#define CHUNK_NS 10000

static bool look_at_phases;
static uint64_t tick_ns, tick_offset_ns;
static double phase_ns[LENGTHS + 1][PHASES];

/* The coarse clock changes at a tick. Of several changes, the one with the shortest reading counts. */
static void find_ticks(void)
{
	enum { CHANGES = 20 };
	struct timespec tick;
	uint64_t soonest = UINT64_MAX;

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	tick_ns = (uint64_t)tick.tv_nsec;
	for (int i = 0; i < CHANGES; i++) {
		uint64_t coarse = clock_read_ns(CLOCK_MONOTONIC_COARSE), before, after;
		do {
			before = clock_read_ns(CLOCK_MONOTONIC);
		} while (clock_read_ns(CLOCK_MONOTONIC_COARSE) == coarse);
		after = clock_read_ns(CLOCK_MONOTONIC);
		if (after - before < soonest) {
			soonest = after - before;
			tick_offset_ns = after % tick_ns;
		}
	}
}

/* The work ran from `start` to `end`; without other threads it takes `alone_ns`. */
static void note_phases(int what, uint64_t start, uint64_t end, double alone_ns)
{
	start -= tick_offset_ns;
	end -= tick_offset_ns;
	/* Other threads had the processor meanwhile. Only the part before the tick is known. */
	if ((double)(end - start) > alone_ns + 1e6) {
		end = start - start % tick_ns + tick_ns;
		if ((double)(end - start) > alone_ns)
			return;
	}
	for (uint64_t part = tick_ns / PHASES; start < end;) {
		uint64_t next = start - start % part + part;
		next = next < end ? next : end;
		phase_ns[what][start % tick_ns / part] += (double)(next - start);
		start = next;
	}
}

static sqlite3_stmt *prepare(int turns, const char *mark)
{
	char sql[256];
	sqlite3_stmt *stmt;

	snprintf(sql, sizeof(sql),
	         "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %d) "
	         "SELECT sum(x * 7 %% 13) FROM c -- %s",
	         turns, mark);
	must(db, sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), sql);
	return stmt;
}

static void run(sqlite3_stmt *stmt)
{
	while (sqlite3_step(stmt) == SQLITE_ROW)
		;
	must(db, sqlite3_reset(stmt), "reset");
}

static void run_number(int i, sqlite3_stmt *stmt)
{
	uint64_t start = look_at_phases ? clock_read_ns(CLOCK_MONOTONIC) : 0;

	run(stmt);
	if (look_at_phases)
		note_phases(i, start, clock_read_ns(CLOCK_MONOTONIC), statements[i].ns);
}

static void run_program(double ns)
{
	double chunk = look_at_phases ? CHUNK_NS : ns;

	for (; ns > 0; ns -= chunk) {
		uint64_t start = look_at_phases ? clock_read_ns(CLOCK_MONOTONIC) : 0;
		compute((ns < chunk ? ns : chunk) * 1e-9);
		if (look_at_phases)
			note_phases(PROGRAM, start, clock_read_ns(CLOCK_MONOTONIC), CHUNK_NS);
	}
}

static void calibrate(void)
{
	enum { TURNS = 20000, RUNS = 15 };
	sqlite3_stmt *stmt = prepare(TURNS, "calibration");
	double best = 1;

	for (int i = 0; i < RUNS; i++) {
		double start = clock_s(CLOCK_THREAD_CPUTIME_ID);
		run(stmt);
		double took = clock_s(CLOCK_THREAD_CPUTIME_ID) - start;
		best = took < best ? took : best;
	}
	sqlite3_finalize(stmt);
	for (int i = 0; i < LENGTHS; i++)
		statements[i].turns = (int)(statements[i].ns * 1e-9 / best * TURNS);

	loops_per_s = 1e6;
	best = 1;
	for (int i = 0; i < RUNS; i++) {
		double start = clock_s(CLOCK_THREAD_CPUTIME_ID);
		compute(1);
		double took = clock_s(CLOCK_THREAD_CPUTIME_ID) - start;
		best = took < best ? took : best;
	}
	loops_per_s /= best;
}

static void set_period(long period_ns)
{
	char sql[96];

	snprintf(sql, sizeof(sql), "PRAGMA query_profiler_cpu_time_period_ns = %ld", period_ns);
	must(db, sqlite3_exec(db, sql, NULL, NULL, NULL), sql);
}

/* --- one part of a cell ---------------------------------------------------------------- */

struct sums {
	double runs, clock_ns, sampled_ns;
};

/* Does not read a clock. On a busy machine the kernel ends a thread's turn when the thread reads its CPU
 * clock, and so keeps the next tick away from it. */
static void run_statements(sqlite3_stmt *const stmts[LENGTHS], enum mix mix, int first, double seconds)
{
	if (mix != ALONE) {
		for (double left = seconds * 1e9; left > 0;) {
			double which = draw(), work = draw() * PROGRAM_WORK_NS;
			int i = 0;
			while (i < LENGTHS - 1 && which >= statements[i].share[mix])
				which -= statements[i++].share[mix];
			int times = 1 + (int)(draw() * statements[i].most[mix]);
			for (int n = 0; n < times; n++)
				run_number(i, stmts[i]);
			run_program(work);
			left -= times * statements[i].ns + work;
		}
		return;
	}
	/* Each statement comes first in one of the rounds, because a tick may find the end of the work before
	 * it. */
	for (int n = 0; n < LENGTHS; n++) {
		int i = (first + n) % LENGTHS;
		for (double left = seconds * 1e9 / LENGTHS; left > 0; left -= statements[i].ns)
			run(stmts[i]);
	}
}

static void measure_part(int number, enum mix mix, long period_ns, double seconds, struct sums sums[LENGTHS])
{
	sqlite3_stmt *stmts[LENGTHS], *read;
	char mark[64];

	set_period(0);
	for (int i = 0; i < LENGTHS; i++) {
		snprintf(mark, sizeof(mark), "%s, part %d", statements[i].name, number);
		stmts[i] = prepare(statements[i].turns, mark);
	}
	set_period(period_ns);
	run_statements(stmts, mix, number, seconds);
	set_period(0);

	must(db,
	     sqlite3_prepare_v2(db,
	                        "SELECT count(*), coalesce(sum(cpu_time_ns), 0), coalesce(sum(weight_cpu), 0)"
	                        " FROM system.query_log WHERE query = ?",
	                        -1, &read, NULL),
	     "query_log");
	for (int i = 0; i < LENGTHS; i++) {
		sqlite3_bind_text(read, 1, sqlite3_sql(stmts[i]), -1, SQLITE_STATIC);
		must(db, sqlite3_step(read), "query_log");
		sums[i].runs = sqlite3_column_double(read, 0);
		sums[i].clock_ns = sqlite3_column_double(read, 1);
		sums[i].sampled_ns = sqlite3_column_double(read, 2) * (double)period_ns;
		sqlite3_reset(read);
		sqlite3_finalize(stmts[i]);
	}
	sqlite3_finalize(read);
}

/* --- a cell ------------------------------------------------------------------------------ */

struct figure {
	double runs, clock_ns, ratio, error;
};

/* The ratio of the sums, and its standard error. */
static struct figure figure_of(const struct sums parts[PARTS])
{
	struct figure figure = { 0, 0, 0, 0 };
	double sampled = 0, squares = 0;

	for (int p = 0; p < PARTS; p++) {
		figure.runs += parts[p].runs;
		figure.clock_ns += parts[p].clock_ns;
		sampled += parts[p].sampled_ns;
	}
	if (figure.clock_ns <= 0)
		return figure;
	figure.ratio = sampled / figure.clock_ns;
	for (int p = 0; p < PARTS; p++)
		squares += pow(parts[p].sampled_ns - figure.ratio * parts[p].clock_ns, 2);
	if (sampled > 0)
		figure.error = sqrt(squares * PARTS / (PARTS - 1) / figure.ratio) / figure.clock_ns;
	return figure;
}

static bool is_within(const struct figure *figure)
{
	double off = fabs(figure->ratio - 1);

	return figure->clock_ns > 0 && (off <= BOUND || off <= ERRORS * figure->error);
}

static bool measure_cell(const char *load, enum mix mix, long period_ns, double seconds)
{
	static int number;
	struct sums parts[PARTS][LENGTHS], of_one[PARTS];
	char cell[40];
	bool within = true;

	for (int p = 0; p < PARTS; p++)
		measure_part(number++, mix, period_ns, seconds / PARTS, parts[p]);
	snprintf(cell, sizeof(cell), "%s, %s, %.1f ms", load, mix_names[mix], (double)period_ns / 1e6);
	printf("%-20s", cell);
	for (int i = 0; i < LENGTHS; i++) {
		for (int p = 0; p < PARTS; p++)
			of_one[p] = parts[p][i];
		struct figure figure = figure_of(of_one);
		bool good = is_within(&figure);
		printf("  %.3f +- %.3f %s", figure.ratio, figure.error, good ? " " : "*");
		within &= good;
	}
	puts("");
	fflush(stdout);
	return within;
}

/* Each part's time, relative to an even share of the tick. A tick finds the query of the last column. */
static void print_phases(const char *load, enum mix mix, double seconds)
{
	static const int whats[] = { 0, 1, PROGRAM };
	sqlite3_stmt *stmts[LENGTHS];

	memset(phase_ns, 0, sizeof(phase_ns));
	for (int i = 0; i < LENGTHS; i++)
		stmts[i] = prepare(statements[i].turns, statements[i].name);
	run_statements(stmts, mix, 0, seconds);
	for (int i = 0; i < LENGTHS; i++)
		sqlite3_finalize(stmts[i]);
	for (size_t w = 0; w < sizeof(whats) / sizeof(*whats); w++) {
		const double *of = phase_ns[whats[w]];
		double sum = 0;
		for (int p = 0; p < PHASES; p++)
			sum += of[p];
		printf("%-5s %-6s %-7s", load, mix_names[mix],
		       whats[w] == PROGRAM ? "program" : statements[whats[w]].name);
		for (int p = 0; p < PHASES; p++)
			printf("  %.2f", of[p] * PHASES / sum);
		puts("");
	}
	fflush(stdout);
}

/* --- the options -------------------------------------------------------------------------- */

static struct {
	const char *periods_us, *mixes, *loads;
	double seconds;
	bool check;
} options = {
	.periods_us = "300,1000,3000,10000",
	.mixes = "alone,mixed,bursts",
	.loads = "quiet,busy",
	.seconds = 20,
};

static void read_options(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i];
		if (strcmp(name, "--check") == 0 || strcmp(name, "--phases") == 0) {
			*(name[2] == 'c' ? &options.check : &look_at_phases) = true;
			continue;
		}
		const char *value = ++i < argc ? argv[i] : "";
		if (strcmp(name, "--periods") == 0)
			options.periods_us = value;
		else if (strcmp(name, "--mixes") == 0)
			options.mixes = value;
		else if (strcmp(name, "--loads") == 0)
			options.loads = value;
		else if (strcmp(name, "--seconds") == 0)
			options.seconds = atof(value);
		else if (strcmp(name, "--seed") == 0)
			random_state = strtoull(value, NULL, 0);
		else {
			fprintf(stderr,
			        "%s: the options are --seconds S (of CPU time, for each line), "
			        "--periods US,..., --mixes alone,mixed,bursts, --loads quiet,busy, --seed N, "
			        "--check, --phases\n",
			        name);
			exit(2);
		}
	}
}

static bool measure_load(const char *load)
{
	bool within = true;

	for (int mix = MIXED; look_at_phases && mix < MIXES; mix++) {
		if (strstr(options.mixes, mix_names[mix]))
			print_phases(load, (enum mix)mix, options.seconds);
	}
	if (look_at_phases)
		return true;

	for (const char *period = options.periods_us; period && *period != '\0';) {
		long period_ns = (long)(atof(period) * 1000);
		for (int mix = 0; mix < MIXES; mix++) {
			if (strstr(options.mixes, mix_names[mix]) == NULL)
				continue;
			bool good = measure_cell(load, (enum mix)mix, period_ns, options.seconds);
			for (int round = 1; options.check && !good && round < ROUNDS; round++)
				good = measure_cell(load, (enum mix)mix, period_ns, options.seconds);
			within &= good;
		}
		period = strchr(period, ',');
		period += period != NULL;
	}
	return within;
}

static void print_head(void)
{
	printf("%s, seed %llu\nsampled / CPU clock +- standard error of statements of", QUERYPROF_LIBRARY,
	       (unsigned long long)random_state);
	for (int i = 0; i < LENGTHS; i++)
		printf(" %s%s", statements[i].name, i < LENGTHS - 1 ? "," : "");
	printf("; *: off by more than %.0f %% and %d standard errors\n", BOUND * 100, ERRORS);
}

int main(int argc, char **argv)
{
	char *error = NULL;
	bool within = true;

	read_options(argc, argv);
	must(NULL, sqlite3_open(":memory:", &db), "open");
	must(db, sqlite3_enable_load_extension(db, 1), "enable");
	if (!look_at_phases) {
		if (sqlite3_load_extension(db, QUERYPROF_LIBRARY, "sqlite3_queryprof_init", &error) !=
		    SQLITE_OK) {
			fprintf(stderr, "%s\n", error);
			return 2;
		}
		set_period(0);
		must(db, sqlite3_exec(db, "PRAGMA log_queries_min_query_duration_ns = 0", NULL, NULL, NULL),
		     "every run");
	}
	calibrate();
	find_ticks();
	if (!look_at_phases)
		print_head();
	for (int is_busy = 0; is_busy < 2; is_busy++) {
		const char *load = is_busy ? "busy" : "quiet";
		if (strstr(options.loads, load) == NULL)
			continue;
		if (is_busy)
			busy_start_per_processor(BUSY_PER_PROCESSOR);
		within &= measure_load(load);
	}
	busy_stop();
	sqlite3_close(db);
	return options.check && !within;
}
