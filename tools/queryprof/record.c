/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof record: runs an unchanged program with its queries sampled.
 *
 * The program gets a preload and its settings by the environment, and so do the
 * programs that it starts; all write to one trace file. Everything that could be wrong
 * on our side is found before it starts.
 */
#include "command.h"
#include "program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "embed.h"
#include "library.h"
#include "queryprof.h"
#include "entry/record.h"
#include "settings/settings.h"
#include "store/file/database.h"
#include "sql_record_summary.h"
#include "trace_file.h"

/* As env(1) and timeout(1) have it, so that a program's own status is not mistaken. */
enum { RECORD_FAILED = 125, CANNOT_START = 126, NOT_FOUND = 127 };

static const char *quiet, *no_symbols, *append, *begin_anew;

static const struct command_option options[] = {
	{ .name = "o",
	  .value = "FILE",
	  .kind = OPTION_FILE,
	  .help = "the trace file (default " TRACE_FILE_DEFAULT "); one that exists grows, and record "
	          "says so" },
	{ .name = "append", .to = &append, .help = "the trace file may exist: nothing is said" },
	{ .name = "new", .to = &begin_anew, .help = "a trace file that exists is removed first" },
	{ .name = "cpu",
	  .value = "PERIOD",
	  .kind = OPTION_PERIOD,
	  .help = "CPU time from one sample to the next (default 10ms), 0: none" },
	{ .name = "real",
	  .value = "PERIOD",
	  .kind = OPTION_PERIOD,
	  .help = "wall time from one sample to the next (default 10ms), 0: none" },
	{ .name = "setting",
	  .value = "NAME=VALUE",
	  .kind = OPTION_SETTING,
	  .help = "any other setting; as often as you like" },
	{ .name = "no-symbols",
	  .to = &no_symbols,
	  .help = "leave names and lines out of the file; queryprof embed brings them in" },
	{ .name = "quiet", .to = &quiet, .help = "say nothing at the end" },
	{ 0 },
};

/* --- settings, which go by the environment ------------------------------------------ */

static const char *path_as_given = TRACE_FILE_DEFAULT;

static void variable_of(const char *setting, char *variable, size_t size)
{
	int used = snprintf(variable, size, "QUERYPROF_");

	for (; *setting && (size_t)used + 1 < size; setting++)
		variable[used++] =
			*setting >= 'a' && *setting <= 'z' ? (char)(*setting - 'a' + 'A') : *setting;
	variable[used] = 0;
}

/* A command_result, after a complaint that names what is allowed. */
static int set(const char *name, const char *value)
{
	char *error = NULL, *checked = NULL, variable[128];
	int code;

	if (strcasecmp(name, "query_id") == 0) {
		complain("record: query_id is for one statement, not for a program");
		return COMMAND_MISUSED;
	}
	if (settings_set(NULL, name, value, SETTING_FROM_C, &error)) {
		complain("record: %s", error ? error : "out of memory");
		free(error);
		return COMMAND_MISUSED;
	}
	checked = settings_get(NULL, name);
	variable_of(name, variable, sizeof(variable));
	code = checked && setenv(variable, checked, 1) == 0 ? COMMAND_FINE
	                                                    : complain("record: out of memory");
	if (strcasecmp(name, "trace_log_path") == 0)
		path_as_given = value;
	free(checked);
	return code;
}

/* Better here than the library's default, unless the environment has a value.
 * Short waits with the results of a program that may be killed at any time. */
static int set_defaults(void)
{
	static const struct {
		const char *name, *value;
	} defaults[] = {
		{ "trace_log_path", TRACE_FILE_DEFAULT },
		{ "query_profiler_real_time_period_ns", "10ms" },
		{ "trace_log_flush_interval_ms", "100" },
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
		variable_of(defaults[i].name, variable, sizeof(variable));
		const char *known = getenv(variable);
		int result = set(defaults[i].name, known && *known ? known : defaults[i].value);
		if (result)
			return result;
	}
	return COMMAND_FINE;
}

