/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of retention: which rows each removes, which rows it must keep because other rows or live programs
 * need them, and that the steps end.
 */
#include "alone.h"

#include <stdio.h>
#include <string.h>

#include "handler/ring.h"
#include "label/sets.h"
#include "wire/label_record.h"
#include "wire/bytecode_record.h"
#include "wire/span_record.h"
#include "store/control/counters.h"

static void put_wait_span(uint64_t start_ns, uint32_t thread)
{
	struct span_batch *batch = reserve(sizeof(*batch) + sizeof(batch->entry[0]));

	batch->of = (struct span_link){ start_ns, start_ns | 1, 0 };
	batch->first = start_ns;
	batch->began_ns = start_ns;
	batch->thread_id = thread;
	batch->entries = 1;
	batch->entry[0] =
		(struct span_entry){ .start_ns = start_ns, .duration = 1000, .site = SITE_WAIT | 3 };
	ring_commit(ring, batch, RECORD_SPANS);
}

/* Puts the loop counters of a run. */
static void put_loops(struct query_key key)
{
	static const struct loop_row row = { { ROW_LOOP, sizeof(row), 1 }, 10, 20, 2 };
	struct bytecode_rows_record *record = reserve(sizeof(*record) + sizeof(row));

	record->query = key;
	record->size = sizeof(row);
	memcpy(record->rows, &row, sizeof(row));
	ring_commit(ring, record, RECORD_BYTECODE_ROWS);
}

/* --- queries that only other rows name ----------------------------------------------------- */

/* The queries' own records never arrived. Of many rows without a time, one once stayed the oldest for
 * ever. */
static void queries_without_a_record_go(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 4000; i++) {
		const uint64_t at_ns = T0 + i * SECOND;

		put_run_span(at_ns, 7, KEY(at_ns, i), 1);
		put_loops(KEY(at_ns, 1000000 + i));
	}
	flush(0);
	assert_int_equal(number("SELECT count(*) FROM queries WHERE id > 0"), 8000);
	assert_int_equal(number("SELECT count(*) FROM queries WHERE id > 0 AND first_ns > last_ns"), 0);
	assert_true(used_bytes() > 1 * MB);
	trim(MB);
	/* The newest queries are left, with their spans. */
	assert_true(number("SELECT count(*) FROM queries WHERE id > 0") > 500);
	assert_int_equal(number("SELECT max(start_ns) FROM span_batches"), T0 + 3999 * SECOND);
	assert_int_equal(number("SELECT max(last_ns) FROM queries WHERE id > 0"), T0 + 3999 * SECOND + 1000);
}

/* Files of earlier versions have such rows. */
static void queries_without_a_time_go(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3000; i++)
		put_run(T0 + i * SECOND, KEY(T0 + i * SECOND, i), NULL);
	flush(0);
	run_sql("UPDATE queries SET first_ns = 9223372036854775807, last_ns = -9223372036854775808"
	        " WHERE id % 2 AND id < 2000");
	trim(MB);
	assert_true(number("SELECT count(*) FROM queries WHERE id > 0") > 500);
	assert_int_equal(number("SELECT max(last_ns) FROM queries WHERE id > 0"), T0 + 2999 * SECOND + 1000);
}

static void put_samples_of_eight(uint64_t at_ns)
{
	for (uint64_t i = 0; i < 8; i++)
		put_samples(at_ns + i * 1000, 1, 1, KEY(T0, i));
}

/* As many queries continue as a step checks under a small bound. Queries after them ended before all
 * samples. */
static void queries_that_go_on_are_no_obstacle(void **state)
{
	const int64_t bound = 512 * KB;

	(void)state;
	put_samples_of_eight(T0);
	flush(0);
	for (uint64_t i = 0; i < 3000; i++)
		put_run(T0 - HOUR + i * 1000000, KEY(T0 - HOUR, 100 + i), NULL);
	flush(0);
	put_samples_of_eight(T0 + HOUR);
	flush(0);
	assert_int_equal(number("SELECT max(id) FROM queries WHERE first_ns >= " /* T0 */
	                        "1790000000000000000"),
	                 8);
	trim(bound);
	assert_int_equal(number("SELECT max(id) FROM queries"), 3008);
}

