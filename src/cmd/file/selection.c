/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which runs a command is about: the options shared by queries, report, plan, export and diff, and the runs
 * that they select from a file (sql/read/select_runs.sql).
 */
#include "cmd/file/selection.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd/file/run_sql.h"
#include "cmd/file/selected_sums.h"
#include "cmd/file/summed_runs.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/moment.h"
#include "sql_run_plans.h"
#include "sql_select_all.h"
#include "sql_select_runs.h"
#include "sql_selected.h"
#include "sql_selected_statements.h"
#include "store/file/database.h"

struct selection selection;

const struct command_option selection_options[] = {
	COMMAND_OPTION("query", "ID", OPTION_QUERY, &selection.query,
	               "the runs with this id (see queries --runs); its beginning is enough"),
	COMMAND_OPTION("statement", "ID", OPTION_STATEMENT, &selection.statement,
	               "the runs of the statement with this id (see queries); its beginning is enough"),
	COMMAND_OPTION("like", "TEXT", OPTION_TEXT, &selection.like,
	               "runs with TEXT in the statement; % and _ work as in LIKE"),
	COMMAND_OPTION("since", "TIME", OPTION_TIME, &selection.since,
	               "runs that began at TIME or later: '2026-11-20 09:30', 10min (ago), end-10min"),
	COMMAND_OPTION("until", "TIME", OPTION_TIME, &selection.until, "runs that began before TIME"),
	COMMAND_OPTION("min-duration", "SPAN", OPTION_PERIOD, &selection.min_duration,
	               "runs that took at least SPAN, such as 50ms or 2s"),
	COMMAND_FLAG("failed", &selection.failed, "runs that ended with an error"),
	COMMAND_OPTION("database", "FILE", OPTION_DATABASE, &selection.database,
	               "runs on this database; the name without its folders is enough"),
	COMMAND_OPTION("process", "PROCESS", OPTION_PROCESS, &selection.process,
	               "runs of this process: its number, program or script"),
	COMMAND_OPTION("thread", "THREAD", OPTION_THREAD, &selection.thread,
	               "runs on this thread: its number or its name"),
	COMMAND_OPTION("label", "KEY=VALUE", OPTION_TEXT, &selection.label,
	               "runs with this label, and only their samples with it"),
	COMMAND_OPTION("last", "N", OPTION_NUMBER, &selection.last, "only the N newest of the selected runs"),
	COMMAND_OPTION("host", "NAME", OPTION_TEXT, &selection.host, "runs on this host"),
	COMMAND_OPTION("service", "NAME", OPTION_TEXT, &selection.service,
	               "runs of programs with this name, without folders: the service of push and exports"),
	COMMAND_OPTION("caller", "CALLER", OPTION_CALLER, &selection.caller,
	               "logged runs that this line of the program began: FILE:LINE, FILE or the function"),
	{ 0 },
};

/* The value in `one` of an option of the table, whose own variable is in `selection`. */
static const char *value_of(const struct selection *one, const struct command_option *option)
{
	return ((const char *const *)one)[option->to - (const char **)&selection];
}

char *selection_describe(const struct selection *one, const char *separator)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	for (const struct command_option *option = selection_options; to && option->name; option++) {
		const char *value = value_of(one, option);
		if (value)
			fprintf(to, "%s%s%s%s", separator, option->name, option->value ? " " : "",
			        option->value ? value : "");
	}
	return to && fclose(to) == 0 ? text : NULL;
}

int selection_check_time(const char *command, const char *option, const char *text)
{
	const struct moment_bases bases = { 0 };
	int64_t ns;

	if (!text || moment_parse(text, &bases, &ns))
		return COMMAND_FINE;
	complain("%s: --%s %s; expected a time such as '2026-11-20 09:30', yesterday, 2h (ago), end-10min "
	         "or start+1min",
	         command, option, text);
	return COMMAND_MISUSED;
}

