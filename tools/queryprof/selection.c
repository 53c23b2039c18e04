/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which runs a command is about: the options that queries, report, export and diff
 * share, and the runs of a file that they select (sql/selected.sql).
 */
#include "selection.h"

#include <time.h>

#include "moment.h"
#include "run_sql.h"
#include "trace_file.h"
#include "sql_selected.h"

struct selection selection;

const struct command_option selection_options[] = {
	{ .name = "query",
	  .value = "ID",
	  .to = &selection.query,
	  .kind = OPTION_QUERY,
	  .help = "those with this id; its beginning is enough" },
	{ .name = "like",
	  .value = "TEXT",
	  .to = &selection.like,
	  .help = "those with TEXT in the statement; LIKE's % and _ work" },
	{ .name = "since",
	  .value = "TIME",
	  .to = &selection.since,
	  .kind = OPTION_TIME,
	  .help = "those begun then or later: '2026-11-20 09:30', 10min (ago), end-10min" },
	{ .name = "until",
	  .value = "TIME",
	  .to = &selection.until,
	  .kind = OPTION_TIME,
	  .help = "those begun before" },
	{ .name = "last",
	  .value = "N",
	  .to = &selection.last,
	  .kind = OPTION_NUMBER,
	  .help = "of those that are left the N newest" },
	{ 0 },
};

bool selection_is_all(const struct selection *one)
{
	return !one->query && !one->like && !one->since && !one->until && !one->last;
}

int selection_check(const char *command, const struct selection *one)
{
	const struct moment_bases bases = { 0 };
	int64_t ns;

	for (int i = 0; i < 2; i++) {
		const char *text = i ? one->until : one->since;
		if (text && !moment_parse(text, &bases, &ns)) {
			complain("%s: --%s %s; expected a time as '2026-11-20 09:30', yesterday, 2h (ago), "
			         "end-10min "
			         "or start+1min",
			         command, i ? "until" : "since", text);
			return COMMAND_MISUSED;
		}
	}
	return COMMAND_FINE;
}

/* The ids that the given one can mean: itself if a query has it, else
 * all that begin with it. Two rows are enough to know that it is not one. (An id of
 * the user's own may have several runs.) */
static const char find_ids[] =
	"WITH ids AS (SELECT DISTINCT query_id FROM queries WHERE id <> 0) "
	"SELECT query_id FROM ids WHERE query_id = ?1 "
	"UNION ALL SELECT query_id FROM ids WHERE substr(query_id, 1, length(?1)) = ?1 AND ?1 <> '' "
	"AND NOT EXISTS (SELECT 1 FROM ids WHERE query_id = ?1) LIMIT 2";

/* sqlite3_malloc'ed; NULL after a complaint. */
static char *complete_query_id(sqlite3 *db, const char *path, const char *given)
{
	sqlite3_stmt *row = NULL;
	char *id = NULL;
	int found = 0, code;

	if (sqlite3_prepare_v2(db, find_ids, -1, &row, NULL) == SQLITE_OK)
		sqlite3_bind_text(row, 1, given, -1, SQLITE_STATIC);
	while ((code = sqlite3_step(row)) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(row, 0);
		found++;
		if (!id)
			id = sqlite3_mprintf("%s", text);
	}
	sqlite3_finalize(row);
	if (found == 1)
		return id;
	if (code != SQLITE_DONE)
		complain("%s: %s", path, sqlite3_errmsg(db));
	else if (found)
		complain("%s: more than one query's id begins with %s", path, given);
	else
		complain("%s: no query has the id %s", path, given);
	sqlite3_free(id);
	return NULL;
}

/* When the file's first run began, and its last. */
static void find_bases(sqlite3 *db, struct moment_bases *bases)
{
	sqlite3_stmt *row = NULL;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	*bases = (struct moment_bases){ .now = now.tv_sec * INT64_C(1000000000) + now.tv_nsec };
	sqlite3_prepare_v2(
		db,
		"SELECT min(start_ns), max(start_ns) FROM (SELECT iif("
		"query_start_ns, query_start_ns, first_ns) AS start_ns FROM queries WHERE id <> 0)",
		-1, &row, NULL);
	if (row && sqlite3_step(row) == SQLITE_ROW) {
		bases->start = sqlite3_column_int64(row, 0);
		bases->end = sqlite3_column_int64(row, 1);
	}
	sqlite3_finalize(row);
}

/* A command_result. */
static int selection_apply(sqlite3 *db, const char *path, const struct selection *one)
{
	char since[24], until[24];
	struct moment_bases bases;
	int64_t ns;
	struct sql_parameter parameters[] = {
		{ ":query_id", NULL }, { ":like", one->like }, { ":since", NULL },
		{ ":until", NULL },    { ":last", one->last }, { NULL, NULL },
	};

	char *id = one->query ? complete_query_id(db, path, one->query) : NULL;
	if (one->query && !id)
		return COMMAND_FAILED;
	parameters[0].value = id;
	if (one->since || one->until)
		find_bases(db, &bases);
	if (one->since && moment_parse(one->since, &bases, &ns)) {
		snprintf(since, sizeof(since), "%lld", (long long)ns);
		parameters[2].value = since;
	}
	if (one->until && moment_parse(one->until, &bases, &ns)) {
		snprintf(until, sizeof(until), "%lld", (long long)ns);
		parameters[3].value = until;
	}
	int result = run_sql(db, sql_selected, parameters,
	                     &(struct output){ .is_bare = true, .doing = "reading queries" });
	sqlite3_free(id);
	return result;
}

sqlite3 *selection_open(const char *path, const struct selection *one)
{
	sqlite3 *db = trace_file_open(path);

	if (db && selection_apply(db, path, one) != COMMAND_FINE) {
		trace_file_close(db);
		return NULL;
	}
	return db;
}
