/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closed connections and pointers that are not connections, reused addresses of blobs and backups, two copies
 * of the library in one process.
 */
#include "host.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void load_too(sqlite3 *db, const char *path)
{
	char *error = NULL;

	sqlite3_enable_load_extension(db, 1);
	if (sqlite3_load_extension(db, path, "sqlite3_queryprof_init", &error))
		fail_msg("%s", error);
}

/* --- memory at chosen addresses ----------------------------------------------------- */

static sqlite3_mem_methods usual;
static char *chosen; /* address of the next connection; NULL: any */
static char *arena;
#define ARENA_BYTES ((size_t)64 << 20)
#define CONNECTION_BYTES 400 /* at least */
#define CHOSEN_BYTES 16384

static bool is_chosen(const void *memory)
{
	return (const char *)memory >= arena && (const char *)memory < arena + ARENA_BYTES;
}

static int least = CONNECTION_BYTES; /* smaller allocations are not put there */
static size_t step;                  /* distance to the next address; 0: no next one */

static void *chosen_malloc(int size)
{
	void *memory = chosen;

	if (!memory || size < least || size > CHOSEN_BYTES)
		return usual.xMalloc(size);
	chosen = step ? chosen + step : NULL;
	return memory;
}

/* Overwrites the freed memory, so that a use after free fails immediately. */
static void chosen_free(void *memory)
{
	if (is_chosen(memory))
		memset(memory, 0xAA, CHOSEN_BYTES);
	else
		usual.xFree(memory);
}

static int chosen_size(void *memory)
{
	return is_chosen(memory) ? CHOSEN_BYTES : usual.xSize(memory);
}

static void *chosen_realloc(void *memory, int size)
{
	if (!is_chosen(memory))
		return usual.xRealloc(memory, size);
	return size <= CHOSEN_BYTES ? memory : NULL;
}

static void choose_addresses(void)
{
	sqlite3_mem_methods methods;

	arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sqlite3_config(SQLITE_CONFIG_GETMALLOC, &usual);
	methods = usual;
	methods.xMalloc = chosen_malloc;
	methods.xFree = chosen_free;
	methods.xSize = chosen_size;
	methods.xRealloc = chosen_realloc;
	sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
}

/* Returns an address that has slot 0 in a table of 65,536 slots, whose hash is a multiplication. NULL has
 * slot 0, too. */
static char *address_of_first_slot(void)
{
	for (char *at = arena; at < arena + ARENA_BYTES - CHOSEN_BYTES; at += 16)
		if (((uintptr_t)at * 0x9E3779B97F4A7C15ull >> 40 & 65535) == 0)
			return at;
	return NULL;
}

/* SQLite accepts NULL in these calls, or returns SQLITE_MISUSE. */
static void test_no_connection(void **state)
{
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db;

	(void)state;
	for (int i = 0; i < 3; i++) {
		chosen = address_of_first_slot();
		assert_non_null(chosen);
		db = host_open("");
		assert_true(is_chosen(db));
		host_exec(db, "SELECT 1");
		assert_int_equal(sqlite3_close(db), SQLITE_OK);
		assert_int_equal(sqlite3_close(NULL), SQLITE_OK);
		assert_int_equal(sqlite3_close_v2(NULL), SQLITE_OK);
		assert_int_equal(sqlite3_prepare_v2(NULL, "SELECT 1", -1, &stmt, NULL), SQLITE_MISUSE);
		assert_int_equal(sqlite3_prepare_v2(NULL, "PRAGMA query_id", -1, &stmt, NULL), SQLITE_MISUSE);
		assert_int_equal(sqlite3_exec(NULL, "SELECT 1", NULL, NULL, NULL), SQLITE_MISUSE);
		assert_int_equal(sqlite3_step(NULL), SQLITE_MISUSE);
		assert_int_equal(sqlite3_reset(NULL), SQLITE_OK);
		assert_int_equal(sqlite3_finalize(NULL), SQLITE_OK);
		assert_int_equal(sqlite3_blob_close(NULL), SQLITE_OK);
		assert_int_equal(sqlite3_backup_finish(NULL), SQLITE_OK);
	}
}

/* SQLite recognises a closed connection by its state, and reads nothing else of it. */
static void test_closed_connection(void **state)
{
	sqlite3_stmt *stmt = NULL;
	sqlite3_int64 used;
	sqlite3 *db;

	(void)state;
	chosen = arena;
	db = host_open("");
	assert_true(is_chosen(db));
	host_exec(db, "SELECT 1");
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	used = sqlite3_memory_used();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sqlite3_prepare_v2(db, "SELECT 1", -1, &stmt, NULL), SQLITE_MISUSE);
		assert_int_equal(sqlite3_exec(db, "SELECT 1", NULL, NULL, NULL), SQLITE_MISUSE);
		assert_int_equal(sqlite3_close(db), SQLITE_MISUSE);
		assert_int_equal(sqlite3_close_v2(db), SQLITE_MISUSE);
	}
	assert_int_equal(sqlite3_memory_used(), used);
}

