/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests which callbacks of the host a connection has, even if SQLite was built without them
 * (SQLITE_OMIT_PROGRESS_CALLBACK, as in better-sqlite3). Its table of routines then has NULL in their places.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sqlite/library/callbacks.h"
#include "../lib/routines.h"

static int authorize(void *context, int action, const char *a, const char *b, const char *c, const char *d)
{
	(void)context, (void)action, (void)a, (void)b, (void)c, (void)d;
	return SQLITE_OK;
}

static int progress(void *context)
{
	(void)context;
	return 0;
}

static void test_callbacks(void **state)
{
	sqlite3 *db = routines_open();
	struct callback_locations places = { .authorizer = { 0 } };

	(void)state;
	callbacks_find(&places, &routines, db);
	assert_false(callback_is_set(&places.authorizer, db));
	assert_false(callback_is_set(&places.progress, db));
	routines.set_authorizer(db, authorize, NULL);
	assert_true(callback_is_set(&places.authorizer, db));
	assert_false(callback_is_set(&places.progress, db));
	routines.progress_handler(db, 1000, progress, NULL);
	assert_true(callback_is_set(&places.progress, db));
	routines.close(db);
}

static void test_omitted(void **state)
{
	sqlite3 *db = routines_open();
	struct callback_locations places = { .authorizer = { 0 } };

	(void)state;
	routines.progress_handler = NULL;
	host_fill_omitted(&routines);
	callbacks_find(&places, &routines, db);
	assert_false(callback_is_set(&places.authorizer, db));
	assert_false(callback_is_set(&places.progress, db));
	routines.set_authorizer(db, authorize, NULL);
	assert_true(callback_is_set(&places.authorizer, db));
	routines.close(db);
}

/* If the place is unknown, there may be a callback. */
static void test_unknown(void **state)
{
	const struct callback_location place = { 0 };

	(void)state;
	assert_true(callback_is_set(&place, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_callbacks), cmocka_unit_test(test_omitted),
		                            cmocka_unit_test(test_unknown) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
