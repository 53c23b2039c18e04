/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each transaction of a writer has a row in `batches`, and the view batch_samples has its
 * samples. They lie between its first and its last time, among samples of other batches.
 * Retention removes the oldest samples, and the batches that have none left.
 */
#include "store/read/follow.h"

#include "base/text.h"
#include "store/columns.h"

#define SHOWN_NAME(name, type, flags, expression) ", " #name
#define STORED_NAME(name, type, definition, flags, value) ", " #name
#define SHOWN_OF_QUERY(name, type, flags, expression) ", " expression " AS " #name
#define STORED_OF_QUERY(name, type, definition, flags, value) ", q." #name " AS " #name
#define NOTHING(...)
#define JOIN(text) " LEFT JOIN " text

#define THREADS_SQL                                                                                          \
	"SELECT hostname, process_id, thread_id, thread_name FROM threads AS t"                              \
	" JOIN processes AS p ON p.id = t.process WHERE t.id > ?3 AND t.id <= ?4 ORDER BY t.id"

static const char *const selections[] = {
	[FOLLOW_SAMPLES] = "SELECT timestamp_ns AS sample_id" TRACE_LOG_COLUMNS(
		STORED_NAME, NOTHING, SHOWN_NAME,
		NOTHING) " FROM trace_log WHERE timestamp_ns IN (SELECT timestamp_ns FROM batch_samples"
			 " WHERE batch > ?1 AND batch <= ?2) ORDER BY timestamp_ns",
	[FOLLOW_QUERIES] = "SELECT q.finished AS finished" QUERY_LOG_COLUMNS(
		STORED_OF_QUERY, NOTHING,
		SHOWN_OF_QUERY) " FROM queries AS q" QUERY_LOG_JOINS(JOIN) " WHERE q.batch > ?1 AND q.batch "
									   "<= ?2 AND q.id > 0 ORDER BY "
									   "q.batch, q.id",
	[FOLLOW_THREADS] = THREADS_SQL,
};

/* The file, its newest batch, and its oldest one with the samples before it. */
#define STATE_SQL                                                                                            \
	"SELECT identity, coalesce((SELECT max(id) FROM batches), 0),"                                       \
	" coalesce((SELECT min(id) FROM batches), 0),"                                                       \
	" coalesce((SELECT total - samples FROM batches ORDER BY id LIMIT 1), 0) FROM state"

#define BATCHES_SQL "SELECT id, total, thread FROM batches WHERE id > ?1 ORDER BY id"

/* The samples removed from batches that are there still. */
#define REMOVED_SQL                                                                                          \
	"SELECT coalesce(sum(b.samples - (SELECT count(*) FROM batch_samples AS s WHERE s.batch = b.id)), "  \
	"0)"                                                                                                 \
	" FROM batches AS b WHERE b.id > ?1 AND b.id <= ?2"                                                  \
	" AND b.first_ns < coalesce((SELECT min(timestamp_ns) FROM samples), 9223372036854775807)"

/* Closes the cursor. False: `*error`. */
static bool end_rows(struct store_cursor *cursor, int code, char **error)
{
	if (code < 0)
		*error = text_format("%s", store_cursor_error(cursor));
	store_close(cursor);
	return code >= 0;
}

/* Where the follower goes on in this file: behind what was removed. */
static bool find_start(struct store_file *file, struct follow_news *news, int64_t *newest, char **error)
{
	struct store_cursor *cursor = store_select(file, STATE_SQL, NULL, error);
	int64_t identity, oldest, before;
	int code;

	if (!cursor)
		return false;
	code = store_step(cursor);
	identity = store_column_int64(cursor, 0);
	*newest = store_column_int64(cursor, 1);
	oldest = store_column_int64(cursor, 2);
	before = store_column_int64(cursor, 3);
	if (!end_rows(cursor, code, error))
		return false;
	if (identity != news->since.file) {
		news->is_other_file = news->since.file != 0;
		news->since = (struct follow_position){ .file = identity };
	}
	if (oldest > news->since.batch + 1) {
		if (before > news->since.samples)
			news->missed = (uint64_t)(before - news->since.samples);
		news->since.batch = oldest - 1;
		news->since.samples = before;
	}
	news->until = news->since;
	return true;
}

static bool find_end(struct store_file *file, struct follow_news *news, int64_t most_samples, char **error)
{
	struct store_cursor *cursor = store_select(file, BATCHES_SQL, NULL, error);
	int code;

	if (!cursor)
		return false;
	store_bind_int64(cursor, 1, news->since.batch);
	while ((code = store_step(cursor)) == 1) {
		int64_t total = store_column_int64(cursor, 1);

		if (news->until.batch > news->since.batch && total - news->since.samples > most_samples)
			break;
		news->until.batch = store_column_int64(cursor, 0);
		news->until.samples = total;
		news->until.thread = store_column_int64(cursor, 2);
	}
	return end_rows(cursor, code, error);
}

static bool find_removed(struct store_file *file, struct follow_news *news, char **error)
{
	struct store_cursor *cursor = store_select(file, REMOVED_SQL, NULL, error);
	uint64_t removed;
	int code;

	if (!cursor)
		return false;
	store_bind_int64(cursor, 1, news->since.batch);
	store_bind_int64(cursor, 2, news->until.batch);
	code = store_step(cursor);
	removed = (uint64_t)store_column_int64(cursor, 0);
	news->samples = (uint64_t)(news->until.samples - news->since.samples) - removed;
	news->missed += removed;
	return end_rows(cursor, code, error);
}

bool follow_look(struct store_file *file, const struct follow_position *since, int64_t most_samples,
                 struct follow_news *news, char **error)
{
	int64_t newest;

	*error = NULL;
	*news = (struct follow_news){ .since = *since };
	if (!find_start(file, news, &newest, error))
		return false;
	if (newest <= news->since.batch)
		return true;
	return find_end(file, news, most_samples, error) && find_removed(file, news, error);
}

struct store_cursor *follow_select(struct store_file *file, const struct follow_news *news,
                                   enum follow_kind kind, char **error)
{
	struct store_cursor *cursor = store_select(file, selections[kind], NULL, error);

	if (cursor) {
		store_bind_int64(cursor, 1, news->since.batch);
		store_bind_int64(cursor, 2, news->until.batch);
		store_bind_int64(cursor, 3, news->since.thread);
		store_bind_int64(cursor, 4, news->until.thread);
	}
	return cursor;
}
