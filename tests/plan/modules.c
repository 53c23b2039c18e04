/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host with virtual tables of its own, whose modules answer at random when SQLite plans. It prints the
 * questions that SQLite asked the modules, and each statement's plan for the modules' first answers. With and
 * without queryprof it must print the same.
 *
 *   plan_modules plans|threads|memory|nested|bytes
 *   plan_modules unload|stale LIBRARY      the library has `module_of_library`
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/must.h"

#define STATEMENTS 150
#define ANSWERS_MAX 4000

/* --- the modules --------------------------------------------------------------------------------- */

static __thread uint64_t state = 20261130;

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

/* One answer, which is repeated when the host itself explains the statement. */
struct answer {
	int rc, number, is_ordered, flags, has_text;
	double cost;
	sqlite3_int64 rows;
	char text[20];
	struct sqlite3_index_constraint_usage usages[40];
	uint32_t taken;
};

static __thread struct answer *answers;  /* ANSWERS_MAX */
static __thread int answer_count, given; /* given -1: the module draws a new one */
static __thread uint64_t asked;          /* a hash of all questions, which depends on their number, too */

static void note(int64_t question)
{
	asked = (asked ^ (uint64_t)question) * 0x9e3779b97f4a7c15u;
	asked ^= asked >> 29;
}

static int connect_table(sqlite3 *db, void *context, int argc, const char *const *argv, sqlite3_vtab **table,
                         char **error)
{
	(void)context, (void)argc, (void)argv, (void)error;
	note(1);
	*table = calloc(1, sizeof(**table));
	return *table ? sqlite3_declare_vtab(db, "CREATE TABLE x(a, b, c TEXT, d HIDDEN)") : SQLITE_NOMEM;
}

static int disconnect_table(sqlite3_vtab *table)
{
	free(table);
	return SQLITE_OK;
}

static void draw_answer(struct answer *answer, sqlite3_index_info *info)
{
	int argument = 0, is_refusable = 0;

	memset(answer, 0, sizeof(*answer));
	for (int i = 0; i < info->nConstraint && i < 40; i++) {
		is_refusable |= !info->aConstraint[i].usable;
		if (!info->aConstraint[i].usable || !draw(3))
			continue;
		answer->usages[i].argvIndex = ++argument;
		answer->usages[i].omit = (unsigned char)draw(2);
		if (i < 32 && draw(2) && sqlite3_vtab_in(info, i, -1))
			answer->taken |= 1u << i;
	}
	answer->rc = is_refusable && !draw(6) ? SQLITE_CONSTRAINT : SQLITE_OK;
	answer->number = (int)draw(1000000);
	answer->has_text = (int)draw(3);
	snprintf(answer->text, sizeof(answer->text), "%x%s", draw(100000), draw(2) ? "M1" : "");
	answer->is_ordered = info->nOrderBy > 0 && draw(2);
	answer->flags = draw(4) ? 0 : SQLITE_INDEX_SCAN_UNIQUE;
	answer->cost = 1 + draw(100000);
	answer->rows = 1 + draw(1000);
}

static int best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	struct answer *answer;

	(void)table;
	if (!answers && !(answers = calloc(ANSWERS_MAX, sizeof(*answers))))
		return SQLITE_NOMEM;
	if (given < 0 && answer_count == ANSWERS_MAX)
		return SQLITE_NOMEM;
	answer = &answers[given < 0 ? answer_count++ : given++];
	if (given < 0)
		draw_answer(answer, info);
	note(info->nConstraint);
	note(info->nOrderBy);
	note((sqlite3_int64)info->colUsed);
	note(sqlite3_vtab_distinct(info));
	for (int i = 0; i < info->nConstraint; i++) {
		note(info->aConstraint[i].iColumn * 512 + info->aConstraint[i].op * 2 +
		     info->aConstraint[i].usable);
		note(sqlite3_vtab_in(info, i, -1));
		note(*sqlite3_vtab_collation(info, i));
	}
	if (answer->rc)
		return answer->rc;
	for (int i = 0; i < info->nConstraint && i < 40; i++) {
		info->aConstraintUsage[i] = answer->usages[i];
		if (i < 32 && answer->taken >> i & 1)
			sqlite3_vtab_in(info, i, 1);
	}
	info->idxNum = answer->number;
	if (answer->has_text == 1)
		info->idxStr = answer->text;
	if (answer->has_text == 2) {
		info->idxStr = sqlite3_mprintf("%s", answer->text);
		info->needToFreeIdxStr = 1;
	}
	info->orderByConsumed = answer->is_ordered;
	info->idxFlags = answer->flags;
	info->estimatedCost = answer->cost;
	info->estimatedRows = answer->rows;
	return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **cursor)
{
	(void)table;
	*cursor = calloc(1, sizeof(**cursor));
	return *cursor ? SQLITE_OK : SQLITE_NOMEM;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
	free(cursor);
	return SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *cursor, int number, const char *text, int argc, sqlite3_value **argv)
{
	(void)cursor, (void)text, (void)argc, (void)argv;
	note(number);
	return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *cursor)
{
	(void)cursor;
	return SQLITE_OK;
}

