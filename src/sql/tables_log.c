/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The logs: virtual tables over the store's own connection to the trace file.
 *
 * A scan becomes one SELECT of the store with the used columns, the conditions that the
 * store evaluates as the host's SQLite does, and the order if rows are stored in it. SQLite
 * checks all conditions again, so a condition that goes to the store may only never lose a
 * row: values take the column's affinity first, and conditions with another collation, on
 * a blob, or on the order of texts, which is that of the host's encoding, stay here.
 *
 * The plan travels from best_index() to filter() as text: the used columns as a hex
 * number, the order (0, 1 up, 2 down), then one `column operator` for each value.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sql/tables.h"
#include "sqlite/runs/own_statements.h"
#include "store/store.h"
#include "frames/process_space.h"
#include "frames/stack_text.h"

#define DRAIN_MS 10000
#define READ_LIMIT_MS 60000 /* of waiting while nothing is read */
#define PLAN_CONDITIONS 32

static const struct {
	unsigned char code;
	const char *text;
	double share; /* of the rows that are left, where the store searches */
} operators[] = {
	{ SQLITE_INDEX_CONSTRAINT_EQ, "=", 0.001 }, { SQLITE_INDEX_CONSTRAINT_GT, ">", 0.25 },
	{ SQLITE_INDEX_CONSTRAINT_LE, "<=", 0.25 }, { SQLITE_INDEX_CONSTRAINT_LT, "<", 0.25 },
	{ SQLITE_INDEX_CONSTRAINT_GE, ">=", 0.25 },
};
#define OPERATORS ((int)(sizeof(operators) / sizeof(*operators)))

static int find_operator(unsigned char code)
{
	for (int i = 0; i < OPERATORS; i++)
		if (operators[i].code == code)
			return i;
	return -1;
}

static bool store_compares(const struct column *column, int operator)
{
	if (column->flags & (COLUMN_SYMBOLS | COLUMN_LINES | COLUMN_MIXED))
		return false;
	return operators[operator].code == SQLITE_INDEX_CONSTRAINT_EQ || column->flags & COLUMN_TIME ||
	       strcmp(column->type, "TEXT") != 0;
}

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
	const struct table *table = ((const struct table_vtab *)vtab)->table;
	char plan[32 + 8 * PLAN_CONDITIONS];
	double rows = 1e6, work = 1e6;
	int arguments = 0, order = 0;
	size_t size;

	own_statements_disown_prepared(((const struct table_vtab *)vtab)->session->db);
	if (info->nOrderBy == 1 && info->aOrderBy[0].iColumn >= 0 &&
	    table->columns[info->aOrderBy[0].iColumn].flags & COLUMN_ORDERED) {
		order = 1 + info->aOrderBy[0].desc;
		info->orderByConsumed = 1;
	}
	size = (size_t)snprintf(plan, sizeof(plan), "%llx %d", (unsigned long long)info->colUsed, order);
	for (int i = 0; i < info->nConstraint && arguments < PLAN_CONDITIONS; i++) {
		const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
		const struct column *column;
		int found = find_operator(constraint->op);

		if (!constraint->usable || constraint->iColumn < 0 || found < 0)
			continue;
		column = &table->columns[constraint->iColumn];
		if (!store_compares(column, found))
			continue;
		if (sqlite3_libversion_number() < 3022000 ||
		    sqlite3_stricmp(sqlite3_vtab_collation(info, i), "BINARY"))
			continue;
		info->aConstraintUsage[i].argvIndex = ++arguments;
		size += (size_t)snprintf(plan + size, sizeof(plan) - size, " %d %d", constraint->iColumn,
		                         found);
		rows *= operators[found].share * (column->flags & COLUMN_SEARCHED ? 1 : 2);
		if (column->flags & COLUMN_SEARCHED)
			work *= operators[found].share;
	}
	info->idxStr = sqlite3_mprintf("%s", plan);
	if (!info->idxStr)
		return SQLITE_NOMEM;
	info->needToFreeIdxStr = 1;
	info->estimatedRows = rows < 1 ? 1 : (sqlite3_int64)rows;
	info->estimatedCost = 100 + work;
	return SQLITE_OK;
}

