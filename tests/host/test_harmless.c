/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host cannot notice the profiler in its files, schema or locks.
 */
#include "host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_file(const char *path, long *size)
{
	FILE *file = fopen(path, "rb");
	char *bytes;

	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	*size = ftell(file);
	rewind(file);
	bytes = malloc((size_t)*size + 1);
	assert_int_equal(fread(bytes, 1, (size_t)*size, file), *size);
	fclose(file);
	return bytes;
}

static void test_database_untouched(void **state)
{
	char path[128], *before, *after, *schema;
	long before_size, after_size;
	sqlite3 *db;

	(void)state;
	snprintf(path, sizeof(path), "%s/untouched.db", host_directory());
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	host_exec(db, "CREATE TABLE t(x); INSERT INTO t VALUES (1), (2), (3)");
	host_close(db);
	before = read_file(path, &before_size);

	db = host_open(path);
	host_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = 1000000;"
	              "PRAGMA system.query_profiler_real_time_period_ns = 1000000;"
	              "UPDATE system.settings SET value = 2000000 WHERE name = "
	              "'query_profiler_cpu_time_period_ns'");
	host_burn(db, 300000000, "untouched");
	assert_true(host_int(db, "SELECT count(*) FROM trace_log") > 0);
	schema = host_text(db, "SELECT group_concat(name) FROM main.sqlite_schema");
	assert_string_equal(schema, "t");
	free(schema);
	schema = host_text(db, "SELECT group_concat(name) FROM pragma_database_list");
	assert_string_equal(schema, "main,system");
	assert_int_equal(host_int(db, "SELECT count(*) FROM temp.sqlite_schema"), 0);
	assert_int_equal(sqlite3_txn_state(db, "main"), SQLITE_TXN_NONE);
	host_close(db);

	after = read_file(path, &after_size);
	assert_int_equal(before_size, after_size);
	assert_memory_equal(before, after, before_size);
	free(before);
	free(after);
	free(schema);
}

/* A connection that writes all the time never waits for a lock of queryprof. */
struct writer {
	const char *path;
	int stop, busy, written;
};

static void *keep_writing(void *context)
{
	struct writer *writer = context;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(writer->path, &db), SQLITE_OK);
	host_exec(db, "PRAGMA synchronous = OFF");
	while (!__atomic_load_n(&writer->stop, __ATOMIC_RELAXED)) {
		int rc = sqlite3_exec(db, "BEGIN IMMEDIATE; INSERT INTO t VALUES (1); COMMIT", NULL, NULL,
		                      NULL);

		if (rc == SQLITE_BUSY)
			writer->busy++;
		else if (rc == SQLITE_OK)
			__atomic_add_fetch(&writer->written, 1, __ATOMIC_RELAXED);
		if (rc && !sqlite3_get_autocommit(db))
			sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	}
	host_close(db);
	return NULL;
}

static void check_writer(const char *journal_mode)
{
	char path[128];
	struct writer writer = { .path = path };
	pthread_t thread;
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/writer-%s.db", host_directory(), journal_mode);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	host_exec(db, "PRAGMA journal_mode = %s; CREATE TABLE t(x)", journal_mode);
	assert_int_equal(pthread_create(&thread, NULL, keep_writing, &writer), 0);
	/* load, configure, profile, read the results: none of these accesses the file */
	host_load(db);
	host_exec(db, "PRAGMA query_profiler_cpu_time_period_ns = 1000000;"
	              "PRAGMA query_profiler_real_time_period_ns = 1000000");
	host_burn(db, 500000000, "beside a writer");
	for (int i = 0; i < 20; i++) {
		host_int(db, "SELECT count(*) FROM trace_log WHERE trace_type = 'CPU'");
		host_int(db, "SELECT count(*) FROM query_log");
		host_exec(db, "UPDATE system.settings SET value = 1000000 WHERE name = "
		              "'query_profiler_cpu_time_period_ns'");
	}
	while (__atomic_load_n(&writer.written, __ATOMIC_RELAXED) < 100)
		;
	__atomic_store_n(&writer.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	printf("%s: %d transactions beside the profile, %d SQLITE_BUSY\n", journal_mode, writer.written,
	       writer.busy);
	assert_int_equal(writer.busy, 0);
	host_close(db);
}

static void test_writer_wal(void **state)
{
	(void)state;
	check_writer("wal");
}

static void test_writer_delete(void **state)
{
	(void)state;
	check_writer("delete");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_database_untouched),
		cmocka_unit_test(test_writer_wal),
		cmocka_unit_test(test_writer_delete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
