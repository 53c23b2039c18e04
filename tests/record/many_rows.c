/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that reads many rows of one query. For each row, a function in SQLite and the program compute for
 * some microseconds each. In the middle one row takes long, another one sleeps, and the program sleeps
 * between two rows. The program prints in ns, by its own clock around each sqlite3_step():
 *   - the time inside,
 *   - the time from the first step's beginning to the last step's end,
 *   - the duration of the sleeps and of the long row,
 *   - the CPU time of everything,
 *   - the interruptions inside sqlite3_step() but outside the function, which only the clocks around the
 *     call may include,
 *   - all interruptions.
 *
 *   many_rows ROWS SEED
 */
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../lib/clock.h"

#define LONG_NS 60000000
#define INSIDE_NS 1500
#define PROGRAM_NS 1000
#define DISTURBED_NS 20000 /* only the first row takes as long without an interruption */

static uint64_t seed, disturbed, in_work;
static long long rows, row, longer;

static uint64_t random_up_to(uint64_t most)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % (most + 1);
}

static uint64_t now(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

static uint64_t disturbance(uint64_t ns)
{
	return ns > DISTURBED_NS ? ns : 0;
}

static void spin(uint64_t ns)
{
	const uint64_t start = now();

	for (uint64_t before = start, at; before - start < ns; before = at) {
		at = now();
		disturbed += disturbance(at - before);
	}
}

static void rest(void)
{
	const struct timespec pause = { .tv_nsec = LONG_NS };
	const uint64_t start = now();

	nanosleep(&pause, NULL);
	longer += (long long)(now() - start);
}

static void work(sqlite3_context *context, int count, sqlite3_value **values)
{
	const uint64_t start = now();

	(void)count;
	row = sqlite3_value_int64(values[0]);
	if (row == rows / 3)
		rest();
	if (row == rows / 2) {
		spin(LONG_NS);
		longer += LONG_NS;
	}
	spin(random_up_to(2 * INSIDE_NS));
	sqlite3_result_int64(context, row);
	in_work = now() - start;
}

int main(int count, char **arguments)
{
	static const char sql[] = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r LIMIT ?) "
				  "SELECT work(i) FROM r";
	uint64_t first = 0, start, last, cpu, inside = 0, between = 0;
	sqlite3_stmt *stmt;
	sqlite3 *db;

	rows = count > 1 ? atoll(arguments[1]) : 1000;
	seed = count > 2 ? strtoull(arguments[2], NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) | 1 : 1;
	if (sqlite3_open(":memory:", &db) ||
	    sqlite3_create_function(db, "work", 1, SQLITE_UTF8, NULL, work, NULL, NULL) ||
	    sqlite3_prepare_v2(db, sql, -1, &stmt, NULL))
		return 1;
	sqlite3_bind_int64(stmt, 1, rows);
	cpu = cpu_ns();
	for (;;) {
		int result;

		in_work = 0;
		start = now();
		result = sqlite3_step(stmt);
		last = now();
		first = first ? first : start;
		inside += last - start;
		between += disturbance(last - start - in_work);
		if (result != SQLITE_ROW)
			break;
		if (row == rows / 4)
			rest();
		spin(random_up_to(2 * PROGRAM_NS));
	}
	cpu = cpu_ns() - cpu;
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	printf("%llu %llu %lld %llu %llu %llu\n", (unsigned long long)inside,
	       (unsigned long long)(last - first), longer, (unsigned long long)cpu,
	       (unsigned long long)between, (unsigned long long)(disturbed + between));
	return 0;
}
