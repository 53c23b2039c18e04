/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof record: runs an unchanged program with its queries sampled.
 *
 * The program gets a preload and its settings by the environment, and so do the
 * programs that it starts; all write to one trace file. Everything that could be wrong
 * on the command's side is found before it starts.
 */
#include "cmd/line/command.h"
#include "cmd/ui/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/filters.h"
#include "base/switch_flag.h"
#include "base/text.h"
#include "cmd/file/embed.h"
#include "cmd/file/file_map.h"
#include "cmd/file/library.h"
#include "cmd/file/replaced_file.h"
#include "cmd/file/selection.h"
#include "cmd/file/trace_file.h"
#include "cmd/push/background.h"
#include "cmd/read/finding_list.h"
#include "cmd/record/explain.h"
#include "cmd/record/rings.h"
#include "cmd/ui/progress.h"
#include "queryprof.h"
#include "settings/settings.h"
#include "store/settings.h"
#include "sql_record_losses.h"
#include "sql_record_callers.h"
#include "sql_record_plans.h"
#include "sql_record_summary.h"
#include "sql_run_plans.h"
#include "store/file/database.h"
#include "store/store.h"
#include "wire/version.h"

/* The numbers of env(1) and timeout(1), so that a program's own status is not mistaken. */
enum { RECORD_FAILED = 125, CANNOT_START = 126, NOT_FOUND = 127 };

static const char *quiet, *no_symbols, *append, *begin_anew, *push_url;

static const struct command_option options[] = {
	{ .name = "o",
	  .value = "FILE",
	  .kind = OPTION_FILE,
	  .help = "the trace file (default " TRACE_FILE_DEFAULT
	          "); if it exists, the recording is added to it, with a "
	          "message" },
	{ .name = "append", .to = &append, .help = "add to an existing trace file without a message" },
	{ .name = "new",
	  .to = &begin_anew,
	  .help = "remove an existing trace file when COMMAND has started" },
	{ .name = "cpu",
	  .value = "PERIOD",
	  .kind = OPTION_PERIOD,
	  .help = "CPU time from one sample to the next (default 10ms), 0: none" },
	{ .name = "real",
	  .value = "PERIOD",
	  .kind = OPTION_PERIOD,
	  .help = "wall time from one sample to the next (default 0: none, because CPU time and waits add up "
	          "to it)" },
	{ .name = "off-cpu",
	  .value = "PERIOD",
	  .kind = OPTION_PERIOD,
	  .help = "time waited from one sample of a thread's waits to the next (default 1ms), 0: none" },
	{ .name = "setting",
	  .value = "NAME=VALUE",
	  .kind = OPTION_SETTING,
	  .help = "any other setting; may be repeated" },
	{ .name = "no-symbols",
	  .to = &no_symbols,
	  .help = "leave names and lines out of the file; queryprof embed adds them later" },
	{ .name = "push",
	  .value = "URL",
	  .to = &push_url,
	  .help = "send the trace file to ClickHouse until COMMAND ends (see push)" },
	{ .name = "quiet", .to = &quiet, .help = "print nothing at the end" },
	{ 0 },
};

#define EMBED_PATIENCE 2
#define SUMMARY_SECONDS                                                                                      \
	10 /* a script waits for it, and the file may have grown for months, or be a stranger's */

#define FINDINGS_MAX 4
/* The end of the recording does not wait for findings: they are made of few rows only, and within this time.
 * They cost 70 ms of CPU time, and a program with fewer samples hardly took more. */
#define FINDINGS_SAMPLES 20
#define FINDINGS_ROWS 50000
#define FINDINGS_SECONDS 1

/* --- settings, which go by the environment ------------------------------------------ */

static const char *path_as_given = TRACE_FILE_DEFAULT;

