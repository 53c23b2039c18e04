/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/advise/estimates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/text.h"
#include "cmd/advise/host_plan.h"

#define NOT_IN_PLAN INT64_MIN

/* The command's SQLite counts (third_party/sqlite). A test with the command's parts may be linked with
 * another. */
extern int sqlite3_stmt_scanstatus(sqlite3_stmt *, int, int, void *) __attribute__((weak));

COMPARE_BY(compare_counts, struct plan_count, node)

/* In the order of their addresses, because SQLite lists the loops of a subquery before the loop around them.
 */
static bool read_counts(sqlite3_stmt *statement, plan_counts *counts)
{
	sqlite3_int64 loops;

	counts->count = 0;
	for (int i = 0; sqlite3_stmt_scanstatus &&
	                sqlite3_stmt_scanstatus(statement, i, SQLITE_SCANSTAT_NLOOP, &loops) == SQLITE_OK;
	     i++) {
		struct plan_count *count = vector_add(counts);
		const char *detail = NULL;
		sqlite3_int64 rows = 0;
		int explained = 0;

		if (!count)
			return false;
		count->estimate = -1;
		sqlite3_stmt_scanstatus(statement, i, SQLITE_SCANSTAT_NVISIT, &rows);
		sqlite3_stmt_scanstatus(statement, i, SQLITE_SCANSTAT_EST, &count->estimate);
		sqlite3_stmt_scanstatus(statement, i, SQLITE_SCANSTAT_EXPLAIN, &detail);
		sqlite3_stmt_scanstatus(statement, i, SQLITE_SCANSTAT_SELECTID, &explained);
		count->node = explained; /* the address of its Explain */
		count->loops = loops;
		count->rows = rows;
		detail = detail ? detail : "";
		snprintf(count->detail, sizeof(count->detail), "%.*s",
		         (int)text_fit(detail, sizeof(count->detail) - 1), detail);
	}
	if (counts->count)
		qsort(counts->items, counts->count, sizeof(counts->items[0]), compare_counts);
	return true;
}

/* The statement's plan, with the same values, which the planner may look at. NULL: connection->error has the
 * reason. */
static sqlite3_stmt *explain_again(struct connection *connection, sqlite3_stmt *statement)
{
	char *explain = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sqlite3_sql(statement));
	sqlite3_stmt *rows = explain ? connection_prepare(connection, explain) : NULL;

	sqlite3_free(explain);
	if (rows)
		sqlite3_transfer_bindings(statement, rows);
	return rows;
}

bool estimates_read(struct connection *connection, sqlite3_stmt *statement, plan_counts *counts)
{
	sqlite3_stmt *rows;
	size_t next = 0;

	if (!read_counts(statement, counts))
		return false;
	for (size_t i = 0; i < counts->count; i++)
		counts->items[i].node = NOT_IN_PLAN;
	rows = counts->count ? explain_again(connection, statement) : NULL;
	connection->is_recorded = true; /* SQLite may prepare the statement again */
	while (rows && next < counts->count && sqlite3_step(rows) == SQLITE_ROW) {
		struct plan_count *count = &counts->items[next];
		const char *detail = (const char *)sqlite3_column_text(rows, 3);

		if (detail && !strncmp(detail, count->detail, strlen(count->detail))) {
			count->node = sqlite3_column_int64(rows, 0);
			next++;
		}
	}
	connection->is_recorded = false;
	sqlite3_finalize(rows);
	return true;
}

/* Whether the statement's program counts rows down to a limit, also that of a subquery. */
static bool is_cut(struct connection *connection, const char *sql)
{
	char *explain = sqlite3_mprintf("EXPLAIN %s", sql);
	sqlite3_stmt *rows = explain ? connection_prepare(connection, explain) : NULL;
	bool is = false;

	sqlite3_free(explain);
	while (rows && !is && sqlite3_step(rows) == SQLITE_ROW)
		is = !strcmp((const char *)sqlite3_column_text(rows, 1), "DecrJumpZero");
	sqlite3_finalize(rows);
	return is;
}

static bool is_wrong(const struct plan_count *count, bool cut)
{
	const double factor = plan_count_factor(count->loops, count->rows, count->estimate);

	return factor >= PLAN_FACTOR_MARKED ||
	       (factor <= -PLAN_FACTOR_MARKED && !plan_may_end_early(count->detail, cut));
}

/* The estimates of the way's statement. False after a failure, with the reason in connection->error. */
static bool read_estimates(const struct way *way, struct connection *connection, plan_counts *counts)
{
	sqlite3_stmt *statement = way_prepare(way, connection);
	const bool fine = statement && estimates_read(connection, statement, counts);

	sqlite3_finalize(statement);
	return fine;
}

static const char *write_number(char text[32], double number)
{
	snprintf(text, 32, "%.*f", number < 10 && number != floor(number) ? 2 : 0, number);
	return text;
}

/* The plan is the same, so its loops are. */
static void print_same(const struct way *way, const plan_counts *after, bool cut)
{
	const plan_counts *counts = &way->counts;
	char found[32], before[32];

	for (size_t i = 0; i < counts->count && i < after->count; i++) {
		struct plan_count then = counts->items[i];

		if (!is_wrong(&then, cut))
			continue;
		printf("  %s: %s rows a loop, %s estimated; ", then.detail,
		       write_number(found, (double)then.rows / (double)then.loops),
		       write_number(before, then.estimate));
		then.estimate = after->items[i].estimate;
		printf("after ANALYZE %s estimated%s\n", write_number(before, then.estimate),
		       is_wrong(&then, cut) ? ", which does not mend it" : "");
	}
}

void estimates_explain(const struct way *way, struct connection *connection, int64_t ns, bool *is_changed)
{
	const bool cut = is_cut(connection, way->sql);
	const bool has_statistics = connection_number(
		connection, "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'", 0);
	plan_counts after = { 0 };
	size_t wrong = 0;

	*is_changed = false;
	for (size_t i = 0; i < way->counts.count; i++)
		wrong += is_wrong(&way->counts.items[i], cut);
	if (!wrong)
		return;
	char *old_plan = connection_plan(connection, way->sql);

	connection->end_ns = connection_clock_ns() + ns;
	const int code = connection_run(connection, "ANALYZE");
	connection->end_ns = 0;
	char *new_plan = code ? NULL : connection_plan(connection, way->sql);

	printf("\nbad estimates: the database has %s. ",
	       has_statistics ? "statistics, which may be old" : "no statistics");
	if (code == SQLITE_INTERRUPT)
		printf("Whether ANALYZE would help is not known: it takes longer than %.1f s\n",
		       (double)ns / 1e9);
	else if (code)
		printf("Whether ANALYZE would help is not known: %s\n", sqlite3_errmsg(connection->db));
	else if (!old_plan || !new_plan || !read_estimates(way, connection, &after))
		printf("Whether ANALYZE would help is not known: %s\n",
		       *connection->error ? connection->error : "out of memory");
	else if (strcmp(old_plan, new_plan) != 0) {
		printf("After ANALYZE, on the copy, SQLite plans otherwise:\n");
		host_plan_print_lines(new_plan);
		*is_changed = true;
	} else {
		printf("After ANALYZE, on the copy, the plan is the same:\n");
		print_same(way, &after, cut);
	}
	sqlite3_free(old_plan);
	sqlite3_free(new_plan);
	vector_free(&after);
}
