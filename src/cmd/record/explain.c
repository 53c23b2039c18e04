/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record/explain.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "cmd/file/file_map.h"
#include "cmd/file/library.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "cmd/record/environments.h"
#include "cmd/record/messages.h"
#include "cmd/ui/process_files.h"
#include "cmd/ui/program.h"
#include "recorder/mark.h"
#include "store/file/database.h"
#include "store/write/losses.h"

/* --- what processes say ------------------------------------------------------------------ */

static char *next_line(const char **lines, enum mark kind)
{
	long process;

	return messages_next(lines, (const char[]){ (char)kind, '\0' }, &process);
}

static bool has_line(enum mark kind)
{
	const char *lines = messages_all();
	char *line = next_line(&lines, kind);
	bool found = line != NULL;

	free(line);
	return found;
}

bool explain_has_sqlite(void)
{
	return has_line(MARK_SQLITE);
}

void explain_losses(struct losses *losses)
{
	const char *lines = messages_all();
	char *why;

	while ((why = next_line(&lines, MARK_LOST))) {
		losses_note(losses, why, 0, 1);
		free(why);
	}
}

#define CONFINED_SHOWN 3

void explain_confinement(const char *path)
{
	const char *lines = messages_all();
	char *line;
	int count = 0;

	while ((line = next_line(&lines, MARK_CONFINED))) {
		if (count++ < CONFINED_SHOWN)
			complain("%s: %s", path, line);
		free(line);
	}
	if (count > CONFINED_SHOWN)
		complain("%s: %d more messages of this kind", path, count - CONFINED_SHOWN);
}

/* --- processes that are left -------------------------------------------------------------- */

/* A process that still runs and has the preload; 0: none. */
static int find_process(void)
{
	char *line = text_format("QUERYPROF_RECORD=%s", getenv("QUERYPROF_RECORD"));
	const pid_t found = line ? environments_find(line) : 0;

	free(line);
	return found;
}

static bool is_off(const char *variable, bool otherwise)
{
	const char *value = getenv(variable);

	return value ? strcmp(value, "0") == 0 : otherwise;
}

/* Runs are also counted if they are not logged. */
static bool has_counted(const char *path)
{
	sqlite3 *db = trace_file_open(path);
	bool counted = db && database_number(db, "SELECT EXISTS (SELECT 1 FROM statement_counters)", 0);

	trace_file_close(db);
	return counted;
}

/* Processes that ran the same program report the same line. */
#define REFUSED_MAX 8

bool explain_is_any_running(void)
{
	return find_process() != 0;
}

bool explain_refused(const char *before)
{
	char *said[REFUSED_MAX], *line;
	size_t count = 0, more = 0;
	const char *lines = messages_all();

	while ((line = next_line(&lines, MARK_REFUSED))) {
		size_t i = 0;

		while (i < count && strcmp(said[i], line) != 0)
			i++;
		if (i < count || count == REFUSED_MAX) {
			more += i == count;
			free(line);
			continue;
		}
		complain("%s: %s", before, line);
		said[count++] = line;
	}
	if (more)
		complain("%s, for %zu more reasons", before, more);
	for (size_t i = 0; i < count; i++)
		free(said[i]);
	return count > 0;
}

bool explain_not_attached(void)
{
	if (explain_refused("nothing was recorded"))
		return true;
	complain("nothing was recorded: the process called no shared SQLite library. If SQLite is inside "
	         "its program, use queryprof record");
	return false;
}

bool explain_no_query(const char *path)
{
	int process = find_process();

	/* An unfollowed SQLite may have run queries. */
	if (!process && explain_refused("nothing was recorded"))
		return true;
	if (process)
		complain("%s: no query was recorded yet; process %d still runs, and recording continues",
		         path, process);
	else if (is_off("QUERYPROF_QUERY_PROFILER_CPU_TIME_PERIOD_NS", false) &&
	         is_off("QUERYPROF_QUERY_PROFILER_REAL_TIME_PERIOD_NS", true) &&
	         is_off("QUERYPROF_QUERY_PROFILER_OFF_CPU_PERIOD_NS", false))
		complain("%s: no query was sampled or followed, because all periods are 0", path);
	else if (!has_counted(path) && !has_line(MARK_STARTED))
		complain("%s: nothing was recorded: SQLite was loaded, but the process reported no query. "
		         "Either it ran none, or it could not open a file (ulimit -n)",
		         path);
	else if (!has_counted(path))
		complain("%s: nothing was recorded: SQLite ran, but its process ended before anything was "
		         "stored",
		         path);
	else
		complain("%s: SQLite ran, but no query took long enough to be sampled or logged: queryprof "
		         "queries %s counts all of them (--setting log_queries_min_query_duration_ns=0 logs "
		         "every one)",
		         path, path);
	return false;
}

/* --- why nothing was seen --------------------------------------------------------------- */