/* A command_result, after a complaint that names what is allowed. */
/* `option`: what gave the value on the command line, NULL: --setting, or none. */
static int set(const char *name, const char *value, const char *option)
{
	const struct setting *setting = settings_find(name);
	char *error = NULL, *checked = NULL, variable[128];
	int code;

	if (setting && setting->is_for_one_statement) {
		complain("record: %s applies to one statement, not to a program", setting->name);
		return COMMAND_MISUSED;
	}
	if (settings_set(NULL, name, value, SETTING_FROM_C, &error)) {
		if (option && error)
			complain("record: --%s %s; expected 0 (off) or a time with us, ms, s or min (%s)",
			         option, value, error);
		else
			complain("record: %s", error ? error : "out of memory");
		free(error);
		return COMMAND_MISUSED;
	}
	checked = settings_get(NULL, name);
	settings_variable(name, variable, sizeof(variable));
	code = checked && setenv(variable, checked, 1) == 0 ? COMMAND_FINE
	                                                    : complain("record: out of memory");
	if (strcasecmp(name, "trace_log_path") == 0)
		path_as_given = value;
	free(checked);
	return code;
}

/* Better here than the library's default, unless the environment has a value. */
static int set_defaults(void)
{
	static const struct {
		const char *name, *value;
	} defaults[] = {
		{ "trace_log_path", TRACE_FILE_DEFAULT },
		{ "query_profiler_off_cpu_period_ns", "1ms" },
		{ "query_profiler_outside", "1" },
	};
	static bool done;
	char variable[128];

	if (done)
		return COMMAND_FINE;
	done = true;
	if (settings_environment_error()) {
		complain("record: %s", settings_environment_error());
		return COMMAND_MISUSED;
	}
	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) {
		settings_variable(defaults[i].name, variable, sizeof(variable));
		const char *known = getenv(variable);
		int result = set(defaults[i].name, known && *known ? known : defaults[i].value, NULL);
		if (result)
			return result;
	}
	return COMMAND_FINE;
}

static int apply_option(const struct command_option *option, const char *value)
{
	static const struct {
		const char *option, *setting;
	} shorts[] = {
		{ "o", "trace_log_path" },
		{ "cpu", "query_profiler_cpu_time_period_ns" },
		{ "real", "query_profiler_real_time_period_ns" },
		{ "off-cpu", "query_profiler_off_cpu_period_ns" },
	};
	int result = set_defaults();

	if (result)
		return result;
	for (size_t i = 0; i < sizeof(shorts) / sizeof(shorts[0]); i++)
		if (strcmp(option->name, shorts[i].option) == 0)
			return set(shorts[i].setting, value, i ? shorts[i].option : NULL);

	const char *equals = strchr(value, '=');
	char *name = equals ? strndup(value, (size_t)(equals - value)) : NULL;
	if (!name) {
		complain("record: --setting %s; expected NAME=VALUE", value);
		return COMMAND_MISUSED;
	}
	result = set(name, equals + 1, NULL);
	free(name);
	return result;
}

/* --- the preload ---------------------------------------------------------------------- */

/* Another version would take the settings otherwise, or refuse the trace file, without
 * a message. */
static bool is_ours(const char *library)
{
	struct stat status;
	void *file = file_map(library, &status);
	bool found = file && memmem(file, (size_t)status.st_size, wire_agreement, wire_agreement_size);

	if (file)
		munmap(file, (size_t)status.st_size);
	return found;
}

static int set_preload(void)
{
	char library[PATH_MAX], preload[PATH_MAX];
	const char *others = getenv("LD_PRELOAD");
	char *both = NULL, filters[12], flag[12];

	if (!library_find("libqueryprof-recorder.so", library) ||
	    !library_find("libqueryprof-preload.so", preload))
		return complain(
			"record: libqueryprof-recorder.so and libqueryprof-preload.so are neither in this "
			"command's folder nor in " QUERYPROF_LIBDIR " from there");
	if (!is_ours(library))
		return complain("record: %s is of another version than this command (" QUERYPROF_VERSION "): "
		                "install both from one build",
		                library);
	if (strpbrk(preload, ": "))
		return complain("record: %s: a path with a blank or a colon cannot be preloaded", preload);
	snprintf(filters, sizeof(filters), "%d", filters_here());
	snprintf(flag, sizeof(flag), "%u", switch_flag_test());
	/* Last: some preloads must come first, and none of them defines queryprof's functions. */
	if (asprintf(&both, "%s%s%s", others ? others : "", others && *others ? ":" : "", preload) < 0 ||
	    setenv("LD_PRELOAD", both, 1) || setenv(FILTERS_VARIABLE, filters, 1) ||
	    setenv(SWITCH_FLAG_VARIABLE, flag, 0)) /* a test may have said no */
		return complain("record: out of memory");
	free(both);
	return COMMAND_FINE;
}

