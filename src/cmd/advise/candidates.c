/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/advise/candidates.h"

#include <stdlib.h>
#include <string.h>

#include "sql_advise_foreign_keys.h"
#include "sql_advise_has_index.h"
#include "sql_advise_indexes.h"

#define CANDIDATES_MAX 200
#define COLUMNS_MAX 6
#define COVERED_MAX 2 /* columns that an index has only to be read: with more it is a second table */

/* The keys of one index under construction. */
struct keys {
	const char *items[COLUMNS_MAX];
	int count;
	bool is_full; /* there were more */
};

static bool is_same_column(const char *one, const char *other)
{
	return !sqlite3_strnicmp(one, other, (int)strcspn(one, " ")) &&
	       strcspn(one, " ") == strcspn(other, " ");
}

static void add_key(struct keys *keys, const char *key)
{
	for (int i = 0; i < keys->count; i++)
		if (is_same_column(keys->items[i], key))
			return;
	if (keys->count < COLUMNS_MAX)
		keys->items[keys->count++] = key;
	else
		keys->is_full = true;
}

/* One number, from SQL with the table ?1 and a text ?2 as its parameters. */
static bool holds(struct connection *connection, const char *sql, const char *table, const char *text)
{
	sqlite3_stmt *row = NULL;
	bool holds = false;

	sqlite3_prepare_v2(connection->db, sql, -1, &row, NULL);
	sqlite3_bind_text(row, 1, table, -1, SQLITE_STATIC);
	sqlite3_bind_text(row, 2, text, -1, SQLITE_STATIC);
	if (row && sqlite3_step(row) == SQLITE_ROW)
		holds = sqlite3_column_int(row, 0) != 0;
	sqlite3_finalize(row);
	return holds;
}

/* A name made of the table's and the columns' names, which nothing in the database has yet. */
static char *name_index(struct connection *connection, const char *table, const struct keys *keys,
                        bool is_partial)
{
	sqlite3_str *text = sqlite3_str_new(connection->db);
	char *name, *other;

	sqlite3_str_appendall(text, table);
	for (int i = 0; i < keys->count; i++) {
		sqlite3_str_append(text, "_", 1);
		for (const char *at = keys->items[i]; *at && *at != ' '; at++)
			if ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
			    (*at >= '0' && *at <= '9') || *at == '_')
				sqlite3_str_append(text, at, 1);
	}
	if (is_partial)
		sqlite3_str_appendall(text, "_partial");
	name = sqlite3_str_finish(text);
	for (int i = 2;
	     name && i < 100 &&
	     holds(connection, "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE)",
	           name, NULL);
	     i++) {
		other = sqlite3_mprintf("%s_%d", name, i);
		sqlite3_free(name);
		name = other;
	}
	return name;
}

static void free_candidate(struct candidate *one)
{
	sqlite3_free(one->table);
	sqlite3_free(one->name);
	sqlite3_free(one->create);
	sqlite3_free(one->drop);
	sqlite3_free(one->list);
	sqlite3_free(one->parent);
	sqlite3_free(one->condition);
}

static void add(candidates *all, struct connection *connection, const char *table, const struct keys *keys,
                double ns, const char *condition, const char *parent)
{
	sqlite3_str *text = sqlite3_str_new(connection->db);
	struct candidate one = { .columns = keys->count, .ns = ns };
	char *list;

	for (int i = 0; i < keys->count; i++)
		sqlite3_str_appendf(text, "%s%s", i ? ", " : "", keys->items[i]);
	list = sqlite3_str_finish(text);
	if (!list || !keys->count || keys->is_full || holds(connection, sql_advise_has_index, table, list)) {
		sqlite3_free(list);
		return;
	}
	one.table = sqlite3_mprintf("%s", table);
	one.parent = parent ? sqlite3_mprintf("%s", parent) : NULL;
	one.condition = condition ? sqlite3_mprintf("%s", condition) : NULL;
	one.name = name_index(connection, table, keys, condition);
	one.create = sqlite3_mprintf("CREATE INDEX \"%w\" ON \"%w\"(%s)%s%s", one.name, table, list,
	                             condition ? " WHERE " : "", condition ? condition : "");
	one.drop = sqlite3_mprintf("DROP INDEX \"%w\"", one.name);
	one.list = list;
	for (size_t i = 0; one.create && i < all->count; i++)
		if (!sqlite3_stricmp(all->items[i].create, one.create)) {
			all->items[i].ns += ns;
			one.is_out = true;
		}
	if (one.is_out || !one.table || !one.name || !one.create || !one.drop ||
	    all->count >= CANDIDATES_MAX || !vector_push(all, one))
		free_candidate(&one);
}

