/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A subcommand of queryprof: one file with one `struct command`. command.c has the table of all. Results go
 * to stdout, all other text to stderr as "queryprof: TEXT".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cmd/ui/complain.h"

/* The default trace file, which record writes. */
#define TRACE_FILE_DEFAULT "queryprof.trace"

/* The kind of an option's value, which determines its check and completion. */
enum option_kind {
	OPTION_TEXT,
	OPTION_WORD,   /* one of word_at() */
	OPTION_NUMBER, /* decimal digits */
	OPTION_FILE,
	OPTION_QUERY,     /* the id of a query in FILE, or its beginning */
	OPTION_STATEMENT, /* the id of a statement in FILE, or its beginning */
	OPTION_DATABASE,
	OPTION_PROCESS,
	OPTION_THREAD,
	OPTION_CALLER, /* where the application called SQLite */
	OPTION_TYPE,   /* of samples: cpu, wall, or another type in FILE */
	OPTION_TIME,   /* see moment_parse() */
	OPTION_PERIOD,
	OPTION_SECONDS, /* a duration, mostly of seconds or minutes */
	OPTION_SETTING, /* NAME=VALUE */
	OPTION_FLAG,    /* no value */
};

/* One --option, or -o if the name is one letter. Parsing, --help, the man page and completion use these
 * tables. */
struct command_option {
	const char *name;  /* without the dashes; NULL ends the table */
	const char *value; /* the name of its value in the help; NULL: no value */
	enum option_kind kind;
	const char **to; /* where the value goes; "1" without a value. NULL: to the command's take() */
	const char *help;
	const char *(*word_at)(size_t index); /* for OPTION_WORD; NULL past the last */
};

#define COMMAND_OPTION(name, value, kind, to, help)                                                          \
	{                                                                                                    \
		name, value, kind, to, help, NULL                                                            \
	}
#define COMMAND_WORD(name, value, to, help, word_at)                                                         \
	{                                                                                                    \
		name, value, OPTION_WORD, to, help, word_at                                                  \
	}
#define COMMAND_FLAG(name, to, help)                                                                         \
	{                                                                                                    \
		name, NULL, OPTION_FLAG, to, help, NULL                                                      \
	}

/* --limit for the commands that print lists. */
#define LIMIT_OPTION(variable, text) COMMAND_OPTION("limit", "N", OPTION_NUMBER, (variable), (text))

struct sqlite3;

struct command {
	const char *name;
	const char *arguments;           /* as the usage line shows them */
	const char *summary;             /* one line, no full stop */
	const char *details;             /* paragraphs with empty lines between them, or NULL */
	void (*print_details)(FILE *to); /* prints lines from a table, or NULL */
	const char *examples;            /* lines of commands */
	const struct command_option *options;
	const struct command_option *shared; /* a second table, shared by several commands, or NULL */
	const char *shared_title;            /* their heading; NULL: which runs (file/selection.h) */
	int arguments_min, arguments_max;
	bool reads_file;    /* its first argument is a trace file, TRACE_FILE_DEFAULT if missing */
	bool pages;         /* long output goes through a pager */
	bool wraps_command; /* options end at the first argument: the rest is a command */
	int (*take)(const struct command_option *option, const char *value); /* a command_result */
	int (*run)(int argc, char **argv); /* gets only the arguments; a command_result */

	/* Or, instead of run(): command_run() of file/selection.h opens the first argument, and selects runs
	 * if selection_options are shared. */
	int (*read)(struct sqlite3 *db, char **argv);
	int (*check)(char **argv); /* runs before that, without a file; NULL: nothing to check */
};

extern const struct command command_advise, command_analyze, command_attach, command_check, command_diff,
	command_dump, command_embed, command_export, command_findings, command_live, command_locks,
	command_mcp, command_metrics, command_pages, command_plan, command_pull, command_push,
	command_queries, command_record, command_report, command_sql, command_top, command_trace,
	command_traces, command_wal;

/* The subcommands in the order of the help; NULL past the last. */
const struct command *command_at(size_t index);
const struct command *command_find(const char *name); /* NULL: none */
