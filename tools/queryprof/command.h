/*
 * What the subcommands of the queryprof command share.
 *
 * A subcommand is one file with one `struct command`; queryprof.c has the table of
 * them. Results go to stdout, everything else to stderr, as "queryprof: what".
 */
#ifndef QUERYPROF_COMMAND_COMMAND_H
#define QUERYPROF_COMMAND_COMMAND_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum command_result {
	COMMAND_FINE = 0,
	COMMAND_FAILED = 1,  /* the file cannot be read, the SQL is wrong, no such query */
	COMMAND_MISUSED = 2, /* the command line makes no sense */
};

/* --- command lines ------------------------------------------------------------ */

/* What an option's value is: how it is checked, and how a shell completes it. */
enum option_kind {
	OPTION_TEXT,
	OPTION_WORD,   /* one of word_at() */
	OPTION_NUMBER, /* decimal digits */
	OPTION_FILE,
	OPTION_QUERY, /* the id of a query of FILE, or its beginning */
	OPTION_TIME,  /* see time_parse() */
	OPTION_PERIOD,
	OPTION_SETTING, /* NAME=VALUE */
};

/* One --option, or -o where the name is one letter. The tables of them are what is
 * parsed, what --help and the man page say, and what a shell completes. */
struct command_option {
	const char *name;  /* without the dashes; NULL ends the table */
	const char *value; /* what its value is called, NULL: it takes none */
	const char *help;
	const char **to; /* where the value goes; "1" for an option without. NULL: to
	                  * the command's take() */
	enum option_kind kind;
	const char *(*word_at)(size_t index); /* for OPTION_WORD; NULL past the last */
};

struct command {
	const char *name;
	const char *arguments;           /* as the usage line shows them */
	const char *summary;             /* one line, no full stop */
	const char *details;             /* paragraphs, an empty line between, or NULL */
	void (*print_details)(FILE *to); /* lines that come from a table, or NULL */
	const char *examples;            /* lines of commands */
	const struct command_option *options;
	const struct command_option *shared; /* a second table, of several commands, or NULL */
	int arguments_min, arguments_max;
	bool wraps_command; /* options end at the first argument: the rest is another's */
	int (*take)(const struct command_option *option, const char *value); /* a command_result */
	int (*run)(int argc, char **argv); /* arguments alone; a command_result */
};

extern const struct command command_diff, command_embed, command_export, command_queries, command_record,
	command_report, command_sql;

/* The subcommands in the order of the help; NULL past the last. */
const struct command *command_at(size_t index);
const struct command *command_find(const char *name); /* NULL: none */

/* The option of that name, `size` bytes without dashes; NULL: there is none. */
const struct command_option *command_option_find(const struct command *command, const char *name,
                                                 size_t size);

/* What is said of the commands, from their tables (queryprof_help.c). */
void help_print(FILE *to);
void help_print_command(const struct command *command, FILE *to);
void help_print_manual(FILE *to); /* man(7) */

/* For bash: what the word at `cursor` of a command line, without the command's own
 * name, can become (queryprof_complete.c). */
int complete_words(int cursor, int count, char **words);

/* Prints "queryprof: …" to stderr; returns COMMAND_FAILED. */
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- trace files -------------------------------------------------------------- */

/* Opens a trace file for reading only, with queryprof's SQL functions, whose
 * addresses are those of the file. NULL after a complaint. */
sqlite3 *trace_file_open(const char *path);
void trace_file_close(sqlite3 *db);

/* A module in the address space of the open file. Strings stay valid until it is
 * closed. */
struct trace_module {
	const char *path, *build_id; /* build_id "" when it has none */
	uint64_t start, end;
};
bool trace_file_module(uint64_t address, struct trace_module *module); /* false: in none */

/* Gives `db` the SQL functions. An SQLite result; `*error` is sqlite3_malloc'ed.
 * trace_functions_free() once the connection is closed. */
int trace_functions_add(sqlite3 *db, char **error);
void trace_functions_free(void);

/* The names in the open file, for exports, with a function that was inlined as one of
 * its own or not; NULL: no memory. names_free() it before the file is closed. */
struct names *trace_file_names(bool inlines);

/* Puts names and lines into the file. A command_result, after a complaint. */
int trace_file_embed(const char *path);

/* What `db`, the open file, has of names and lines is used from now on, until it is
 * closed. An SQLite result. */
int trace_names_open(sqlite3 *db);
void trace_names_close(void);

/* Gives `db`, the open file, the function traceFrames() (queryprof_frames.c). */
int trace_frames_add(sqlite3 *db);

/* --- which runs ----------------------------------------------------------------- */

/* What the shared options say; NULL where one is not given. */
struct selection {
	const char *query, *like, *since, *until, *last;
};
extern struct selection selection;
extern const struct command_option selection_options[];

bool selection_is_all(const struct selection *one); /* no option was given */

/* COMMAND_MISUSED after a complaint: a time that is none. */
int selection_check(const char *command, const struct selection *one);

/* Opens the file and gives it temp.selected and its views (sql/selected.sql); NULL after
 * a complaint. */
sqlite3 *selection_open(const char *path, const struct selection *one);

/* Moments that a time on the command line may refer to, ns since 1970. */
struct time_bases {
	int64_t now, start, end; /* start, end: of the file */
};

/* ns since 1970. False: it is no time. */
bool time_parse(const char *text, const struct time_bases *bases, int64_t *ns);

/* The clocks: the names of --type, and of trace_type. */
const char *trace_type_at(size_t index);
#define TRACE_TYPE_OPTION(variable)                                                                          \
	{                                                                                                    \
		.name = "type", .value = "TYPE", .help = "samples of this type: CPU (default) or Real",      \
		.to = (variable), .kind = OPTION_WORD, .word_at = trace_type_at                              \
	}

/* --- running SQL -------------------------------------------------------------- */

/* A value for a parameter, as text; NULL leaves the parameter NULL. */
struct sql_parameter {
	const char *name; /* ":name"; NULL ends the list */
	const char *value;
};

enum output_format { OUTPUT_TABLE, OUTPUT_CSV, OUTPUT_JSON, OUTPUT_LINE };
#define OUTPUT_FORMATS "table, csv, json or line"

const char *output_format_at(size_t index); /* its name; NULL past the last */
/* The format of that name, a table if there is none. */
enum output_format output_format_find(const char *name);

/* The option that names a format. */
#define OUTPUT_FORMAT_OPTION(variable)                                                                       \
	{                                                                                                    \
		.name = "format", .value = "FORMAT", .help = OUTPUT_FORMATS "; table if not given",          \
		.to = (variable), .kind = OPTION_WORD, .word_at = output_format_at                           \
	}

struct output {
	enum output_format format;
	bool is_bare;         /* a table without its heading */
	bool cuts_middle;     /* text that does not fit loses its middle, not its end */
	bool folds_last;      /* where the last column has no room it stands below the others */
	const char *doing;    /* what is shown meanwhile, or NULL */
	const char *if_empty; /* line instead of a table without rows, or NULL */
};

void sql_bind(sqlite3_stmt *statement, const struct sql_parameter *parameters);

/* Runs all statements of `sql` and prints what they give. COMMAND_FAILED after a
 * complaint; it stops there. */
int sql_run(sqlite3 *db, const char *sql, const struct sql_parameter *parameters,
            const struct output *output);

#endif
