/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cmd/file/embed.h"
#include "cmd/file/selection.h"
#include "cmd/file/trace_file.h"
#include "cmd/read/finding_list.h"
#include "cmd/record/background.h"
#include "cmd/record/explain.h"
#include "cmd/record/rings.h"
#include "cmd/ui/progress.h"
#include "sql_record_callers.h"
#include "sql_record_losses.h"
#include "sql_record_plans.h"
#include "sql_record_summary.h"
#include "sql_run_plans.h"
#include "store/file/database.h"

#define EMBED_PATIENCE 2
#define SUMMARY_SECONDS                                                                                      \
	10 /* a script waits for it, and the file may have grown for months, or be a stranger's */

#define FINDINGS_MAX 4
/* The end of the recording does not wait for findings, so they are made of few rows only, and within this
 * time. They cost 70 ms of CPU time, more than most programs with fewer samples. */
#define FINDINGS_SAMPLES 20
#define FINDINGS_ROWS 50000
#define FINDINGS_SECONDS 1

struct summary {
	sqlite3_int64 samples, queries, processes, runs; /* the runs with a row */
	sqlite3_int64 removals;                          /* of rows that were stored */
	struct losses losses;
	char *programs;  /* " (python3 app.py, sqlite3)"; NULL: too many, or not known */
	char *plans;     /* which statements have no plan; NULL: not known, or all have one */
	char *callers;   /* whose programs' lines are not known, NULL: of none */
	bool has_stacks; /* of any recording: there are names to look up */
	bool is_late;    /* and its numbers are not known */
	bool is_damaged; /* which was said */
	bool is_gone;    /* the file that the recording began with */
};

/* Records how a statement on the file ended. The file's header was right, so if the statement fails,
 * another process has changed the tables. */
static void note_end(sqlite3 *db, int code, struct summary *summary)
{
	if (code == SQLITE_INTERRUPT)
		summary->is_late = true;
	if (code == SQLITE_ROW || code == SQLITE_DONE || code == SQLITE_INTERRUPT || summary->is_damaged)
		return;
	summary->is_damaged = true;
	char *error = database_error(db, recording_path);
	complain("%s, so its content is unknown", error ? error : recording_path);
	free(error);
}

/* Adds those that are in the file. */
static void sum_losses(sqlite3 *db, const struct recording *recording, struct summary *summary)
{
	sqlite3_stmt *row = NULL;
	int code = sqlite3_prepare_v2(db, sql_record_losses, -1, &row, NULL);

	if (row)
		sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, ":before"), recording->before);
	while (row && (code = sqlite3_step(row)) == SQLITE_ROW)
		losses_note(&summary->losses, (const char *)sqlite3_column_text(row, 0),
		            (uint64_t)sqlite3_column_int64(row, 1), (uint64_t)sqlite3_column_int64(row, 2));
	note_end(db, code, summary);
	sqlite3_finalize(row);
}

static void sum_plans(sqlite3 *db, const struct recording *recording, struct summary *summary)
{
	sqlite3_stmt *row = NULL;
	int code = sqlite3_exec(db, sql_run_plans, NULL, NULL, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(db, sql_record_plans, -1, &row, NULL);
	if (row)
		sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, ":before"), recording->before);
	if (row && (code = sqlite3_step(row)) == SQLITE_ROW)
		summary->plans = text_format("plans: %lld of %lld sampled statement%s none: %s",
		                             (long long)sqlite3_column_int64(row, 0),
		                             (long long)sqlite3_column_int64(row, 1),
		                             sqlite3_column_int64(row, 1) == 1 ? " has" : "s have",
		                             (const char *)sqlite3_column_text(row, 2));
	note_end(db, code, summary);
	sqlite3_finalize(row);
}

static void sum_callers(sqlite3 *db, const struct recording *recording, struct summary *summary)
{
	sqlite3_stmt *row = NULL;
	int code = sqlite3_prepare_v2(db, sql_record_callers, -1, &row, NULL);

	if (row)
		sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, ":before"), recording->before);
	if (row && (code = sqlite3_step(row)) == SQLITE_ROW)
		summary->callers = text_format(
			"callers: the lines of the program are not known for %s%s: queryprof does not "
			"understand this interpreter, or its driver (docs/limits.md, Lines of the program)",
			(const char *)sqlite3_column_text(row, 0),
			sqlite3_column_int64(row, 1) > 3 ? ", ..." : "");
	note_end(db, code, summary);
	sqlite3_finalize(row);
}

