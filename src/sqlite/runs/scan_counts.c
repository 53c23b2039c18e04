/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/runs/scan_counts.h"

#include <stdlib.h>
#include <string.h>

#include "collect/state.h"
#include "handler/ring.h"
#include "wire/bytecode_record.h"

#define LOOPS_MAX 64 /* as many tables as SQLite joins */
_Static_assert(LOOPS_MAX * sizeof(struct loop_row) <= BYTECODE_ROWS_BYTES,
               "the loops of a run are one record");

struct scan_counts {
	int count;
	struct {
		int node;
		sqlite3_int64 loops, rows;
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
		    status(stmt, i, SQLITE_SCANSTAT_NVISIT, &counts->items[i].rows))
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
static bool write_rows(const struct scan_counts *from, const struct scan_counts *to, struct loop_row *row)
{
	for (int i = 0; i < to->count; i++) {
		const sqlite3_int64 loops = to->items[i].loops - from->items[i].loops;
		const sqlite3_int64 rows = to->items[i].rows - from->items[i].rows;

		if (loops < 0 || rows < 0)
			return false;
		row[i] = (struct loop_row){ { ROW_LOOP, sizeof(*row), to->items[i].node }, loops, rows };
	}
	return true;
}

void scan_counts_publish(const struct run *run, uint64_t bytecode, bool is_anew)
{
	static const struct scan_counts none;
	scan_status_function *status = function_of(run);
	struct ring *ring = sampler_ring();
	struct bytecode_rows_record *record;
	struct loop_row rows[LOOPS_MAX];
	struct scan_counts now;
	size_t size;

	if (!status || !run->scans || !ring)
		return;
	read_counts(status, run->stmt, &now);
	if (!is_anew && now.count != run->scans->count)
		return;
	size = write_rows(is_anew ? &none : run->scans, &now, rows) ? (size_t)now.count * sizeof(*rows) : 0;
	record = size ? ring_reserve(ring, sizeof(*record) + size) : NULL;
	if (!record)
		return;
	*record = (struct bytecode_rows_record){ bytecode, run->query.key, size };
	memcpy(record->rows, rows, size);
	ring_commit(ring, record, RECORD_BYTECODE_ROWS);
}
