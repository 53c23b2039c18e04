/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selected_sums FILE [LABEL]: compares the virtual table selected_sums with the view of the same name, which
 * it replaces, and summed_runs with run_values, for all samples and runs of the file or for LABEL's only.
 * Prints the number of compared groups of samples.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/file/selection.h"
#include "cmd/file/trace_file.h"
#include "sql_selected.h"
#include "store/file/database.h"

#define VIEW "CREATE TEMP VIEW selected_sums"
#define KEYS                                                                                                 \
	"series, trace_type, thread, run, logged, hash, program, own_program, finished, is_worker, "         \
	"comment, "                                                                                          \
	"labels, stack_id, opcode, node, phase, wait, queued, checkpoint, spill"
/* Rounds the sums of floating-point numbers, because the two add in different orders. */
#define SUMS                                                                                                 \
	"sum(samples), sum(value), printf('%%.12g', sum(square)), printf('%%.12g', sum(spread)), "           \
	"max(longest), sum(stretches), sum(changes)"

static void run(sqlite3 *db, const char *sql)
{
	char *error = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK) {
		fprintf(stderr, "%s: %s\n", error, sql);
		exit(1);
	}
}

static void keep(sqlite3 *db, const char *name)
{
	static const char *const keys[] = { KEYS, "trace_type", "program, phase",
		                            "comment, labels, run, trace_type" };
	const size_t count = sizeof(keys) / sizeof(keys[0]);

	for (size_t i = 0; i < count; i++) {
		char *sql = sqlite3_mprintf("CREATE TEMP TABLE %s_%d AS SELECT %s, " SUMS
		                            " FROM temp.selected_sums GROUP BY %s",
		                            name, (int)i, keys[i], keys[i]);
		run(db, sql);
		sqlite3_free(sql);
	}
}

/* The columns that only the table has. It has one row for each combination of keys. */
static void keep_shapes(sqlite3 *db)
{
	run(db, "CREATE TEMP TABLE report_shapes AS SELECT id AS stack_id, 7 AS shape FROM stacks");
	run(db, "CREATE TEMP TABLE made_shapes AS SELECT shape, trace_type, wait, value, longest, last_stack"
	        " FROM temp.selected_sums");
}

static void keep_plain_shapes(sqlite3 *db)
{
	run(db, "CREATE TEMP TABLE plain_shapes AS SELECT coalesce(shape, 0), trace_type, wait, sum(value), "
	        "max(longest), max(stack_id) FROM temp.selected_sums LEFT JOIN temp.report_shapes"
	        " USING (stack_id) GROUP BY 1, 2, 3");
}

#define GROUPINGS 4 /* of samples */
#define RUN_SUMS                                                                                             \
	"sum(runs), min(run), sum(samples), min(first), max(newest), max(last), sum(ns), max(longest), "     \
	"sum(cpu), sum(outside), printf('%%.12g', sum(ns_square)), printf('%%.12g', sum(cpu_square)), "      \
	"sum(workers), sum(rows), sum(vm_steps), sum(fullscan_steps), max(most_scanned), sum(sorts), "       \
	"sum(autoindexes), sum(prepare), sum(locks), sum(read_ns), sum(write_ns), sum(sync_ns), "            \
	"sum(mutexes), sum(sleeps), sum(others), sum(queue), sum(rest), sum(dropped), sum(reads), "          \
	"sum(read_bytes), sum(writes), sum(write_bytes), sum(syncs)"

static void keep_runs(sqlite3 *db, const char *name, const char *table)
{
	static const char *const keys[] = {
		("statement, hash, program, call_stack, finished, nested, sampled, "
		 "process, library, exception_code, exception"),
		"hash, finished", "exception"
	};

	for (int i = 0; i < 3; i++) {
		char *sql = sqlite3_mprintf("CREATE TEMP TABLE %s_%d AS SELECT %s, " RUN_SUMS
		                            " FROM temp.%s GROUP BY %s",
		                            name, GROUPINGS + i, keys[i], table, keys[i]);
		run(db, sql);
		sqlite3_free(sql);
	}
}

static int compare(sqlite3 *db, const char *name)
{
	char *sql = sqlite3_mprintf(
		"SELECT (SELECT count(*) FROM (SELECT * FROM made_%s EXCEPT SELECT * FROM plain_%s))"
		" + (SELECT count(*) FROM (SELECT * FROM plain_%s EXCEPT SELECT * FROM made_%s))"
		" + abs((SELECT count(*) FROM plain_%s) - (SELECT count(*) FROM made_%s))",
		name, name, name, name, name, name);
	const int differ = (int)database_number(db, sql, -1);

	sqlite3_free(sql);
	if (differ)
		fprintf(stderr, "grouping %s: %d rows differ\n", name, differ);
	return differ;
}

int main(int argc, char **argv)
{
	const struct selection one = { .label = argc > 2 ? argv[2] : NULL };
	sqlite3 *db = argc > 1 ? selection_open(argv[1], &one) : NULL;
	const char *from = strstr(sql_selected, VIEW), *end = from ? strchr(from, ';') : NULL;

	if (!db || !end)
		return 1;
	char *view = sqlite3_mprintf("DROP TABLE temp.selected_sums; %.*s", (int)(end - from), from);
	keep(db, "made");
	keep_shapes(db);
	run(db, view);
	keep(db, "plain");
	keep_plain_shapes(db);
	keep_runs(db, "made", "summed_runs");
	keep_runs(db, "plain", "run_values");
	sqlite3_free(view);
	int differ = compare(db, "shapes");
	for (int i = 0; i < GROUPINGS + 3; i++) {
		char name[12];

		snprintf(name, sizeof(name), "%d", i);
		differ |= compare(db, name);
	}
	printf("%lld\n", (long long)database_number(db, "SELECT count(*) FROM temp.plain_0", 0));
	trace_file_close(db);
	return differ != 0;
}
