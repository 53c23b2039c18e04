/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The views return the records that were put into the ring: every column, names and query ids in any order of
 * their records, and each thing stored once.
 */
#include <string.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "wire/lock_record.h"
#include "wire/transaction_record.h"
#include "support.h"

#define KEY(n) ((struct query_key){ 0x0190000000007000ull + (n), 0x8000000000000000ull + (n) })

static const uint64_t trace[] = { 0x401000, 0x402000, 0x403000 };

static struct a_sample sample_at(uint64_t ns)
{
	return (struct a_sample){ .timestamp_ns = T0 + ns, .trace = trace, .depth = 3 };
}

static int start(void **state)
{
	set_up(state);
	start_store(in_folder("trace.db"), 0);
	return 0;
}

/* Records between begin_batch() and end_batch() are stored in one batch because the flusher stops at an
 * uncommitted record. It ignores a record of this kind. */
static void *begin_batch(void)
{
	void *record = ring_reserve(ring, 8);

	assert_non_null(record);
	return record;
}

static void end_batch(void *record)
{
	ring_commit(ring, record, 99);
	drain();
}

static void every_column_of_a_sample(void **state)
{
	static const struct module module = { .bias = 0x400000,
		                              .start = 0x400000,
		                              .end = 0x500000,
		                              .born = 1,
		                              .died = UINT32_MAX,
		                              .path = "/bin/x",
		                              .build_id = "abc" };
	struct a_sample sample = sample_at(123456789);
	char host[65];

	(void)state;
	set_modules(&module, 1);
	put_thread(77, "worker");
	sample.thread_id = 77;
	sample.trace_type = SAMPLE_REAL;
	sample.period_ns = 1000000;
	sample.weight = 5;
	sample.cpu_id = 3;
	sample.flags = SAMPLE_TRUNCATED;
	sample.query = KEY(1);
	put_sample(sample);
	drain();
	assert_string_equal(
		ask_text("SELECT event_date || '|' || event_time || '|' || event_time_microseconds || '|'"
	                 " || timestamp_ns || '|' || trace_type || '|' || cpu_id || '|' || thread_id || '|' "
	                 "|| thread_name || '|'"
	                 " || query_id || '|' || trace || '|' || truncated || '|' || weight || '|' || "
	                 "period_ns || '|' || size || '|' || value || '|' || unit"
	                 " FROM trace_log"),
		"2026-09-21|2026-09-21 14:13:20|2026-09-21 "
		"14:13:20.123456|1790000000123456789|Real|3|77|worker|"
		"01900000-0000-7001-8000-000000000001|[4198400,4202496,4206592]|1|5|1000000|0|5000000|ns");
	assert_int_equal(ask("SELECT process_id FROM trace_log"), getpid());
	gethostname(host, sizeof(host));
	assert_string_equal(ask_text("SELECT hostname FROM trace_log"), host);
	assert_int_equal(ask("SELECT stack_id = (SELECT id FROM stacks) FROM trace_log"), 1);
	/* Usable with SQLite's JSON. */
	assert_int_equal(ask("SELECT trace ->> 1 FROM trace_log"), 0x402000);
	assert_int_equal(ask("SELECT count(*) FROM trace_log, json_each(trace)"), 3);
}