/* --- blobs ------------------------------------------------------------------------------ */

#define ROUNDS 1500

/* Frees its blob in one thread while the other opens a blob in the same memory. */
static void *open_and_close(void *unused)
{
	sqlite3 *db = host_open("");
	char byte = 0;

	(void)unused;

	host_exec(db, "CREATE TABLE b(x); INSERT INTO b VALUES (zeroblob(100)), (zeroblob(200))");
	for (int i = 0; i < ROUNDS; i++) {
		sqlite3_blob *blob;

		assert_int_equal(sqlite3_blob_open(db, "main", "b", "x", 1 + i % 2, 1, &blob), SQLITE_OK);
		assert_int_equal(sqlite3_blob_write(blob, &byte, 1, i % 100), SQLITE_OK);
		assert_int_equal(sqlite3_blob_read(blob, &byte, 1, i % 100), SQLITE_OK);
		if (i % 5 == 0)
			assert_int_equal(sqlite3_blob_reopen(blob, 99), SQLITE_ERROR);
		else if (i % 5 == 1)
			assert_int_equal(sqlite3_blob_reopen(blob, 1), SQLITE_OK);
		sqlite3_blob_close(blob);
	}
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	return NULL;
}

static void test_addresses_used_again(void **state)
{
	pthread_t threads[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, NULL), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

static int note_statement(void *statement, int count, char **values, char **names)
{
	(void)count, (void)values, (void)names;
	*(char **)statement = (char *)sqlite3_next_stmt(*(sqlite3 **)statement, NULL);
	return 0;
}

/* sqlite3_exec() frees its statement without calling sqlite3_finalize(). */
static void test_backup_at_a_statement(void **state)
{
	sqlite3 *from = host_open(""), *to = host_open(""), *observer;
	void *statement = from;
	sqlite3_backup *backup;

	(void)state;
	host_exec(from, "CREATE TABLE t(x)");
	sqlite3_db_config(from, SQLITE_DBCONFIG_LOOKASIDE, NULL, 0, 0);
	chosen = arena;
	least = 1;
	step = CHOSEN_BYTES;
	assert_int_equal(sqlite3_exec(from, "SELECT 1", note_statement, &statement, NULL), SQLITE_OK);
	assert_true(is_chosen(statement));
	chosen = statement;
	step = 0;
	backup = sqlite3_backup_init(to, "main", from, "main");
	least = CONNECTION_BYTES;
	assert_ptr_equal(backup, statement);
	assert_int_equal(sqlite3_backup_step(backup, -1), SQLITE_DONE);
	assert_int_equal(sqlite3_backup_finish(backup), SQLITE_OK);
	sqlite3_close(to);
	sqlite3_close(from);
	observer = host_open("");
	load_too(observer, host_library());
	assert_int_equal(host_int(observer, "SELECT count(*) FROM system.query_log WHERE query = "
	                                    "'sqlite3_backup_step(main)'"),
	                 1);
	sqlite3_close(observer);
}

/* --- two libraries ----------------------------------------------------------------------- */

static void test_two_copies(void **state)
{
	char copy[128], command[512];

	(void)state;
	snprintf(copy, sizeof(copy), "%s/libother.so", host_directory());
	snprintf(command, sizeof(command), "cp -L '%s' '%s'", host_library(), copy);
	assert_int_equal(system(command), 0);
	for (int i = 0; i < 20; i++) {
		sqlite3 *db = host_open("");

		load_too(db, i % 2 ? copy : host_library());
		host_exec(db, "SELECT 1");
		load_too(db, i % 2 ? host_library() : copy);
		host_exec(db, "CREATE TABLE t(x); INSERT INTO t VALUES (1), (2); SELECT * FROM t");
		if (i % 3 == 0)
			load_too(db, copy);
		assert_int_equal(host_int(db, "SELECT count(*) FROM t"), 2);
		assert_int_equal(sqlite3_close(db), SQLITE_OK);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_connection),        cmocka_unit_test(test_closed_connection),
		cmocka_unit_test(test_addresses_used_again), cmocka_unit_test(test_backup_at_a_statement),
		cmocka_unit_test(test_two_copies),
	};

	choose_addresses();
	host_begin(argv[1]);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return host_end(cmocka_run_group_tests(tests, NULL, NULL));
}
