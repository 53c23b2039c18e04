/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/running.h"

#include <string.h>

#include "collect/open_runs.h"
#include "query/inspect.h"
#include "store/write/texts.h"
#include "store/write/writer.h"

/* The first sample published the beginning of a long text. 0: all of it; negative: minus the error. */
static int64_t find_whole_text(struct writer *writer, const struct open_run_texts *texts)
{
	size_t size = texts->text && !texts->is_cut ? strlen(texts->text) : 0;

	return size >= START_TEXT_MAX ? intern_statement(writer, texts->text, size, false, false, 0) : 0;
}

/* In place of the beginning. */
static int replace_text(struct writer *writer, const struct batch_query *entry, int64_t statement)
{
	struct known_query *known = intern_known_query(writer, entry->key);

	if (!known || !entry->rows.statement || !statement)
		return SQLITE_OK;
	known->statement = statement;
	return intern_remove_unused(writer, entry->rows.statement);
}

static int write_texts(struct writer *writer, const struct batch_query *entry,
                       const struct open_run_texts *texts)
{
	struct prepared *update;
	int64_t library = 0, statement = find_whole_text(writer, texts);
	int code;

	if (texts->library)
		library = intern_library(writer, texts->library, strlen(texts->library));
	if (library < 0 || statement < 0)
		return (int)-(library < 0 ? library : statement);
	update = writer_bind(writer, &writer->queries->sql.running);
	bind_text(update, "database", texts->database ? texts->database : "", SIZE_MAX);
	bind_number(update, "library", library);
	bind_text(update, "query_id", texts->query_id ? texts->query_id : "", SIZE_MAX);
	bind_number(update, "statement", statement);
	bind_number(update, "id", entry->rows.query);
	code = writer_run(writer, update);
	return code ? code : replace_text(writer, entry, statement);
}

int running_write(struct writer *writer, const struct batch_query *entry)
{
	struct query_view view = { .text = NULL };
	struct open_run_texts texts;
	bool is_open;
	int code;

	/* A query without a statement is not shown. */
	if (!entry->rows.statement || !entry->start->run.run)
		return SQLITE_OK;
	if (writer->other) {
		is_open = open_runs_find(writer->other->runs, entry->key, &texts);
	} else {
		is_open = query_inspect(entry->start->run.run, entry->key, &view);
		texts = (struct open_run_texts){ view.text, view.database, view.library, view.query_id,
			                         false };
	}
	code = is_open ? write_texts(writer, entry, &texts) : SQLITE_OK;
	if (!writer->other && is_open)
		query_view_free(&view);
	return code;
}