/* --- the trace file ------------------------------------------------------------------- */

struct recording {
	const char *path;
	bool is_new;
	bool is_open;   /* it could be opened: one that is new and could not is perhaps another process's */
	int64_t before; /* the newest process that it knows */
	int64_t runs_before; /* that were counted */
	const struct collection *collection;
};

/* The command does not remove a file that is no trace file. */
static int set_existing_aside(const char *path)
{
	sqlite3 *db = trace_file_open_tables(path); /* complains if it is no trace file */

	if (!db)
		return COMMAND_FAILED;
	trace_file_close(db);
	if (trace_file_is_in_use(path))
		return complain("record: %s: another process has it open, so --new cannot remove it",
		                path_as_given);
	return replaced_file_set_aside(path, path_as_given);
}

/* No file, or what a record left that could not write to it. */
static bool is_empty(const char *path)
{
	struct stat status;

	return stat(path, &status) ? errno == ENOENT : S_ISREG(status.st_mode) && status.st_size == 0;
}

/* What an older recording has left in the file. */
static int read_before(struct recording *recording, const struct database_limits *limits, char **error)
{
	struct database database;
	int code = database_open(&database, recording->path, limits, error);

	if (code)
		return code;
	recording->before = database_number(database.db, "SELECT max(id) FROM processes", 0);
	recording->runs_before = database_number(database.db, "SELECT sum(calls) FROM statement_counters", 0);
	database_close(&database, true);
	return QP_OK;
}

/* Made now if need be: a file that cannot be written is to be known before hours of
 * work, not after. */
static int prepare_recording(struct recording *recording)
{
	const struct database_limits limits = { .wal_bytes = 1 << 20 };
	char *error = NULL;
	bool is_made;
	int code;

	recording->path = getenv("QUERYPROF_TRACE_LOG_PATH");
	if (begin_anew && !is_empty(recording->path) && set_existing_aside(recording->path))
		return COMMAND_FAILED;
	recording->is_new = access(recording->path, F_OK) != 0;
	code = database_touch(recording->path, &limits, &is_made, &error);
	if (!code && !is_made)
		code = read_before(recording, &limits, &error);
	if (code) {
		complain("record: %s", error ? error : "out of memory");
		free(error);
		return COMMAND_FAILED;
	}
	recording->is_open = true;
	/* A recording that grows by mistake shows the sum of two. */
	if (!recording->is_new && !append && !quiet)
		complain("record: %s exists, so this recording is added to it (--new replaces the file, "
		         "--append omits this message)",
		         path_as_given);
	return COMMAND_FINE;
}

struct summary {
	sqlite3_int64 samples, queries, processes, runs; /* queries: those that have a row */
	struct losses losses;
	char *programs;  /* " (python3 app.py, sqlite3)"; NULL: too many, or not known */
	char *plans;     /* which statements have none, NULL: not known, or all have one */
	char *callers;   /* whose programs' lines are not known, NULL: of none */
	bool has_stacks; /* of any recording: there are names to look up */
	bool is_late;    /* and its numbers are not known */
};

/* Takes note of how a statement on the file has ended. Its head was in order: if the statement fails,
 * another process has changed its tables. */
static void note_end(sqlite3 *db, int code, struct summary *summary)
{
	if (code == SQLITE_INTERRUPT)
		summary->is_late = true;
	if (code == SQLITE_ROW || code == SQLITE_DONE || code == SQLITE_INTERRUPT)
		return;
	char *error = database_error(db, path_as_given);
	complain("%s, so its content is unknown", error ? error : path_as_given);
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
		summary->plans = text_format("plans: %lld of %lld statement%s none: %s",
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
			"understand this interpreter, or its driver (docs/limits.md, Names)",
			(const char *)sqlite3_column_text(row, 0),
			sqlite3_column_int64(row, 1) > 3 ? ", ..." : "");
	note_end(db, code, summary);
	sqlite3_finalize(row);
}

