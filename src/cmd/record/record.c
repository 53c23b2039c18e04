/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof record: runs an unchanged program with its queries sampled.
 * The program gets a preload and its settings through the environment, and so do the programs that it starts.
 * All of them write to one trace file. The command checks everything on its own side before it starts the
 * program.
 */
#include "cmd/line/command.h"
#include "cmd/ui/program.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/file/library.h"
#include "cmd/file/replaced_file.h"
#include "cmd/record/background.h"
#include "cmd/record/explain.h"
#include "cmd/record/messages.h"
#include "cmd/record/recording.h"
#include "cmd/record/rings.h"
#include "cmd/record/summary.h"

/* The numbers of env(1) and timeout(1), so that a program's own status is not mistaken. */
enum { RECORD_FAILED = 125, CANNOT_START = 126, NOT_FOUND = 127 };

static int set_preload(void)
{
	char library[PATH_MAX], preload[PATH_MAX];
	const char *others = getenv("LD_PRELOAD");
	char *both = NULL;

	if (recording_find_library(library))
		return COMMAND_FAILED;
	if (!library_find("libqueryprof-preload.so", preload))
		return complain("record: libqueryprof-preload.so is neither in this command's folder nor "
		                "in " QUERYPROF_LIBDIR " from there");
	if (strpbrk(preload, ": "))
		return complain("record: %s: a path with a blank or a colon cannot be preloaded", preload);
	/* Last, because some preloads must come first, and none of them defines queryprof's functions. */
	if (asprintf(&both, "%s%s%s", others ? others : "", others && *others ? ":" : "", preload) < 0 ||
	    setenv("LD_PRELOAD", both, 1))
		return complain("record: out of memory");
	free(both);
	return COMMAND_FINE;
}

static int run(int argc, char **argv)
{
	int result = recording_prepare(), status, error;
	struct recording recording = { .path = NULL };

	if (result)
		return result;
	argv[argc] = NULL; /* the options stood between */
	if (set_preload() || recording_begin(&recording))
		return recording_undo(&recording, RECORD_FAILED);
	rings_open();
	error = program_start(argv);
	if (error) {
		complain("record: %s: %s", argv[0], strerror(error));
		return recording_undo(&recording, error == ENOENT ? NOT_FOUND : CANNOT_START);
	}
	replaced_file_remove();
	recording_watch(&recording);
	status = program_wait();
	recording.collection = rings_finish();
	/* The rest of this process must not be recorded. */
	unsetenv("LD_PRELOAD");
	background_end(BACKGROUND_PUSH);
	summary_print(&recording, argv[0], status);
	messages_end();
	rings_go_on(explain_is_any_running, recording_push_on, summary_end_later);
	recording_show(program_is_dismissed());
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
		"continues in the background until the daemon ends, and so does --push. Each process that "
		"runs SQLite uses about 13 ms of CPU time more, once; no statement's time includes "
		"that.\n\n"
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
		    "  queryprof record --live -- ./server\n"
		    "  queryprof record --cpu 1ms -- sqlite3 app.db '.read report.sql'\n"
		    "  queryprof record --setting log_query_parameters=1 -- ./server\n",
	.options = recording_options,
	.arguments_min = 1,
	.arguments_max = INT_MAX,
	.wraps_command = true,
	.take = recording_take,
	.run = run,
};