static void every_column_of_a_query(void **state)
{
	struct a_query query = {
		.record = { .query = KEY(9),
		            .initial = KEY(9),
		            .start_realtime_ns = T0 + 1500,
		            .duration_ns = 20,
		            .cpu_time_ns = 15,
		            .result_rows = 1,
		            .vm_steps = 2,
		            .fullscan_steps = 3,
		            .sorts = 4,
		            .autoindexes = 5,
		            .memory_usage = 6,
		            .samples = { 7, 8 },
		            .weights = { 9, 10 },
		            .samples_dropped = 11,
		            .samples_truncated = 12,
		            .exception_code = 19,
		            .thread_id = 13 },
		.query = "SELECT 'a b'",
		.database = "/x.db",
		.exception = "constraint failed",
	};

	(void)state;
	put_query(&query);
	drain();
	assert_string_equal(ask_text("SELECT query_id || '|' || initial_query_id || '|' || type || '|'"
	                             " || query_start_time_microseconds || '|' || query_duration_ns || '|' "
	                             "|| cpu_time_ns || '|' || query"
	                             " || '|' || database || '|' || thread_id || '|' || exception_code || "
	                             "'|' || exception || '|'"
	                             " || result_rows || '|' || vm_steps || '|' || fullscan_steps || '|' || "
	                             "sorts || '|' || autoindexes"
	                             " || '|' || memory_usage || '|' || samples_cpu || '|' || samples_real "
	                             "|| '|' || weight_cpu || '|'"
	                             " || weight_real || '|' || samples_dropped || '|' || samples_truncated "
	                             "FROM query_log"),
	                    "01900000-0000-7009-8000-000000000009|01900000-0000-7009-8000-000000000009|"
	                    "ExceptionWhileProcessing|"
	                    "2026-09-21 14:13:20.000001|20|15|SELECT 'a b'|/x.db|13|19|constraint "
	                    "failed|1|2|3|4|5|6|7|8|9|10|11|12");
	assert_string_equal(ask_text("SELECT typeof(normalized_query_hash) FROM query_log"), "integer");
	query.record.query = KEY(10);
	query.record.exception_code = 0;
	put_query(&query);
	drain();
	assert_string_equal(ask_text("SELECT type FROM query_log ORDER BY query_id DESC"), "QueryFinish");
}

static void query_id_before_during_and_after(void **state)
{
	struct a_sample sample = sample_at(0);
	struct a_query query = { .record = { .query = KEY(3), .start_realtime_ns = T0, .duration_ns = 1000 },
		                 .query_id = "mine",
		                 .query = "SELECT 1" };

	(void)state;
	sample.query = KEY(3);
	put_sample(sample);
	drain();
	/* The query still runs. */
	assert_string_equal(ask_text("SELECT query_id FROM trace_log"),
	                    "01900000-0000-7003-8000-000000000003");
	assert_int_equal(ask("SELECT count(*) FROM query_log"), 0);
	put_query(&query);
	/* Another thread of the query reports late. */
	sample.timestamp_ns += 5000;
	put_sample(sample);
	drain();
	assert_int_equal(ask("SELECT count(*) FROM trace_log WHERE query_id = 'mine'"), 2);
	assert_int_equal(ask("SELECT count(*) FROM trace_log WHERE query_id != 'mine'"), 0);
	assert_string_equal(ask_text("SELECT query_id FROM query_log"), "mine");
	/* A sample outside of any query. */
	sample.timestamp_ns += 5000;
	sample.query = (struct query_key){ 0, 0 };
	put_sample(sample);
	drain();
	assert_int_equal(ask("SELECT count(*) FROM trace_log WHERE query_id = ''"), 1);
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 3);
}

