/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof sql: SQL on a trace file. The command runs statements itself; a user at a terminal gets the
 * system's sqlite3 shell.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd/file/library.h"
#include "cmd/file/run_sql.h"
#include "cmd/file/stack_sums.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "cmd/ui/limits.h"
#include "sql/functions.h"
#include "store/file/database.h"

#define SQL_MAX (64 << 20) /* bytes on standard input */

static const char *format_name, *guarded;

static const struct command_option options[] = {
	OUTPUT_FORMAT_OPTION(&format_name),
	COMMAND_FLAG("guarded", &guarded, "for SQL of others: no other file, no settings, no extension"),
	{ 0 },
};

/* malloc'ed; NULL after a complaint. */
static char *read_standard_input(void)
{
	/* Untouched memory takes no room. */
	char *text = malloc(SQL_MAX + 2);
	size_t size;

	errno = 0;
	size = text ? fread(text, 1, SQL_MAX + 1, stdin) : 0;
	if (text && !ferror(stdin) && size <= SQL_MAX) {
		text[size] = 0;
		return text;
	}
	if (size > SQL_MAX)
		complain("standard input: more than %d bytes of SQL", SQL_MAX);
	else
		complain("standard input: %s", errno ? strerror(errno) : "cannot be read");
	free(text);
	return NULL;
}

/* What untrusted SQL may do. The trace file is open read-only. This refuses other files (ATTACH, which VACUUM
 * INTO also uses), settings and code. */
static int authorize(void *context, int action, const char *what, const char *detail, const char *schema,
                     const char *view)
{
	static const char *const pragmas[] = { "table_info", "table_xinfo", "table_list", "index_list",
		                               "index_info" };
	bool may = action != SQLITE_ATTACH && action != SQLITE_DETACH && action != SQLITE_PRAGMA &&
	           action != SQLITE_CREATE_VTABLE;

	(void)context, (void)schema, (void)view;
	if (action == SQLITE_FUNCTION)
		may = sqlite3_stricmp(detail, "load_extension") != 0 &&
		      sqlite3_stricmp(detail, "fts3_tokenizer") != 0;
	for (size_t i = 0; action == SQLITE_PRAGMA && i < sizeof(pragmas) / sizeof(*pragmas); i++)
		may |= sqlite3_stricmp(what, pragmas[i]) == 0;
	return may ? SQLITE_OK : SQLITE_DENY;
}

static bool is_refused(sqlite3 *db)
{
	return sqlite3_errcode(db) == SQLITE_AUTH || strncmp(sqlite3_errmsg(db), "not authorized", 14) == 0;
}

/* --- the shell ---------------------------------------------------------------------------- */

/* The shell opens the file read-only and reads its first commands from a descriptor, after the user's
 * ~/.sqliterc. They load the library for its functions, create this version's views as temporary ones, which
 * precede the file's, and set the mode. */

static const char *const modes[] = {
	[OUTPUT_TABLE] = "box",
	[OUTPUT_CSV] = "csv",
	[OUTPUT_JSON] = "json",
	[OUTPUT_LINE] = "line",
};

/* Writes a word in double quotes, in which the shell of sqlite3 reads backslash escapes. */
static void write_word(FILE *to, const char *text)
{
	putc('"', to);
	for (; *text; text++)
		if (*text == '"' || *text == '\\' || (unsigned char)*text < ' ')
			fprintf(to, "\\%03o", (unsigned char)*text);
		else
			putc(*text, to);
	putc('"', to);
}

static void write_load(FILE *to)
{
	char library[PATH_MAX];

	if (library_find("libqueryprof.so", library)) {
		fputs(".load ", to);
		write_word(to, library);
		fputs(" sqlite3_queryprof_trace_init\n", to);
	} else {
		complain("libqueryprof.so is neither in this command's folder nor in " QUERYPROF_LIBDIR
		         " relative to it: the shell has no addressToSymbol() and similar functions");
	}
}

