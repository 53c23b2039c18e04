/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shell opens the file read-only and reads its first commands from a descriptor:
 * they load the library for its functions, put this version's views before the file's as temporary
 * ones, and set the mode. They come after the person's ~/.sqliterc.
 */
#include "cmd/read/shell.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd/file/library.h"
#include "cmd/file/trace_file.h"
#include "cmd/ui/complain.h"
#include "cmd/ui/limits.h"
#include "store/file/database.h"

static const char *const modes[] = {
	[OUTPUT_TABLE] = "box",
	[OUTPUT_CSV] = "csv",
	[OUTPUT_JSON] = "json",
	[OUTPUT_LINE] = "line",
};

/* A word between double quotes, where the shell knows backslashes. */
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
	/* The settings of database_distrust(); the shell prints what it has set. */
	fprintf(to, ".output /dev/null\n.dbconfig enable_view off\n.limit length %d\n.output\n",
	        DATABASE_VALUE_MAX);
	fprintf(to, ".mode %s\n.headers on\n", modes[format]);
	return write_temporary_schema(to, db);
}

/* The descriptor with the commands; -1 after a complaint. */
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

int shell_become(const char *path, enum output_format format)
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
