/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several trace files at once: others are read while the store writes its own, each reader
 * sees its own file, and none of them is changed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queryprof.h"
#include "store/file/database.h"
#include "support.h"

#define KEY ((struct query_key){ 7, 7 })
#define MB (1 << 20)

/* A finished trace file with so many samples. */
static void make_file(const char *name, size_t samples)
{
	start_store(in_folder(name), 0);
	put_samples(T0, samples, 5, KEY);
	stop_store();
}

static struct store_file *open_file(const char *name)
{
	char *error;
	struct store_file *file = store_file_open(in_folder(name), &error);

	if (!file)
		fail_msg("%s: %s", name, error);
	return file;
}

static struct store_cursor *select_from(struct store_file *file, const char *sql)
{
	char *error;
	struct store_cursor *cursor = store_select(file, sql, NULL, &error);

	if (!cursor)
		fail_msg("%s: %s", sql, error);
	return cursor;
}

static int64_t count_in(struct store_file *file)
{
	struct store_cursor *cursor = select_from(file, "SELECT count(*) FROM trace_log");
	int64_t count;

	assert_int_equal(store_step(cursor), 1);
	count = store_column_int64(cursor, 0);
	store_close(cursor);
	return count;
}

static void files_are_read_beside_each_other(void **state)
{
	struct store_cursor *cursors[3];
	struct store_file *files[3] = { store_file_own() };
	int rows[3] = { 0 };

	(void)state;
	make_file("a.db", 300);
	make_file("b.db", 700);
	start_store(trace_path, 0);
	put_samples(T0, 1000, 5, KEY);
	drain();
	files[1] = open_file("a.db");
	files[2] = open_file("b.db");
	for (int i = 0; i < 3; i++)
		cursors[i] = select_from(files[i], "SELECT timestamp_ns FROM trace_log");
	/* Row by row in turns, while the store goes on writing: each cursor's first step begins what
	 * it sees. */
	for (int row = 0; row < 1001; row++) {
		for (int i = 0; i < 3; i++)
			rows[i] += store_step(cursors[i]) == 1;
		if (row % 100 == 0)
			put_samples(T0 + 1000000 + (uint64_t)row * 1000, 100, 5, KEY);
	}
	assert_int_equal(rows[0], 1000);
	assert_int_equal(rows[1], 300);
	assert_int_equal(rows[2], 700);
	for (int i = 0; i < 3; i++)
		store_close(cursors[i]);
	drain();
	assert_int_equal(count_in(files[0]), 2100);
	assert_int_equal(count_in(files[1]), 300);
	store_file_close(files[1]);
	assert_int_equal(count_in(files[2]), 700);
	store_file_close(files[2]);
}

/* Under its name, as any other. */
static void own_file_is_opened_like_others(void **state)
{
	struct store_file *file;

	(void)state;
	start_store(trace_path, 0);
	put_samples(T0, 100, 5, KEY);
	drain();
	file = open_file("x.db");
	put_samples(T0 + 1000000, 100, 5, KEY);
	drain();
	assert_int_equal(count_in(file), 200);
	/* And stays readable when the store writes to another. */
	configure_store(in_folder("y.db"), 0);
	put_samples(T0 + 2000000, 50, 5, KEY);
	drain();
	assert_int_equal(count_in(file), 200);
	assert_int_equal(count_in(store_file_own()), 50);
	store_file_close(file);
}

static void older_file_is_read_as_it_is(void **state)
{
	struct store_file *file;
	struct stat before, after;

	(void)state;
	ask_file(in_folder("old.db"), ".read " SCHEMA_1);
	ask_file(in_folder("old.db"), "PRAGMA application_id = 1364218438; PRAGMA user_version = 1;");
	assert_int_equal(stat(in_folder("old.db"), &before), 0);
	start_store(trace_path, 0);
	file = open_file("old.db");
	assert_int_equal(count_in(file), 0);
	store_close(select_from(file, "SELECT library_path FROM query_log"));
	store_file_close(file);
	stop_store();
	assert_int_equal(stat(in_folder("old.db"), &after), 0);
	assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
	assert_string_equal(ask_file(in_folder("old.db"), "PRAGMA user_version"), "1");
}

static void assert_refused(const char *name, const char *word)
{
	char *error = NULL;

	assert_null(store_file_open(in_folder(name), &error));
	if (!error || !strstr(error, word) || !strstr(error, name))
		fail_msg("%s: %s", name, error);
	free(error);
}

static void what_is_no_trace_file_is_refused(void **state)
{
	(void)state;
	make_file("newer.db", 1);
	ask_file(in_folder("newer.db"), "PRAGMA user_version = 1000");
	ask_file(in_folder("foreign.db"), "CREATE TABLE t (a)");
	start_store(trace_path, 0);
	assert_refused("missing.db", "No such file");
	assert_refused("foreign.db", "not a trace file");
	assert_refused("newer.db", "newer");
	assert_int_equal(access(in_folder("missing.db"), F_OK), -1);
}

#define SCHEMA                                                                                               \
	"SELECT group_concat(type || ' ' || name || ' ' || tbl_name || ' ' || coalesce(sql, ''), x'0a')"     \
	" FROM (SELECT * FROM sqlite_schema ORDER BY type, name)"

static char *text_in(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement;
	char *text;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	text = strdup((const char *)sqlite3_column_text(statement, 0));
	sqlite3_finalize(statement);
	return text;
}

/* A new file is a copy of the build's image: it has what the schema's SQL makes, and an identity of its own.
 */
static void new_file_has_the_schema(void **state)
{
	const struct database_limits limits = { .wal_bytes = MB };
	char *error = NULL, *wanted, *found, *identities[2];
	sqlite3 *model;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &model), SQLITE_OK);
	assert_int_equal(database_make_tables(model), SQLITE_OK);
	wanted = text_in(model, SCHEMA);
	for (int i = 0; i < 2; i++) {
		struct database made;

		assert_int_equal(
			database_open(&made, in_folder(i ? "made_2.db" : "made_1.db"), &limits, &error),
			QP_OK);
		assert_true(made.is_made);
		found = text_in(made.db, SCHEMA);
		assert_string_equal(found, wanted);
		free(found);
		identities[i] = text_in(made.db, "SELECT identity FROM state");
		found = text_in(made.db, "SELECT (SELECT * FROM pragma_integrity_check) || ' ' ||"
		                         " (SELECT * FROM pragma_journal_mode)");
		assert_string_equal(found, "ok wal");
		free(found);
		database_close(&made, true);
	}
	assert_string_not_equal(identities[0], identities[1]);
	free(identities[0]);
	free(identities[1]);
	free(wanted);
	sqlite3_close(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(files_are_read_beside_each_other), TEST(new_file_has_the_schema),
		TEST(own_file_is_opened_like_others),   TEST(older_file_is_read_as_it_is),
		TEST(what_is_no_trace_file_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
