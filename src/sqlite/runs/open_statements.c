/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/runs/open_statements.h"

#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "collect/state.h"
#include "handler/ring.h"
#include "query/normalize.h"
#include "sqlite/locks/lock_holders.h"
#include "timers/threads.h"
#include "wire/open_statements_record.h"

/* About so many statements are measured in a look: one takes about a microsecond. */
#define MEASURED 512u

#define QUERY_MAX 255u

/* A statement, or all of one text. */
struct measured {
	const char *text;
	uint64_t bytes;
	uint32_t count;
};

struct look {
	const sqlite3_api_routines *api;
	sqlite3 *db;
	uint32_t statements;
	VECTOR(struct measured) measured;
};

static sqlite3_stmt *next(const struct look *look, sqlite3_stmt *stmt)
{
	return look->api->next_stmt(look->db, stmt);
}

static void count(struct look *look)
{
	for (sqlite3_stmt *stmt = next(look, NULL); stmt; stmt = next(look, stmt))
		look->statements++;
}

/* The gaps between measured statements are random, because texts may take turns. */
static void measure(struct look *look)
{
	const uint32_t gap = look->statements / MEASURED + 1;
	uint64_t random = look->statements;
	uint32_t left = 0;

	for (sqlite3_stmt *stmt = next(look, NULL); stmt; stmt = next(look, stmt)) {
		const char *text = left ? NULL : look->api->sql(stmt);

		if (left) {
			left--;
			continue;
		}
		random = random * 6364136223846793005u + 1442695040888963407u;
		left = (uint32_t)(random >> 33) % (2 * gap - 1); /* gap - 1 in the mean */
		if (text)
			vector_push(&look->measured,
			            (struct measured){ text,
			                               (uint64_t)look->api->stmt_status(
							       stmt, SQLITE_STMTSTATUS_MEMUSED, 0),
			                               1 });
	}
}

static int compare_texts(const void *left, const void *right)
{
	return strcmp(((const struct measured *)left)->text, ((const struct measured *)right)->text);
}

/* Fills in what was measured. Returns the text with the most memory. */
static const char *sum_up(struct look *look, struct open_statements_record *record)
{
	struct measured text = { NULL, 0, 0 }, most = { "", 0, 0 };

	qsort(look->measured.items, look->measured.count, sizeof(*look->measured.items), compare_texts);
	for (size_t i = 0; i < look->measured.count; i++) {
		const struct measured *one = &look->measured.items[i];

		if (!text.text || strcmp(text.text, one->text) != 0) {
			text = (struct measured){ one->text, 0, 0 };
			record->texts++;
		}
		text.bytes += one->bytes;
		text.count++;
		record->bytes += one->bytes;
		if (text.bytes > most.bytes || !most.count)
			most = text;
	}
	record->measured = (uint32_t)look->measured.count;
	record->statement = normalize_hash(most.text, strlen(most.text));
	record->text_bytes = most.bytes;
	record->text_statements = most.count;
	return most.text;
}

static void write_record(struct look *look, const struct session *session, const struct thread *thread)
{
	struct open_statements_record head = {
		.realtime_ns = lock_now_ns() + thread->realtime_offset_ns,
		.statements = look->statements,
		.session = session->number,
		.thread_id = thread->id,
	}, *record;
	const char *text = sum_up(look, &head), *path = look->api->db_filename(look->db, "main");
	struct ring *ring = sampler_ring();
	int cache = 0, most;

	look->api->db_status(look->db, SQLITE_DBSTATUS_CACHE_USED, &cache, &most, 0);
	head.cache_bytes = (uint64_t)cache;
	head.database_size = (uint32_t)strnlen(path ? path : "", 1024);
	head.query_size = (uint32_t)strnlen(text, QUERY_MAX);
	record = ring ? ring_reserve(ring, sizeof(*record) + head.database_size + head.query_size) : NULL;
	if (!record)
		return;
	*record = head;
	memcpy(record->text, path ? path : "", head.database_size);
	memcpy(record->text + head.database_size, text, head.query_size);
	ring_commit(ring, record, RECORD_OPEN_STATEMENTS);
}

void open_statements_inspect(struct session *session, bool is_last)
{
	struct look look = { host_api(session->library), session->db, 0, { 0 } };
	sqlite3_mutex *mutex = look.api->db_mutex(look.db);
	const struct thread *thread = sampler_thread();
	struct newest_look *newest = &session->newest_look;

	if (!thread || (mutex && look.api->mutex_try(mutex)))
		return;
	count(&look);
	newest->prepares_left =
		look.statements / 4 > OPEN_STATEMENTS_MIN ? look.statements / 4 : OPEN_STATEMENTS_MIN;
	if (session->settings.log_queries && look.statements >= OPEN_STATEMENTS_MIN &&
	    look.statements > newest->recorded + (is_last ? 0 : newest->recorded / 5)) {
		newest->recorded = look.statements;
		measure(&look);
		write_record(&look, session, thread);
	}
	if (mutex)
		look.api->mutex_leave(mutex);
	vector_free(&look.measured);
}
