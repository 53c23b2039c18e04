/* SPDX-License-Identifier: Apache-2.0 */
#include "alone.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handler/ring.h"
#include "wire/span_record.h"

struct writer writer;

static void open_writer(const char *path)
{
	static char here[100]; /* the writer keeps it */
	const struct database_limits limits = { .wal_bytes = MB };
	char *error;

	snprintf(here, sizeof(here), "%s", path);
	if (writer_open(&writer, here, &limits, &error))
		fail_msg("%s", error);
}

void change_file(const char *path)
{
	writer_close(&writer, true);
	open_writer(path);
}

int begin_alone(void **state)
{
	set_up(state);
	ring = ring_create(8 * MB);
	if (!ring || !writer_init(&writer, NULL, NULL))
		return 1;
	open_writer(trace_path);
	return 0;
}

int end_alone(void **state)
{
	writer_close(&writer, true);
	writer_free(&writer);
	ring_destroy(ring);
	ring = NULL;
	return tear_down(state);
}

void run_sql(const char *sql)
{
	char *error = NULL;

	if (sqlite3_exec(writer.database.db, sql, NULL, NULL, &error))
		fail_msg("%s: %s", sql, error);
}

/* The writer's connection has views disabled; the tests' queries use views. */
static void allow_views(int is_allowed)
{
	sqlite3_db_config(writer.database.db, SQLITE_DBCONFIG_ENABLE_VIEW, is_allowed, NULL);
	sqlite3_db_config(writer.database.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, is_allowed, NULL);
}

int64_t number(const char *sql)
{
	int64_t result;

	allow_views(1);
	result = database_number(writer.database.db, sql, -1);
	allow_views(0);
	return result;
}

void assert_text(const char *sql, const char *expected)
{
	sqlite3_stmt *statement;

	allow_views(1);
	if (sqlite3_prepare_v2(writer.database.db, sql, -1, &statement, NULL))
		fail_msg("%s: %s", sql, sqlite3_errmsg(writer.database.db));
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	assert_string_equal((const char *)sqlite3_column_text(statement, 0), expected);
	sqlite3_finalize(statement);
	allow_views(0);
}

/* --- steps ------------------------------------------------------------------------------- */

static int asked, most_asked;

/* retention_apply() calls this before each step. */
static bool is_enough(void)
{
	return ++asked > most_asked;
}

int apply(struct retention *retention, int64_t bound, int steps)
{
	uint64_t trimmed = 0;

	asked = 0;
	most_asked = steps;
	return retention_apply(retention, &writer, bound, is_enough, &trimmed);
}

#define STEPS_MAX 3000 /* more than any of these files needs */

void flush(int64_t bound)
{
	struct retention retention = { .trimming = false };
	struct writer_result result = { .more = true };

	while (result.more) {
		assert_int_equal(
			writer_store(&writer, ring, WRITER_BATCH, retention_batch_bytes(bound), &result),
			SQLITE_OK);
		assert_int_equal(apply(&retention, bound, STEPS_MAX), SQLITE_OK);
		assert_true(asked <= STEPS_MAX);
	}
}

int64_t used_bytes(void)
{
	return (number("PRAGMA page_count") - number("PRAGMA freelist_count")) * number("PRAGMA page_size");
}

void trim(int64_t bound)
{
	struct retention retention = { .trimming = true };

	for (int calls = 0; retention.trimming; calls++) {
		assert_int_equal(apply(&retention, bound, STEPS_MAX), SQLITE_OK);
		assert_true(asked <= STEPS_MAX && calls < STEPS_MAX);
	}
	assert_true(used_bytes() < bound);
}

/* --- records ------------------------------------------------------------------------------ */

void *reserve(size_t size)
{
	void *record = ring_reserve(ring, size);

	assert_non_null(record);
	memset(record, 0, size);
	return record;
}

void put_run_span(uint64_t start_ns, uint32_t thread, struct query_key key, uint64_t shape)
{
	struct span_batch *batch = reserve(sizeof(*batch) + 2 * sizeof(batch->entry[0]));

	batch->of = (struct span_link){ start_ns, start_ns | 1, 0 };
	batch->first = start_ns;
	batch->began_ns = start_ns;
	batch->ended_ns = start_ns + 1000;
	batch->thread_id = thread;
	batch->flags = BATCH_ROOT | BATCH_END;
	batch->entries = 2;
	batch->entry[0] = (struct span_entry){ .start_ns = start_ns, .duration = SPAN_STATEMENT | 1000 };
	batch->entry[1] = (struct span_entry){
		.start_ns = key.hi, .duration = key.lo, .children = shape, .site = ENTRY_STATEMENT
	};
	ring_commit(ring, batch, RECORD_SPANS);
}

void put_run(uint64_t start_ns, struct query_key key, const char *id)
{
	char text[300];
	const struct a_query query = {
		.query_id = id,
		.record = { .query = key, .start_realtime_ns = start_ns, .duration_ns = 1000 },
		.query = text
	};

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	text[snprintf(text, sizeof(text), "SELECT %llu", (unsigned long long)key.lo)] = ' ';
	put_query(&query);
}
