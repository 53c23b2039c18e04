/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/export/frame_paths.h"

#include <stdlib.h>

bool frame_paths_open(struct frame_paths *paths, sqlite3 *db, const char *sql)
{
	return sqlite3_prepare_v2(db, sql, -1, &paths->path_of, NULL) == SQLITE_OK;
}

void frame_paths_close(struct frame_paths *paths)
{
	sqlite3_finalize(paths->path_of);
	paths->path_of = NULL;
}

static const char *keep_column(struct names *names, sqlite3_stmt *row)
{
	const char *text = (const char *)sqlite3_column_text(row, 0);

	return names_keep(names, text ? text : "");
}

/* An SQLite result. */
static int read_path(sqlite3_stmt *row, struct names *names, int64_t program, int64_t node,
                     struct frame_path **read)
{
	struct frame_path *path = calloc(1, sizeof(*path));
	bool fine = path != NULL;
	int code;

	sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, ":program"), program);
	sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, ":node"), node);
	while (fine && path->count < FRAME_PATH_DEPTH && sqlite3_step(row) == SQLITE_ROW)
		fine = (path->functions[path->count++] = keep_column(names, row));
	code = sqlite3_reset(row);
	if (code == SQLITE_OK && !fine)
		code = SQLITE_NOMEM;
	if (code == SQLITE_OK)
		*read = path;
	else
		free(path);
	return code;
}

int frame_paths_find(struct frame_paths *paths, struct names *names, uint32_t side, int64_t program,
                     int64_t node, const struct frame_path **found)
{
	static const struct frame_path none;
	uint64_t words[] = { side, (uint64_t)program, (uint64_t)node };
	struct frame_path **path;
	int code;

	*found = &none;
	if (!node) /* the statement's own work, or not known */
		return SQLITE_OK;
	path = index_item(&paths->index, hash_words(words, 3), &paths->items);
	code = !path   ? SQLITE_NOMEM
	       : *path ? SQLITE_OK
	               : read_path(paths->path_of, names, program, node, path);
	if (code == SQLITE_OK)
		*found = *path;
	return code;
}

void frame_paths_free(struct frame_paths *paths)
{
	for (size_t i = 0; i < paths->items.count; i++)
		free(paths->items.items[i]);
	vector_free(&paths->items);
	index_free(&paths->index);
}