static int is_at_end(sqlite3_vtab_cursor *cursor)
{
	(void)cursor;
	return 1;
}

static int column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int number)
{
	(void)cursor;
	sqlite3_result_int(context, number);
	return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id)
{
	(void)cursor;
	*id = 0;
	return SQLITE_OK;
}

#define METHODS_WITH(index, start)                                                                           \
	.xCreate = connect_table, .xConnect = connect_table, .xBestIndex = (index),                          \
	.xDisconnect = disconnect_table, .xDestroy = disconnect_table, .xOpen = open_cursor,                 \
	.xClose = close_cursor, .xFilter = (start), .xNext = next_row, .xEof = is_at_end, .xColumn = column, \
	.xRowid = rowid
#define METHODS METHODS_WITH(best_index, filter)

#ifdef AS_LIBRARY

__attribute__((visibility("default"))) const sqlite3_module module_of_library = { METHODS };

#else

static void like(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	(void)argc, (void)argv;
	sqlite3_result_int(context, 1);
}

static int find_function(sqlite3_vtab *table, int argc, const char *name,
                         void (**function)(sqlite3_context *, int, sqlite3_value **), void **context)
{
	(void)table;
	note(argc);
	note(*name);
	*context = NULL;
	*function = like;
	return !strcmp(name, "like") ? SQLITE_INDEX_CONSTRAINT_FUNCTION : !strcmp(name, "glob");
}

static const sqlite3_module plain = { METHODS };
static sqlite3_module with_functions = { METHODS, .xFindFunction = find_function };
static const sqlite3_module another = { METHODS };

/* --- statements -------------------------------------------------------------------------------- */

static const char *any_of(const char *const *words, uint32_t count)
{
	return words[draw(count)];
}

static void add_condition(sqlite3_str *text, int tables)
{
	static const char *const operators[] = { "=", "=", "<", ">", "<=", "IS", "LIKE", "GLOB" };
	static const char *const columns[] = { "a", "b", "c" };
	const int table = (int)draw((uint32_t)tables);

	switch (draw(5)) {
	case 0:
		sqlite3_str_appendf(text, "r%d.%s = r%d.%s", table, any_of(columns, 3),
		                    (int)draw((uint32_t)tables), any_of(columns, 3));
		break;
	case 1: sqlite3_str_appendf(text, "r%d.%s IN (%d, 7, 9)", table, any_of(columns, 3), draw(5)); break;
	case 2: sqlite3_str_appendf(text, "(r%d.a = %d OR r%d.b = 3)", table, draw(5), table); break;
	default:
		sqlite3_str_appendf(text, "r%d.%s %s 'x%d'", table, any_of(columns, 3), any_of(operators, 8),
		                    draw(9));
	}
}

static char *draw_statement(sqlite3 *db, int number)
{
	static const char *const sources[] = { "v", "f", "t", "w", "(SELECT a, b, c FROM f WHERE b = 4)" };
	sqlite3_str *text = sqlite3_str_new(db);
	const int tables = 1 + (int)draw(3);

	sqlite3_str_appendf(text, "SELECT %s r0.a AS n%d FROM", draw(5) ? "" : "DISTINCT", number);
	for (int i = 0; i < tables; i++)
		sqlite3_str_appendf(text, "%s %s AS r%d", i ? "," : "", any_of(sources, 5), i);
	for (int i = 0, conditions = (int)draw(4); i < conditions; i++) {
		sqlite3_str_appendf(text, i ? " AND " : " WHERE ");
		add_condition(text, tables);
	}
	if (draw(2))
		sqlite3_str_appendf(text, " ORDER BY r%d.b%s", (int)draw((uint32_t)tables),
		                    draw(2) ? " DESC" : "");
	return sqlite3_str_finish(text);
}

static sqlite3 *open_database(const char *name, const sqlite3_module *module)
{
	sqlite3 *db;

	must(NULL,
	     sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, NULL),
	     "open");
	must(db, sqlite3_create_module(db, "random", module, NULL), "module");
	must(db, sqlite3_create_module(db, "finding", &with_functions, NULL), "module");
	return db;
}

