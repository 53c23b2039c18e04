/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record/recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/filters.h"
#include "base/switch_flag.h"
#include "cmd/file/file_map.h"
#include "cmd/file/library.h"
#include "cmd/file/replaced_file.h"
#include "cmd/file/trace_file.h"
#include "cmd/http/http.h"
#include "cmd/line/nearest.h"
#include "cmd/record/background.h"
#include "cmd/record/messages.h"
#include "cmd/record/rings.h"
#include "queryprof.h"
#include "settings/settings.h"
#include "store/settings.h"
#include "store/store.h"
#include "store/file/database.h"
#include "wire/version.h"

#define MEMORY_BYTES "512KiB" /* --memory, without the setting */

const char *recording_command = "record";
const char *recording_quiet, *recording_no_symbols;
static const char *push_url;
const char *recording_path = TRACE_FILE_DEFAULT;

static const char *append, *begin_anew, *live, *memory;

const struct command_option recording_options[] = {
	COMMAND_OPTION("o", "FILE", OPTION_FILE, NULL,
	               "the trace file (default " TRACE_FILE_DEFAULT
	               "); if it exists, the recording is added to it, with a message"),
	COMMAND_FLAG("append", &append, "add to an existing trace file without a message"),
	COMMAND_FLAG("new", &begin_anew, "remove an existing trace file when the recording begins"),
	COMMAND_OPTION("cpu", "PERIOD", OPTION_PERIOD, NULL,
	               "CPU time from one sample to the next (default 10ms), 0: none"),
	COMMAND_OPTION("real", "PERIOD", OPTION_PERIOD, NULL,
	               "wall time from one sample to the next (default 0: none, because CPU time and waits "
	               "add up to it)"),
	COMMAND_OPTION("off-cpu", "PERIOD", OPTION_PERIOD, NULL,
	               "time waited from one sample of a thread's waits to the next (default 1ms), 0: none"),
	COMMAND_FLAG("memory", &memory,
	             "sample SQLite's memory, too, once in 512 KiB (query_profiler_memory_sample_bytes)"),
	COMMAND_OPTION("setting", "NAME=VALUE", OPTION_SETTING, NULL, "any other setting; may be repeated"),
	COMMAND_FLAG("no-symbols", &recording_no_symbols,
	             "leave names and lines out of the file; queryprof embed adds them later"),
	COMMAND_OPTION("push", "URL", OPTION_TEXT, &push_url,
	               "send the trace file to ClickHouse until the recording ends (see push)"),
	COMMAND_FLAG("live", &live,
	             "serve a page that shows the recording while it is made, and afterwards until Ctrl-C "
	             "(see live)"),
	COMMAND_FLAG("quiet", &recording_quiet, "print nothing at the end"),
	{ 0 },
};

/* --- settings, which go by the environment ------------------------------------------ */

/* `option`: what gave the value on the command line, NULL: --setting, or none. A command_result, after a
 * complaint that names what is allowed. */
static int set(const char *name, const char *value, const char *option)
{
	const struct setting *setting = settings_find(name);
	char *error = NULL, *checked = NULL, variable[128];
	int code;

	if (!setting) {
		struct nearest nearest = { .word = name };

		for (const struct setting *one = NULL; (one = settings_next(one));)
			nearest_try(&nearest, one->name);
		complain("%s: --setting %s: there is no such setting%s%s%s", recording_command, name,
		         nearest.best[0] ? "; did you mean " : "; docs/sql-reference.md lists them",
		         nearest.best, nearest.best[0] ? "?" : "");
		return COMMAND_MISUSED;
	}
	if (setting->is_for_one_statement) {
		complain("%s: %s applies to one statement, not to a program", recording_command,
		         setting->name);
		return COMMAND_MISUSED;
	}
	if (settings_set(NULL, name, value, SETTING_FROM_C, &error)) {
		const char *expected = option && error ? strstr(error, "expected ") : NULL;

		if (expected)
			complain("%s: --%s %s; %s", recording_command, option, value, expected);
		else
			complain("%s: %s", recording_command, error ? error : "out of memory");
		free(error);
		return COMMAND_MISUSED;
	}
	checked = settings_get(NULL, name);
	settings_variable(name, variable, sizeof(variable));
	code = checked && setenv(variable, checked, 1) == 0
	               ? COMMAND_FINE
	               : complain("%s: out of memory", recording_command);
	if (strcasecmp(name, "trace_log_path") == 0)
		recording_path = value;
	free(checked);
	return code;
}

/* Defaults of the commands, which differ from the library's. A value in the environment takes precedence. */
static int set_defaults(void)
{
	static const struct {
		const char *name, *value;
	} defaults[] = {
		{ "trace_log_path", TRACE_FILE_DEFAULT },
		{ "query_profiler_off_cpu_period_ns", "1ms" },
		{ "query_profiler_outside", "1" },
		{ "query_profiler_page_io", "1" },
	};
	static bool done;
	char variable[128];

	if (done)
		return COMMAND_FINE;
	done = true;
	if (settings_environment_error()) {
		complain("%s: %s", recording_command, settings_environment_error());
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

int recording_take(const struct command_option *option, const char *value)
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
		complain("%s: --setting %s; expected NAME=VALUE", recording_command, value);
		return COMMAND_MISUSED;
	}
	result = set(name, equals + 1, NULL);
	free(name);
	return result;
}

