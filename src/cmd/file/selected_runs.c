/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/file/selected_runs.h"

#include "base/search.h"
#include "cmd/file/table_pages.h"
#include "store/file/database.h"

static int read_ids(struct selected_runs *runs, sqlite3 *db)
{
	sqlite3_stmt *row = NULL;
	int code = sqlite3_prepare_v2(db, "SELECT id FROM temp.selected ORDER BY id", -1, &row, NULL);

	while (!code && (code = sqlite3_step(row)) == SQLITE_ROW)
		code = vector_push(&runs->ids, sqlite3_column_int64(row, 0)) ? SQLITE_OK : SQLITE_NOMEM;
	sqlite3_finalize(row);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int read_statements(struct selected_runs *runs, sqlite3 *db)
{
	sqlite3_stmt *row = NULL;
	int code = sqlite3_prepare_v2(
		db, "SELECT id, normalized_query_hash, labels FROM statements ORDER BY id", -1, &row, NULL);

	while (!code && (code = sqlite3_step(row)) == SQLITE_ROW)
		code = vector_push(&runs->statements,
		                   (struct selected_statement){ sqlite3_column_int64(row, 0),
		                                                sqlite3_column_int64(row, 1),
		                                                sqlite3_column_int(row, 2) })
		               ? SQLITE_OK
		               : SQLITE_NOMEM;
	sqlite3_finalize(row);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

int selected_runs_each(struct selected_runs *runs, sqlite3 *db, const char *const *columns, size_t count,
                       int (*take)(void *context, const int64_t *row), void *context)
{
	struct table_rows rows = {
		.table = "queries", .columns = columns, .count = count, .first = INT64_MIN, .last = INT64_MAX
	};
	const bool is_all = database_number(db, "SELECT is_all FROM temp.selected_limits", 0) > 0;
	int code = read_statements(runs, db);

	if (!code && !is_all && !(code = read_ids(runs, db))) {
		if (!runs->ids.count)
			return SQLITE_OK;
		rows.ids = runs->ids.items;
		rows.id_count = runs->ids.count;
		rows.first = rows.ids[0];
		rows.last = rows.ids[rows.id_count - 1];
	}
	return code ? code : table_pages_each(db, &rows, take, context);
}

struct selected_statement selected_runs_statement(const struct selected_runs *runs, int64_t id)
{
	const struct selected_statement *statements = runs->statements.items;
	const size_t count = runs->statements.count,
		     at = search_number(statements, sizeof(*statements), count, id);

	return at < count ? statements[at] : (struct selected_statement){ id, 0, 0 };
}

void selected_runs_free(struct selected_runs *runs)
{
	vector_free(&runs->ids);
	vector_free(&runs->statements);
}