/* The columns that are known before the query's own record arrives. */
static void query_that_has_not_ended(void **state)
{
	struct a_sample sample = sample_at(2000000);
	struct a_query query = { .record = { .query = KEY(3),
		                             .initial = KEY(3),
		                             .start_realtime_ns = T0,
		                             .duration_ns = 9000000,
		                             .cpu_time_ns = 8,
		                             .samples = { 5, 6 } },
		                 .query = "SELECT 'größe'" };
	const char *known = "SELECT type || '|' || query || '|' || query_start_time_microseconds || '|' ||"
			    " query_duration_ns || '|' || cpu_time_ns || '|' || thread_id || '|' ||"
			    " samples_cpu || '|' || samples_real || '|' || weight_cpu FROM query_log";

	(void)state;
	sample.query = KEY(3);
	sample.trace_type = SAMPLE_CPU;
	sample.weight = 2;
	sample.period_ns = 1000000;
	put_sample(sample);
	put_start(KEY(3), START_DUE, "SELECT 'größe'");
	drain();
	assert_string_equal(ask_text(known),
	                    "QueryStart|SELECT 'größe'|2026-09-21 14:13:20.000000|2000000|2000000|13|1|0|2");
	sample.timestamp_ns += 3000000;
	put_sample(sample);
	sample.timestamp_ns++;
	sample.trace_type = SAMPLE_REAL;
	put_sample(sample);
	drain();
	assert_string_equal(ask_text(known),
	                    "QueryStart|SELECT 'größe'|2026-09-21 14:13:20.000000|5000001|4000000|13|2|1|4");
	put_sample(sample);
	put_query(&query);
	drain();
	assert_string_equal(ask_text(known),
	                    "QueryFinish|SELECT 'größe'|2026-09-21 14:13:20.000000|9000000|8|0|5|6|0");
	assert_int_equal(ask("SELECT count(*) FROM statements"), 1);
	/* Another thread of the query reports late. */
	put_sample(sample);
	drain();
	assert_int_equal(ask("SELECT count(*) FROM query_log WHERE type = 'QueryFinish' AND samples_cpu = 5"),
	                 1);
}

/* The query has one row, and only the text of its end is stored. */
static void query_within_a_batch(void **state)
{
	struct a_query query = { .record = { .query = KEY(3),
		                             .initial = KEY(4),
		                             .parent = KEY(4),
		                             .start_realtime_ns = T0,
		                             .duration_ns = 9000000,
		                             .samples = { 1 } },
		                 .query_id = "mine",
		                 .query = "SELECT 2" };
	struct a_sample sample = sample_at(9000001);
	void *batch = begin_batch();

	(void)state;
	sample.query = KEY(3);
	put_sample(sample);
	put_start(KEY(3), START_DUE, "SELECT 1; SELECT 2");
	put_query(&query);
	put_start(KEY(3), START_DUE, "SELECT 1; SELECT 2");
	end_batch(batch);
	assert_string_equal(
		ask_text("SELECT type || '|' || query || '|' || query_id || '|' || samples_cpu FROM"
	                 " query_log"),
		"QueryFinish|SELECT 2|mine|1");
	assert_int_equal(ask("SELECT max(id) FROM statements"), 1);
	assert_int_equal(ask("SELECT last_ns - first_ns FROM queries WHERE query_id = 'mine'"), 9000001);
	/* Only the inner query has named the outer query so far; then the outer query ends. */
	assert_int_equal(
		ask("SELECT count(*) FROM queries WHERE id > 0 AND NOT finished AND last_ns - first_ns"
	            " = 9000000 AND id = (SELECT parent FROM queries WHERE query_id = 'mine')"),
		1);
	query.query_id = "around";
	query.record.query = query.record.initial = KEY(4);
	query.record.parent = (struct query_key){ 0 };
	query.record.duration_ns = 20000000;
	put_query(&query);
	drain();
	assert_string_equal(ask_text("SELECT group_concat(query_id || initial_query_id) FROM query_log"),
	                    "minearound,aroundaround");
	assert_int_equal(ask("SELECT last_ns - first_ns FROM queries WHERE query_id = 'around'"), 20000000);
}

/* A sample whose time is taken gets the next free time, and so do the samples after it. */
static void times_that_are_taken(void **state)
{
	const uint64_t offsets[] = { 0, 1, 2, 0, 0, 1, 10 };
	void *batch = begin_batch();

	(void)state;
	for (int i = 0; i < 7; i++) {
		struct a_sample sample = sample_at(offsets[i]);

		sample.weight = (uint32_t)i + 1;
		sample.query = KEY(3);
		put_sample(sample);
		if (i == 2) {
			end_batch(batch);
			batch = begin_batch();
		}
	}
	end_batch(batch);
	assert_string_equal(ask_text("SELECT group_concat(weight || ':' || (timestamp_ns - (SELECT"
	                             " min(timestamp_ns) FROM samples))) FROM samples"),
	                    "1:0,2:1,3:2,4:3,5:4,6:5,7:10");
	assert_int_equal(ask("SELECT count(*) FROM late_samples"), 0);
	assert_int_equal(ask("SELECT last_ns - first_ns FROM batches ORDER BY id DESC LIMIT 1"), 7);
}