/* An index on all columns of the list. If all are sorted downwards, the index is the same as if all are
 * sorted upwards. */
static void add_list(struct keys *keys, const struct recorded *one, const struct use *first)
{
	for (size_t i = 0; i < one->compared.uses.count; i++) {
		const struct use *use = &one->compared.uses.items[i];

		if (use->list == first->list && !sqlite3_stricmp(use->table, first->table))
			add_key(keys, use->key);
	}
}

static void add_role(struct keys *keys, const struct recorded *one, const char *table, enum role role)
{
	for (size_t i = 0; i < one->compared.uses.count; i++) {
		const struct use *use = &one->compared.uses.items[i];

		if (use->role == role && !sqlite3_stricmp(use->table, table))
			add_key(keys, use->key);
	}
}

/* The index, and a second one that has all columns of the table that the statement reads. */
static void add_both(candidates *all, struct connection *connection, const struct recorded *one,
                     const char *table, struct keys keys)
{
	char *names[COLUMNS_MAX + 1] = { NULL };
	const int compared = keys.count;
	int count = 0;

	if (!keys.count)
		return;
	add(all, connection, table, &keys, one->ns, NULL, NULL);
	for (size_t i = 0; count <= COLUMNS_MAX && i < one->touched.count; i++) {
		const struct touch *touch = &one->touched.items[i];

		if (!touch->is_write && *touch->column && sqlite3_stricmp(touch->column, "ROWID") != 0 &&
		    !sqlite3_stricmp(touch->table, table) &&
		    !holds(connection,
		           "SELECT EXISTS (SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2 AND pk)",
		           table, touch->column) &&
		    (names[count] = sqlite3_mprintf("\"%w\"", touch->column)))
			add_key(&keys, names[count++]);
	}
	if (count <= COLUMNS_MAX && keys.count - compared <= COVERED_MAX && !one->is_write)
		add(all, connection, table, &keys, one->ns, NULL, NULL);
	while (count > 0)
		sqlite3_free(names[--count]);
}

/* Partial indexes with the condition of one column, on the rows that have its value: on the other columns,
 * each followed by the columns that are compared in a range, sorted or grouped; on the column itself if
 * there is no other. */
static void add_partial(candidates *all, struct connection *connection, const struct recorded *one,
                        const struct use *constant)
{
	struct keys equal = { 0 };
	bool has_other = false;

	for (size_t i = 0; i < one->compared.uses.count; i++) {
		const struct use *use = &one->compared.uses.items[i];

		if (use->role == ROLE_EQUAL && !sqlite3_stricmp(use->table, constant->table) &&
		    !is_same_column(use->key, constant->key))
			add_key(&equal, use->key);
	}
	add(all, connection, constant->table, &equal, one->ns, constant->condition, NULL);
	for (size_t i = 0; i < one->compared.uses.count; i++) {
		const struct use *use = &one->compared.uses.items[i];
		struct keys keys = equal;

		if (use->role == ROLE_EQUAL || sqlite3_stricmp(use->table, constant->table) != 0)
			continue;
		if (use->list)
			add_list(&keys, one, use);
		else
			add_key(&keys, use->key);
		has_other = true;
		add(all, connection, constant->table, &keys, one->ns, constant->condition, NULL);
	}
	if (!equal.count && !has_other) {
		add_key(&equal, constant->key);
		add(all, connection, constant->table, &equal, one->ns, constant->condition, NULL);
	}
}

/* The candidates of one statement and table, for what it compares, and for how it sorts. */
static void find_of_table(candidates *all, struct connection *connection, const struct recorded *one,
                          const char *table)
{
	struct keys equal = { 0 };

	add_role(&equal, one, table, ROLE_EQUAL);
	add_both(all, connection, one, table, equal);
	for (size_t i = 0; i < one->compared.uses.count; i++) {
		const struct use *use = &one->compared.uses.items[i];
		struct keys keys = equal, alone = { 0 };

		if (sqlite3_stricmp(use->table, table) != 0)
			continue;
		if (use->condition)
			add_partial(all, connection, one, use);
		if (use->role == ROLE_ORDER || use->role == ROLE_GROUP) {
			add_list(&keys, one, use);
			add_list(&alone, one, use);
		} else {
			add_key(&keys, use->key);
			add_key(&alone, use->key);
		}
		add_both(all, connection, one, table, keys);
		add_both(all, connection, one, table, alone);
	}
}

