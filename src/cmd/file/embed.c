/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof embed: puts names and lines into a trace file (frames/embed.h), as
 * `record` does at its end.
 */
#include "cmd/file/embed.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/file/name_cache.h"
#include "cmd/file/run_sql.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "cmd/ui/progress.h"
#include "sql_embed_missing.h"
#include "store/file/database.h"
#include "frames/embed.h"
#include "symbol/libdw.h"

#define TURN_NS 200000000
#define PATIENCE 10

static volatile sig_atomic_t is_stopped;

static void stop(int signal_number)
{
	(void)signal_number;
	is_stopped = 1;
}

/* Ctrl-C ends it between two turns, because `record` must still print messages and return its command's
 * status. A second one ends the program. */
static int embed_all(struct embed *embed, sqlite3 *db, int patience)
{
	const struct sigaction on_interrupt = { .sa_handler = stop, .sa_flags = SA_RESETHAND };
	struct sigaction before;
	int code = SQLITE_OK, failures = 0;

	sigaction(SIGINT, NULL, &before);
	if (before.sa_handler != SIG_IGN)
		sigaction(SIGINT, &on_interrupt, NULL);
	progress_begin("looking up names and lines");
	while (!is_stopped &&
	       (code == SQLITE_OK || ((code & 0xff) == SQLITE_BUSY && ++failures < patience))) {
		code = embed_some(embed, db, TURN_NS);
		progress_count(embed->named, "addresses");
	}
	progress_end();
	sigaction(SIGINT, &before, NULL);
	return code == SQLITE_DONE ? SQLITE_OK : is_stopped ? SQLITE_INTERRUPT : code;
}

static const char *describe(int code)
{
	switch (code & 0xff) {
	case SQLITE_BUSY: return "locked by another process";
	case SQLITE_INTERRUPT: return "stopped; queryprof embed can add the missing names later";
	default: return sqlite3_errstr(code);
	}
}

/* The file must exist: opening for writing would create it. */
static bool is_there(const char *path)
{
	struct stat status;

	if (stat(path, &status) != 0)
		trace_file_complain(path);
	else if (!S_ISREG(status.st_mode))
		complain("%s: not a file; " TRACE_FILE_EXPECTED, path);
	else if (status.st_size == 0)
		complain("%s: not a trace file of queryprof; " TRACE_FILE_EXPECTED, path);
	else
		return true;
	return false;
}

int embed_into(sqlite3 *db, const char *path, int patience)
{
	struct embed embed;
	int code;

	/* Each look-up would be stored as failed, and never repeated. */
	if (!libdw_load())
		return complain("%s: names of functions cannot be looked up: elfutils' libdw.so.1 is not "
		                "installed or cannot be loaded (Debian: apt-get install libdw1); queryprof "
		                "embed adds them later",
		                path);
	sqlite3_busy_timeout(db, DATABASE_BUSY_MS);
	embed_begin(&embed, true);
	struct name_cache *cache = name_cache_open();
	if (cache) {
		embed.look_up = name_cache_frames;
		embed.look_up_context = cache;
	}
	code = embed_all(&embed, db, patience);
	if (code)
		complain("%s: %s", path, describe(code));
	embed_end(&embed, db);
	name_cache_close(cache);
	return code ? COMMAND_FAILED : COMMAND_FINE;
}

int embed_file(const char *path, int patience)
{
	const struct database_limits limits = { .wal_bytes = 16 << 20 };
	struct database database;
	char *error = NULL;
	int result;

	if (!is_there(path))
		return COMMAND_FAILED;
	if (database_open(&database, path, &limits, &error)) {
		complain("%s", error ? error : "out of memory");
		free(error);
		return COMMAND_FAILED;
	}
	result = embed_into(database.db, path, patience);
	database_close(&database, true);
	return result;
}

static const char *all;

static const struct command_option options[] = {
	COMMAND_FLAG("all", &all, "list every module, also those without missing names"),
	{ 0 },
};

static int embed_names(char **argv)
{
	return embed_file(argv[0], PATIENCE);
}

static int list_missing(sqlite3 *db, char **argv)
{
	const struct output output = { .table.if_empty = "every address in a module has a name" };
	const struct sql_parameter parameters[] = { { ":all", all }, { NULL, NULL } };

	(void)argv;
	return run_sql(db, sql_embed_missing, parameters, &output);
}

const struct command command_embed = {
	.name = "embed",
	.arguments = "[FILE] [OPTION]...",
	.summary = "Adds the names of functions and lines to a trace file",
	.details = "With the names in the file, you can copy it to another machine and read it there with "
		   "any sqlite3. record adds them at its end. Run embed for programs that continued after "
		   "that, and after you have installed debug information. It keeps names that the file "
		   "already has. It uses a program or library only if it is the sampled one, by its build "
		   "id, or else by size and time. It caches the names in $XDG_CACHE_HOME/queryprof-names or "
		   "~/.cache/queryprof-names for the next recording. You may remove that folder.\n\n"
		   "Prints the modules with addresses whose names or lines are missing.",
	.examples = "  queryprof embed app.trace\n"
		    "  queryprof embed app.trace && scp app.trace desk:\n",
	.options = options,
	.reads_file = true,
	.pages = true,
	.arguments_max = 1,
	.check = embed_names,
	.read = list_missing,
};
