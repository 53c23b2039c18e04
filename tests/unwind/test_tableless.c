/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single steps through code without unwind information that keeps frame pointers, as bun and deno do:
 * test_tableless LIBRARY...
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>

#include "wire/record.h"
#include "handler/unwind/unwind.h"
#include "modules/modules.h"
#include "timers/registers.h"
#include "step.h"

static char **libraries;

static void work(void *argument)
{
	void (*function)(int);

	*(void **)&function = argument;
	function(18);
}

static struct unwind_result seen;
static uint64_t trace[STACK_FRAMES_MAX];

static void look(void)
{
	const struct unwind_stack unknown = { 0, 0 };
	ucontext_t context;

	registers_here(&context);
	seen = unwind_addresses(&context, &unknown, NULL, trace, STACK_FRAMES_MAX);
}

/* A trace that ends in code without a frame pointer is not complete, whatever rbp contains. */
static void test_without_frame(void **state)
{
	(void)state;
	for (char **library = libraries; *library; library++) {
		void *handle = dlopen(*library, RTLD_NOW);
		void (*function)(void (*)(void));

		*(void **)&function = handle ? dlsym(handle, "tableless_without_frame") : NULL;
		assert_non_null(function);
		modules_refresh(false);
		function(look);
		assert_int_equal(seen.depth, 2);
		assert_in_range(trace[1], (uintptr_t)function, (uintptr_t)function + 8);
		assert_true(seen.truncated);
	}
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
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tableless),
		cmocka_unit_test(test_without_frame),
	};

	(void)argc;
	libraries = argv + 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
