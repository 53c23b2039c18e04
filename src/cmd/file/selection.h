/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options that select runs, shared by several commands.
 */
#pragma once

#include <sqlite3.h>

#include "cmd/line/command.h"
#include "cmd/line/moment.h"

/* The shared options; NULL: not given. */
struct selection {
	const char *query, *statement, *like, *since, *until, *min_duration, *failed, *database, *process,
		*thread, *label, *last, *host, *service, *caller;
};
extern struct selection selection;
extern const struct command_option selection_options[];

/* The given options, each after `separator`: "like TEXT". "": all runs. malloc'ed; NULL: no memory. */
char *selection_describe(const struct selection *one, const char *separator);

/* COMMAND_MISUSED after a complaint about a time, or a label. */
int selection_check(const char *command, const struct selection *one);

/* The same for one time; NULL is valid. */
int selection_check_time(const char *command, const char *option, const char *text);

/* A time of an option as a parameter, in nanoseconds. NULL: not given. bases NULL: it is a duration. The
 * options must be checked before. */
struct time_text {
	char text[24];
};
const char *selection_time(struct time_text *to, const char *given, const struct moment_bases *bases);

/* `sql` returns the first and the last moment of what the times select. */
struct moment_bases selection_bases(sqlite3 *db, const char *sql);

/* The ids that the given text can mean: the id itself, or else all ids that begin with it. Two rows show that
 * it is ambiguous. */
#define FIND_IDS(ids)                                                                                        \
	"WITH ids(id) AS (" ids ") SELECT id FROM ids WHERE id = ?1 "                                        \
	"UNION ALL SELECT id FROM ids WHERE substr(id, 1, length(?1)) = ?1 AND ?1 <> '' "                    \
	"AND NOT EXISTS (SELECT 1 FROM ids WHERE id = ?1) LIMIT 2"

struct id_kind {
	const char *find, *name;
	const char *list[2]; /* the command that lists them, before and after the file */
};

extern const struct id_kind selection_statement_ids;

/* sqlite3_malloc'ed; NULL after a complaint. */
char *selection_complete_id(sqlite3 *db, const char *path, const struct id_kind *kind, const char *given);

/* Opens the file and adds temp.selected and its views (sql/read/selected.sql); NULL after a complaint. */
sqlite3 *selection_open(const char *path, const struct selection *one);

/* COMMAND_FAILED, after a complaint, if no run matches the options. */
int selection_require(sqlite3 *db, const char *path, const struct selection *one);

/* Runs a command with its arguments. */
int command_run(const struct command *command, int argc, char **argv);