/* --- the recorder --------------------------------------------------------------------- */

/* Another version would read the settings differently, or refuse the trace file, without a message. */
static bool is_ours(const char *library)
{
	struct stat status;
	void *file = file_map(library, &status);
	bool found = file && memmem(file, (size_t)status.st_size, wire_agreement, wire_agreement_size);

	if (file)
		munmap(file, (size_t)status.st_size);
	return found;
}

int recording_prepare(void)
{
	int result = set_defaults();

	if (!result && append && begin_anew) {
		complain("%s: --append and --new cannot be combined", recording_command);
		return COMMAND_MISUSED;
	}
	if (!result && memory)
		result = set("query_profiler_memory_sample_bytes", MEMORY_BYTES, "memory");
	/* push would say it, but only while the program runs. */
	return !result && push_url ? http_check_url(recording_command, push_url, NULL) : result;
}

int recording_find_library(char *library)
{
	char filters[12], flag[12];

	if (!library_find("libqueryprof-recorder.so", library))
		return complain("%s: libqueryprof-recorder.so is neither in this command's folder nor "
		                "in " QUERYPROF_LIBDIR " from there",
		                recording_command);
	if (!is_ours(library))
		return complain("%s: %s is of another version than this command (" QUERYPROF_VERSION "): "
		                "install both from one build",
		                recording_command, library);
	snprintf(filters, sizeof(filters), "%d", filters_here());
	snprintf(flag, sizeof(flag), "%u", switch_flag_test());
	if (setenv(FILTERS_VARIABLE, filters, 1) ||
	    setenv(SWITCH_FLAG_VARIABLE, flag, 0)) /* an earlier check may have refused it */
		return complain("%s: out of memory", recording_command);
	return COMMAND_FINE;
}

/* --- the trace file ------------------------------------------------------------------- */

/* The command does not remove a file that is not a trace file. */
static int set_existing_aside(const char *path)
{
	sqlite3 *db = trace_file_open_tables(path); /* complains if it is not a trace file */

	if (!db)
		return COMMAND_FAILED;
	trace_file_close(db);
	if (trace_file_is_in_use(path))
		return complain("%s: %s: another process has it open, so --new cannot remove it",
		                recording_command, recording_path);
	return replaced_file_set_aside(path, recording_path);
}

/* No file, or the remains of a `record` that could not write to it. */
static bool is_empty(const char *path)
{
	struct stat status;

	return stat(path, &status) ? errno == ENOENT : S_ISREG(status.st_mode) && status.st_size == 0;
}

/* Files that an older recording has left. */
static int read_before(struct recording *recording, const struct database_limits *limits, char **error)
{
	struct database database;
	int code = database_open(&database, recording->path, limits, error);

	if (code)
		return code;
	recording->before = database_number(database.db, "SELECT max(id) FROM processes", 0);
	recording->runs_before = database_number(database.db, "SELECT sum(calls) FROM statement_counters", 0);
	recording->removals_before = database_number(database.db, "SELECT removals FROM state", 0);
	database_close(&database, true);
	return QP_OK;
}

/* False after a complaint. */
static bool start_push(const char *path)
{
	const char *const push[] = { "queryprof", "push", "--follow", "--", path, push_url, NULL };

	return !push_url || background_start(BACKGROUND_PUSH, push, recording_quiet);
}

void recording_push_on(const char *path)
{
	(void)start_push(path);
}

/* False after a complaint. */
static bool start_background(const char *path)
{
	const char *const page[] = { "queryprof", "live", path, NULL };

	return start_push(path) && (!live || background_start(BACKGROUND_LIVE, page, false));
}

int recording_begin(struct recording *recording)
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
		complain("%s: %s", recording_command, error ? error : "out of memory");
		free(error);
		return COMMAND_FAILED;
	}
	recording->is_open = true;
	/* A recording that is added to a file by mistake shows the sum of both. */
	if (!recording->is_new && !append && !recording_quiet)
		complain("%s: %s exists, so this recording is added to it (--new replaces the file, "
		         "--append omits this message)",
		         recording_command, recording_path);
	return messages_begin() || !start_background(recording->path) ? COMMAND_FAILED : COMMAND_FINE;
}

void recording_show(bool is_dismissed)
{
	/* Before the message, because the user may answer it at any time. */
	background_hold_signals();
	if (is_dismissed)
		background_end(BACKGROUND_LIVE);
	else if (live)
		complain("%s: the page stays until Ctrl-C", recording_command);
	background_wait(BACKGROUND_LIVE);
}

void recording_watch(const struct recording *recording)
{
	struct store_config store;

	store_settings(&store);
	rings_watch(recording->path, store.max_bytes);
	free((char *)store.path);
}

/* An empty file is useless. */
void recording_remove(const struct recording *recording)
{
	if (recording->is_new)
		trace_file_remove(recording->path);
}

int recording_undo(const struct recording *recording, int result)
{
	background_cancel();
	messages_end();
	rings_cancel();
	if (recording->is_open)
		recording_remove(recording);
	replaced_file_put_back();
	return result;
}