/* The text at a query's start differs from its text at the end: it is cut, or the script in preparation. */
static void text_of_a_start_gives_way(void **state)
{
	struct a_query query = { .record = { .query = KEY(3), .start_realtime_ns = T0 } };
	char text[START_TEXT_MAX + 20];

	(void)state;
	/* The last byte that fits is the first byte of a character. */
	memset(text, 'x', sizeof(text));
	memcpy(text + START_TEXT_MAX - 1, "ß", 2);
	text[sizeof(text) - 1] = '\0';
	query.query = text;
	put_start(KEY(3), START_DUE, "SELECT 1; SELECT 2");
	drain();
	put_start(KEY(3), START_DUE, text);
	drain();
	assert_int_equal(ask("SELECT count(*) FROM statements WHERE is_cut"), 1);
	assert_int_equal(ask("SELECT count(*) FROM statements"), 1);
	assert_int_equal(ask("SELECT query = printf('%.*c', 1919, 'x') FROM query_log"), 1);
	put_query(&query);
	drain();
	assert_int_equal(ask("SELECT count(*) FROM statements"), 1);
	assert_int_equal(ask("SELECT length(query) - is_cut FROM query_log, statements USING (query)"),
	                 START_TEXT_MAX + 18);
	/* Another query has the same text. */
	put_start(KEY(4), START_DUE, text);
	put_start(KEY(5), START_DUE, text);
	drain();
	query.record.query = KEY(4);
	put_query(&query);
	drain();
	assert_int_equal(
		ask("SELECT count(*) FROM query_log WHERE type = 'QueryStart' AND length(query) = 1919"), 1);
	/* A query of the profiler itself is withdrawn. */
	put_start(KEY(5), START_KEPT, "");
	drain();
	assert_int_equal(ask("SELECT count(*) FROM query_log"), 2);
	assert_int_equal(ask("SELECT count(*) FROM statements"), 1);
}

static void nested_query_names_the_outer_one(void **state)
{
	struct a_query inner = { .record = { .query = KEY(5), .initial = KEY(4), .start_realtime_ns = T0 } };
	struct a_query outer = { .record = { .query = KEY(4), .initial = KEY(4), .start_realtime_ns = T0 },
		                 .query_id = "outer" };

	(void)state;
	put_query(&inner);
	drain();
	assert_string_equal(ask_text("SELECT initial_query_id FROM query_log"),
	                    "01900000-0000-7004-8000-000000000004");
	put_query(&outer);
	drain();
	assert_int_equal(ask("SELECT count(*) FROM query_log WHERE initial_query_id = 'outer'"), 2);
}

static void each_query_names_the_one_right_around_it(void **state)
{
	struct a_query outer = { .record = { .query = KEY(4), .initial = KEY(4), .start_realtime_ns = T0 },
		                 .query_id = "outer" };
	struct a_query middle = {
		.record = { .query = KEY(5), .initial = KEY(4), .parent = KEY(4), .start_realtime_ns = T0 },
		.query_id = "middle"
	};
	struct a_query inner = {
		.record = { .query = KEY(6), .initial = KEY(4), .parent = KEY(5), .start_realtime_ns = T0 },
		.query_id = "inner"
	};

	(void)state;
	put_query(&inner); /* ends first */
	drain();
	assert_string_equal(ask_text("SELECT parent_query_id FROM query_log"),
	                    "01900000-0000-7005-8000-000000000005");
	put_query(&middle);
	put_query(&outer);
	drain();
	assert_string_equal(
		ask_text("SELECT group_concat(query_id || '<' || parent_query_id || '<' || initial_query_id,"
	                 " ' ') FROM (SELECT * FROM query_log ORDER BY query_id)"),
		"inner<middle<outer middle<outer<outer outer<<outer");
}