/* --- rows that other rows name -------------------------------------------------------------- */

/* Puts samples until no epoch of the first rows is left. */
static void pass_epochs(uint64_t from_ns)
{
	const int64_t first = number("SELECT max(id) FROM epochs");

	for (uint64_t i = 0; number("SELECT min(id) FROM epochs") <= first; i++) {
		assert_true(i < 200);
		put_samples(from_ns + i * SECOND, 1000, 100, KEY(from_ns, 1));
		flush(MB);
	}
}

static void threads_of_spans_stay(void **state)
{
	(void)state;
	put_run_span(T0 + HOUR, 77, KEY(T0 + HOUR, 1), 1);
	put_wait_span(T0 + HOUR + 10000, 78);
	flush(MB);
	pass_epochs(T0);
	assert_int_equal(number("SELECT count(*) FROM span_log WHERE thread_id IN (77, 78)"), 2);
	assert_int_equal(number("SELECT count(*) FROM span_waits JOIN threads ON id = thread"), 1);
	/* When the spans are removed, their threads are removed, too. The newest row stays. */
	put_run_span(T0 + 2 * HOUR, 79, KEY(T0 + 2 * HOUR, 1), 1);
	flush(MB);
	pass_epochs(T0 + 2 * HOUR);
	pass_epochs(T0 + 3 * HOUR);
	assert_int_equal(number("SELECT count(*) FROM threads WHERE thread_id IN (77, 78)"), 0);
	assert_int_equal(number("SELECT min(id) FROM span_batches"), 3);
}

#define ADD_WAIT(start, process)                                                                             \
	"INSERT INTO waits_for_locks (query, start_ns, wait_ns, lock, refused, thread_id, process,"          \
	" database, holder, holder_query, holder_session, holder_process_id, holder_thread_id,"              \
	" holder_transaction) VALUES (0, " start ", 1, 1, 0, 1, " process ", '', 0, '', 0, 0, 0, 0);"

static void processes_that_are_named_stay(void **state)
{
	(void)state;
	run_sql("INSERT INTO processes (id, hostname, process_id, start_time_ns, executable) WITH n(i) AS"
	        " (VALUES (100) UNION ALL SELECT i + 1 FROM n WHERE i < 200) SELECT i, 'h', i, 1, 'x' FROM "
	        "n;" ADD_WAIT("1800000000000000000",
	                      "100") "INSERT INTO transactions (process, number, session, thread_id, "
	                             "start_ns, duration_ns, "
	                             "write_ns,"
	                             " exclusive_ns, idle_ns, statements, outcome, waited_for, first, last, "
	                             "database, first_query,"
	                             " last_query) VALUES (101, 1, 1, 1, 1800000000000000000, 1, 1, 1, 1, 1, "
	                             "1, 1, 0, 0, '', '', "
	                             "'')");
	pass_epochs(T0);
	assert_int_equal(number("SELECT count(*) FROM lock_waits WHERE process_id = 100"), 1);
	assert_int_equal(number("SELECT count(*) FROM transaction_log WHERE process_id = 101"), 1);
	assert_int_equal(number("SELECT count(*) FROM processes WHERE id BETWEEN 100 AND 200"), 2);
}

/* Followers of the file identify a wait by its number. */
static void numbers_of_waits_only_grow(void **state)
{
	(void)state;
	run_sql(ADD_WAIT("1790000000000000000", "1") ADD_WAIT("1790000000000000001", "1"));
	pass_epochs(T0 + HOUR);
	assert_int_equal(number("SELECT min(id) FROM waits_for_locks"), 2);
	run_sql(ADD_WAIT("1790000000000000002", "1"));
	pass_epochs(T0 + 2 * HOUR);
	assert_int_equal(number("SELECT min(id) FROM waits_for_locks"), 3);
}

