/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two SQLite libraries in one process have connections at the same address. The library does not see the
 * close of the first connection, and must not mistake the second for it.
 */
#include "host.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* The functions of a library, looked up in its own file. */
static struct library {
	__typeof__(&sqlite3_config) config;
	__typeof__(&sqlite3_open) open;
	__typeof__(&sqlite3_exec) exec;
	__typeof__(&sqlite3_close) close;
	sqlite3_mem_methods usual;
} first, second;

static void find_functions(struct library *library, void *handle)
{
	*(void **)&library->config = dlsym(handle, "sqlite3_config");
	*(void **)&library->open = dlsym(handle, "sqlite3_open");
	*(void **)&library->exec = dlsym(handle, "sqlite3_exec");
	*(void **)&library->close = dlsym(handle, "sqlite3_close");
}

/* --- one address ------------------------------------------------------------------------- */

#define PLACE_BYTES 16384
#define CONNECTION_BYTES 400 /* at least */

static char place[PLACE_BYTES] __attribute__((aligned(64)));
static int is_wanted; /* whether the next connection is put there */

static void *place_malloc(const sqlite3_mem_methods *usual, int size)
{
	if (!is_wanted || size < CONNECTION_BYTES)
		return usual->xMalloc(size);
	is_wanted = 0;
	return place;
}

static void place_free(const sqlite3_mem_methods *usual, void *memory)
{
	if (memory != place)
		usual->xFree(memory);
}

static int place_size(const sqlite3_mem_methods *usual, void *memory)
{
	return memory == place ? PLACE_BYTES : usual->xSize(memory);
}

/* SQLite does not pass the library to its memory methods, so each library has methods of its own. */
#define METHODS(library)                                                                                     \
	static void *library##_malloc(int size)                                                              \
	{                                                                                                    \
		return place_malloc(&library.usual, size);                                                   \
	}                                                                                                    \
	static void library##_free(void *memory)                                                             \
	{                                                                                                    \
		place_free(&library.usual, memory);                                                          \
	}                                                                                                    \
	static int library##_size(void *memory)                                                              \
	{                                                                                                    \
		return place_size(&library.usual, memory);                                                   \
	}
METHODS(first)
METHODS(second)

static int choose_place(struct library *library, void *(*get)(int), void (*free)(void *), int (*size)(void *))
{
	sqlite3_mem_methods methods;

	if (library->config(SQLITE_CONFIG_GETMALLOC, &library->usual))
		return -1;
	methods = library->usual;
	methods.xMalloc = get;
	methods.xFree = free;
	methods.xSize = size;
	return library->config(SQLITE_CONFIG_MALLOC, &methods);
}

static sqlite3 *open_there(const struct library *library)
{
	sqlite3 *db;

	is_wanted = 1;
	assert_int_equal(library->open(":memory:", &db), SQLITE_OK);
	assert_ptr_equal(db, place);
	return db;
}

/* --- the two libraries -------------------------------------------------------------------------- */

/* Loads a copy of the file with RTLD_DEEPBIND. */
static void *load_second(void)
{
	char path[128], command[512];
	Dl_info system_library;

	assert_true(dladdr((const void *)first.open, &system_library));
	snprintf(path, sizeof(path), "%s/libsecond.so", host_directory());
	snprintf(command, sizeof(command), "cp -L '%s' '%s'", system_library.dli_fname, path);
	assert_int_equal(system(command), 0);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
}

static void load(sqlite3 *db)
{
	char *error = NULL;

	sqlite3_enable_load_extension(db, 1);
	if (sqlite3_load_extension(db, host_library(), "sqlite3_queryprof_init", &error))
		fail_msg("%s", error);
}

static void test_one_address(void **state)
{
	void *handle = load_second();
	sqlite3 *observer = host_open(""), *db;
	int (*record)(void);

	(void)state;
	assert_non_null(handle);
	*(void **)&record = dlsym(dlopen(host_library(), RTLD_NOW | RTLD_NOLOAD), "qp_record");
	find_functions(&second, handle);
	assert_int_equal(choose_place(&second, second_malloc, second_free, second_size), SQLITE_OK);
	assert_int_equal(second.open(":memory:", &db), SQLITE_OK); /* the first open allocates more */
	assert_int_equal(second.close(db), SQLITE_OK);
	assert_int_equal(record(), 0);
	find_functions(&second, handle);

	db = open_there(&first);
	host_exec(db, "SELECT 'of the first'");
	assert_int_equal(first.close(db), SQLITE_OK); /* bypasses the library */
	db = open_there(&second);
	assert_int_equal(second.exec(db, "SELECT 'of the second'", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(second.close(db), SQLITE_OK);

	load(observer);
	assert_int_equal(host_int(observer, "SELECT count(DISTINCT session_id) FROM system.query_log"
	                                    " WHERE query GLOB 'SELECT ''of the *'"),
	                 2);
	assert_int_equal(sqlite3_close(observer), SQLITE_OK);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_one_address) };

	/* Before the library replaces the results of dlsym(). */
	find_functions(&first, RTLD_DEFAULT);
	if (choose_place(&first, first_malloc, first_free, first_size))
		return 2;
	host_begin(argc > 1 ? argv[1] : "recorded");
	return host_end(cmocka_run_group_tests(tests, NULL, NULL));
}