static void find_foreign_keys(candidates *all, const struct workload *workload, struct connection *connection)
{
	sqlite3_stmt *rows = NULL;

	sqlite3_prepare_v2(connection->db, sql_advise_foreign_keys, -1, &rows, NULL);
	while (rows && sqlite3_step(rows) == SQLITE_ROW) {
		const char *child = (const char *)sqlite3_column_text(rows, 0);
		const char *parent = (const char *)sqlite3_column_text(rows, 1);
		const char *columns = (const char *)sqlite3_column_text(rows, 2);
		const struct keys keys = { { columns }, 1, false };
		double ns = 0;

		for (size_t i = 0; i < workload->statements.count; i++)
			if (workload_writes(&workload->statements.items[i], parent))
				ns += workload->statements.items[i].ns;
		if (ns > 0 && columns)
			add(all, connection, child, &keys, ns, NULL, parent);
	}
	sqlite3_finalize(rows);
}

static int compare(const void *one, const void *other)
{
	const struct candidate *a = one, *b = other;

	return a->ns != b->ns ? (a->ns < b->ns) - (a->ns > b->ns) : a->columns - b->columns;
}

void candidates_find(candidates *all, const struct workload *workload, struct connection *connection)
{
	for (size_t i = 0; i < workload->statements.count; i++) {
		const struct recorded *one = &workload->statements.items[i];

		for (size_t u = 0; one->variants && u < one->compared.uses.count; u++) {
			size_t first = 0;

			while (sqlite3_stricmp(one->compared.uses.items[first].table,
			                       one->compared.uses.items[u].table) != 0)
				first++;
			if (first == u)
				find_of_table(all, connection, one, one->compared.uses.items[u].table);
		}
	}
	if (workload->has_foreign_keys)
		find_foreign_keys(all, workload, connection);
	if (all->count)
		qsort(all->items, all->count, sizeof(*all->items), compare);
}

/* --- indexes that the database has ------------------------------------------------------------------- */

static bool is_in_plan(const char *plan, const char *name)
{
	for (const char *at = plan; at && (at = strstr(at, " INDEX "));) {
		at += strlen(" INDEX ");
		if (!strncmp(at, name, strlen(name)) && strchr(" \n", at[strlen(name)]))
			return true;
	}
	return false;
}

bool candidates_is_used(const struct workload *workload, struct connection *connection, const char *name,
                        const char *parent)
{
	bool is = false;

	for (size_t i = 0; !is && i < workload->statements.count; i++) {
		const struct recorded *recorded = &workload->statements.items[i];
		char *plan = connection_plan(connection, recorded->texts[0]);

		is = is_in_plan(plan, name) || (recorded->is_write && workload_touches(recorded, parent));
		sqlite3_free(plan);
	}
	return is;
}

void candidates_find_unused(candidates *all, const struct workload *workload, struct connection *connection)
{
	sqlite3_stmt *rows = NULL;

	/* If a statement cannot be prepared, what it uses is not known. */
	for (size_t i = 0; i < workload->statements.count; i++)
		if (!workload->statements.items[i].is_other && !workload->statements.items[i].touched.count)
			return;
	sqlite3_prepare_v2(connection->db, sql_advise_indexes, -1, &rows, NULL);
	while (rows && sqlite3_step(rows) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(rows, 0);
		struct candidate one = { .columns = 1 };
		bool is_written = false;

		for (size_t i = 0; i < workload->statements.count; i++)
			is_written |= workload_writes(&workload->statements.items[i],
			                              (const char *)sqlite3_column_text(rows, 1));
		if (!is_written || candidates_is_used(workload, connection, name, NULL))
			continue;
		one.name = sqlite3_mprintf("%s", name);
		one.table = sqlite3_mprintf("%s", sqlite3_column_text(rows, 1));
		one.create = sqlite3_mprintf("%s", sqlite3_column_text(rows, 2));
		one.drop = sqlite3_mprintf("DROP INDEX \"%w\"", name);
		if (!one.name || !one.table || !one.create || !one.drop || !vector_push(all, one))
			free_candidate(&one);
	}
	sqlite3_finalize(rows);
}

void candidates_free(candidates *all)
{
	for (size_t i = 0; i < all->count; i++)
		free_candidate(&all->items[i]);
	vector_free(all);
}