#define FUTURE_TYPE 7
#define FUTURE_FIELD 77

/* Records of a newer producer: the store does not add their values to times. */
static void unknown_type_is_a_type_of_its_own(void **state)
{
	int64_t value = 4096;
	struct a_sample sample = sample_at(0);

	(void)state;
	put_sample(sample);
	sample.timestamp_ns++;
	sample.trace_type = FUTURE_TYPE;
	sample.fields[0] = (struct a_field){ FIELD_VALUE, sizeof(value), &value };
	put_sample(sample);
	sample.timestamp_ns++;
	sample.fields[0] = (struct a_field){ 0 };
	sample.weight = 3; /* the only value that is known */
	put_sample(sample);
	drain();
	assert_string_equal(
		ask_text("SELECT group_concat(trace_type || ' ' || value || ' ' || unit || ' ' || size, ', ')"
	                 " FROM (SELECT * FROM trace_log ORDER BY timestamp_ns)"),
		"CPU 10000000 ns 0, Type7 4096 unknown 0, Type7 3 unknown 0");
	assert_string_equal(ask_text("SELECT group_concat(name || ' ' || unit) FROM sample_types"),
	                    "CPU ns,Type7 unknown");
	assert_int_equal(ask("SELECT sum(time_ns) FROM stack_times"), 10000000);
	assert_string_equal(
		ask_text("SELECT self_ms || '|' || self_percent FROM top_functions WHERE unit = 'ns'"),
		"10.0|100.0");
	assert_string_equal(
		ask_text("SELECT coalesce(self_ms, 'none') || '|' || self_percent || '|' || self_value"
	                 " FROM top_functions WHERE trace_type = 'Type7'"),
		"none|100.0|4099");
	assert_string_equal(ask_text("SELECT coalesce(ms, 'none') || '|' || percent || '|' || value"
	                             " FROM top_stacks WHERE trace_type = 'Type7'"),
	                    "none|100.0|4099");
}

static void functions_of_a_query_keep_types_apart(void **state)
{
	int64_t value = 4096;
	struct a_sample sample = sample_at(0);
	struct a_query query = { .record = { .query = KEY(1), .start_realtime_ns = T0, .duration_ns = 10 },
		                 .query = "SELECT 1" };

	(void)state;
	sample.query = KEY(1);
	put_sample(sample);
	sample.timestamp_ns++;
	sample.trace_type = FUTURE_TYPE;
	sample.fields[0] = (struct a_field){ FIELD_VALUE, sizeof(value), &value };
	put_sample(sample);
	put_query(&query);
	drain();
	for (int i = 0; i < 2; i++) {
		char sql[300];

		snprintf(sql, sizeof(sql),
		         "SELECT group_concat(trace_type || ' ' || self_value || ' ' || unit || ' ' ||"
		         " coalesce(self_ms, '-') || ' ' || self_percent, ', ')"
		         " FROM (SELECT * FROM %s WHERE self_value ORDER BY trace_type)",
		         i ? "statement_functions" : "query_functions");
		assert_string_equal(ask_text(sql), "CPU 10000000 ns 10.0 100.0, Type7 4096 unknown - 100.0");
	}
}

