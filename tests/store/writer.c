/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer alone: its memory of the file between batches, in one file and in several, and after errors.
 */
#include "alone.h"

#include <stdlib.h>
#include <string.h>

#include "query/statement_stats.h"
#include "store/write/losses.h"
#include "store/write/queries.h"

/* --- known queries -------------------------------------------------------------------------- */

#define SPAN_OF_HOST                                                                                         \
	"SELECT query_id FROM span_log WHERE start_time_ns = (SELECT max(start_time_ns) FROM span_log)"

/* The host named its query, so the file does not contain the query's key. The trace ends later. */
static void late_spans_find_their_query(void **state)
{
	const uint64_t at_ns = T0 + HOUR;

	(void)state;
	for (uint64_t i = 0; i < 3000; i++)
		put_run(T0 + i * 1000000, KEY(T0, i), NULL);
	put_run(at_ns, KEY(at_ns, 1), "the host's");
	flush(0);
	trim(MB);
	assert_true(number("SELECT min(id) FROM queries WHERE id > 0") > 100);
	/* Memory and file have the same queries. */
	assert_int_equal(writer.queries->known.count, number("SELECT count(*) FROM queries WHERE id > 0"));
	put_run_span(at_ns, 7, KEY(at_ns, 1), 1);
	flush(0);
	assert_text(SPAN_OF_HOST, "the host's");
	/* A removed query comes back as another row. */
	put_run_span(at_ns + 1, 7, KEY(T0, 5), 1);
	flush(0);
	assert_int_equal(number("SELECT q.id = (SELECT max(id) FROM queries) FROM span_rows AS r JOIN queries"
	                        " AS q ON q.id = r.query ORDER BY r.start_ns DESC"),
	                 1);
}

/* All rows were removed, and their numbers are reused. */
static void numbers_that_come_again_are_others(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		put_run(T0, KEY(T0, i), "an old one");
	flush(0);
	run_sql("INSERT INTO names WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 10000)"
	        " SELECT i, printf('%0100d', i) FROM n");
	trim(512 * KB);
	assert_int_equal(number("SELECT max(id) FROM queries"), 0);
	for (uint64_t i = 10; i < 13; i++)
		put_run(T0 + HOUR, KEY(T0, i), "a new one");
	flush(0);
	put_run_span(T0 + HOUR + 1, 7, KEY(T0, 1), 1);
	flush(0);
	assert_int_equal(number("SELECT q.query_id = 'a new one' FROM span_rows AS r JOIN queries AS q"
	                        " ON q.id = r.query"),
	                 0);
}

/* Many other queries come in between. */
static void a_query_is_known_after_many_others(void **state)
{
	const uint64_t others = 65530;

	(void)state;
	for (uint64_t i = 0; i < others + 20; i++) {
		if (i == others)
			put_run(T0 + HOUR, KEY(T0 + HOUR, 1), "the host's");
		put_samples(T0 + i * 1000, 1, 1, KEY(T0, 10 + i));
		if (i % 10000 == 0 || i >= others)
			flush(0);
	}
	put_run_span(T0 + HOUR, 7, KEY(T0 + HOUR, 1), 1);
	flush(0);
	assert_text(SPAN_OF_HOST, "the host's");
}

/* --- losses in several files ---------------------------------------------------------------- */

#define LOSSES "SELECT sum(samples) || '|' || sum(refusals) FROM losses JOIN processes ON id = process"