/* New statements run all the time. */
static void sites_go_with_their_spans(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 15000; i++) {
		put_run_span(T0 + i * 1000000, 7, KEY(T0, 0), 1000 + i);
		if (i % 2 == 0)
			put_run_span(T0 + i * 1000000 + 1, 7, KEY(T0, 0), 5); /* a recurring statement */
		if (i % 250 == 0)
			flush(MB);
	}
	flush(MB);
	assert_true(number("SELECT count(*) FROM span_batches") < 15000);
	assert_true(number("SELECT count(*) FROM span_sites") <
	            number("SELECT count(*) FROM span_batches") + 4096 + 2000);
	assert_int_equal(
		number("SELECT count(*) FROM span_rows WHERE site NOT IN (SELECT id FROM span_sites)"), 0);
	assert_int_equal(number("SELECT count(*) FROM span_rows AS r JOIN span_sites AS s ON s.id = r.site"
	                        " WHERE s.statement <> 1000 + (r.start_ns - 1790000000000000000) / 1000000"
	                        " AND s.statement <> 5"),
	                 0);
}

/* The site of many spans stays, although its statement does not run any more. */
static void sites_stay_with_their_spans(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 12000; i++) {
		put_run_span(T0 + i * 1000000, 7, KEY(T0, 0), 5);
		if (i % 1000 == 999)
			flush(16 * MB);
	}
	trim(MB);
	assert_true(number("SELECT min(id) FROM span_batches") > 4200);
	for (uint64_t i = 12000; i < 13500; i++) {
		put_run_span(T0 + i * 1000000, 7, KEY(T0, 0), 1000 + i);
		if (i % 250 == 249)
			flush(MB);
	}
	assert_int_equal(number("SELECT count(*) FROM span_rows WHERE site NOT IN (SELECT id FROM span_sites"
	                        " WHERE statement = 5)"),
	                 1500);
}

/* The count makes this process and others that write to the file publish the programs again. */
static void removed_programs_are_counted(void **state)
{
	struct bytecode_record *bytecode = reserve(sizeof(*bytecode) + 8);
	const uint64_t removed = store_counter(STORE_PLANS_REMOVED);
	const struct a_query query = {
		.record = { .query = KEY(T0, 1), .start_realtime_ns = T0, .bytecode = 5 }, .query = "SELECT 1"
	};

	(void)state;
	bytecode->bytecode = 5;
	bytecode->query_size = 8;
	memcpy(bytecode->text, "SELECT 1", 8);
	ring_commit(ring, bytecode, RECORD_BYTECODE);
	put_query(&query);
	flush(MB);
	assert_int_equal(number("SELECT count(*) FROM programs"), 1);
	pass_epochs(T0 + SECOND);
	pass_epochs(T0 + HOUR);
	assert_int_equal(number("SELECT count(*) FROM programs"), 0);
	put_run(T0 + 2 * HOUR, KEY(T0 + 2 * HOUR, 1), NULL);
	flush(0);
	assert_int_equal(store_counter(STORE_PLANS_REMOVED) - removed, 1);
	run_sql("UPDATE state SET program_removals = program_removals + 1, removals = removals + 1");
	for (int i = 0; i < 2; i++) {
		put_run(T0 + 2 * HOUR, KEY(T0 + 2 * HOUR, 2), NULL);
		flush(0);
		assert_int_equal(store_counter(STORE_PLANS_REMOVED) - removed, 2);
	}
	/* Nothing is known about another file. */
	change_file(in_folder("y.db"));
	put_run(T0 + 2 * HOUR, KEY(T0 + 2 * HOUR, 3), NULL);
	flush(0);
	assert_int_equal(store_counter(STORE_PLANS_REMOVED) - removed, 2);
}

static void put_label_use(uint64_t from_ns)
{
	static const char text[] = "{\"job\":\"night\"}";
	struct label_record *record = reserve(sizeof(*record) + sizeof(text) - 1);

	record->from_ns = from_ns;
	record->trampoline = 1;
	record->size = sizeof(text) - 1;
	memcpy(record->text, text, sizeof(text) - 1);
	ring_commit(ring, record, RECORD_LABELS);
}

/* Several steps and epochs. Of two other processes, 98 still writes, and 99 does not. All remaining batches
 * belong to 98. */
