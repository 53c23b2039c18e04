/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/running.h"

#include <string.h>

#include "query/look.h"
#include "store/write/intern.h"

void running_started(struct writer *writer, struct query_key key, int64_t row)
{
	const size_t most = sizeof writer->running / sizeof *writer->running;

	running_ended(writer, row);                         /* told again: its text has changed */
	if (writer->running_count < most && !writer->other) /* of another process nothing can be seen */
		writer->running[writer->running_count++] = (struct running_query){ key, row };
}

void running_ended(struct writer *writer, int64_t row)
{
	for (size_t i = 0; i < writer->running_count; i++)
		if (writer->running[i].row == row) {
			writer->running[i] = writer->running[--writer->running_count];
			return;
		}
}

static int write_view(struct writer *writer, int64_t row, const struct query_view *view)
{
	sqlite3_stmt *update = writer_statement(writer, WRITE_QUERY_RUNNING);
	int64_t library = 0;

	if (view->library)
		library = intern_library(writer, view->library, strlen(view->library));
	if (library < 0)
		return (int)-library;
	sqlite3_bind_int64(update, 1, row);
	writer_bind_text(update, 2, view->database ? view->database : "", SIZE_MAX);
	sqlite3_bind_int64(update, 3, library);
	writer_bind_text(update, 4, view->query_id ? view->query_id : "", SIZE_MAX);
	return writer_run(writer, WRITE_QUERY_RUNNING);
}

int running_write(struct writer *writer)
{
	int code = SQLITE_OK;

	for (size_t i = 0; !code && i < writer->running_count; i++) {
		struct query_view view;

		if (!query_find_shown(writer->running[i].key, &view))
			continue;
		code = write_view(writer, writer->running[i].row, &view);
		query_view_free(&view);
	}
	return code;
}
