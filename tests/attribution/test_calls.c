/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite's work outside of statements, and at the end of a statement.
 */
#include "../host/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char path[128];

static sqlite3 *open_file(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s.db", host_directory(), name);
	return host_open(path);
}

/* Writes about 40 MB, to the log if there is one. */
static void fill(sqlite3 *db)
{
	host_exec(db, "CREATE TABLE t(a, b); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c "
	              "WHERE x < 20000) "
	              "INSERT INTO t SELECT x, randomblob(2000) FROM c");
}

static void start(sqlite3 *db)
{
	host_exec(db, "PRAGMA trace_log_path = '%s.trace'", path);
	host_exec(db, "PRAGMA log_queries_min_query_duration_ns = 0;"
	              "PRAGMA query_profiler_cpu_time_period_ns = 100000; PRAGMA "
	              "query_profiler_real_time_period_ns = 100000");
}

/* There is one query with this text and result, and its samples are inside `function`. */
static void expect_samples(sqlite3 *db, const char *query, const char *function, const char *database,
                           int code)
{
	int64_t lines, samples, inside;

	host_quiet(db);
	lines = host_int(db,
	                 "SELECT count(*) FROM system.query_log WHERE query = '%s' AND exception_code = %d",
	                 query, code);
	samples = host_int(db,
	                   "SELECT count(*) FROM system.trace_log WHERE query_id = (SELECT query_id FROM "
	                   "system.query_log WHERE query = '%s' AND exception_code = %d)",
	                   query, code);
	inside = host_int(db,
	                  "SELECT count(*) FROM system.trace_log WHERE query_id = (SELECT query_id FROM "
	                  "system.query_log WHERE query = '%s' AND exception_code = %d) AND "
	                  "traceToText(trace) LIKE '%%%s%%'",
	                  query, code, function);
	printf("%s: %lld line, %lld samples, %lld of them in %s\n", query, (long long)lines,
	       (long long)samples, (long long)inside, function);
	assert_int_equal(lines, 1);
	assert_true(samples > 0);
	assert_true(inside >= samples - samples / 10); /* the others are in queryprof's code around it */
	assert_int_equal(
		host_int(db,
	                 "SELECT count(*) FROM system.query_log WHERE query = '%s' AND database = '%s' AND "
	                 "query_id = initial_query_id AND exception_code = %d AND samples_cpu + samples_real "
	                 "= %lld AND "
	                 "normalized_query_hash <> 0 AND prepare_time_ns = 0",
	                 query, database, code, (long long)samples),
		1);
}

static void test_backup(void **state)
{
	sqlite3 *db = open_file("backup"), *to;
	sqlite3_backup *backup;
	int rc;

	(void)state;
	fill(db);
	start(db);
	assert_int_equal(sqlite3_open(":memory:", &to), SQLITE_OK);
	backup = sqlite3_backup_init(to, "main", db, "main");
	assert_non_null(backup);
	do
		rc = sqlite3_backup_step(backup, 500);
	while (rc == SQLITE_OK);
	assert_int_equal(rc, SQLITE_DONE);
	assert_int_equal(sqlite3_backup_finish(backup), SQLITE_OK);
	expect_samples(db, "sqlite3_backup_step(main)", "queryprof_backup", path, 0);
	host_close(to);
	host_close(db);
}

static void test_blob(void **state)
{
	sqlite3 *db = open_file("blob");
	sqlite3_blob *blob;
	char *buffer = malloc(1 << 20);

	(void)state;
	host_exec(db, "CREATE TABLE docs(body); INSERT INTO docs VALUES (zeroblob(40000000))");
	start(db);
	assert_int_equal(sqlite3_blob_open(db, "main", "docs", "body", 1, 1, &blob), SQLITE_OK);
	memset(buffer, 1, 1 << 20);
	for (int at = 0; at + (1 << 20) < 40000000; at += 1 << 20)
		assert_int_equal(sqlite3_blob_write(blob, buffer, 1 << 20, at), SQLITE_OK);
	for (int at = 0; at + (1 << 20) < 40000000; at += 1 << 20)
		assert_int_equal(sqlite3_blob_read(blob, buffer, 1 << 20, at), SQLITE_OK);
	assert_int_equal(sqlite3_blob_reopen(blob, 1), SQLITE_OK);
	assert_int_equal(sqlite3_blob_close(blob), SQLITE_OK);
	assert_int_equal(sqlite3_blob_open(db, "main", "docs", "no column", 1, 1, &blob), SQLITE_ERROR);
	expect_samples(db, "sqlite3_blob_open(main.docs.body)", "queryprof_blob", path, 0);
	assert_int_equal(host_int(db, "SELECT exception_code FROM system.query_log WHERE query = "
	                              "'sqlite3_blob_open(main.docs.no column)'"),
	                 SQLITE_ERROR);
	host_close(db);
	free(buffer);
}