static void label_sets_in_use_stay(void **state)
{
	(void)state;
	put_label_use(T0);
	for (uint64_t i = 0; i < 100; i++) {
		put_samples(T0 + i * SECOND, 1000, 100, KEY(T0, 1));
		flush(12 * MB);
	}
	assert_true(number("SELECT count(*) FROM epochs") > 5);
	run_sql("INSERT INTO processes (id, hostname, process_id, start_time_ns, executable)"
	        " VALUES (98, 'h', 98, 1, 'x'), (99, 'h', 99, 1, 'x');"
	        "INSERT INTO label_uses SELECT 98, 1, from_ns, 0, labels, 1 FROM label_uses;"
	        "INSERT INTO label_uses SELECT 99, 1, from_ns, 0, labels, 1 FROM label_uses WHERE process < "
	        "98;"
	        "INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size)"
	        " SELECT timestamp_ns + 3600000000000, series, query, stack, 0, 1, 0, 0 FROM samples;"
	        "INSERT INTO epochs (start_ns) VALUES (1790001800000000000);"
	        "INSERT INTO batches SELECT max(id) + 1, 98, 0, last_ns, last_ns + 3600000000000, 0, total, 1"
	        " FROM batches");
	trim(MB);
	assert_true(number("SELECT count(*) FROM epochs") < 5);
	assert_int_equal(number("SELECT count(*) FROM batches WHERE process <> 98"), 0);
	assert_int_equal(number("SELECT count(*) FROM label_history WHERE process_id NOT IN (98, 99)"), 1);
	assert_int_equal(number("SELECT count(*) FROM label_history WHERE process_id = 98"), 1);
	assert_int_equal(number("SELECT count(*) FROM label_history WHERE process_id = 99"), 0);
}

/* --- the work of a step -------------------------------------------------------------------- */

#define ROWS_OF(columns, values)                                                                             \
	"INSERT INTO " columns " WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 50000) "   \
	"SELECT " values " FROM n;"

/* A step does not read all rows that stay. */
static void a_step_is_short(void **state)
{
	struct retention retention = { .trimming = true };
	int looks = 0;

	(void)state;
	run_sql(ROWS_OF(
		"waits_for_locks (query, start_ns, wait_ns, lock, refused, thread_id, process, database,"
		" holder, holder_query, holder_session, holder_process_id, holder_thread_id,"
		" holder_transaction)",
		"0, 1800000000000000000 + i, 1, 1, 0, 1, 1, '', 0, '', 0, 0, 0, 0")
	                ROWS_OF("transactions (process, number, session, thread_id, start_ns, duration_ns, "
	                        "write_ns,"
	                        " exclusive_ns, idle_ns, statements, outcome, waited_for, first, last, "
	                        "database,"
	                        " first_query, last_query)",
	                        "1, i, 1, 1, 1800000000000000000 + i, 1, 1, 1, 1, 1, 1, 1, 0, 0, '', '', ''")
	                        ROWS_OF("span_batches (trace_hi, trace_lo, parent, first_span, thread, "
	                                "start_ns, dropped, flags,"
	                                " lasted_ns, count, statements, spans)",
	                                "i, i, 0, i, 1, 1800000000000000000 + i, 0, 0, 0, 0, 0, '[]'"));
	put_samples(T0, 1000, 100, KEY(T0, 1));
	flush(0);
	assert_int_equal(apply(&retention, MB, 1), SQLITE_OK);
	assert_int_equal(number("SELECT count(*) FROM samples WHERE timestamp_ns < 1790000000000200000"), 0);
	assert_int_equal(number("SELECT count(*) FROM waits_for_locks"), 50000);
	for (size_t i = 0; i < writer.kept.count; i++)
		looks += sqlite3_stmt_status(writer.kept.items[i].statement, SQLITE_STMTSTATUS_FULLSCAN_STEP,
		                             0);
	assert_true(looks < 50000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_alone, end_alone)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(queries_without_a_record_go),
		TEST(queries_without_a_time_go),
		TEST(queries_that_go_on_are_no_obstacle),
		TEST(threads_of_spans_stay),
		TEST(processes_that_are_named_stay),
		TEST(numbers_of_waits_only_grow),
		TEST(sites_go_with_their_spans),
		TEST(sites_stay_with_their_spans),
		TEST(removed_programs_are_counted),
		TEST(label_sets_in_use_stay),
		TEST(a_step_is_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