/* Prints the statement's plan, with the same answers. */
static void print_plan(sqlite3 *db, const char *text)
{
	char *sql = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", text);
	sqlite3_stmt *stmt;

	given = 0;
	must(db, sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), sql);
	if (given != answer_count) {
		fprintf(stderr, "%d answers of %d were used: %s\n", given, answer_count, sql);
		exit(2);
	}
	given = -1;
	printf("plan\t%s", text);
	while (sqlite3_step(stmt) == SQLITE_ROW)
		printf("\t%s", (const char *)sqlite3_column_text(stmt, 3));
	printf("\n");
	sqlite3_finalize(stmt);
	sqlite3_free(sql);
}

static void run_statement(sqlite3 *db, int number, int is_printed)
{
	char *text = draw_statement(db, number);
	sqlite3_stmt *stmt;

	answer_count = 0;
	if (sqlite3_prepare_v2(db, text, -1, &stmt, NULL) == SQLITE_OK) {
		while (sqlite3_step(stmt) == SQLITE_ROW)
			;
		sqlite3_finalize(stmt);
		if (is_printed)
			print_plan(db, text);
	}
	sqlite3_free(text);
}

static void make_tables(sqlite3 *db)
{
	must_exec(db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b, c TEXT); CREATE INDEX tb ON t(b);"
	              "CREATE VIRTUAL TABLE v USING random; CREATE VIRTUAL TABLE f USING finding;"
	              "CREATE VIEW w AS SELECT f.a, v.b, f.c FROM v JOIN f ON v.a = f.b;"
	              "INSERT INTO t SELECT 1, 2, 3");
}

static void run_plans(void)
{
	sqlite3 *db = open_database(":memory:", &plain);

	make_tables(db);
	for (int i = 0; i < STATEMENTS; i++) {
		run_statement(db, i, 1);
		if (i != STATEMENTS / 2)
			continue;
		/* Registers another module of the same name, and creates the table again. */
		must_exec(db, "DROP TABLE v");
		must(db, sqlite3_create_module(db, "random", &another, NULL), "module");
		must_exec(db, "CREATE VIRTUAL TABLE v USING random");
	}
	sqlite3_close(db);
}

/* --- threads, which share a cache ---------------------------------------------------------------- */

static void *run_thread(void *context)
{
	sqlite3 *db = open_database("file:shared?mode=memory&cache=shared", &plain);

	state = (uint64_t)(uintptr_t)context;
	given = -1;
	sqlite3_busy_timeout(db, 10000);
	for (int i = 0; i < STATEMENTS; i++)
		run_statement(db, i, 0);
	sqlite3_close(db);
	return (void *)(uintptr_t)asked;
}

static void run_threads(void)
{
	sqlite3 *db = open_database("file:shared?mode=memory&cache=shared", &plain);
	pthread_t threads[4];

	make_tables(db);
	for (uintptr_t i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, run_thread, (void *)(i + 1)))
			exit(2);
	for (int i = 0; i < 4; i++) {
		void *hash;

		pthread_join(threads[i], &hash);
		printf("thread %d: %llx\n", i, (unsigned long long)(uintptr_t)hash);
	}
	sqlite3_close(db);
}

/* --- modules that are unloaded -------------------------------------------------------------------- */

static void run_memory(void)
{
	for (int i = 0; i < 100; i++) {
		sqlite3_module *module = malloc(sizeof(*module));
		sqlite3 *db;

		memcpy(module, i % 2 ? &plain : &with_functions, sizeof(*module));
		db = open_database(":memory:", module);
		make_tables(db);
		for (int j = 0; j < 3; j++)
			run_statement(db, 100 * i + j, 0);
		sqlite3_close(db);
		memset(module, 0xff, sizeof(*module));
		free(module);
	}
}

static void *load(const char *library, const sqlite3_module **module)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	*module = handle ? dlsym(handle, "module_of_library") : NULL;
	if (!*module) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	return handle;
}

static void run_unload(const char *library)
{
	for (int i = 0; i < 60; i++) {
		const sqlite3_module *module;
		void *handle = load(library, &module);
		sqlite3 *db;

		db = open_database(":memory:", module);
		make_tables(db);
		must_exec(db, "SELECT count(*) FROM v; SELECT a FROM v WHERE b = 3");
		sqlite3_close(db);
		dlclose(handle); /* its allocations for the thread stay: some kilobytes */
	}
}

/* The connection still has the unloaded module when the host registers another one. */
static void run_stale(const char *library)
{
	sqlite3 *db = open_database(":memory:", &plain);
	const sqlite3_module *module;
	void *handle = load(library, &module);

	make_tables(db);
	must(db, sqlite3_create_module(db, "of_library", module, NULL), "module");
	must_exec(db, "SELECT count(*) FROM v");
	dlclose(handle);
	must(db, sqlite3_create_module(db, "another", &another, NULL), "module");
	must_exec(db, "SELECT count(*) FROM v");
	sqlite3_close(db);
}