int selection_check(const char *command, const struct selection *one)
{
	int64_t ns;

	if (one->min_duration && !moment_parse_duration(one->min_duration, &ns)) {
		complain("%s: --min-duration %s; expected a time such as 50ms, 2s or 1min", command,
		         one->min_duration);
		return COMMAND_MISUSED;
	}
	if (one->label && (one->label[0] == '=' || !strchr(one->label, '='))) {
		complain("%s: --label %s; expected KEY=VALUE, such as route=users", command, one->label);
		return COMMAND_MISUSED;
	}
	if (selection_check_time(command, "since", one->since))
		return COMMAND_MISUSED;
	return selection_check_time(command, "until", one->until);
}

/* (A user's own id may have several runs.) */
static const struct id_kind query_ids = { FIND_IDS("SELECT DISTINCT query_id FROM queries WHERE id <> 0"),
	                                  "query",
	                                  { "queries", " --runs" } };
const struct id_kind selection_statement_ids = {
	FIND_IDS("SELECT DISTINCT printf('%016x', normalized_query_hash) FROM statements"),
	"statement",
	{ "queries", "" }
};

char *selection_complete_id(sqlite3 *db, const char *path, const struct id_kind *kind, const char *given)
{
	sqlite3_stmt *row = NULL;
	char *id = NULL;
	int found = 0, code;

	if (sqlite3_prepare_v2(db, kind->find, -1, &row, NULL) == SQLITE_OK)
		sqlite3_bind_text(row, 1, given, -1, SQLITE_STATIC);
	while ((code = sqlite3_step(row)) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(row, 0);
		found++;
		if (!id)
			id = sqlite3_mprintf("%s", text);
	}
	sqlite3_finalize(row);
	if (code != SQLITE_DONE)
		complain("%s: %s", path, sqlite3_errmsg(db));
	else if (found == 1)
		return id;
	else if (found)
		complain("%s: the id of more than one %s begins with %s: give more of it; queryprof %s %s%s "
		         "lists them",
		         path, kind->name, given, kind->list[0], path, kind->list[1]);
	else
		complain("%s: no %s has the id %s; queryprof %s %s%s lists them", path, kind->name, given,
		         kind->list[0], path, kind->list[1]);
	sqlite3_free(id);
	return NULL;
}

const char *selection_time(struct time_text *to, const char *given, const struct moment_bases *bases)
{
	int64_t ns;

	if (!given || !(bases ? moment_parse(given, bases, &ns) : moment_parse_duration(given, &ns)))
		return NULL;
	snprintf(to->text, sizeof(to->text), "%lld", (long long)ns);
	return to->text;
}

struct moment_bases selection_bases(sqlite3 *db, const char *sql)
{
	struct moment_bases bases = { 0 };
	sqlite3_stmt *row = NULL;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	bases.now = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	sqlite3_prepare_v2(db, sql, -1, &row, NULL);
	if (row && sqlite3_step(row) == SQLITE_ROW) {
		bases.start = sqlite3_column_int64(row, 0);
		bases.end = sqlite3_column_int64(row, 1);
	}
	sqlite3_finalize(row);
	return bases;
}

/* The options that must be parsed before SQL can compare with them. */
struct resolved {
	char *query, *statement; /* whole ids */
};

