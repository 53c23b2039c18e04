/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single steps through code that has no unwind information and keeps frame pointers, as bun and deno:
 * test_tableless LIBRARY...
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>

#include "modules/modules.h"
#include "step.h"

static char **libraries;

static void work(void *argument)
{
	void (*function)(int);

	*(void **)&function = argument;
	function(18);
}

static void test_tableless(void **state)
{
	(void)state;
	for (char **library = libraries; *library; library++) {
		void *handle = dlopen(*library, RTLD_NOW);
		struct step_result result;

		if (!handle)
			fail_msg("%s", dlerror());
		modules_refresh(false);
		step_run(*library, work, dlsym(handle, "tableless_work"), &result);
		printf("%s: %lu steps, %lu exact, %lu incomplete, %lu wrong\n", *library,
		       (unsigned long)result.steps, (unsigned long)result.exact,
		       (unsigned long)result.incomplete, (unsigned long)result.wrong);
		assert_true(result.steps > 1000);
		assert_int_equal(result.memo_differs, 0);
		assert_int_equal(result.wrong, 0);
		assert_true(result.exact >= result.steps / 100 * 99);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_tableless) };

	(void)argc;
	libraries = argv + 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
