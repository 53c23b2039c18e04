/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creating trace files.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queryprof.h"
#include "store/file/database.h"
#include "store/file/file_image.h"
#include "store/file/schema.h"
#include "support.h"

#define MB (1 << 20)

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

/* A new file is a copy of the build's image. It has the tables that the schema's SQL makes, and its own
 * identity. */
static void new_file_has_the_schema(void **state)
{
	const struct database_limits limits = { .wal_bytes = MB };
	char *error = NULL, *wanted, *found, *identities[2];
	sqlite3 *model;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &model), SQLITE_OK);
	assert_int_equal(schema_make_tables(model), SQLITE_OK);
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

static sqlite3 *open_unread(const char *path)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	return db;
}

static bool is_untouched(const char *path)
{
	sqlite3 *db = open_unread(path);
	bool is_untouched = file_image_is_untouched(db);

	sqlite3_close(db);
	return is_untouched;
}

/* Changes a byte of the last page that SQLite does not read. `at`: from the file's end. */
static void change_byte(const char *path, long at, int byte)
{
	FILE *file = fopen(path, "r+");

	assert_non_null(file);
	assert_int_equal(fseek(file, at, SEEK_END), 0);
	assert_int_equal(fputc(byte, file), byte);
	assert_int_equal(fclose(file), 0);
}

/* A file is untouched until something is written, to the log or to the file. */
static void untouched_file_is_known(void **state)
{
	const struct database_limits limits = { .wal_bytes = MB };
	char path[512], *error = NULL;
	struct database database;
	bool is_made;

	(void)state;
	snprintf(path, sizeof(path), "%s", in_folder("untouched.db"));
	assert_int_equal(database_touch(path, &limits, &is_made, &error), QP_OK);
	assert_true(is_made);
	assert_true(is_untouched(path));
	/* Opening the file again changes nothing, and does not read the tables. */
	assert_int_equal(database_open(&database, path, &limits, &error), QP_OK);
	database_close(&database, true);
	assert_true(is_untouched(path));

	assert_int_equal(database_open(&database, path, &limits, &error), QP_OK);
	assert_int_equal(
		sqlite3_exec(database.db, "INSERT INTO losses VALUES (1, 'x', 0, 0, 0, 0)", NULL, NULL, NULL),
		SQLITE_OK);
	assert_false(is_untouched(path)); /* the row is in the log */
	database_close(&database, true);
	assert_false(is_untouched(path));

	snprintf(path, sizeof(path), "%s", in_folder("changed.db"));
	assert_int_equal(database_touch(path, &limits, &is_made, &error), QP_OK);
	assert_true(is_untouched(path));
	change_byte(path, -1, 'x');
	assert_false(is_untouched(path));
}

static int64_t number_of(sqlite3 *db, const char *sql)
{
	return database_number(db, sql, -1);
}

static void add_losses(sqlite3 *db, int count)
{
	char sql[200];

	snprintf(sql, sizeof(sql),
	         "WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t WHERE i < %d) INSERT INTO "
	         "losses "
	         "SELECT i + (SELECT count(*) FROM losses), 'x', 0, 0, 0, 0 FROM t",
	         count);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
}

static void check_content(const char *path, int64_t losses)
{
	sqlite3 *db = open_unread(path);
	sqlite3_stmt *check;

	assert_int_equal(number_of(db, "SELECT count(*) FROM losses"), losses);
	assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &check, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(check), SQLITE_ROW);
	assert_string_equal((const char *)sqlite3_column_text(check, 0), "ok");
	sqlite3_finalize(check);
	sqlite3_close(db);
}

/* A file in use is renamed, and a new one begins under its name, as log rotation does. */
static void renamed_file_keeps_its_rows(void **state)
{
	const struct database_limits limits = { .wal_bytes = MB };
	char path[512], renamed[512], *error = NULL;
	struct database first, second;

	(void)state;
	snprintf(path, sizeof(path), "%s", in_folder("rotated.db"));
	snprintf(renamed, sizeof(renamed), "%s", in_folder("renamed.db"));
	assert_int_equal(database_open(&first, path, &limits, &error), QP_OK);
	add_losses(first.db, 3000);
	assert_int_equal(rename(path, renamed), 0);
	/* Its log is still there. */
	assert_int_equal(database_open(&second, path, &limits, &error), QP_OK);
	assert_true(second.is_made);
	assert_int_equal(number_of(second.db, "SELECT count(*) FROM losses"), 0);
	add_losses(second.db, 10);
	/* The new file's log remains. */
	database_close(&first, true);
	add_losses(second.db, 10);
	check_content(path, 20);
	database_close(&second, true);
	check_content(path, 20);
	check_content(renamed, 3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(new_file_has_the_schema),
		TEST(untouched_file_is_known),
		TEST(renamed_file_keeps_its_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