static void unknown_fields_are_skipped_and_counted(void **state)
{
	int64_t value = 77;
	uint64_t skipped = store_counter(STORE_FIELDS_SKIPPED);
	struct a_sample sample = sample_at(0);

	(void)state;
	/* An unknown field that fills no whole word, a known field, and an empty unknown field. */
	sample.fields[0] = (struct a_field){ FUTURE_FIELD, 13, "thirteen byte" };
	sample.fields[1] = (struct a_field){ FIELD_VALUE, sizeof(value), &value };
	sample.fields[2] = (struct a_field){ FUTURE_FIELD + 1, 0, "" };
	put_sample(sample);
	drain();
	assert_string_equal(
		ask_text("SELECT trace_type || ' ' || value || ' ' || (trace ->> 2) FROM trace_log"),
		"CPU 77 4611686018431594496");
	assert_int_equal(store_counter(STORE_FIELDS_SKIPPED) - skipped, 2);
}

/* The file stores a value as its difference from weight times period. No value gets lost. */
static void any_value_is_kept(void **state)
{
	int64_t values[] = { 0, 10000000, 3, -3, INT64_MAX };
	struct a_sample sample = sample_at(0);

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		sample.timestamp_ns++;
		sample.fields[0] = (struct a_field){ FIELD_VALUE, sizeof(values[i]), &values[i] };
		put_sample(sample);
	}
	drain();
	assert_string_equal(
		ask_text("SELECT group_concat(value) FROM (SELECT * FROM trace_log ORDER BY timestamp_ns)"),
		"0,10000000,3,-3,9223372036854775807");
	assert_int_equal(ask("SELECT count(*) FROM samples WHERE size = 0"), 1);
}

/* The number of fields and their sizes exceed the record. */
static void fields_that_lie_are_left_out(void **state)
{
	struct sample_record *record;
	int64_t value = 5;

	(void)state;
	for (int i = 0; i < 4; i++) {
		/* The last record ends after the head of its field. */
		size_t size = sizeof(*record) + 8 + SAMPLE_FIELD_BYTES(i < 3 ? 8 : 0);
		struct sample_field *field;

		record = ring_reserve(ring, size);
		*record = (struct sample_record){
			.timestamp_ns = T0 + (uint64_t)i, .period_ns = 10, .weight = 1, .depth = 1
		};
		record->addresses[0] = 0x1000;
		field = (struct sample_field *)(void *)(record->addresses + 1);
		sample_field_put(record, field, FIELD_VALUE, &value, i < 3 ? sizeof(value) : 0);
		if (i)
			field->size = i == 1 ? 9 : i == 2 ? UINT32_MAX : sizeof(value);
		record->fields = UINT32_MAX;
		ring_commit(ring, record, RECORD_SAMPLE);
	}
	drain();
	assert_string_equal(
		ask_text("SELECT group_concat(value) FROM (SELECT * FROM trace_log ORDER BY timestamp_ns)"),
		"5,10,10,10");
}

static void stored_once(void **state)
{
	uint64_t samples = store_counter(STORE_SAMPLES), lost = store_counter(STORE_LOST);

	(void)state;
	put_samples(T0, 10000, 7, KEY(1));
	for (int i = 0; i < 100; i++) {
		struct a_query query = { .record = { .query = KEY(100 + i), .start_realtime_ns = T0 },
			                 .query = i % 2 ? "SELECT 1" : "SELECT 2" };
		put_query(&query);
	}
	drain();
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 10000);
	assert_int_equal(ask("SELECT count(*) FROM stacks"), 7);
	assert_int_equal(ask("SELECT count(DISTINCT stack_id) FROM trace_log"), 7);
	assert_int_equal(ask("SELECT count(*) FROM threads"), 1);
	assert_int_equal(ask("SELECT count(*) FROM series"), 1);
	assert_int_equal(ask("SELECT count(*) FROM statements"), 2);
	/* The two texts have the same shape. */
	assert_int_equal(ask("SELECT count(DISTINCT normalized_query_hash) FROM query_log"), 1);
	assert_int_equal(store_counter(STORE_SAMPLES) - samples, 10000);
	assert_int_equal(store_counter(STORE_LOST) - lost, 0);
}

