/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/explain_analyze.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/search.h"
#include "base/text.h"
#include "base/vector.h"
#include "sql/tables.h"
#include "sqlite/library/host.h"

#define SCANS_SINCE 3042000
#define SCANSTAT_NCYCLE 7 /* missing in older headers */
#define SCANSTAT_COMPLEX 1

typedef int scan_status_function(sqlite3_stmt *stmt, int element, int what, int flags, void *to);

static double at_least_one(double number)
{
	return number > 1 ? number : 1;
}

/* A row of the function. Negative: not known. */
struct element {
	int64_t node, parent;
	char *detail;
	int64_t loops, rows, time_ns;
	double estimate;
};

struct explain_cursor {
	sqlite3_vtab_cursor base;
	VECTOR(struct element) elements;
	size_t at;
	char *statement;
};

enum explained {
	EXPLAINED_NODE,
	EXPLAINED_PARENT,
	EXPLAINED_DETAIL,
	EXPLAINED_LOOPS,
	EXPLAINED_ROWS,
	EXPLAINED_ROWS_PER_LOOP,
	EXPLAINED_ESTIMATED_ROWS,
	EXPLAINED_FACTOR,
	EXPLAINED_TIME,
	EXPLAINED_STATEMENT,
};
static const char declaration[] = "CREATE TABLE x(node INTEGER, parent INTEGER, detail TEXT, loops INTEGER, "
				  "rows INTEGER, rows_per_loop REAL, "
				  "estimated_rows REAL, factor REAL, time_ns INTEGER, statement HIDDEN)";

/* --- the table ----------------------------------------------------------------------------------------- */

static int connect_function(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                            char **error)
{
	struct table_vtab *ours;

	/* CREATE VIRTUAL TABLE of a database file gives the table another name or arguments. */
	if (argc != 3 || strcmp(argv[0], argv[2]) != 0)
		return table_refuse_create(db, aux, argc, argv, vtab, error);
	const int code = sqlite3_declare_vtab(db, declaration);
	if (code)
		return code;
	sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY); /* an SQLite older than the option ignores it */
	ours = sqlite3_malloc(sizeof(*ours));
	if (!ours)
		return SQLITE_NOMEM;
	memset(ours, 0, sizeof(*ours));
	ours->session = aux;
	*vtab = &ours->base;
	return SQLITE_OK;
}

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
	bool found = false;

	for (int i = 0; i < info->nConstraint && !found; i++)
		if (info->aConstraint[i].iColumn == EXPLAINED_STATEMENT &&
		    info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ) {
			if (!info->aConstraint[i].usable)
				return SQLITE_CONSTRAINT;
			info->aConstraintUsage[i].argvIndex = 1;
			info->aConstraintUsage[i].omit = 1;
			found = true;
		}
	info->estimatedCost = found ? 1e6 : 1e99;
	return found ? SQLITE_OK
	             : table_fail(vtab, text_format("explain_analyze: expected a statement, as in "
	                                            "explain_analyze('SELECT 1')"));
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **cursor)
{
	(void)vtab;
	return table_new_cursor(sizeof(struct explain_cursor), cursor);
}

static void clear(struct explain_cursor *cursor)
{
	for (size_t i = 0; i < cursor->elements.count; i++)
		free(cursor->elements.items[i].detail);
	vector_free(&cursor->elements);
	free(cursor->statement);
	cursor->statement = NULL;
	cursor->at = 0;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
	clear((struct explain_cursor *)cursor);
	free(cursor);
	return SQLITE_OK;
}

/* --- running a statement ---------------------------------------------------------------------------------
 */

static struct element *add_element(struct explain_cursor *cursor, int64_t node, int64_t parent,
                                   const char *detail)
{
	struct element *element = vector_add(&cursor->elements);

	if (!element || !(element->detail = strdup(detail ? detail : "")))
		return NULL;
	element->node = node;
	element->parent = parent;
	element->loops = element->rows = element->time_ns = -1;
	element->estimate = -1;
	return element;
}

/* Whether the text begins with SELECT, VALUES or WITH. SQLite takes BEGIN, ATTACH and some PRAGMAs for
 * statements that only read, too. */
static bool is_query(const char *text)
{
	static const char *const words[] = { "SELECT", "VALUES", "WITH" };

	text = text_skip_comments(text);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!sqlite3_strnicmp(text, words[i], (int)strlen(words[i])))
			return true;
	return false;
}