static bool summarize(const struct recording *recording, struct summary *summary)
{
	sqlite3 *db = trace_file_open_tables(recording->path);
	sqlite3_stmt *row = NULL;
	bool found = false;
	int code;

	if (!db)
		return false;
	progress_limit(SUMMARY_SECONDS);
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
		if (sqlite3_column_type(row, 5) != SQLITE_NULL)
			summary->programs = text_format(" (%s)", (const char *)sqlite3_column_text(row, 5));
		sum_losses(db, recording, summary);
		if (summary->samples) /* only their statements are to have plans */
			sum_plans(db, recording, summary);
		sum_callers(db, recording, summary);
		found = true;
	} else {
		note_end(db, code, summary);
	}
	sqlite3_finalize(row);
	trace_file_close(db);
	return found || summary->is_late;
}

/* An empty file is of no use. */
static void remove_recording(const struct recording *recording)
{
	if (recording->is_new)
		trace_file_remove(recording->path);
}

/* No program was started. */
static int undo(const struct recording *recording, int result)
{
	push_background_cancel();
	explain_end();
	rings_cancel();
	if (recording->is_open)
		remove_recording(recording);
	replaced_file_put_back();
	return result;
}

/* --- the command ------------------------------------------------------------------------- */

static void tell_losses(const struct losses *losses)
{
	for (const struct loss *loss = losses->reasons; loss < losses->reasons + LOSS_REASONS; loss++) {
		bool is_denied = strstr(loss->reason, strerror(EACCES));
		const char *advice =
			is_denied ? ". A process of another user cannot open this user's file: run "
				    "queryprof record as that user"
				  : "";

		if (loss->samples && strncmp(loss->reason, LOSS_UNCOUNTED, strlen(LOSS_UNCOUNTED)) == 0)
			complain("%s: %llu run%s missing in statement_stats: %s%s", path_as_given,
			         (unsigned long long)loss->samples, loss->samples == 1 ? " is" : "s are",
			         loss->reason, advice);
		else if (loss->samples)
			complain("%s: %llu sample%s or rows of queries lost: %s%s", path_as_given,
			         (unsigned long long)loss->samples, loss->samples == 1 ? "" : "s",
			         loss->reason, advice);
		if (loss->refusals)
			complain("%s: samples missing, refused %llu time%s: %s%s", path_as_given,
			         (unsigned long long)loss->refusals, loss->refusals == 1 ? "" : "s",
			         loss->reason, advice);
	}
}

static void tell_finding(const char *line)
{
	complain("%s", line);
}

/* In at most five lines. Nothing if the file has other recordings, too, or if it takes too long: the findings
 * are in the file. */
static void tell_findings(const struct recording *recording, const struct summary *found)
{
	const struct selection all = { 0 };
	sqlite3 *db;
	bool is_made;

	if (!recording->is_new || found->is_late || found->samples < FINDINGS_SAMPLES ||
	    found->samples + found->queries > FINDINGS_ROWS)
		return;
	progress_limit(FINDINGS_SECONDS);
	complain_hold(); /* what is wrong with the file was said */
	db = selection_open(recording->path, &all);
	is_made = db && finding_list_make(db) == COMMAND_FINE;
	free(complain_detach());
	if (is_made && finding_list_lines(db, FINDINGS_MAX, tell_finding) > 0)
		complain("what changes that: queryprof findings %s", path_as_given);
	trace_file_close(db);
}

static void tell_content(const struct recording *recording, const struct summary *found)
{
	complain("%s: %lld sample%s, %lld run%s, %lld process%s%s. To read it: queryprof report %s",
	         path_as_given, found->samples, found->samples == 1 ? "" : "s", found->runs,
	         found->runs == 1 ? "" : "s", found->processes, found->processes == 1 ? "" : "es",
	         found->programs ? found->programs : "", path_as_given);
	tell_findings(recording, found);
}

