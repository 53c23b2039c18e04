/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A test of a room's functions, as a template: text_cut() of base/text.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/text.h"

static void cuts_no_character(void **state)
{
	(void)state;
	assert_int_equal(text_cut("ab\u00e4c", 2), 2);
	assert_int_equal(text_cut("ab\u00e4c", 3), 2); /* the first byte of two */
	assert_int_equal(text_cut("ab\u00e4c", 4), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_no_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