static void test_checkpoint(void **state)
{
	sqlite3 *db = open_file("checkpoint");

	(void)state;
	host_exec(db,
	          "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = NORMAL");
	fill(db);
	start(db);
	assert_int_equal(sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_FULL, NULL, NULL),
	                 SQLITE_OK);
	expect_samples(db, "sqlite3_wal_checkpoint_v2(main)", "sqlite3_wal_checkpoint_v2", path, 0);
	host_close(db);
}

/* An automatic checkpoint belongs to the statement at whose end it runs. */
static void test_automatic_checkpoint(void **state)
{
	sqlite3 *db = open_file("automatic");
	int64_t inside, other;

	(void)state;
	host_exec(db,
	          "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 1000; PRAGMA cache_size = -100000");
	start(db);
	host_exec(db, "BEGIN");
	fill(db);
	host_exec(db, "COMMIT");
	host_quiet(db);
	inside =
		host_int(db, "SELECT count(*) FROM system.trace_log WHERE traceToText(trace) LIKE "
	                     "'%%sqlite3_wal_checkpoint%%' "
	                     "AND query_id = (SELECT query_id FROM system.query_log WHERE query = 'COMMIT')");
	other = host_int(db,
	                 "SELECT count(*) FROM system.trace_log WHERE traceToText(trace) LIKE "
	                 "'%%sqlite3_wal_checkpoint%%' "
	                 "AND query_id <> (SELECT query_id FROM system.query_log WHERE query = 'COMMIT')");
	printf("COMMIT: %lld samples in its checkpoint, %lld elsewhere\n", (long long)inside,
	       (long long)other);
	assert_true(inside > 0);
	assert_int_equal(other, 0);
	assert_int_equal(
		host_int(db, "SELECT count(*) FROM system.query_log WHERE query LIKE 'sqlite3_wal%%'"), 0);
	host_close(db);
}

static void test_serialize(void **state)
{
	sqlite3 *db = open_file("serialize");
	sqlite3_int64 size = 0;

	(void)state;
	fill(db);
	start(db);
	sqlite3_free(sqlite3_serialize(db, "main", &size, 0));
	assert_true(size > 20000000);
	expect_samples(db, "sqlite3_serialize(main)", "sqlite3_serialize", path, 0);
	host_close(db);
}

/* The last connection that closes a WAL database checkpoints the log. */
static void test_close(void **state)
{
	sqlite3 *db = open_file("close"), *other;
	char closed[128];
	sqlite3_stmt *stmt;

	(void)state;
	strcpy(closed, path);
	host_exec(db,
	          "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = NORMAL");
	fill(db);
	start(db);
	/* A refused close has a row, as every failure has. */
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT 1", -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_BUSY);
	sqlite3_finalize(stmt);
	host_close(db);
	other = host_open(":memory:");
	expect_samples(other, "sqlite3_close()", "queryprof_close", closed, 0);
	assert_int_equal(host_int(other, "SELECT count(*) FROM system.query_log WHERE query = "
	                                 "'sqlite3_close()' AND exception_code = 5"),
	                 1);
	host_close(other);
}

/* If sqlite3_finalize() finishes a transaction, its work belongs to the finalized statement. */
static void test_reset_work(void **state)
{
	sqlite3 *db = open_file("reset");
	sqlite3_stmt *stmt;

	(void)state;
	fill(db);
	start(db);
	assert_int_equal(
		sqlite3_prepare_v2(db, "UPDATE t SET b = zeroblob(2001) RETURNING a", -1, &stmt, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	sqlite3_finalize(stmt); /* commits */
	host_quiet(db);
	assert_true(host_int(db, "SELECT count(*) FROM system.trace_log WHERE traceToText(trace) LIKE "
	                         "'%%queryprof_finalize%%' "
	                         "AND query_id = (SELECT query_id FROM system.query_log WHERE query LIKE "
	                         "'UPDATE t%%')") > 0);
	host_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_backup),     cmocka_unit_test(test_blob),
		cmocka_unit_test(test_checkpoint), cmocka_unit_test(test_automatic_checkpoint),
		cmocka_unit_test(test_serialize),  cmocka_unit_test(test_close),
		cmocka_unit_test(test_reset_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
