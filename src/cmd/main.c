/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queryprof command: finds the subcommand and runs it.
 */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/advise/host_plan.h"
#include "cmd/advise/node_times.h"
#include "cmd/complete.h"
#include "cmd/file/selection.h"
#include "cmd/line/help.h"
#include "cmd/line/nearest.h"
#include "cmd/line/options.h"
#include "cmd/ui/limits.h"
#include "cmd/ui/pager.h"
#include "cmd/ui/program.h"
#include "queryprof.h"

static int run_command(const struct command *command, int argc, char **argv)
{
	bool wants_help = false;
	int result = options_read(command, &argc, argv, &wants_help);

	if (result != COMMAND_FINE)
		return result;
	if (wants_help) {
		pager_begin();
		help_print_command(command, stdout);
		return COMMAND_FINE;
	}
	/* `| head` ends this process silently, even if it inherited an ignored SIGPIPE. A command that starts
	 * a program does not change what that program inherits. */
	if (!command->wraps_command) {
		signal(SIGPIPE, SIG_DFL);
		memory_limit_set();
	}
	if (command->reads_file)
		large_pages_use();
	if (command->pages)
		pager_begin();
	return command_run(command, argc, argv);
}

/* `live -- COMMAND` is `record --live -- COMMAND`. */
static int record_live(int argc, char **argv)
{
	char **words = calloc((size_t)argc + 1, sizeof(*words)); /* it lives as long as this process */

	if (!words)
		return complain("out of memory");
	words[0] = (char *)"--live";
	memcpy(words + 1, argv, (size_t)argc * sizeof(*argv));
	return run_command(&command_record, argc + 1, words);
}

static void complain_of_command(const char *name)
{
	struct nearest nearest = { .word = name };

	nearest_try(&nearest, name[0] == '-' ? "--help" : "help");
	nearest_try(&nearest, "--version");
	for (size_t i = 0; command_at(i); i++)
		nearest_try(&nearest, command_at(i)->name);
	complain("there is no %s %s%s%s%s (see queryprof --help)", name[0] == '-' ? "option" : "command",
	         name, nearest.best[0] ? "; did you mean queryprof " : "", nearest.best,
	         nearest.best[0] ? "?" : "");
}

static int run(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		puts("queryprof " QUERYPROF_VERSION);
		return COMMAND_FINE;
	}
	/* For the build, and for bash's completion. */
	if (strcmp(name, "--man") == 0) {
		help_print_manual(stdout);
		return COMMAND_FINE;
	}
	if (strcmp(name, "--complete") == 0 && argc > 2) {
		memory_limit_set();
		return complete_words(atoi(argv[2]), argc - 3, argv + 3);
	}
	/* `analyze` starts these two itself. */
	if (strcmp(name, "--run-statement") == 0) {
		memory_limit_set();
		return node_times_run(argc - 2, argv + 2);
	}
	if (strcmp(name, "--explain-statement") == 0) {
		memory_limit_set();
		return host_plan_run(argc - 2, argv + 2);
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
		const struct command *about = argc > 2 ? command_find(argv[2]) : NULL;
		pager_begin();
		if (about)
			help_print_command(about, stdout);
		else
			help_print(stdout);
		return COMMAND_FINE;
	}
	const struct command *command = command_find(name);
	if (command == &command_live && argc > 3 && strcmp(argv[2], "--") == 0)
		return record_live(argc - 2, argv + 2);
	if (command)
		return run_command(command, argc - 2, argv + 2);
	if (argc > 1)
		complain_of_command(name);
	else
		help_print(stderr);
	return COMMAND_MISUSED;
}

int main(int argc, char **argv)
{
	program_ignore_file_size();
	/* Nothing reads the statistics, for which each allocation takes a lock; and the cache of each of a
	 * command's many small tables would begin with twenty pages. */
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
	setlocale(LC_CTYPE, ""); /* for the width of characters on the terminal */
	int result = stack_limit_run(run, argc, argv), error = pager_end();
	/* stdio does not keep the errno of an earlier failure; the next output fails for the same reason. */
	if (ferror(stdout))
		putchar('\n');
	errno = error;
	/* A result that could not be written is a failure. */
	if (error || fflush(stdout) != 0 || ferror(stdout))
		return complain("standard output: %s", errno ? strerror(errno) : "cannot be written");
	return result;
}
