/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/running.h"

#include <string.h>

#include "query/look.h"
#include "store/write/intern.h"

void running_add(struct writer *writer, struct query_key key, int64_t row)
{
	struct running_queries *running = &writer->running;
	const size_t most = sizeof running->rows / sizeof *running->rows;

	if (running->count < most && !writer->other) { /* of another process nothing can be seen */
		running->keys[running->count] = key;
		running->rows[running->count++] = row;
	}
}

/* The first sample told the beginning of a long text. 0: all of it; negative: minus the error. */
static int64_t find_whole_text(struct writer *writer, const struct query_view *view)
{
	size_t size = view->text ? strlen(view->text) : 0;

	return size >= START_TEXT_MAX ? intern_statement(writer, view->text, size, false, false, 0) : 0;
}

/* In place of the beginning. */
static int replace_text(struct writer *writer, struct query_key key, int64_t statement)
{
	struct known_query *known = intern_known_query(writer, key);
	int64_t first = known ? known->statement : 0;

	if (!first || !statement)
		return SQLITE_OK;
	known->statement = statement;
	return intern_remove_unused(writer, first);
}

static int write_view(struct writer *writer, int64_t row, const struct query_view *view)
{
	sqlite3_stmt *update = writer_statement(writer, WRITE_QUERY_RUNNING);
	int64_t library = 0, statement = find_whole_text(writer, view);
	int code;

	if (view->library)
		library = intern_library(writer, view->library, strlen(view->library));
	if (library < 0 || statement < 0)
		return (int)-(library < 0 ? library : statement);
	sqlite3_bind_int64(update, 1, row);
	sqlite3_bind_int64(update, 5, statement);
	writer_bind_text(update, 2, view->database ? view->database : "", SIZE_MAX);
	sqlite3_bind_int64(update, 3, library);
	writer_bind_text(update, 4, view->query_id ? view->query_id : "", SIZE_MAX);
	code = writer_run(writer, WRITE_QUERY_RUNNING);
	return code ? code : replace_text(writer, view->key, statement);
}

/* The row of the query with this key, which is there, and is not asked for again. */
static int64_t take_row(struct running_queries *running, struct query_key key)
{
	size_t at = 0;
	int64_t row;

	while (running->keys[at].hi != key.hi || running->keys[at].lo != key.lo)
		at++;
	row = running->rows[at];
	running->count--;
	running->keys[at] = running->keys[running->count];
	running->rows[at] = running->rows[running->count];
	return row;
}

int running_write(struct writer *writer)
{
	struct running_queries *running = &writer->running;
	struct query_run *run = NULL;
	struct query_view view;
	int code = SQLITE_OK;

	while (!code && running->count && (run = query_next_of(run, running->keys, running->count, &view))) {
		code = write_view(writer, take_row(running, view.key), &view);
		query_view_free(&view);
	}
	return code;
}