/* The file that execvp() runs. */
static bool find_program(const char *name, char *path)
{
	const char *folders = getenv("PATH");
	char tried[2 * PATH_MAX];

	if (strchr(name, '/'))
		return realpath(name, path) != NULL;
	for (const char *at = folders ? folders : "/bin:/usr/bin"; at;
	     at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
		snprintf(tried, sizeof(tried), "%.*s/%s", (int)strcspn(at, ":"), at, name);
		if (access(tried, X_OK) == 0 && realpath(tried, path))
			return true;
	}
	return false;
}

/* The loader that the program names; NULL: none. */
static const char *find_interpreter(const unsigned char *file, size_t size)
{
	const ElfW(Ehdr) *header = (const void *)file;

	for (size_t i = 0; size >= sizeof(*header) && i < header->e_phnum; i++) {
		const ElfW(Phdr) *segment = (const void *)(file + header->e_phoff + i * sizeof(*segment));
		if (header->e_phoff > size || size - header->e_phoff < (i + 1) * sizeof(*segment))
			return NULL;
		if (segment->p_type == PT_INTERP && segment->p_offset < size &&
		    memchr(file + segment->p_offset, '\0', size - segment->p_offset))
			return (const char *)file + segment->p_offset;
	}
	return NULL;
}

/* A message that every copy of SQLite contains, and that programs which only use SQLite do not contain. */
static bool has_sqlite_inside(const void *file, size_t size)
{
	static const char words[] = "malformed database schema";

	return memmem(file, size, words, strlen(words)) != NULL;
}

/* AddressSanitizer then ignores the preload's options. */
static bool has_own_link_order(const void *file, size_t size)
{
	return memmem(file, size, "__asan_default_options", 22) &&
	       (memmem(file, size, "libasan.so", 10) || memmem(file, size, "libclang_rt.asan", 16));
}

/* malloc'ed; NULL: the processes had mapped no such file. */
static char *find_object(void)
{
	const char *lines = messages_all();
	struct stat status;
	char *object = NULL;
	long process;

	while ((object =
	                messages_next(&lines, (const char[]){ MARK_PROGRAM, MARK_OBJECT, '\0' }, &process))) {
		const char *path = strchr(object, '/');
		void *file = path ? file_map(path, &status) : NULL;
		bool found = file && has_sqlite_inside(file, (size_t)status.st_size);

		if (file)
			munmap(file, (size_t)status.st_size);
		if (found) {
			memmove(object, path, strlen(path) + 1);
			break;
		}
		free(object);
	}
	return object;
}

/* Translated SQLite has no functions to hook. A Go program names its modules, even if it is stripped. */
static bool explain_translated(const char *path, const void *file, size_t size)
{
	static const struct {
		const char *module, *into;
	} translations[] = { { "modernc.org/sqlite", "Go" },
		             { "github.com/ncruces/go-sqlite3", "WebAssembly" } };

	for (size_t i = 0; i < sizeof(translations) / sizeof(*translations); i++) {
		char line[64];
		int length = snprintf(line, sizeof(line), "\ndep\t%s\t", translations[i].module);

		if (!memmem(file, size, line, (size_t)length))
			continue;
		complain("%s contains SQLite translated into %s (%s), which queryprof cannot record: use a "
		         "driver that calls the C library, such as github.com/mattn/go-sqlite3",
		         path, translations[i].into, translations[i].module);
		return true;
	}
	return false;
}

/* npm packages with SQLite as WebAssembly, in the folders where node looks for them. */
static bool explain_packages(void)
{
	static const char *const packages[] = { "sql.js", "node-sqlite3-wasm", "@sqlite.org/sqlite-wasm",
		                                "wa-sqlite" };
	char folder[PATH_MAX], path[2 * PATH_MAX];

	if (!getcwd(folder, sizeof(folder)))
		return false;
	do {
		for (size_t i = 0; i < sizeof(packages) / sizeof(*packages); i++) {
			snprintf(path, sizeof(path), "%s/node_modules/%s", folder, packages[i]);
			if (access(path, F_OK) != 0)
				continue;
			complain("if it uses %s, that is SQLite translated into WebAssembly, which "
			         "queryprof cannot record: use node:sqlite or better-sqlite3",
			         path);
			return true;
		}
		*strrchr(folder, '/') = '\0';
	} while (*folder);
	return false;
}

/* If the copy could not be hooked, a process has reported that with the reason. */
static void explain_own_copy(const char *object)
{
	complain("%s contains its own copy of SQLite, which opened no database", object);
	explain_packages();
}