/* NULL: it is refused, with the reason in *why (malloc'ed). */
static sqlite3_stmt *prepare(sqlite3 *db, const char *text, char **why)
{
	sqlite3_stmt *stmt = NULL;
	const char *rest = NULL;

	if (!is_query(text))
		*why = text_format("explain_analyze: expected SELECT, VALUES or WITH");
	else if (sqlite3_prepare_v2(db, text, -1, &stmt, &rest))
		*why = text_format("explain_analyze: %s", sqlite3_errmsg(db));
	else if (*text_skip_comments(rest))
		*why = text_format("explain_analyze: expected one statement");
	else if (!sqlite3_stmt_readonly(stmt))
		*why = text_format("explain_analyze: the statement writes; expected one that only reads");
	else if (sqlite3_bind_parameter_count(stmt))
		*why = text_format("explain_analyze: the statement has parameters; expected their values");
	else
		return stmt;
	sqlite3_finalize(stmt);
	return NULL;
}

static int read_plan(struct explain_cursor *cursor, sqlite3 *db, const char *text)
{
	char *explain = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", text);
	sqlite3_stmt *rows = NULL;
	int code = explain ? sqlite3_prepare_v2(db, explain, -1, &rows, NULL) : SQLITE_NOMEM;

	while (!code && (code = sqlite3_step(rows)) == SQLITE_ROW)
		code = add_element(cursor, sqlite3_column_int64(rows, 0), sqlite3_column_int64(rows, 1),
		                   (const char *)sqlite3_column_text(rows, 3))
		               ? SQLITE_OK
		               : SQLITE_NOMEM;
	sqlite3_finalize(rows);
	sqlite3_free(explain);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

struct counted {
	int64_t address; /* of its Explain, in the program that ran */
	int64_t loops, rows, cycles;
	double estimate;
	const char *detail; /* valid as long as the statement */
};
typedef VECTOR(struct counted) counted_list;

COMPARE_BY(compare_counted, struct counted, address)

/* What the library counts for each node, by their addresses. Nothing if it does not count. False: no memory.
 */
static bool list_counted(scan_status_function *status, sqlite3_stmt *stmt, counted_list *list)
{
	for (int i = 0, address; !status(stmt, i, SQLITE_SCANSTAT_SELECTID, SCANSTAT_COMPLEX, &address);
	     i++) {
		struct counted *counted = vector_add(list);

		if (!counted)
			return false;
		*counted = (struct counted){ address, -1, -1, -1, -1, NULL };
		status(stmt, i, SQLITE_SCANSTAT_NLOOP, SCANSTAT_COMPLEX, &counted->loops);
		status(stmt, i, SQLITE_SCANSTAT_NVISIT, SCANSTAT_COMPLEX, &counted->rows);
		status(stmt, i, SQLITE_SCANSTAT_EST, SCANSTAT_COMPLEX, &counted->estimate);
		status(stmt, i, SQLITE_SCANSTAT_EXPLAIN, SCANSTAT_COMPLEX, &counted->detail);
		status(stmt, i, SCANSTAT_NCYCLE, SCANSTAT_COMPLEX, &counted->cycles);
	}
	if (list->count)
		qsort(list->items, list->count, sizeof(list->items[0]), compare_counted);
	return true;
}

/* Cycles become a share of the statement's time. */
static void set_counts(struct element *element, const struct counted *counted, int64_t time_ns,
                       int64_t all_cycles)
{
	if (counted->loops >= 0) {
		element->loops = counted->loops;
		element->rows = counted->rows;
		if (!strncmp(element->detail, "SCAN ", 5) || !strncmp(element->detail, "SEARCH ", 7))
			element->estimate = counted->estimate; /* other nodes have none */
	}
	if (all_cycles > 0 && counted->cycles >= 0)
		element->time_ns =
			(int64_t)((double)time_ns * (counted->cycles < all_cycles
		                                             ? (double)counted->cycles / (double)all_cycles
		                                             : 1));
}

/* Of the library that the connection belongs to. A program that runs has nodes that EXPLAIN QUERY PLAN lacks,
 * such as the making of an automatic index, and so other addresses. But both are in the same order, so the
 * texts are compared. */
static bool read_counts(struct explain_cursor *cursor, const struct session *session, sqlite3_stmt *stmt,
                        int64_t time_ns)
{
	scan_status_function *status = NULL;
	counted_list list = { 0 };
	int64_t all_cycles = 0;
	size_t from = 1; /* after the statement's own */

	if (sqlite3_libversion_number() >= SCANS_SINCE)
		status =
			(scan_status_function *)host_function(session->library, "sqlite3_stmt_scanstatus_v2");
	if (!status)
		return true;
	if (status(stmt, -1, SCANSTAT_NCYCLE, SCANSTAT_COMPLEX, &all_cycles))
		all_cycles = 0;
	const bool fine = list_counted(status, stmt, &list);

	for (size_t i = 0; fine && i < list.count; i++)
		for (size_t j = i && list.items[i].address == list.items[i - 1].address ? from - 1 : from;
		     list.items[i].detail && j < cursor->elements.count; j++)
			if (!strcmp(cursor->elements.items[j].detail, list.items[i].detail)) {
				set_counts(&cursor->elements.items[j], &list.items[i], time_ns, all_cycles);
				from = j + 1;
				break;
			}
	vector_free(&list);
	return fine;
}

static int run(struct explain_cursor *cursor, const struct session *session, sqlite3_stmt *stmt)
{
	struct element *whole = add_element(cursor, 0, -1, "(statement)");
	const uint64_t began = clock_ns(CLOCK_MONOTONIC);
	int64_t rows = 0, time_ns;
	int code;

	if (!whole)
		return SQLITE_NOMEM;
	while ((code = sqlite3_step(stmt)) == SQLITE_ROW)
		rows++;
	time_ns = (int64_t)(clock_ns(CLOCK_MONOTONIC) - began);
	whole->rows = rows;
	whole->time_ns = time_ns;
	if (code == SQLITE_DONE)
		code = read_plan(cursor, session->db, cursor->statement);
	if (!code && !read_counts(cursor, session, stmt, time_ns))
		code = SQLITE_NOMEM;
	return code;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc, sqlite3_value **argv)
{
	struct explain_cursor *cursor = (struct explain_cursor *)base;
	const struct session *session = ((struct table_vtab *)base->pVtab)->session;
	const char *statement = argc ? (const char *)sqlite3_value_text(argv[0]) : NULL;
	char *why = NULL;

	(void)number, (void)text;
	clear(cursor);
	if (!statement) /* NULL has no plan */
		return SQLITE_OK;
	cursor->statement = strdup(statement);
	sqlite3_stmt *stmt = cursor->statement ? prepare(session->db, cursor->statement, &why) : NULL;
	if (!stmt)
		return table_fail(base->pVtab, why);
	const int code = run(cursor, session, stmt);

	if (code)
		why = text_format("explain_analyze: %s",
		                  code == SQLITE_NOMEM ? "out of memory" : sqlite3_errmsg(session->db));
	sqlite3_finalize(stmt);
	return code ? table_fail(base->pVtab, why) : SQLITE_OK;
}

/* --- its rows --------------------------------------------------------------------------------------------
 */

static int next(sqlite3_vtab_cursor *cursor)
{
	((struct explain_cursor *)cursor)->at++;
	return SQLITE_OK;
}

static int is_end(sqlite3_vtab_cursor *base)
{
	const struct explain_cursor *cursor = (const struct explain_cursor *)base;

	return cursor->at >= cursor->elements.count;
}

static void result_number(sqlite3_context *context, int64_t number)
{
	if (number >= 0) /* else NULL */
		sqlite3_result_int64(context, number);
}

static int get_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
	const struct explain_cursor *cursor = (const struct explain_cursor *)base;
	const struct element *element = &cursor->elements.items[cursor->at];
	const double loops = (double)element->loops, rows = (double)element->rows;

	switch ((enum explained)number) {
	case EXPLAINED_NODE: sqlite3_result_int64(context, element->node); break;
	case EXPLAINED_PARENT: result_number(context, element->parent); break;
	case EXPLAINED_DETAIL: sqlite3_result_text(context, element->detail, -1, SQLITE_TRANSIENT); break;
	case EXPLAINED_LOOPS: result_number(context, element->loops); break;
	case EXPLAINED_ROWS: result_number(context, element->rows); break;
	case EXPLAINED_ROWS_PER_LOOP:
		if (loops > 0 && rows >= 0)
			sqlite3_result_double(context, rows / loops);
		break;
	case EXPLAINED_ESTIMATED_ROWS:
		if (element->estimate >= 0)
			sqlite3_result_double(context, element->estimate);
		break;
	case EXPLAINED_FACTOR:
		if (loops > 0 && rows >= 0 && element->estimate >= 0)
			sqlite3_result_double(context,
			                      at_least_one(rows) / at_least_one(element->estimate * loops));
		break;
	case EXPLAINED_TIME: result_number(context, element->time_ns); break;
	case EXPLAINED_STATEMENT:
		sqlite3_result_text(context, cursor->statement, -1, SQLITE_TRANSIENT);
		break;
	}
	return SQLITE_OK;
}

static int get_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *rowid)
{
	*rowid = (sqlite3_int64)((struct explain_cursor *)cursor)->at;
	return SQLITE_OK;
}

/* Without xCreate, no table can be made of it. */
static const sqlite3_module module = {
	.xConnect = connect_function,
	.xBestIndex = best_index,
	.xDisconnect = table_disconnect,
	.xOpen = open_cursor,
	.xClose = close_cursor,
	.xFilter = filter,
	.xNext = next,
	.xEof = is_end,
	.xColumn = get_column,
	.xRowid = get_rowid,
};

int explain_analyze_register(struct session *session, char **error)
{
	const int code = sqlite3_create_module_v2(session->db, "explain_analyze", &module, session, NULL);

	if (code)
		*error = sqlite3_mprintf("queryprof: explain_analyze: %s", sqlite3_errmsg(session->db));
	return code;
}
