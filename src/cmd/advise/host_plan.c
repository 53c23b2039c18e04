/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/advise/host_plan.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "cmd/advise/limits.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "cmd/ui/terminal.h"
#include "sql_advise_host_plan.h"

#define PLAN_MAX (1 << 20)
#define SECONDS 20

/* --- the process that has the other library ---------------------------------------------------------------
 */

/* Its functions, by the names of SQLite's, which this process has, too. */
struct library {
	__typeof__(sqlite3_libversion) *libversion;
	__typeof__(sqlite3_open_v2) *open_v2;
	__typeof__(sqlite3_limit) *limit;
	__typeof__(sqlite3_exec) *exec;
	__typeof__(sqlite3_prepare_v2) *prepare_v2;
	__typeof__(sqlite3_step) *step;
	__typeof__(sqlite3_column_text) *column_text;
	__typeof__(sqlite3_finalize) *finalize;
	__typeof__(sqlite3_errmsg) *errmsg;
};

static bool load(const char *name, struct library *library)
{
	void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	struct {
		const char *name;
		void **function;
	} functions[] = {
		{ "sqlite3_libversion", (void **)&library->libversion },
		{ "sqlite3_open_v2", (void **)&library->open_v2 },
		{ "sqlite3_limit", (void **)&library->limit },
		{ "sqlite3_exec", (void **)&library->exec },
		{ "sqlite3_prepare_v2", (void **)&library->prepare_v2 },
		{ "sqlite3_step", (void **)&library->step },
		{ "sqlite3_column_text", (void **)&library->column_text },
		{ "sqlite3_finalize", (void **)&library->finalize },
		{ "sqlite3_errmsg", (void **)&library->errmsg },
	};

	for (size_t i = 0; handle && i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!(*functions[i].function = dlsym(handle, functions[i].name)))
			return false;
	return handle != NULL;
}

int host_plan_run(int argc, char **argv)
{
	struct library library;
	sqlite3 *db = NULL;
	sqlite3_stmt *rows = NULL;
	Dl_info file;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(SECONDS);
	if (argc != 4 || !load(argv[0], &library))
		return COMMAND_FAILED;
	char *explain = text_format("EXPLAIN QUERY PLAN %s", argv[2]);
	char *pragma = text_format("PRAGMA trusted_schema = 0; PRAGMA cell_size_check = 1; %s%s",
	                           *argv[3] ? "PRAGMA " : "", argv[3]);
	int code = explain && pragma ? library.open_v2(argv[1], &db, SQLITE_OPEN_READWRITE, "unix")
	                             : SQLITE_NOMEM;

	if (!code) {
		library.limit(db, SQLITE_LIMIT_ATTACHED, 0);
		code = library.exec(db, pragma, NULL, NULL, NULL);
	}
	if (!code)
		code = library.prepare_v2(db, explain, -1, &rows, NULL);
	if (code) {
		printf("!%s\n", db ? library.errmsg(db) : "out of memory");
		return COMMAND_FINE;
	}
	printf("%s %s\n", library.libversion(),
	       dladdr((void *)library.open_v2, &file) && file.dli_fname ? file.dli_fname : argv[0]);
	while (library.step(rows) == SQLITE_ROW)
		printf("%s\n", (const char *)library.column_text(rows, 3));
	fflush(stdout);
	_exit(COMMAND_FINE); /* with the connection */
}

/* What it prints, malloc'ed. NULL: it failed. */
static char *ask_library(const struct way *way, const char *copy, const char *name)
{
	char self[PATH_MAX], *text = calloc(1, PLAN_MAX);
	const ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *const words[] = { self,     "--explain-statement",          name, copy,
		                      way->sql, way->pragma ? way->pragma : "", NULL };
	int ends[2], status = 1;
	size_t used = 0;
	ssize_t got;

	if (!text || size <= 0 || pipe2(ends, O_CLOEXEC)) {
		free(text);
		return NULL;
	}
	self[size] = 0;
	fflush(stdout);
	const pid_t child = fork();

	if (child == 0) {
		const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDERR_FILENO) >= 0 &&
		    dup2(ends[1], STDOUT_FILENO) >= 0)
			execv(self, (char *const *)words);
		_exit(COMMAND_FAILED);
	}
	close(ends[1]);
	while (child > 0 && used < PLAN_MAX - 1 &&
	       (got = read(ends[0], text + used, PLAN_MAX - 1 - used)) > 0)
		used += (size_t)got;
	close(ends[0]);
	if (child > 0)
		waitpid(child, &status, 0);
	text[used] = 0;
	if (status != 0 || !used || !memchr(text, '\n', used)) {
		free(text);
		return NULL;
	}
	return text;
}

/* --- a recording of the program ---------------------------------------------------------------------------
 */

static bool is_recording(const char *path)
{
	char head[16] = "";
	const int file = open(path, O_RDONLY | O_CLOEXEC);
	const bool is = file >= 0 && read(file, head, sizeof(head)) == sizeof(head) &&
	                !memcmp(head, "SQLite format 3", sizeof(head));

	if (file >= 0)
		close(file);
	return is;
}