/* The temporary views that trace_file_open() made. An SQLite result. */
static int write_temporary_schema(FILE *to, sqlite3 *db)
{
	sqlite3_stmt *row = NULL;
	int code = sqlite3_prepare_v2(db,
	                              "SELECT substr(sql, length('CREATE ') + 1) FROM temp.sqlite_schema"
	                              " WHERE sql IS NOT NULL ORDER BY rowid",
	                              -1, &row, NULL);

	while (code == SQLITE_OK && (code = sqlite3_step(row)) == SQLITE_ROW) {
		fprintf(to, "CREATE TEMP %s;\n", (const char *)sqlite3_column_text(row, 0));
		code = SQLITE_OK;
	}
	sqlite3_finalize(row);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int write_commands(FILE *to, sqlite3 *db, enum output_format format)
{
	write_load(to);
	/* The file may come from a stranger. */
	fputs("PRAGMA trusted_schema = OFF;\nPRAGMA cell_size_check = ON;\n.timeout 5000\n", to);
	/* The settings of database_distrust(). The shell would print what it sets. */
	fprintf(to, ".output /dev/null\n.dbconfig enable_view off\n.limit length %d\n.output\n",
	        DATABASE_VALUE_MAX);
	fprintf(to, ".mode %s\n.headers on\n", modes[format]);
	return write_temporary_schema(to, db);
}

/* A descriptor with the commands; -1 after a complaint. */
static int make_commands(const char *path, enum output_format format)
{
	sqlite3 *db = trace_file_open(path);
	int fd = db ? memfd_create("queryprof-sql", 0) : -1, code = SQLITE_OK;
	FILE *to = fd < 0 ? NULL : fdopen(dup(fd), "w");

	if (!db)
		return -1;
	if (to)
		code = write_commands(to, db, format);
	if (code)
		complain("%s: %s", path, sqlite3_errmsg(db));
	else if (!to || fclose(to))
		complain("%s: the shell's commands cannot be written: %s", path, strerror(errno));
	trace_file_close(db);
	return code || !to ? -1 : fd;
}

/* Executes the system's sqlite3 shell. Returns only if that fails: COMMAND_FAILED after a complaint. */
static int become_shell(const char *path, enum output_format format)
{
	char read[64], *uri = trace_file_uri(path);
	int fd = uri ? make_commands(path, format) : -1;

	if (!uri)
		return complain("out of memory");
	if (fd >= 0) {
		snprintf(read, sizeof(read), ".read /proc/self/fd/%d", fd);
		memory_limit_lift();
		execlp("sqlite3", "sqlite3", "-readonly", "-cmd", read, uri, (char *)NULL);
		if (errno == ENOENT)
			complain("the sqlite3 shell is not installed (Debian's package sqlite3); "
			         "queryprof sql %s 'SELECT …' works without it",
			         path);
		else
			complain("sqlite3: %s", strerror(errno));
	}
	sqlite3_free(uri);
	return COMMAND_FAILED;
}

/* --- the command -------------------------------------------------------------------------- */

/* A single argument is the file, unless it can only be SQL. */
static bool is_sql(const char *word)
{
	return strchr(word, ' ') && access(word, F_OK) != 0;
}

static int run(int argc, char **argv)
{
	const struct output output = { .format = output_format_find(format_name) };
	const char *path = argv[0], *given = argc > 1 ? argv[1] : "-";
	char *text = NULL;

	if (argc == 1 && is_sql(argv[0])) {
		path = TRACE_FILE_DEFAULT;
		given = argv[0];
	} else if (argc == 1 && isatty(STDIN_FILENO)) {
		return become_shell(path, output.format);
	}
	sqlite3 *db = trace_file_open(path);
	if (!db)
		return COMMAND_FAILED;
	if (strcmp(given, "-") == 0)
		given = text = read_standard_input();
	int result = stack_sums_add(db) ? complain("%s: %s", path, sqlite3_errmsg(db)) : COMMAND_FINE;
	if (guarded)
		sqlite3_set_authorizer(db, authorize, NULL);
	if (!result)
		result = given ? run_sql(db, given, NULL, &output) : COMMAND_FAILED;
	if (result && guarded && is_refused(db))
		complain("--guarded refuses ATTACH, VACUUM INTO, load_extension(), and each PRAGMA except "
		         "table_info, table_list and index_list");
	free(text);
	trace_file_close(db);
	return result;
}

static void print_functions(FILE *to)
{
	int at = fprintf(to, "Functions:");
	const char *name;

	for (size_t i = 0; (name = functions_name_at(i)); i++) {
		const bool fits = at + (int)strlen(name) < 70;

		at = (fits ? at : 0) + fprintf(to, "%s%s%s", i ? "," : "", fits ? " " : "\n  ", name);
	}
	fputc('\n', to);
}

const struct command command_sql = {
	.name = "sql",
	.arguments = "[FILE] [SQL]",
	.summary = "Runs SQL on a trace file, with queryprof's functions",
	.details = "SQL comes from standard input if SQL is -, or if it is missing and standard input is not "
		   "a terminal. The first error ends the command with exit status 1. Without SQL on a "
		   "terminal, the system's sqlite3 shell opens the file, with queryprof's functions loaded; "
		   ".help, .tables and .quit are commands of that shell.\n\n"
		   "The file is opened read-only. Tables: trace_log, query_log, and the views that sum them "
		   "up.\n\n"
		   "In JSON, a blob is a string of hexadecimal digits, as from hex(), and an infinity is the "
		   "number 1e999 or -1e999, which is too large for any double. Bytes of a text that are not "
		   "UTF-8 become U+FFFD.",
	.print_details = print_functions,
	.examples = "  queryprof sql app.trace\n"
		    "  queryprof sql app.trace \"SELECT query_id, query FROM query_log\"\n"
		    "  queryprof sql app.trace --format csv < questions.sql > answers.csv\n"
		    "  queryprof sql app.trace \"SELECT sum(weight) AS n,\n"
		    "      demangle(addressToSymbol(trace->>0)) AS symbol\n"
		    "    FROM trace_log GROUP BY symbol ORDER BY n DESC LIMIT 10\"\n",
	.options = options,
	.reads_file = true,
	.pages = true,
	.arguments_max = 2,
	.run = run,
};