/* --- a cursor -------------------------------------------------------------- */

struct cursor {
	sqlite3_vtab_cursor base;
	struct store_cursor *rows;
	int position[TABLE_COLUMNS_MAX]; /* column to column of the SELECT, -1: not in it */
	int trace;                       /* the column `trace` in the SELECT */
	bool drained, done;
	/* The newest trace as symbols and as lines, because the next row often has the same. */
	struct {
		char *stack, *text;
	} made[2];
};

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **result)
{
	(void)vtab;
	return table_new_cursor(sizeof(struct cursor), result);
}

static void close_rows(struct cursor *cursor)
{
	if (cursor->rows)
		store_close(cursor->rows);
	cursor->rows = NULL;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	close_rows(cursor);
	for (int i = 0; i < 2; i++) {
		free(cursor->made[i].stack);
		free(cursor->made[i].text);
	}
	free(cursor);
	return SQLITE_OK;
}

/* Whether the host has called sqlite3_interrupt(). sqlite3_is_interrupted() came with 3.41;
 * before and since, the parser looks at the first space. */
static bool is_interrupted(void *db)
{
	sqlite3_stmt *none = NULL;
	int rc = sqlite3_prepare_v2(db, " ", -1, &none, NULL);

	sqlite3_finalize(none);
	return rc == SQLITE_INTERRUPT;
}

/* Takes over `error`. */
static int fail(sqlite3_vtab *vtab, char *error)
{
	if (!is_interrupted(((const struct table_vtab *)vtab)->session->db))
		return table_fail(vtab, error);
	free(error);
	return SQLITE_INTERRUPT;
}

static int next(sqlite3_vtab_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;
	int rc = store_step(cursor->rows);

	cursor->done = rc != 1;
	if (rc >= 0)
		return SQLITE_OK;
	return fail(base->pVtab, strdup(store_cursor_error(cursor->rows)));
}

/* Binds the value converted by the column's affinity. SQLite converts only values that it compares itself,
 * not those that it passes to a virtual table. */
static void bind(struct store_cursor *rows, int index, const struct column *column, sqlite3_value *value)
{
	int type = strcmp(column->type, "INTEGER") ? sqlite3_value_type(value)
	                                           : sqlite3_value_numeric_type(value);

	if (type == SQLITE_NULL)
		store_bind_null(rows, index);
	else if (type == SQLITE_TEXT)
		store_bind_text(rows, index, (const char *)sqlite3_value_text(value),
		                (size_t)sqlite3_value_bytes(value));
	else if (type == SQLITE_INTEGER)
		store_bind_int64(rows, index, sqlite3_value_int64(value));
	else
		store_bind_double(rows, index, sqlite3_value_double(value));
}

static bool shows_all(const struct cursor *cursor)
{
	return ((const struct table_vtab *)cursor->base.pVtab)
	        ->session->settings.show_queries_of_other_sessions;
}

static void write_columns(FILE *sql, struct cursor *cursor, uint64_t used)
{
	const struct table *table = table_of(&cursor->base);
	const struct column *column;
	int count = 0, trace = -1;

	for (int i = 0; i < table->column_count; i++) {
		cursor->position[i] = -1;
		if (!strcmp(table->columns[i].name, "trace"))
			trace = i;
		/* The mask's last bit stands for all columns from there on; no bit is for the row's number.
		 */
		if (!(used >> (i < 63 ? i : 63) & 1) && !(table->columns[i].flags & COLUMN_KEY))
			continue;
		if (table->columns[i].flags & (COLUMN_SYMBOLS | COLUMN_LINES)) {
			used |= 1ull << trace; /* which stands before them */
			if (cursor->position[trace] >= 0)
				continue;
			cursor->position[trace] = count;
		} else {
			cursor->position[i] = count;
		}
		column = &table->columns[cursor->position[i] < 0 ? trace : i];
		fputs(count++ ? "," : "", sql);
		if (column->flags & COLUMN_OF_HOLDER && !shows_all(cursor))
			fputs("''", sql);
		else
			fprintf(sql, "t.%s", column->name);
	}
	cursor->trace = trace < 0 ? -1 : cursor->position[trace];
}

