/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/runs/scan_counts.h"

#include <stdlib.h>

#include "sqlite/plan/publish.h"

#define FILTERS_SINCE 3038000 /* the version; older ones read other memory for these numbers */

#define LOOPS_MAX 64 /* as many tables as SQLite joins */
_Static_assert(LOOPS_MAX * sizeof(struct loop_row) <= BYTECODE_ROWS_BYTES,
               "the loops of a run are one record");

struct scan_counts {
	int count;
	struct {
		int node;
		sqlite3_int64 loops, rows;
		double estimate;
	} items[LOOPS_MAX];
};

static scan_status_function *function_of(const struct run *run)
{
	const struct opcode_library *library = opcode_library(run->session->library);

	return library ? library->scan_status : NULL;
}

static void read_counts(scan_status_function *status, sqlite3_stmt *stmt, struct scan_counts *counts)
{
	for (int i = counts->count = 0; i < LOOPS_MAX; i = ++counts->count)
		if (status(stmt, i, SQLITE_SCANSTAT_SELECTID, &counts->items[i].node) ||
		    status(stmt, i, SQLITE_SCANSTAT_NLOOP, &counts->items[i].loops) ||
		    status(stmt, i, SQLITE_SCANSTAT_NVISIT, &counts->items[i].rows) ||
		    status(stmt, i, SQLITE_SCANSTAT_EST, &counts->items[i].estimate))
			return;
}

void scan_counts_begin(struct run *run)
{
	scan_status_function *status = function_of(run);

	if (status && !run->scans)
		run->scans = malloc(sizeof(*run->scans));
	if (!run->scans)
		return;
	run->scans->count = 0; /* they may be of a statement before */
	if (status)
		read_counts(status, run->stmt, run->scans);
}

/* False: the counts are inconsistent, because the host has reset them. */
static bool write_rows(const struct scan_counts *from, const struct scan_counts *to, bool is_done,
                       struct loop_row *row)
{
	for (int i = 0; i < to->count; i++) {
		const sqlite3_int64 loops = to->items[i].loops - from->items[i].loops;
		const sqlite3_int64 rows = to->items[i].rows - from->items[i].rows;

		if (loops < 0 || rows < 0)
			return false;
		row[i] = (struct loop_row){ { ROW_LOOP, sizeof(*row), to->items[i].node },
			                    loops,
			                    rows,
			                    is_done ? to->items[i].estimate : -1 };
	}
	return true;
}

void scan_counts_publish(const struct run *run, uint64_t bytecode, bool is_anew, bool is_done)
{
	static const struct scan_counts none;
	scan_status_function *status = function_of(run);
	struct loop_row rows[LOOPS_MAX];
	struct scan_counts now;

	if (!status || !run->scans)
		return;
	/* The making of an automatic index has a node in a program that runs, but not in EXPLAIN QUERY PLAN.
	 * Later nodes have other numbers there. */
	if (host_api(run->session->library)->stmt_status(run->stmt, SQLITE_STMTSTATUS_AUTOINDEX, 0))
		return;
	read_counts(status, run->stmt, &now);
	if ((is_anew || now.count == run->scans->count) &&
	    write_rows(is_anew ? &none : run->scans, &now, is_done, rows))
		publish_counts(run->query.key, bytecode, rows, (size_t)now.count * sizeof(*rows));
}

void filter_counts_publish(const struct run *run, uint64_t bytecode)
{
	const sqlite3_api_routines *api = host_api(run->session->library);
	struct loop_row row = { { ROW_LOOP, sizeof(row), NODE_OF_FILTERS }, 0, 0, -1 };
	sqlite3_int64 runs;

	if (api->libversion_number() < FILTERS_SINCE)
		return;
	runs = api->stmt_status(run->stmt, SQLITE_STMTSTATUS_RUN, 0);
	row.rows = api->stmt_status(run->stmt, SQLITE_STMTSTATUS_FILTER_MISS, 0);
	row.loops = row.rows + api->stmt_status(run->stmt, SQLITE_STMTSTATUS_FILTER_HIT, 0);
	if (runs <= 0 || row.rows < 0 || row.loops < 1)
		return;
	row.rows /= runs;
	row.loops /= runs;
	publish_counts(run->query.key, bytecode, &row, sizeof(row));
}