static void equal_times_are_kept_apart(void **state)
{
	struct a_sample sample = sample_at(0);

	(void)state;
	for (int i = 0; i < 3000; i++) {
		sample.query = KEY(1 + i % 2);
		put_sample(sample);
		if (i % 100 == 0)
			drain();
	}
	drain();
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 3000);
	assert_int_equal(ask("SELECT count(*) FROM trace_log WHERE query_id LIKE '%2'"), 1500);
	/* Times moved by microseconds at most. */
	assert_true(ask("SELECT max(timestamp_ns) FROM trace_log") < (int64_t)T0 + 1000000);
}

static void any_order_of_times(void **state)
{
	(void)state;
	for (int i = 0; i < 5000; i++) {
		struct a_sample sample = sample_at((uint64_t)((i * 7919) % 5000) * 1000);

		sample.query = KEY(1);
		put_sample(sample);
	}
	drain();
	assert_int_equal(ask("SELECT count(*) FROM trace_log WHERE query_id LIKE '0190%'"), 5000);
	assert_int_equal(ask("SELECT max(timestamp_ns) - min(timestamp_ns) FROM trace_log"), 4999000);
}

static void deep_and_empty_traces(void **state)
{
	uint64_t deep[STACK_FRAMES_MAX];
	struct a_sample sample = sample_at(0);

	(void)state;
	for (int i = 0; i < STACK_FRAMES_MAX; i++)
		deep[i] = UINT64_MAX - (uint64_t)i;
	sample.trace = deep;
	sample.depth = STACK_FRAMES_MAX;
	put_sample(sample);
	sample.depth = 0;
	sample.timestamp_ns++;
	put_sample(sample);
	drain();
	assert_int_equal(ask("SELECT json_array_length(trace) FROM trace_log ORDER BY timestamp_ns"),
	                 STACK_FRAMES_MAX);
	assert_string_equal(ask_text("SELECT trace FROM trace_log ORDER BY timestamp_ns DESC"), "[]");
	/* The addresses are in no module, so bit 62 is set; none is negative. */
	assert_int_equal(
		ask("SELECT count(*) FROM trace_log, json_each(trace) AS a WHERE a.value & (1 << 62) = 0 "
	            "OR a.value < 0"),
		0);
}

static void records_that_lie_are_left_out(void **state)
{
	struct sample_record *sample = ring_reserve(ring, sizeof(*sample));
	struct query_record *query;
	uint64_t lost = store_counter(STORE_LOST);

	(void)state;
	memset(sample, 0, sizeof(*sample));
	sample->depth = 400; /* more than the record has */
	ring_commit(ring, sample, RECORD_SAMPLE);
	query = ring_reserve(ring, sizeof(*query));
	memset(query, 0, sizeof(*query));
	query->query_size = UINT32_MAX;
	query->database_size = UINT32_MAX;
	ring_commit(ring, query, RECORD_QUERY);
	ring_commit(ring, ring_reserve(ring, 8), 99);
	put_sample(sample_at(0));
	drain();
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 1);
	assert_int_equal(ask("SELECT count(*) FROM query_log"), 0);
	assert_int_equal(store_counter(STORE_LOST) - lost, 2);
}

static void put_transaction(uint32_t number, uint64_t start_ns, enum transaction_outcome outcome)
{
	struct transaction_record *record = ring_reserve(ring, sizeof(*record));

	assert_non_null(record);
	*record = (struct transaction_record){
		.number = number, .start_realtime_ns = start_ns, .duration_ns = 1000000000, .outcome = outcome
	};
	ring_commit(ring, record, RECORD_TRANSACTION);
}

static void put_wait(uint64_t start_ns, enum lock_outcome outcome)
{
	struct lock_wait_record *record = ring_reserve(ring, sizeof(*record));

	assert_non_null(record);
	*record = (struct lock_wait_record){
		.start_realtime_ns = start_ns, .wait_ns = 1000000000, .thread_id = 7, .outcome = outcome
	};
	ring_commit(ring, record, RECORD_LOCK_WAIT);
}