/* --- a module that prepares statements in xBestIndex ------------------------------------------ */

static int strict_asked, strict_refused; /* runs of `strict`, and runs not as planned */

static int strict_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	(void)table;
	info->idxNum = 7;
	for (int i = 0; i < info->nConstraint; i++)
		if (info->aConstraint[i].usable)
			info->aConstraintUsage[i].argvIndex = 1;
	return SQLITE_OK;
}

static int strict_filter(sqlite3_vtab_cursor *cursor, int number, const char *text, int argc,
                         sqlite3_value **argv)
{
	(void)cursor, (void)text, (void)argv;
	strict_asked++;
	strict_refused += number != 7 || argc != 1;
	return SQLITE_OK;
}

static const sqlite3_module strict = { METHODS_WITH(strict_best_index, strict_filter) };
static sqlite3 *nesting_db;

static int nesting_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	static int count;
	char text[100];

	(void)table;
	/* Prepares another statement than when the host prepared its own. */
	snprintf(text, sizeof(text), "SELECT rowid FROM s WHERE %c = 3", "abcd"[count++ % 4]);
	must_exec(nesting_db, text);
	info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
	for (int i = 0; i < info->nConstraint; i++)
		if (info->aConstraint[i].usable)
			info->aConstraintUsage[i].argvIndex = 1 + i;
	return SQLITE_OK;
}

/* SQLite leaves the table of `nesting` out of the join, but asks its module when the plan is read, too,
 * because the module is in allocated memory. */
static void run_nested(void)
{
	sqlite3_module *nesting = malloc(sizeof(*nesting));
	char text[200];

	memcpy(nesting, &(sqlite3_module){ METHODS_WITH(nesting_best_index, filter) }, sizeof(*nesting));
	nesting_db = open_database(":memory:", &plain);
	must(nesting_db, sqlite3_create_module(nesting_db, "strict", &strict, NULL), "module");
	must(nesting_db, sqlite3_create_module(nesting_db, "nesting", nesting, NULL), "module");
	must_exec(nesting_db, "CREATE TABLE t(a, b); CREATE VIRTUAL TABLE s USING strict;"
	                      "CREATE VIRTUAL TABLE n USING nesting");
	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "SELECT DISTINCT t.a AS n%d FROM t LEFT JOIN n ON n.a = t.a", i);
		must_exec(nesting_db, text);
	}
	sqlite3_close(nesting_db);
	free(nesting);
	printf("refused %d\n", strict_refused);
	fprintf(stderr, "nested %d\n", strict_asked);
}

/* --- a module that passes bytes to xFilter, not a text -------------------------------------------- */

static char *bytes; /* at the end of a page */

static int bytes_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
	static uintptr_t count;

	(void)table;
	info->idxStr = count++ % 2 ? bytes : (char *)count;
	return SQLITE_OK;
}

static int bytes_filter(sqlite3_vtab_cursor *cursor, int number, const char *text, int argc,
                        sqlite3_value **argv)
{
	(void)cursor, (void)number, (void)argc, (void)argv;
	note(text == bytes ? 1 : (int64_t)(uintptr_t)text);
	return SQLITE_OK;
}

static void run_bytes(void)
{
	static const sqlite3_module module = { METHODS_WITH(bytes_best_index, bytes_filter) };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	sqlite3 *db = open_database(":memory:", &module);
	char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char text[100];

	if (memory == MAP_FAILED || mprotect(memory + page, page, PROT_NONE))
		exit(2);
	bytes = memset(memory + page - 5, 'b', 5);
	must_exec(db, "CREATE VIRTUAL TABLE v USING random");
	for (int i = 0; i < 10; i++) {
		snprintf(text, sizeof(text), "SELECT b AS n%d FROM v WHERE a = %d", i, i);
		must_exec(db, text);
	}
	sqlite3_close(db);
}

int main(int argc, char **argv)
{
	given = -1;
	if (argc == 2 && !strcmp(argv[1], "plans"))
		run_plans();
	else if (argc == 2 && !strcmp(argv[1], "threads"))
		run_threads();
	else if (argc == 2 && !strcmp(argv[1], "memory"))
		run_memory();
	else if (argc == 2 && !strcmp(argv[1], "nested"))
		run_nested();
	else if (argc == 2 && !strcmp(argv[1], "bytes"))
		run_bytes();
	else if (argc == 3 && !strcmp(argv[1], "unload"))
		run_unload(argv[2]);
	else if (argc == 3 && !strcmp(argv[1], "stale"))
		run_stale(argv[2]);
	else
		return 2;
	printf("asked %llx, drawn %llx\n", (unsigned long long)asked, (unsigned long long)state);
	return 0;
}

#endif