/* Whether the store may compare with this value of the condition. The store does not accept blobs, and no
 * integer is equal to one. A number may come from another column; SQLite then converts the texts to numbers.
 */
static bool may_hand_on(const struct cursor *cursor, const struct column *column, sqlite3_value *value)
{
	int type = sqlite3_value_type(value);

	if (type == SQLITE_BLOB || (column->flags & COLUMN_OF_HOLDER && !shows_all(cursor)))
		return false;
	return type == SQLITE_TEXT || type == SQLITE_NULL || strcmp(column->type, "TEXT") != 0;
}

static bool has_session(const struct table *table)
{
	for (int i = 0; i < table->column_count; i++)
		if (!strcmp(table->columns[i].name, "session_id"))
			return true;
	return false;
}

/* Writes the SELECT of a plan; `taken` receives the column of each value that the caller binds, or -1
 * if the store does not compare it. */
static char *make_select(struct cursor *cursor, const char *plan, int argc, sqlite3_value **argv, int *taken)
{
	const struct table *table = table_of(&cursor->base);
	const struct session *session = ((const struct table_vtab *)cursor->base.pVtab)->session;
	const char *between = " WHERE ";
	char *text = NULL, *at;
	size_t size;
	FILE *sql = open_memstream(&text, &size);
	uint64_t used = strtoull(plan, &at, 16);
	long order = strtol(at, &at, 10);

	if (!sql)
		return NULL;
	fputs("SELECT ", sql);
	write_columns(sql, cursor, used);
	fprintf(sql, " FROM %s AS t", table->log);
	for (int i = 0; i < argc; i++) {
		long column = strtol(at, &at, 10), operator= strtol(at, &at, 10);

		taken[i] = may_hand_on(cursor, &table->columns[column], argv[i]) ? (int)column : -1;
		if (taken[i] < 0)
			continue;
		fprintf(sql, "%st.%s %s ?%d", between, table->columns[column].name, operators[operator].text, i + 1);
		between = " AND ";
	}
	/* A row without a session may be of any connection: not shown. */
	if (!shows_all(cursor) && has_session(table))
		fprintf(sql, "%st.session_id = %u", between, session->number);
	else if (!shows_all(cursor))
		fprintf(sql, "%s0", between);
	for (int i = 0; order && i < table->column_count; i++)
		if (table->columns[i].flags & COLUMN_ORDERED)
			fprintf(sql, " ORDER BY t.%s%s", table->columns[i].name, order > 1 ? " DESC" : "");
	if (fclose(sql)) {
		free(text);
		return NULL;
	}
	return text;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc, sqlite3_value **argv)
{
	struct cursor *cursor = (struct cursor *)base;
	const struct table *table = table_of(base);
	struct store_wait wait = {
		.timeout_ms = DRAIN_MS,
		.give_up = is_interrupted,
		.context = ((const struct table_vtab *)base->pVtab)->session->db,
	};
	int taken[PLAN_CONDITIONS];
	char *sql, *error = NULL;

	(void)number;
	close_rows(cursor);
	cursor->done = true;
	own_statements_disown(wait.context);
	/* Once for each cursor: it belongs to one run of a statement, and a subquery may call filter() for
	 * each of a thousand rows. Records that are not stored in time are missing, as they would be a moment
	 * earlier. */
	if (!cursor->drained)
		store_drain_waiting(&wait);
	cursor->drained = true;
	sql = make_select(cursor, plan, argc, argv, taken);
	if (!sql)
		return SQLITE_NOMEM;
	wait.timeout_ms = READ_LIMIT_MS;
	cursor->rows = store_select(sql, &wait, &error);
	free(sql);
	if (!cursor->rows)
		return fail(base->pVtab, error);
	for (int i = 0; i < argc; i++)
		if (taken[i] >= 0)
			bind(cursor->rows, i + 1, &table->columns[taken[i]], argv[i]);
	return next(base);
}

