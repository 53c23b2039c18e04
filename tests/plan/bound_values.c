/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a statement with the patterns that are bound to it, for random statements and values.
 */
#include "sqlite/plan/bound_values.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>

#include <cmocka.h>

#include "../lib/routines.h"

/* Calls the shared library. */
#undef sqlite3_api
#define sqlite3_api (&routines)

#include "../lib/must.h"

#define STATEMENTS 3000

static uint64_t state = 20261130;

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

/* Binds a value. Returns its literal if it is a text, else NULL. */
static char *bind(sqlite3_stmt *stmt, int number)
{
	static const char *const texts[] = { "",     "a%",    "it's",      "''",       "'?",
		                             "-- ?", "x'00'", "\303\244*", "?1 LIKE ?" };
	const char *text = texts[draw(9)];

	switch (draw(8)) {
	case 0: sqlite3_bind_int64(stmt, number, -(sqlite3_int64)draw(1000)); return NULL;
	case 1: sqlite3_bind_double(stmt, number, pow(-10, (int)draw(40) - 20) * 1.5); return NULL;
	case 2: sqlite3_bind_null(stmt, number); return NULL;
	case 3: sqlite3_bind_zeroblob(stmt, number, (int)draw(9)); return NULL;
	case 4: sqlite3_bind_blob(stmt, number, text, (int)strlen(text), SQLITE_STATIC); return NULL;
	default: sqlite3_bind_text(stmt, number, text, -1, SQLITE_STATIC); return sqlite3_mprintf("%Q", text);
	}
}

static void test_random_statements(void **unused)
{
	/* Each has one parameter. */
	static const char *const patterns[] = { "a LIKE ?", "a NOT like ?", "b GLOB/* ? */?",
		                                "\"?\" LIKE\n?" };
	static const char *const others[] = { "a = ?",  "abs(?)", "a LIKE (?)",   "a LIKE 'x?' || ?",
		                              "b=-?-1", "(?)",    "a LIKE b || ?" };
	int replaced = 0;
	sqlite3 *db = routines_open();

	(void)unused;
	must_exec(db, "CREATE TABLE t(a, b, \"?\")");
	for (int i = 0; i < STATEMENTS; i++) {
		sqlite3_str *text = sqlite3_str_new(db), *expected = sqlite3_str_new(db);
		const uint32_t count = 1 + draw(4);
		const char *parts[4];
		char *sql, *wanted, *made;
		sqlite3_stmt *stmt;
		int is_replaced = 0;

		sqlite3_str_appendf(text, "SELECT 'LIKE ?' FROM t WHERE ");
		for (uint32_t part = 0; part < count; part++) {
			parts[part] = draw(2) ? patterns[draw(4)] : others[draw(7)];
			sqlite3_str_appendf(text, "%s%s", part ? " AND " : "", parts[part]);
		}
		sql = sqlite3_str_finish(text);
		must(db, sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), sql);
		sqlite3_str_appendf(expected, "SELECT 'LIKE ?' FROM t WHERE ");
		for (uint32_t part = 0; part < count; part++) {
			char *literal = bind(stmt, (int)part + 1);
			const char *const at = strrchr(parts[part], '?');
			int is_pattern = 0;

			for (int j = 0; j < 4; j++)
				is_pattern |= parts[part] == patterns[j];
			sqlite3_str_appendf(expected, "%s%.*s", part ? " AND " : "", (int)(at - parts[part]),
			                    parts[part]);
			sqlite3_str_appendf(expected, is_pattern && literal ? " %s%s" : "%.0s?%s",
			                    literal ? literal : "", at + 1);
			is_replaced |= is_pattern && literal;
			sqlite3_free(literal);
		}
		wanted = sqlite3_str_finish(expected);
		made = bound_values_patterns(&routines, db, stmt, sql);
		if (is_replaced)
			assert_string_equal(made ? made : "", wanted);
		else
			assert_true(!made || !strcmp(made, sql));
		replaced += is_replaced;
		free(made);
		sqlite3_free(wanted);
		sqlite3_free(sql);
		sqlite3_finalize(stmt);
	}
	assert_true(replaced > STATEMENTS / 4);
	assert_int_equal(sqlite3_limit(db, SQLITE_LIMIT_LENGTH, -1), 1000000000);
	sqlite3_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_statements) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