static void tell_end(const struct recording *recording, const char *program, int status)
{
	struct summary found = { .losses = recording->collection->losses };
	bool is_read = summarize(recording, &found); /* has complained if not */
	bool is_empty = is_read && !found.is_late && !found.processes && !explain_has_sqlite();

	if (is_empty)
		remove_recording(recording);
	else if (is_read && ((found.processes && found.has_stacks) || found.is_late) && !no_symbols)
		embed_file(recording->path, EMBED_PATIENCE);
	if (quiet)
		return;
	explain_losses(&found.losses);
	bool has_lost = losses_wait(&found.losses), has_named = false;
	if (!is_read)
		; /* and that was said */
	else if (found.is_late)
		complain("%s: the content was not counted, because that takes more than %d s. To read it: "
		         "queryprof report %s",
		         path_as_given, SUMMARY_SECONDS, path_as_given);
	else if (is_empty && !has_lost)
		has_named = explain_no_sqlite(program, status);
	else if (found.samples || found.queries)
		tell_content(recording, &found);
	else if (!has_lost)
		has_named = explain_no_query(path_as_given);
	if (found.plans && !found.is_late)
		complain("%s", found.plans);
	if (found.callers && !found.is_late)
		complain("%s", found.callers);
	free(found.plans);
	free(found.callers);
	free(found.programs);
	if (!has_named)
		explain_refused("not recorded");
	tell_losses(&found.losses);
	explain_confinement(path_as_given);
}

/* For processes that have gone on. */
static void embed_later(const char *path)
{
	if (!no_symbols)
		embed_file(path, EMBED_PATIENCE);
}

static int run(int argc, char **argv)
{
	int result = set_defaults(), status, error;
	struct store_config store;
	struct recording recording = { .path = NULL };

	if (result)
		return result;
	if (append && begin_anew) {
		complain("record: --append and --new exclude each other");
		return COMMAND_MISUSED;
	}
	argv[argc] = NULL; /* the options stood between */
	if (set_preload() || prepare_recording(&recording) || explain_begin() ||
	    (push_url && !push_background_start(recording.path, push_url, quiet != NULL)))
		return undo(&recording, RECORD_FAILED);
	rings_open();
	error = program_start(argv);
	if (error) {
		complain("record: %s: %s", argv[0], strerror(error));
		return undo(&recording, error == ENOENT ? NOT_FOUND : CANNOT_START);
	}
	replaced_file_remove();
	store_settings(&store);
	rings_watch(recording.path, store.max_bytes);
	status = program_wait();
	recording.collection = rings_finish();
	/* The rest of this process must not be recorded. */
	unsetenv("LD_PRELOAD");
	push_background_end();
	tell_end(&recording, argv[0], status);
	explain_end();
	rings_go_on(explain_is_any_running, embed_later);
	program_end_alike(status);
}

const struct command command_record = {
	.name = "record",
	.arguments = "[OPTION]... [--] COMMAND [ARGUMENT]...",
	.summary = "Runs a command and records what its queries do",
	.details =
		"COMMAND and the programs that it starts need no change. queryprof samples every process "
		"that uses SQLite, as a shared library, however late it loads it, or inside the program. "
		"It adds no table, no function and no setting to their connections. Standard input, "
		"output and terminal belong to COMMAND. Each signal reaches COMMAND once, and queryprof "
		"ends with its exit status or signal. If COMMAND leaves a daemon behind, recording "
		"continues in the background until the daemon ends. Each process that runs SQLite uses "
		"about 13 ms of CPU time more, once; no statement's time includes that.\n\n"
		"At the end, record adds names of functions and lines to the file (see embed), and prints "
		"the first findings (see findings) if the recording is short: 20 to 50,000 samples and "
		"logged queries in a new file. That takes at most a second. If it found no SQLite, its last "
		"lines say why and what to do.\n\n"
		"A period is a time such as 10ms, 500us or 1s. Settings are those of system.settings. Two "
		"settings limit the cost of sampling: with more than query_profiler_max_threads (16) "
		"threads in queries, record takes fewer samples of wall time. Above "
		"query_profiler_max_overhead_percent (2) of the queries' CPU time, it takes fewer samples "
		"of both clocks. Each sample then represents more time. 0 is no limit.\n\n"
		"The exit status is 127 if COMMAND is not found, 126 if it cannot be started, and 125 if "
		"record itself fails, for example because it cannot write the trace file.",
	.examples = "  queryprof record -o app.trace -- python3 app.py\n"
		    "  queryprof record --new -- ./server\n"
		    "  queryprof record --cpu 1ms -- sqlite3 app.db '.read report.sql'\n"
		    "  queryprof record --setting log_query_parameters=1 -- ./server\n",
	.options = options,
	.arguments_min = 1,
	.arguments_max = INT_MAX,
	.wraps_command = true,
	.take = apply_option,
	.run = run,
};
