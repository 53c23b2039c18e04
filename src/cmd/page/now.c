/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/page/now.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/file/run_sql.h"
#include "cmd/file/trace_file.h"
#include "cmd/live/processes.h"
#include "cmd/live/snapshot.h"
#include "cmd/read/page.h"
#include "cmd/ui/complain.h"
#include "sql_live_runs.h"
#include "sql_live_transactions.h"
#include "sql_page_now_runs.h"
#include "sql_page_now_transactions.h"

static int keep(sqlite3 *db, const char *table, const char *sql, const struct sql_parameter *parameters)
{
	char *kept = sqlite3_mprintf("CREATE TEMP TABLE %s AS\n%s", table, sql);
	const int result = kept ? run_sql(db, kept, parameters, &(struct output){ .table.is_bare = true })
	                        : complain("out of memory");

	sqlite3_free(kept);
	return result;
}

static int print_open(sqlite3 *db, const struct snapshot *snapshot)
{
	const struct page_options whole = { .no_paths = true };
	char now[24];
	const struct sql_parameter parameters[] = { { ":now_ns", now }, { NULL, NULL } };
	int result;

	snprintf(now, sizeof(now), "%" PRIu64, snapshot->now_ns);
	result = keep(db, "page_runs", sql_live_runs, parameters);
	if (!result)
		result = keep(db, "page_transactions", sql_live_transactions, NULL);
	printf("{\"known\":true,\"at_ms\":%" PRIu64 ",\"processes\":%d,\"unread\":%d,\"changed\":%" PRIu32,
	       snapshot->now_ns / 1000000, snapshot->processes, snapshot->unread, snapshot->changed);
	if (!result)
		result = page_print_rows(db, "runs", sql_page_now_runs, &whole);
	if (!result)
		result = page_print_rows(db, "transactions", sql_page_now_transactions, &whole);
	printf("}\n");
	return result;
}

int now_print(const char *path)
{
	struct snapshot snapshot;
	struct live live;
	sqlite3 *db;
	int result;

	/* Here, a file without a writer is not an error. */
	complain_hold();
	result = live_open("live", path, &live, NULL);
	free(complain_detach());
	if (result) {
		printf("{\"known\":false}\n");
		return COMMAND_FINE;
	}
	db = trace_file_open(path);
	result = db ? COMMAND_FINE : COMMAND_FAILED;
	if (!result && snapshot_take(db, &live, &snapshot) != SQLITE_OK)
		result = complain("live: %s: %s", path, sqlite3_errmsg(db));
	if (!result)
		result = print_open(db, &snapshot);
	if (db)
		trace_file_close(db);
	live_close(&live);
	return result;
}
