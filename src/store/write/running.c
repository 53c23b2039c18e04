/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/running.h"

#include <string.h>

#include "query/inspect.h"
#include "store/write/texts.h"
#include "store/write/writer.h"

/* The first sample published the beginning of a long text. 0: all of it; negative: minus the error. */
static int64_t find_whole_text(struct writer *writer, const struct query_view *view)
{
	size_t size = view->text ? strlen(view->text) : 0;

	return size >= START_TEXT_MAX ? intern_statement(writer, view->text, size, false, false, 0) : 0;
}

/* In place of the beginning. */
static int replace_text(struct writer *writer, const struct query_span *span, int64_t statement)
{
	struct known_query *known = intern_known_query(writer, span->key);

	if (!known || !span->rows.statement || !statement)
		return SQLITE_OK;
	known->statement = statement;
	return intern_remove_unused(writer, span->rows.statement);
}

static int write_view(struct writer *writer, const struct query_span *span, const struct query_view *view)
{
	struct prepared *update;
	int64_t library = 0, statement = find_whole_text(writer, view);
	int code;

	if (view->library)
		library = intern_library(writer, view->library, strlen(view->library));
	if (library < 0 || statement < 0)
		return (int)-(library < 0 ? library : statement);
	update = writer_bind(writer, &writer->queries->sql.running);
	bind_text(update, "database", view->database ? view->database : "", SIZE_MAX);
	bind_number(update, "library", library);
	bind_text(update, "query_id", view->query_id ? view->query_id : "", SIZE_MAX);
	bind_number(update, "statement", statement);
	bind_number(update, "id", span->rows.query);
	code = writer_run(writer, update);
	return code ? code : replace_text(writer, span, statement);
}

int running_write(struct writer *writer, const struct query_span *span)
{
	struct query_view view;
	int code;

	/* Nothing of another process can be seen. A query without a statement is not shown. */
	if (writer->other || !span->rows.statement || !span->start->run.run ||
	    !query_inspect(span->start->run.run, span->key, &view))
		return SQLITE_OK;
	code = write_view(writer, span, &view);
	query_view_free(&view);
	return code;
}