/* Open waits and transactions are copied at another moment than records, so they may arrive after their
 * end. */
static void open_rows_are_replaced_and_never_replace(void **state)
{
	(void)state;
	put_transaction(1, T0, TRANSACTION_OPEN);
	put_transaction(1, T0 + 1000, TRANSACTION_OPEN);
	put_wait(T0, LOCK_WAITING);
	drain();
	assert_int_equal(ask("SELECT count(*) FROM transaction_log WHERE state = 'open'"), 1);
	put_transaction(1, T0 + 500, TRANSACTION_COMMITTED);
	put_transaction(1, T0 + 2000, TRANSACTION_OPEN);
	put_transaction(1, T0 + 2000, TRANSACTION_KILLED);
	put_transaction(2, T0 + 2000, TRANSACTION_KILLED);
	put_wait(T0, LOCK_REFUSED);
	put_wait(T0, LOCK_WAITING);
	drain();
	assert_int_equal(ask("SELECT count(*) FROM transaction_log"), 2);
	assert_int_equal(ask("SELECT count(*) FROM transaction_log WHERE state = 'committed' AND "
	                     "transaction_number = 1"),
	                 1);
	assert_int_equal(
		ask("SELECT count(*) FROM transaction_log WHERE state = 'killed' AND transaction_number = 2"),
		1);
	assert_int_equal(ask("SELECT count(*) FROM lock_waits"), 1);
	assert_string_equal(ask_file(in_folder("trace.db"), "SELECT refused FROM waits_for_locks"), "1");
}

static void plan_uses(const char *sql, const char *detail)
{
	char question[600];

	snprintf(question, sizeof(question), "EXPLAIN QUERY PLAN %s", sql);
	if (!strstr(ask_file(in_folder("trace.db"), question), detail))
		fail_msg("%s\nis not done by: %s\nbut by: %s", sql, detail,
		         ask_file(in_folder("trace.db"), question));
}

static void queries_and_times_are_found_without_a_scan(void **state)
{
	(void)state;
	put_samples(T0, 10, 1, KEY(1));
	drain();
	plan_uses("SELECT trace FROM trace_log WHERE query_id = 'x'", "SEARCH s USING INTEGER PRIMARY KEY");
	plan_uses("SELECT sum(weight) FROM trace_log WHERE query_id = (SELECT query_id FROM query_log)",
	          "SEARCH s USING INTEGER PRIMARY KEY");
	plan_uses("SELECT weight FROM trace_log WHERE timestamp_ns BETWEEN 1 AND 2",
	          "SEARCH s USING INTEGER PRIMARY KEY");
	plan_uses("SELECT query FROM query_log WHERE query_id = 'x'", "SEARCH q USING INDEX");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, tear_down)
		TEST(every_column_of_a_sample),
		TEST(every_column_of_a_query),
		TEST(query_id_before_during_and_after),
		TEST(query_that_has_not_ended),
		TEST(query_within_a_batch),
		TEST(times_that_are_taken),
		TEST(text_of_a_start_gives_way),
		TEST(nested_query_names_the_outer_one),
		TEST(each_query_names_the_one_right_around_it),
		TEST(unknown_type_is_a_type_of_its_own),
		TEST(functions_of_a_query_keep_types_apart),
		TEST(unknown_fields_are_skipped_and_counted),
		TEST(any_value_is_kept),
		TEST(fields_that_lie_are_left_out),
		TEST(stored_once),
		TEST(equal_times_are_kept_apart),
		TEST(any_order_of_times),
		TEST(deep_and_empty_traces),
		TEST(records_that_lie_are_left_out),
		TEST(open_rows_are_replaced_and_never_replace),
		TEST(queries_and_times_are_found_without_a_scan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