static int select_runs(sqlite3 *db, const struct selection *one, const struct moment_bases *bases,
                       const struct resolved *resolved)
{
	struct time_text times[3];
	const struct sql_parameter parameters[] = {
		{ ":query_id", resolved->query },
		{ ":statement", resolved->statement },
		{ ":like", one->like },
		{ ":since", selection_time(&times[0], one->since, bases) },
		{ ":until", selection_time(&times[1], one->until, bases) },
		{ ":min_duration", selection_time(&times[2], one->min_duration, NULL) },
		{ ":failed", one->failed },
		{ ":database", one->database },
		{ ":process", one->process },
		{ ":thread", one->thread },
		{ ":last", one->last },
		{ ":label", one->label },
		{ ":host", one->host },
		{ ":service", one->service },
		{ ":caller", one->caller },
		{ NULL, NULL },
	};
	const struct output quiet = { .table.is_bare = true },
			    reading = { .table.is_bare = true, .doing = "reading queries" };
	bool is_view = trace_file_is_immutable(db);

	for (const struct sql_parameter *parameter = parameters; parameter->name; parameter++)
		is_view &= !parameter->value;
	int result = run_sql(db, sql_run_plans, NULL, &quiet);
	if (!result)
		result = run_sql(db, is_view ? sql_select_all : sql_select_runs, parameters, &reading);
	if (!result)
		result = run_sql(db, sql_selected, NULL, &reading);
	if (!result && (selected_sums_replace(db) != SQLITE_OK || summed_runs_add(db) != SQLITE_OK))
		result = complain("%s", sqlite3_errmsg(db));
	if (!result) {
		run_sql_prepare(db, sql_selected_statements);
		result = run_sql(db, sql_selected_statements, parameters, &reading);
	}
	return result;
}

/* A command_result. */
static int selection_apply(sqlite3 *db, const char *path, const struct selection *one,
                           const struct moment_bases *bases)
{
	struct resolved resolved = { .query = NULL };
	int result = COMMAND_FAILED;

	if ((!one->query || (resolved.query = selection_complete_id(db, path, &query_ids, one->query))) &&
	    (!one->statement || (resolved.statement = selection_complete_id(
					 db, path, &selection_statement_ids, one->statement))))
		result = select_runs(db, one, bases, &resolved);
	sqlite3_free(resolved.query);
	sqlite3_free(resolved.statement);
	return result;
}

sqlite3 *selection_open(const char *path, const struct selection *one)
{
	struct moment_bases bases = { 0 };
	sqlite3 *db = trace_file_open(path);

	if (db && (one->since || one->until))
		bases = selection_bases(db, "SELECT min(start_ns), max(start_ns) FROM (SELECT iif("
		                            "query_start_ns, query_start_ns, first_ns) AS start_ns FROM "
		                            "queries WHERE id <> 0)");
	if (db && selection_apply(db, path, one, &bases) != COMMAND_FINE) {
		trace_file_close(db);
		return NULL;
	}
	return db;
}

int selection_require(sqlite3 *db, const char *path, const struct selection *one)
{
	int result = COMMAND_FINE;

	/* Without options, row 0 is selected; and a statement may have no logged runs. */
	if (database_number(db,
	                    "SELECT EXISTS (SELECT 1 FROM temp.selected) OR EXISTS (SELECT 1 FROM "
	                    "temp.selected_statements)",
	                    0) == 0) {
		char *options = selection_describe(one, " --");
		result = complain("%s: no run matches%s; queryprof queries %s lists all statements", path,
		                  options ? options : " the options", path);
		free(options);
	}
	return result;
}

/* --- commands that read a file ------------------------------------------------------------- */

/* text: the argument after the file, or NULL. It means the same as --like TEXT. */
static int set_selection(const char *command, const char *text)
{
	if (text && selection.like) {
		complain("%s: STATEMENT %s and --like %s cannot be combined, because both are a part of the "
		         "text",
		         command, text, selection.like);
		return COMMAND_MISUSED;
	}
	if (text)
		selection.like = text;
	return selection_check(command, &selection);
}

int command_run(const struct command *command, int argc, char **argv)
{
	const bool selects = command->shared == selection_options;
	sqlite3 *db;
	int result = command->check ? command->check(argv) : COMMAND_FINE;

	if (!result && command->run)
		return command->run(argc, argv);
	if (!result && selects)
		result = set_selection(command->name, argc > 1 ? argv[1] : NULL);
	if (result)
		return result;
	db = selects ? selection_open(argv[0], &selection) : trace_file_open(argv[0]);
	if (!db)
		return COMMAND_FAILED;
	if (selects)
		result = selection_require(db, argv[0], &selection);
	if (!result)
		result = command->read(db, argv);
	trace_file_close(db);
	return result;
}
