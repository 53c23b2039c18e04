/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual tables of the `system` schema.
 *
 * Two kinds: the logs, which the store keeps (tables_log.c), and small tables that are
 * made when they are read (tables_rows.c). A table is a description table_NAME, which
 * names the function that fills it, and its name is in table_names.h.
 */
#pragma once

#include "sql/table_names.h"
#include "sqlite/session/session.h"

int tables_count(void);
const char *tables_name(int index);

enum tables_where {
	TABLES_IN_SCHEMA, /* modules of the prefixed names, for CREATE VIRTUAL TABLE in `system` */
	TABLES_EPONYMOUS, /* tables that are there without a schema, read-only */
};
int tables_register(struct session *session, enum tables_where where, char **error);

/* --- describing a table ----------------------------------------------------- */

enum column_flags {
	COLUMN_HIDDEN = 1,   /* not in SELECT *: it costs time */
	COLUMN_SEARCHED = 2, /* the store finds rows by it without reading all */
	COLUMN_ORDERED = 4,  /* the store has its rows in this order */
	COLUMN_SYMBOLS = 8,  /* not the store's: made from the column `trace` */
	COLUMN_LINES = 16,
	COLUMN_OF_HOLDER = 32, /* another session's: empty while show_queries_of_other_sessions is 0 */
	COLUMN_KEY = 64,       /* with the others that have this: no two rows have the same */
	COLUMN_TIME = 128,     /* a text of digits and signs, which all encodings order alike */
	COLUMN_MIXED = 256,    /* some of its values are numbers, though it is a text */
};

struct column {
	const char *name;
	const char *type; /* INTEGER, REAL, TEXT or "" */
	unsigned flags;
};
#define TABLE_COLUMNS_MAX 96

struct table_rows;

struct table {
	const char *name;
	const struct column *columns;
	int column_count;
	/* A log: the store's table or view of this name. */
	const char *log;
	/* Any other: adds its rows, cell by cell, with tables_rows.h. */
	bool tells_of_code; /* refused while allow_introspection_functions is 0 */
	void (*fill)(struct table_rows *rows, struct session *session);
	/* May its rows be changed? Gets the row's number in the order of fill() and all
	 * its columns as they shall be. A SQLite code with a message in `*error`
	 * (sqlite3_malloc). Rows are named by the first column: an UPDATE of a name that no
	 * row has is an error. */
	int (*update)(struct session *session, int64_t row, sqlite3_value **columns, char **error);
};

#define TABLE_COLUMNS(list) .columns = list, .column_count = sizeof(list) / sizeof(*list)

#define DECLARE_TABLE(name) extern const struct table table_##name;
EACH_TABLE(DECLARE_TABLE)
#undef DECLARE_TABLE

/* --- for the two kinds ------------------------------------------------------ */

struct table_vtab {
	sqlite3_vtab base; /* first: SQLite's view of it */
	const struct table *table;
	struct session *session;
	bool in_write; /* between xBegin and the end of its transaction */
};

static inline const struct table *table_of(const sqlite3_vtab_cursor *cursor)
{
	return ((const struct table_vtab *)cursor->pVtab)->table;
}

/* xConnect of the module's tables; `aux` as registered by tables_register(). */
int table_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                  char **error);
int table_connect_eponymous(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                            char **error);
int table_refuse_destroy(sqlite3_vtab *vtab);
int table_refuse_create(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                        char **error);
int table_disconnect(sqlite3_vtab *vtab);

/* Zeroed, with a sqlite3_vtab_cursor at its beginning; free() ends it. */
int table_new_cursor(size_t bytes, sqlite3_vtab_cursor **cursor);

#define NOT_ALLOWED ": not allowed while allow_introspection_functions is 0"

/* Whether a column that shows the program's code may be read; an error if not. */
bool table_may_introspect(sqlite3_context *context, const struct table_vtab *vtab,
                          const struct column *column);

/* Makes `text` (malloc'ed or NULL) the message of the table's next error. */
int table_fail(sqlite3_vtab *vtab, char *text);

extern const sqlite3_module table_log_module, table_log_eponymous;
extern const sqlite3_module table_rows_module, table_rows_eponymous;

/* The methods that the modules of a kind have in common, by the names that its file gives to the
 * functions. */
#define TABLE_METHODS                                                                                        \
	.iVersion = 1, .xBestIndex = best_index, .xDisconnect = table_disconnect,                            \
	.xDestroy = table_refuse_destroy, .xOpen = open_cursor, .xClose = close_cursor, .xFilter = filter,   \
	.xNext = next, .xEof = at_end, .xColumn = column, .xRowid = rowid