/* Looks at the program's own file. False: the file explains nothing. */
static bool explain_program(const char *path)
{
	struct stat status;
	void *file = file_map(path, &status);
	const char *interpreter;
	bool found = true, is_elf;
	size_t size;

	if (!file)
		return false;
	size = (size_t)status.st_size;
	is_elf = size > SELFMAG && memcmp(file, ELFMAG, SELFMAG) == 0;
	interpreter = find_interpreter(file, size);
	if (status.st_mode & (S_ISUID | S_ISGID))
		complain("%s runs with more rights than its caller (set-user-id), so it cannot be recorded: "
		         "put queryprof record directly before the command that it starts",
		         path);
	else if (explain_translated(path, file, size))
		;
	else if (is_elf && !interpreter)
		complain("%s is statically linked, so nothing can be preloaded: link it with the shared C "
		         "library (without -static; Go: with cgo; Rust for musl: -C "
		         "target-feature=-crt-static)",
		         path);
	else if (has_own_link_order(file, size))
		complain("%s defines __asan_default_options(), and AddressSanitizer ends it if another "
		         "library is loaded first: set ASAN_OPTIONS=verify_asan_link_order=0",
		         path);
	else if (has_sqlite_inside(file, size))
		explain_own_copy(path);
	else
		found = false;
	munmap(file, size);
	return found;
}

/* --- which programs had queryprof in them ---------------------------------------------- */

#define PROGRAMS_MAX 6 /* that are named */

struct programs {
	char *names; /* "sh, env"; NULL: no process has reported */
	size_t named, more;
	char last[64]; /* the name of the command's own process in its newest report; "": it sent none */
};

static void add_program(struct programs *programs, const char *name, long process)
{
	char *longer;

	if (process == program_process())
		snprintf(programs->last, sizeof(programs->last), "%s", name);
	for (const char *at = programs->names; at && (at = strstr(at, name)); at++)
		if ((at == programs->names || at[-1] == ' ') && strchr(",", at[strlen(name)]))
			return;
	if (programs->named == PROGRAMS_MAX) {
		programs->more++;
		return;
	}
	longer = text_format("%s%s%s", programs->names ? programs->names : "", programs->names ? ", " : "",
	                     name);
	programs->named += longer != NULL;
	free(programs->names);
	programs->names = longer;
}

static struct programs find_programs(void)
{
	struct programs programs = { .names = NULL };
	const char *lines = messages_all();
	long process;
	char *line;

	while ((line = messages_next(&lines, (const char[]){ MARK_PROGRAM, '\0' }, &process))) {
		line[strcspn(line, "/")] = '\0';
		if (*line)
			add_program(&programs, line, process);
		free(line);
	}
	return programs;
}

/* What a program in another root needs; `line` is the beginning of the sentence. */
static void explain_root(const char *line)
{
	char preload[PATH_MAX];
	const char *path = messages_path();
	int folder = (int)(strrchr(path, '/') - path);

	if (!library_find("libqueryprof-preload.so", preload))
		*preload = '\0';
	complain("%s another root directory (chroot, bubblewrap, a container), make %s and %.*s visible "
	         "there at the same paths",
	         line, preload, folder, path);
}

static void explain_unseen(const struct programs *programs, const char *program)
{
	if (programs->names)
		complain("queryprof was loaded into %s, which did not load SQLite. Then %s became %s, which "
		         "reported nothing",
		         programs->names, program, program_last_name());
	else
		complain("%s reported nothing", program);
	explain_root("if env -i, sudo or another set-user-id program has removed the preload, put queryprof "
	             "record directly before the program. If it has");
}

static void explain_seen(const struct programs *programs, const char *program, int status)
{
	char others[sizeof(" and  others") + 20] = "";

	if (programs->more)
		snprintf(others, sizeof(others), " and %zu others", programs->more);
	if (WIFSIGNALED(status))
		complain("queryprof was loaded into %s%s, which did not load SQLite; signal %d (%s) ended %s",
		         programs->names, others, WTERMSIG(status), strsignal(WTERMSIG(status)), program);
	else
		complain("queryprof was loaded into %s%s, which did not load SQLite; %s ended with status %d",
		         programs->names, others, program, WEXITSTATUS(status));
	if (!status)
		explain_root("if env -i, sudo or a server starts the program that uses SQLite, put queryprof "
		             "record directly before it. If it has");
}

/* The program's process has the name of its newest program to its end, or of one that reported nothing. */
static void explain_programs(const char *program, int status)
{
	struct programs programs = find_programs();
	const char *last = program_last_name();

	if (!programs.names || (*programs.last && *last && strcmp(programs.last, last) != 0))
		explain_unseen(&programs, program);
	else
		explain_seen(&programs, program, status);
	free(programs.names);
}

static void explain_cause(const char *path, const char *program, int status)
{
	char *object = find_object();
	int process = find_process();

	if (process)
		complain("process %d still runs; recording begins with its first query", process);
	else if (object)
		explain_own_copy(object);
	else if (explain_program(path) || explain_packages())
		;
	else
		explain_programs(program, status);
	free(object);
}

bool explain_no_sqlite(const char *program, int status)
{
	char path[PATH_MAX];

	if (explain_refused("nothing was recorded"))
		return true;
	if (!find_program(program, path))
		snprintf(path, sizeof(path), "%s", program);
	complain("nothing was recorded: neither %s nor a program that it started loaded a SQLite library",
	         program);
	explain_cause(path, program, status);
	return false;
}
