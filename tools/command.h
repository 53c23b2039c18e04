/*
 * What the subcommands of the queryprof command share.
 *
 * A subcommand is one file with one `struct command`; queryprof.c has the table of
 * them. Results go to stdout, everything else to stderr, as "queryprof: what".
 */
#ifndef QUERYPROF_TOOLS_COMMAND_H
#define QUERYPROF_TOOLS_COMMAND_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum command_result {
	COMMAND_FINE = 0,
	COMMAND_FAILED = 1, /* the file cannot be read, the SQL is wrong, no such query */
	COMMAND_MISUSED = 2, /* the command line makes no sense */
};

/* --- command lines ------------------------------------------------------------ */

/* One --option, or -o where the name is one letter; the table of them parses and
 * prints the help. */
struct command_option {
	const char *name;  /* without the dashes; NULL ends the table */
	const char *value; /* what its value is, NULL: it takes none */
	const char *help;
	const char **to;   /* where the value goes; "1" for an option without. NULL: to
	                    * the command's take() */
};

struct command {
	const char *name;
	const char *arguments; /* as the usage line shows them */
	const char *summary;   /* one line, no full stop */
	const char *details;   /* paragraphs for --help, or NULL */
	void (*print_details)(FILE *to); /* the same where it comes from a table, or NULL */
	const char *examples;  /* lines for --help */
	const struct command_option *options;
	int arguments_min, arguments_max;
	bool wraps_command; /* options end at the first argument: the rest is another's */
	int (*take)(const struct command_option *option, const char *value); /* a command_result */
	int (*run)(int argc, char **argv); /* arguments alone; a command_result */
};

extern const struct command command_export, command_queries, command_record, command_report, command_sql;

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

/* The query_id in full that `given` stands for: itself, or the only one that begins
 * with it. sqlite3_malloc'ed; NULL after a complaint, which names the file. */
char *complete_query_id(sqlite3 *db, const char *path, const char *given);

/* Gives `db` the SQL functions. An SQLite result; `*error` is sqlite3_malloc'ed.
 * trace_functions_free() once the connection is closed. */
int trace_functions_add(sqlite3 *db, char **error);
void trace_functions_free(void);

/* --- running SQL -------------------------------------------------------------- */

/* A value for a parameter, as text; NULL leaves the parameter NULL. */
struct sql_parameter {
	const char *name; /* ":name"; NULL ends the list */
	const char *value;
};

enum output_format { OUTPUT_TABLE, OUTPUT_CSV, OUTPUT_JSON };

/* The format of that name (NULL: table); false when there is none. */
bool output_format_find(const char *name, enum output_format *format);
#define OUTPUT_FORMATS "table, csv or json"

struct output {
	enum output_format format;
	bool is_bare;         /* a table without its heading */
	const char *if_empty; /* line instead of a table without rows, or NULL */
};

void sql_bind(sqlite3_stmt *statement, const struct sql_parameter *parameters);

/* Runs all statements of `sql` and prints what they give. COMMAND_FAILED after a
 * complaint; it stops there. */
int sql_run(sqlite3 *db, const char *sql, const struct sql_parameter *parameters,
            const struct output *output);

/* Runs the statement to its end and prints its rows. An SQLite result. */
int output_rows(sqlite3_stmt *statement, const struct output *output);

#endif