/* Opens the file's tables. For a short recording, SQLite's parsing of the schema takes more time than
 * everything else, and the collector's connection has done that. */
static sqlite3 *open_tables(const struct recording *recording)
{
	sqlite3 *kept = collection_kept(recording->collection);

	if (!kept)
		return trace_file_open_tables(recording->path);
	return trace_file_use_tables(kept, recording->path) ? kept : NULL;
}

static bool summarize(const struct recording *recording, struct summary *summary)
{
	sqlite3 *db;
	sqlite3_stmt *row = NULL;
	bool found = false;
	int code;

	if (!recording->collection->kept.db && trace_file_is_untouched(recording->path))
		return true;
	db = open_tables(recording);
	if (!db)
		return false;
	progress_limit(SUMMARY_SECONDS);
	/* First, so that a loss is reported even if the rest cannot be counted. */
	sum_losses(db, recording, summary);
	code = sqlite3_prepare_v2(db, sql_record_summary, -1, &row, NULL);
	if (row)
		sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, ":before"), recording->before);
	if (row)
		sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, ":runs_before"),
		                   recording->runs_before);
	if (row && (code = sqlite3_step(row)) == SQLITE_ROW) {
		summary->samples = sqlite3_column_int64(row, 0);
		summary->queries = sqlite3_column_int64(row, 1);
		summary->processes = sqlite3_column_int64(row, 2);
		summary->runs = sqlite3_column_int64(row, 3);
		summary->has_stacks = sqlite3_column_int(row, 4);
		summary->removals = sqlite3_column_int64(row, 6) - recording->removals_before;
		if (sqlite3_column_type(row, 5) != SQLITE_NULL)
			summary->programs = text_format(" (%s)", (const char *)sqlite3_column_text(row, 5));
		if (summary->samples) /* only their statements are to have plans */
			sum_plans(db, recording, summary);
		sum_callers(db, recording, summary);
		found = true;
	} else {
		note_end(db, code, summary);
	}
	sqlite3_finalize(row);
	if (db == recording->collection->kept.db)
		sqlite3_progress_handler(db, 0, NULL, NULL); /* the limit is for these statements alone */
	else
		trace_file_close(db);
	return found || summary->is_late;
}

static void tell_losses(const struct losses *losses)
{
	for (const struct loss *loss = losses->reasons; loss < losses->reasons + LOSS_REASONS; loss++) {
		bool is_denied = strstr(loss->reason, strerror(EACCES));
		const char *advice =
			is_denied ? ". A process of another user cannot open this user's file: run "
				    "queryprof record as that user"
				  : "";

		if (loss->samples && strncmp(loss->reason, LOSS_UNCOUNTED, strlen(LOSS_UNCOUNTED)) == 0)
			complain("%s: %llu run%s missing in statement_stats: %s%s", recording_path,
			         (unsigned long long)loss->samples, loss->samples == 1 ? " is" : "s are",
			         loss->reason, advice);
		else if (loss->samples)
			complain("%s: %llu %s lost: %s%s", recording_path, (unsigned long long)loss->samples,
			         loss->samples == 1 ? "sample, row or span" : "samples, rows or spans",
			         loss->reason, advice);
		if (loss->refusals)
			complain("%s: samples missing, refused %llu time%s: %s%s", recording_path,
			         (unsigned long long)loss->refusals, loss->refusals == 1 ? "" : "s",
			         loss->reason, advice);
	}
}

static void tell_finding(const char *line)
{
	complain("%s", line);
}

/* Prints at most five lines; none if that takes too long, because the findings are in the file; and none
 * if the file has other recordings. */