static int at_end(sqlite3_vtab_cursor *base)
{
	return ((struct cursor *)base)->done;
}

static int made_column(struct cursor *cursor, sqlite3_context *context, const struct column *column)
{
	bool lines = column->flags & COLUMN_LINES, bad;
	const char *trace;
	size_t size;

	if (!table_may_introspect(context, (const struct table_vtab *)cursor->base.pVtab, column))
		return SQLITE_OK;
	trace = store_column_bytes(cursor->rows, cursor->trace, &size);
	if (!trace)
		return SQLITE_OK;
	if (!cursor->made[lines].stack || strcmp(cursor->made[lines].stack, trace)) {
		free(cursor->made[lines].stack);
		free(cursor->made[lines].text);
		cursor->made[lines].stack = strdup(trace);
		cursor->made[lines].text = lines ? stack_lines(process_space(), trace, &bad)
		                                 : stack_symbols(process_space(), trace, &bad);
	}
	if (cursor->made[lines].text)
		sqlite3_result_text(context, cursor->made[lines].text, -1, SQLITE_TRANSIENT);
	return SQLITE_OK;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int index)
{
	struct cursor *cursor = (struct cursor *)base;
	const struct column *described = &table_of(base)->columns[index];
	int position = cursor->position[index];
	const char *bytes;
	size_t size;

	if (described->flags & (COLUMN_SYMBOLS | COLUMN_LINES))
		return made_column(cursor, context, described);
	if (position < 0)
		return SQLITE_OK;
	switch (store_column_type(cursor->rows, position)) {
	case STORE_NULL: break;
	case STORE_INT64: sqlite3_result_int64(context, store_column_int64(cursor->rows, position)); break;
	case STORE_DOUBLE: sqlite3_result_double(context, store_column_double(cursor->rows, position)); break;
	case STORE_TEXT:
		bytes = store_column_bytes(cursor->rows, position, &size);
		sqlite3_result_text64(context, bytes, size, SQLITE_TRANSIENT, SQLITE_UTF8);
		break;
	case STORE_BLOB:
		bytes = store_column_bytes(cursor->rows, position, &size);
		sqlite3_result_blob64(context, bytes, size, SQLITE_TRANSIENT);
		break;
	}
	return SQLITE_OK;
}

/* A row has the same number in each scan. SQLite compares the rows of several scans by it, for an OR or for
 * the two passes of a RIGHT JOIN. The rows of a view have no numbers, so the number is a hash of the key. */
static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *result)
{
	struct cursor *cursor = (struct cursor *)base;
	const struct table *table = table_of(base);
	struct hash hash = hash_begin(0);

	for (int i = 0; i < table->column_count; i++) {
		const char *bytes;
		size_t size;

		if (!(table->columns[i].flags & COLUMN_KEY))
			continue;
		bytes = store_column_bytes(cursor->rows, cursor->position[i], &size);
		hash_word(&hash, hash_bytes(bytes ? bytes : "", size).first);
	}
	*result = (sqlite3_int64)hash_end(hash).first;
	return SQLITE_OK;
}

const sqlite3_module table_log_module = {
	TABLE_METHODS,
	.xCreate = table_refuse_create,
	.xConnect = table_connect,
};

const sqlite3_module table_log_eponymous = {
	TABLE_METHODS,
	.xConnect = table_connect_eponymous,
};