static void losses_are_in_one_file_each(void **state)
{
	static struct losses losses;

	(void)state;
	losses_note(&losses, "a", 5, 0);
	losses_note(&losses, "b", 0, 2);
	assert_int_equal(writer_store_losses(&writer, &losses), SQLITE_OK);
	losses_note(&losses, "a", 1, 0);
	assert_int_equal(writer_store_losses(&writer, &losses), SQLITE_OK);
	assert_text(LOSSES, "6|2");
	losses_note(&losses, "a", 3, 0); /* while there is no file */
	change_file(in_folder("y.db"));
	run_sql("INSERT INTO processes (id, hostname, process_id, start_time_ns, executable)"
	        " VALUES (1, 'another', 1, 1, 'x')");
	assert_int_equal(writer_store_losses(&writer, &losses), SQLITE_OK);
	assert_text(LOSSES " AND hostname <> 'another'", "3|0");
	losses_note(&losses, "b", 0, 1);
	losses_note(&losses, "a", 1, 0);
	assert_int_equal(writer_store_losses(&writer, &losses), SQLITE_OK);
	assert_text(LOSSES, "4|1");
	assert_int_equal(number("SELECT count(*) FROM losses WHERE first_ns > last_ns"), 0);
	assert_false(losses_are_pending(&losses));
	/* The first file again. */
	change_file(trace_path);
	losses_note(&losses, "a", 1, 0);
	assert_int_equal(writer_store_losses(&writer, &losses), SQLITE_OK);
	assert_text(LOSSES, "7|2");
}

/* --- errors --------------------------------------------------------------------------------- */

static bool is_other_added;

static void see_row(void *unused, int what, const char *database, const char *table, sqlite3_int64 row)
{
	(void)unused, (void)database, (void)row;
	is_other_added |= what == SQLITE_INSERT && !strcmp(table, "statements");
}

static int refuse_other(void *unused)
{
	(void)unused;
	return is_other_added;
}

/* The file has almost only counters of statements, and the commit of the merged counters fails. */
static void failed_halving_leaves_nothing_behind(void **state)
{
	struct retention retention = { .trimming = true };
	char *failure;

	(void)state;
	put_run(T0, KEY(T0, 0), NULL);
	flush(0);
	run_sql("INSERT INTO statements (id, hash, normalized_query_hash, is_cut, query) WITH n(i) AS"
	        " (VALUES (1000) UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
	        " SELECT i, i, i, 0, printf('SELECT %0100d', i) FROM n;"
	        "INSERT INTO statement_counters (normalized_query_hash, database, program, statement, calls)"
	        " SELECT id, '', 'x', id, 1 FROM statements WHERE id >= 1000");
	sqlite3_update_hook(writer.database.db, see_row, NULL);
	sqlite3_commit_hook(writer.database.db, refuse_other, NULL);
	assert_int_equal(apply(&retention, 512 * KB, 10) & 0xff, SQLITE_CONSTRAINT);
	failure = writer_failure(&writer);
	if (!strstr(failure, "constraint"))
		fail_msg("%s", failure);
	free(failure);
	sqlite3_commit_hook(writer.database.db, NULL, NULL);
	/* Now another row has the number that "(other)" would have had. */
	statement_stats_set_max(100);
	put_run(T0, KEY(T0, 1), NULL);
	flush(0);
	statement_stats_set_max(STATEMENTS_MAX_DEFAULT);
	assert_text("SELECT query FROM statement_stats WHERE normalized_query_hash = 0", "(other)");
}

/* Interrupts the writer while it looks for a free time. */
static int stop_at_look(unsigned event, void *unused, void *statement, void *text)
{
	(void)event, (void)unused, (void)text;
	if (strstr(sqlite3_sql(statement), "max(timestamp_ns) FROM samples WHERE timestamp_ns >="))
		sqlite3_interrupt(writer.database.db);
	return 0;
}

static void an_error_is_no_time(void **state)
{
	struct writer_result result;

	(void)state;
	put_samples(T0, 1, 1, KEY(T0, 1));
	flush(0);
	put_samples(T0, 1, 1, KEY(T0, 1));
	sqlite3_trace_v2(writer.database.db, SQLITE_TRACE_STMT, stop_at_look, NULL);
	assert_int_equal(writer_store(&writer, ring, WRITER_BATCH, MB, &result), SQLITE_INTERRUPT);
	sqlite3_trace_v2(writer.database.db, 0, NULL, NULL);
	assert_int_equal(number("SELECT min(timestamp_ns) FROM samples"), T0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_alone, end_alone)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(late_spans_find_their_query),          TEST(numbers_that_come_again_are_others),
		TEST(a_query_is_known_after_many_others),   TEST(losses_are_in_one_file_each),
		TEST(failed_halving_leaves_nothing_behind), TEST(an_error_is_no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