static void tell_findings(const struct recording *recording, const struct summary *found)
{
	const struct selection all = { 0 };
	sqlite3 *db;
	char *inside;
	bool is_made;

	if (!recording->is_new || found->is_late || found->samples < FINDINGS_SAMPLES ||
	    found->samples + found->queries > FINDINGS_ROWS)
		return;
	progress_limit(FINDINGS_SECONDS);
	complain_hold(); /* what is wrong with the file was said */
	db = selection_open(recording->path, &all);
	is_made = db && finding_list_begin(db) == COMMAND_FINE && finding_list_make(db) == COMMAND_FINE;
	free(complain_detach());
	inside = is_made ? finding_list_inside(db) : NULL;
	if (inside)
		complain("%s", inside);
	if (is_made && finding_list_lines(db, FINDINGS_MAX - (inside != NULL), tell_finding) > 0)
		complain("evidence and cures: queryprof findings %s", recording_path);
	else if (!is_made && progress_is_late())
		complain("the findings take longer than %d s: queryprof findings %s", FINDINGS_SECONDS,
		         recording_path);
	sqlite3_free(inside);
	trace_file_close(db);
}

static void tell_content(const struct recording *recording, const struct summary *found)
{
	complain("%s: %lld sample%s, %lld run%s, %lld process%s%s. To read it: queryprof report %s",
	         recording_path, found->samples, found->samples == 1 ? "" : "s", found->runs,
	         found->runs == 1 ? "" : "s", found->processes, found->processes == 1 ? "" : "es",
	         found->programs ? found->programs : "", recording_path);
	tell_findings(recording, found);
}

/* What was stored and is not in the file. */
static void tell_removed(const struct recording *recording, const struct summary *found)
{
	if (found->is_gone)
		complain("%s: the file was removed or renamed during the recording; this one lacks what was "
		         "stored before",
		         recording_path);
	else if (found->removals > 0)
		complain(
			"%s: the file reached its limit of %lld bytes, so the oldest samples and logged runs "
			"were removed (--setting trace_log_max_bytes=0 keeps all)",
			recording_path, (long long)recording->collection->file.max_bytes);
}

/* No one may read a terminal when they end. */
static void tell_left(size_t left)
{
	complain("%zu process%s, and recording continues until %s. To see what was stored and lost by then: "
	         "queryprof report %s",
	         left, left == 1 ? " still runs" : "es still run", left == 1 ? "it ends" : "they end",
	         recording_path);
}

/* On the collector's connection if there is one, which has the schema. */
static void embed_names(const struct recording *recording)
{
	sqlite3 *kept = collection_kept(recording->collection);

	if (kept)
		embed_into(kept, recording->path, EMBED_PATIENCE);
	else
		embed_file(recording->path, EMBED_PATIENCE);
}

void summary_print(const struct recording *recording, const char *program, int status)
{
	struct summary found = { .losses = recording->collection->losses, .is_gone = rings_file_is_gone() };
	bool is_read = summarize(recording, &found); /* has complained if not */

	bool is_empty = is_read && !found.is_late && !found.processes && !explain_has_sqlite();

	if (is_read && ((found.processes && found.has_stacks) || found.is_late) && !recording_no_symbols)
		embed_names(recording);
	collection_fold(recording->collection);
	if (is_empty)
		recording_remove(recording);
	if (recording_quiet)
		return;
	explain_losses(&found.losses);
	bool has_lost = losses_are_pending(&found.losses), has_named = false;
	if (!is_read)
		; /* and that was said */
	else if (found.is_late)
		complain("%s: the content was not counted, because that takes more than %d s. To read it: "
		         "queryprof report %s",
		         recording_path, SUMMARY_SECONDS, recording_path);
	else if (is_empty && !has_lost)
		has_named = program ? explain_no_sqlite(program, status) : explain_not_attached();
	else if (found.samples || found.queries)
		tell_content(recording, &found);
	else if (!has_lost && !found.is_gone)
		has_named = explain_no_query(recording_path);
	if (found.plans && !found.is_late)
		complain("%s", found.plans);
	if (found.callers && !found.is_late)
		complain("%s", found.callers);
	free(found.plans);
	free(found.callers);
	free(found.programs);
	if (!has_named)
		explain_refused("not recorded");
	tell_removed(recording, &found);
	tell_losses(&found.losses);
	explain_confinement(recording_path);
	if (program && rings_left() && (found.samples || found.queries || found.is_late))
		tell_left(rings_left());
}

void summary_end_later(struct collection *collection)
{
	background_end(BACKGROUND_PUSH);
	collection_fold(collection);
	if (!recording_no_symbols)
		embed_file(collection->file.path, EMBED_PATIENCE);
}