static int take_option(const struct command_option *option, const char *value)
{
	static const struct {
		const char *option, *setting;
	} shorts[] = {
		{ "o", "trace_log_path" },
		{ "cpu", "query_profiler_cpu_time_period_ns" },
		{ "real", "query_profiler_real_time_period_ns" },
	};
	int result = set_defaults();

	if (result)
		return result;
	for (size_t i = 0; i < sizeof(shorts) / sizeof(shorts[0]); i++)
		if (strcmp(option->name, shorts[i].option) == 0)
			return set(shorts[i].setting, value);

	const char *equals = strchr(value, '=');
	char *name = equals ? strndup(value, (size_t)(equals - value)) : NULL;
	if (!name) {
		complain("record: --setting %s; expected NAME=VALUE", value);
		return COMMAND_MISUSED;
	}
	result = set(name, equals + 1);
	free(name);
	return result;
}

/* --- the preload ---------------------------------------------------------------------- */

/* NULL: it cannot be read, or is empty. */
static void *map_file(const char *path, struct stat *status)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *file = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (fstat(fd, status) == 0 && S_ISREG(status->st_mode) && status->st_size > 0)
		file = mmap(NULL, (size_t)status->st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	return file == MAP_FAILED ? NULL : file;
}

/* Another version would take the settings otherwise, or refuse the trace file, and
 * nobody would hear of it. */
static bool is_ours(const char *library)
{
	static const char agreement[] = RECORD_AGREEMENT;
	struct stat status;
	void *file = map_file(library, &status);
	bool found = file && memmem(file, (size_t)status.st_size, agreement, sizeof(agreement));

	if (file)
		munmap(file, (size_t)status.st_size);
	return found;
}

static int set_preload(void)
{
	char library[PATH_MAX], preload[PATH_MAX];
	const char *others = getenv("LD_PRELOAD");
	char *both = NULL;

	if (!library_find("libqueryprof.so", library) || !library_find("libqueryprof-preload.so", preload))
		return complain("record: libqueryprof.so and libqueryprof-preload.so are neither beside "
		                "this command nor in " QUERYPROF_LIBDIR " from there");
	if (!is_ours(library))
		return complain("record: %s is of another version than this command (" QUERYPROF_VERSION "): "
		                "install both from one build",
		                library);
	if (strpbrk(preload, ": "))
		return complain("record: %s: nothing with a blank or a colon in its path can be preloaded",
		                preload);
	/* Last: some preloads must come first, and none of them defines our functions. */
	if (asprintf(&both, "%s%s%s", others ? others : "", others && *others ? ":" : "", preload) < 0 ||
	    setenv("LD_PRELOAD", both, 1))
		return complain("record: out of memory");
	free(both);
	return COMMAND_FINE;
}

/* Whoever finds SQLite writes to this file. */
static char *mark;

static int make_mark(void)
{
	const char *folder = getenv("TMPDIR");
	int fd;

	if (asprintf(&mark, "%s/queryprof-record-XXXXXX", folder && *folder == '/' ? folder : "/tmp") < 0)
		return complain("record: out of memory");
	fd = mkostemp(mark, O_CLOEXEC);
	if (fd < 0)
		return complain("record: %s: %s", mark, strerror(errno));
	close(fd);
	return setenv("QUERYPROF_RECORD", mark, 1) == 0 ? COMMAND_FINE : complain("record: out of memory");
}

static bool is_marked(void)
{
	struct stat status;

	return stat(mark, &status) == 0 && status.st_size > 0;
}

/* --- the trace file ------------------------------------------------------------------- */

struct trace {
	const char *path;
	bool is_new;
	int64_t before; /* the newest process that it knows */
};

static void remove_file(const char *path)
{
	static const char *const ends[] = { "", "-wal", "-shm" };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		char *name = NULL;
		if (asprintf(&name, "%s%s", path, ends[i]) >= 0)
			unlink(name);
		free(name);
	}
}

/* A recording that grows by mistake shows the sum of two. A file that is no trace file is
 * nobody's to remove here. */
static int meet_existing(const char *path)
{
	if (begin_anew) {
		sqlite3 *db = trace_file_open(path); /* complains if it is no trace file */
		if (!db)
			return COMMAND_FAILED;
		trace_file_close(db);
		if (trace_file_is_in_use(path))
			return complain("record: %s: another process has it open, so --new cannot remove it",
			                path_as_given);
		remove_file(path);
	} else if (!append && !quiet) {
		complain("record: %s exists and grows (--new begins anew, --append leaves this out)",
		         path_as_given);
	}
	return COMMAND_FINE;
}