/* The same text as ask_library(), of the statement's newest run with a plan. */
static char *ask_recording(const struct way *way, const char *path)
{
	sqlite3 *db = trace_file_open_tables(path);
	sqlite3_stmt *row = NULL;
	char *text = NULL;

	if (!db)
		return NULL;
	if (sqlite3_prepare_v2(db, sql_advise_host_plan, -1, &row, NULL) == SQLITE_OK) {
		sqlite3_bind_text(row, 1, way->sql, -1, SQLITE_STATIC);
		if (sqlite3_step(row) == SQLITE_ROW)
			text = strdup((const char *)sqlite3_column_text(row, 0));
	}
	sqlite3_finalize(row);
	trace_file_close(db);
	return text;
}

/* --- comparing --------------------------------------------------------------------------------------------
 */

static bool begins(const char *line, const char *word)
{
	return !strncmp(line, word, strlen(word));
}

/* Puts the line as the newest versions write it, if it is one that shows a choice: which table, in which
 * order, by which index, and what is sorted. Names of subqueries differ between versions, and are no choice.
 * False: it is another one. */
static bool put_choice(char *to, size_t room, const char *line, size_t size)
{
	static const char *const scans[] = { "SCAN ", "SEARCH " };
	static const char sorts[] = "USE TEMP B-TREE FOR ";

	for (size_t i = 0; i < sizeof(scans) / sizeof(scans[0]); i++) {
		const char *rest = line + strlen(scans[i]), *end = line + size, *alias;

		if (!begins(line, scans[i]))
			continue;
		if (begins(rest, "TABLE ")) /* before 3.36, with the name in addition to an alias */
			rest += strlen("TABLE ");
		alias = memmem(rest, (size_t)(end - rest), " AS ", 4);
		if (alias && !memchr(rest, ' ', (size_t)(alias - rest)))
			rest = alias + 4;
		if (begins(rest, "SUBQUERY ") || begins(rest, "(") ||
		    memmem(rest, (size_t)(end - rest), "CONSTANT ROW", 12) ||
		    memmem(rest, (size_t)(end - rest), "-ROW VALUES", 11))
			return false;
		if (end - rest > 10 && !memcmp(end - 10, " LEFT-JOIN", 10))
			end -= 10;
		snprintf(to, room, "%s%.*s", scans[i], (int)(end - rest), rest);
		return true;
	}
	if (!begins(line, sorts))
		return false;
	/* A sort of groups: newer versions also say by how many terms. */
	if (begins(line + strlen(sorts), "LAST ") || begins(line + strlen(sorts), "RIGHT PART OF ")) {
		const char *by = memmem(line, size, " OF ", 4);

		snprintf(to, room, "%sRIGHT PART%.*s", sorts, by ? (int)(line + size - by) : 0, by ? by : "");
		return true;
	}
	snprintf(to, room, "%.*s", (int)size, line);
	return true;
}

/* The next line with a choice, in `to`; "" after the last one. */
static void next_choice(const char **plan, char *to, size_t room)
{
	for (*to = 0; **plan && !*to;) {
		const size_t size = strcspn(*plan, "\n");

		if (!put_choice(to, room, *plan, size))
			*to = 0;
		*plan += size + ((*plan)[size] == '\n');
	}
}

static bool are_alike(const char *a, const char *b)
{
	char one[1000], other[1000];

	do {
		next_choice(&a, one, sizeof(one));
		next_choice(&b, other, sizeof(other));
	} while (*one && !strcmp(one, other));
	return !*one && !*other;
}

void host_plan_print_lines(const char *text)
{
	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		printf("  ");
		terminal_print(text, strcspn(text, "\n"), 0, INT_MAX);
		putchar('\n');
	}
}

void host_plan_print(const struct way *way, struct connection *connection, const char *copy, const char *host)
{
	const bool has_recording = host && is_recording(host);
	char *path =
		host ? realpath(host, NULL) : NULL; /* dlopen() looks for a name without a slash elsewhere */
	const char *name = path ? path : host ? host : HOST_PLAN_LIBRARY;
	char *text = has_recording ? ask_recording(way, name) : ask_library(way, copy, name);
	char *own = connection_plan(connection, way->sql);

	putchar('\n');
	if (!text || !own || *text == '!') {
		printf("Whether the program's SQLite plans the same is not known: ");
		if (text && *text == '!')
			printf("%.*s\n", (int)strcspn(text, "\n") - 1, text + 1);
		else
			printf("%s%s\n", name,
			       has_recording ? " has no plan of this statement"
			       : host        ? " cannot be asked"
			                     : " is not installed; give --host");
	} else {
		char *lines = text + strcspn(text, "\n");
		const bool alike = are_alike(own, lines + 1);

		*lines = 0;
		const size_t version = strcspn(text, " ");

		if (has_recording)
			printf("In the recording, ");
		printf("SQLite %.*s (%s) %s\n", (int)version, text, text[version] ? text + version + 1 : name,
		       has_recording
		               ? alike ? "had the same plan"
		                       : "had another plan, perhaps by other settings, values or statistics:"
		       : !alike ? "plans otherwise:"
		       : host   ? "plans the same"
		                : "plans the same; give --host if the program has another SQLite");
		if (!alike)
			host_plan_print_lines(lines + 1);
	}
	free(text);
	free(path);
	sqlite3_free(own);
}
