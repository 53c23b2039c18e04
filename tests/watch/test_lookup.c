/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym(RTLD_DEFAULT) gives each object the same function as without the library. A module loaded with
 * RTLD_DEEPBIND gets the function of its own libraries. The program gets the function that the library
 * observes.
 */
#include "host.h"

#include <dlfcn.h>
#include <string.h>

static const char *object_of(const void *function)
{
	Dl_info place;

	assert_true(dladdr(function, &place));
	return place.dli_fname;
}

static void test_module(void **state)
{
	void *module = dlopen(DEEP_MODULE, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	void *(*find_step)(void), *(*own_step)(void);
	sqlite3 *db = host_open("");

	(void)state;
	assert_non_null(module);
	*(void **)&find_step = dlsym(module, "find_step");
	*(void **)&own_step = dlsym(module, "own_step");
	host_exec(db, "SELECT 1"); /* the library hooks the module during this query */
	assert_ptr_equal(find_step(), own_step());
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void test_program(void **state)
{
	void *found = dlsym(RTLD_DEFAULT, "sqlite3_step");

	(void)state;
	assert_non_null(found);
	assert_non_null(strstr(object_of(found), "queryprof"));
	assert_null(dlerror());
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_module),
		cmocka_unit_test(test_program),
	};

	host_begin(argc > 1 ? argv[1] : "loaded");
	return host_end(cmocka_run_group_tests(tests, NULL, NULL));
}