/* Made now if need be: a file that cannot be written is to be known before hours of
 * work, not after. */
static int prepare_trace(struct trace *trace)
{
	const struct database_limits limits = { .wal_bytes = 1 << 20 };
	struct database database;
	char *error = NULL;

	trace->path = getenv("QUERYPROF_TRACE_LOG_PATH");
	if (access(trace->path, F_OK) == 0 && meet_existing(trace->path))
		return COMMAND_FAILED;
	trace->is_new = access(trace->path, F_OK) != 0;
	if (database_open(&database, trace->path, &limits, &error)) {
		complain("record: %s", error ? error : "out of memory");
		free(error);
		return COMMAND_FAILED;
	}
	trace->before = database_number(database.db, "SELECT max(id) FROM processes", 0);
	database_close(&database, true);
	return COMMAND_FINE;
}

struct summary {
	sqlite3_int64 samples, queries, processes;
};

static bool summarize(const struct trace *trace, struct summary *summary)
{
	sqlite3 *db = trace_file_open(trace->path);
	sqlite3_stmt *row = NULL;
	bool found = false;

	if (db && sqlite3_prepare_v2(db, sql_record_summary, -1, &row, NULL) == SQLITE_OK) {
		sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, ":before"), trace->before);
		if (sqlite3_step(row) == SQLITE_ROW) {
			*summary =
				(struct summary){ sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1),
				                  sqlite3_column_int64(row, 2) };
			found = true;
		}
	}
	sqlite3_finalize(row);
	if (db)
		trace_file_close(db);
	return found;
}

/* An empty file is of no use. */
static void remove_trace(const struct trace *trace)
{
	if (trace->is_new)
		remove_file(trace->path);
}

/* --- why nothing was seen --------------------------------------------------------------- */

/* The file that execvp() runs. */
static bool find_program(const char *name, char *path)
{
	const char *folders = getenv("PATH");
	char tried[2 * PATH_MAX];

	if (strchr(name, '/'))
		return realpath(name, path) != NULL;
	for (const char *at = folders ? folders : "/bin:/usr/bin"; at;
	     at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
		snprintf(tried, sizeof(tried), "%.*s/%s", (int)strcspn(at, ":"), at, name);
		if (access(tried, X_OK) == 0 && realpath(tried, path))
			return true;
	}
	return false;
}

enum reason { NOT_KNOWN, PRIVILEGED, STATIC, OWN_COPY };

static bool has_interpreter(const unsigned char *file, size_t size)
{
	const ElfW(Ehdr) *header = (const void *)file;

	for (size_t i = 0; size >= sizeof(*header) && i < header->e_phnum; i++) {
		const ElfW(Phdr) *segment = (const void *)(file + header->e_phoff + i * sizeof(*segment));
		if (header->e_phoff > size || size - header->e_phoff < (i + 1) * sizeof(*segment))
			return false;
		if (segment->p_type == PT_INTERP)
			return true;
	}
	return false;
}

static enum reason find_reason(const char *path)
{
	/* A message that every copy of SQLite has in it, and programs that only use SQLite
	 * have not. */
	static const char words[] = "malformed database schema";
	enum reason reason = NOT_KNOWN;
	struct stat status;
	void *file = map_file(path, &status);

	if (!file)
		return NOT_KNOWN;
	size_t size = (size_t)status.st_size;
	if (status.st_mode & (S_ISUID | S_ISGID))
		reason = PRIVILEGED;
	else if (memmem(file, size, words, strlen(words)))
		reason = OWN_COPY;
	else if (size > SELFMAG && memcmp(file, ELFMAG, SELFMAG) == 0 && !has_interpreter(file, size))
		reason = STATIC;
	munmap(file, size);
	return reason;
}

static void explain_nothing(const char *program)
{
	char path[PATH_MAX], library[PATH_MAX] = "libqueryprof.so";

	if (!find_program(program, path))
		snprintf(path, sizeof(path), "%s", program);
	library_find("libqueryprof.so", library);
	complain("nothing was recorded: no SQLite library was seen in %s, nor in what it started", program);
	switch (find_reason(path)) {
	case OWN_COPY:
		complain("%s has a copy of SQLite of its own inside, which cannot be reached from outside. "
		         "Load the extension in it (.load %s, or SELECT load_extension('%s')); or let the "
		         "program "
		         "call the library (qp_attach() in queryprof.h says how)",
		         path, library, library);
		break;
	case PRIVILEGED:
		complain("%s runs with more rights than its caller has (set-user-id), and then it is never "
		         "recorded",
		         path);
		break;
	case STATIC:
		complain(
			"%s is linked statically: nothing can be preloaded. Let the program call the library "
			"(qp_attach() in queryprof.h says how)",
			path);
		break;
	case NOT_KNOWN:
		complain("if there is one with a copy of SQLite of its own inside, load the extension in it "
		         "(SELECT load_extension('%s')), or let it call the library (qp_attach() in "
		         "queryprof.h "
		         "says how)",
		         library);
		break;
	}
}

/* --- the command ------------------------------------------------------------------------- */

static void tell_end(const struct trace *trace, const char *program)
{
	struct summary found = { 0 };
	bool is_read = summarize(trace, &found); /* has complained if not */
	bool is_empty = is_read && !found.processes && !is_marked();

	if (is_empty)
		remove_trace(trace);
	else if (is_read && found.processes && !no_symbols)
		embed_file(trace->path);
	if (quiet || !is_read)
		return;
	if (is_empty)
		explain_nothing(program);
	else if (found.processes)
		complain("%s: %lld sample%s, %lld quer%s, %lld process%s. To read it: queryprof report %s",
		         path_as_given, found.samples, found.samples == 1 ? "" : "s", found.queries,
		         found.queries == 1 ? "y" : "ies", found.processes, found.processes == 1 ? "" : "es",
		         path_as_given);
	else
		complain("%s: SQLite was there, but no query took long enough to be sampled or logged "
		         "(--setting log_queries_min_query_duration_ns=0 logs every one)",
		         path_as_given);
}

static int run(int argc, char **argv)
{
	int result = set_defaults(), status, error;
	struct trace trace;

	if (result)
		return result;
	if (append && begin_anew) {
		complain("record: --append and --new exclude each other");
		return COMMAND_MISUSED;
	}
	argv[argc] = NULL; /* the options stood between */
	if (set_preload() || prepare_trace(&trace) || make_mark())
		return RECORD_FAILED;
	error = program_run(argv, &status);
	if (error) {
		complain("record: %s: %s", argv[0], strerror(error));
		remove_trace(&trace);
		unlink(mark);
		return error == ENOENT ? NOT_FOUND : CANNOT_START;
	}
	/* The rest of this process must not be recorded. */
	unsetenv("LD_PRELOAD");
	tell_end(&trace, argv[0]);
	unlink(mark);
	program_end_alike(status);
}

const struct command command_record = {
	.name = "record",
	.arguments = "[OPTION]... [--] COMMAND [ARGUMENT]...",
	.summary = "Runs a command and records what its queries do",
	.details =
		"COMMAND need not be changed, nor do the programs that it starts: whatever uses SQLite as a "
		"shared library is sampled, however late it loads it. Their connections stay as they are: "
		"no table, no function, no setting is added. Standard input, output and terminal are "
		"COMMAND's. Signals reach it once, and its exit status or signal becomes queryprof's. "
		"A daemon goes on recording after COMMAND has ended.\n\n"
		"At the end names and lines of what was sampled are put into the file (see embed). If no "
		"SQLite library was found, the last lines say why and what to do.\n\n"
		"A period is a time as 10ms, 500us or 1s. Settings are those of system.settings.\n\n"
		"The exit status is 127 when COMMAND is not found, 126 when it cannot be started, and 125 "
		"when the trace file cannot be written.",
	.examples = "  queryprof record -o app.trace -- python3 app.py\n"
		    "  queryprof record --new -- ./server\n"
		    "  queryprof record --cpu 1ms --real 0 -- sqlite3 app.db '.read report.sql'\n"
		    "  queryprof record --setting log_query_parameters=1 -- ./server\n",
	.options = options,
	.arguments_min = 1,
	.arguments_max = INT_MAX,
	.wraps_command = true,
	.take = take_option,
	.run = run,
};
