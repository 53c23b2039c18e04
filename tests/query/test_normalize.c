/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Normalized texts of statements.
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "query/normalize.h"

static const struct {
	const char *left, *right;
	bool same;
} pairs[] = {
	{ "SELECT 1", "SELECT 2", true },
	{ "SELECT 1", "select  -- why\n 22.5e-3 ;", true },
	{ "SELECT 1", "SELECT 'it''s'", true },
	{ "SELECT 1", "SELECT x'00ff'", true },
	{ "SELECT 1", "SELECT 0xFF", true },
	{ "SELECT 1", "SELECT ?1", true },
	{ "SELECT 1", "SELECT :name", true },
	{ "SELECT 1", "SELECT @name /* x", true },
	{ "SELECT 1", "SELECT \"1\"", false },
	{ "SELECT 1", "SELECT a", false },
	{ "SELECT 1", "SELECT", false },
	{ "SELECT a FROM t WHERE b IN (1,2,3)", "SELECT a FROM t WHERE b IN (?)", true },
	{ "SELECT a FROM t WHERE b IN (1,2,3)", "SELECT a FROM t WHERE b IN ()", false },
	{ "SELECT a, b FROM t", "SELECT a,b FROM T", true },
	{ "SELECT ab FROM t", "SELECT a b FROM t", false },
	{ "SELECT a FROM t", "SELECT A FROM t", true },
	{ "SELECT \"a\" FROM t", "SELECT \"A\" FROM t", false },
	{ "SELECT 'a", "SELECT 'b", true },
	{ "SELECT a/b", "SELECT a/*c*//b", true },
	{ "SELECT a - 1", "SELECT a -- 1", false },
	{ "/*/users/1*/ SELECT a", "/*/orders/2*/SELECT a", true },
	{ "/*/ SELECT a", "SELECT a", false },
	{ "/**/ SELECT a", "SELECT a", true },
	{ "SELECT 1; SELECT 2", "SELECT 1", false },
	{ "SELECT 1;;", "SELECT 1", true },
	{ "SELECT f(1, a)", "SELECT f(1)", false },
	{ "SELECT f(1, a)", "SELECT f(2, 'x', a)", true },
	{ "", ";", true },
	{ "SELECT 1e", "SELECT 1", true },
	{ "SELECT 1.e+5", "SELECT .5", true },
	{ "SAVEPOINT s1", "SAVEPOINT \"s140_x2\"", true },
	{ "RELEASE SAVEPOINT a1", "release savepoint a2;", true },
	{ "ROLLBACK TO SAVEPOINT a1", "ROLLBACK TO SAVEPOINT a2", true },
	{ "ROLLBACK", "ROLLBACK TO a", false },
	{ "ROLLBACK TRANSACTION", "ROLLBACK", false },
	{ "SAVEPOINT a", "RELEASE a", false },
	{ "/*b*/ SAVEPOINT a", "SAVEPOINT b", true },
	{ "SELECT release FROM a", "SELECT release FROM b", false },
	{ "PRAGMA table_info(users)", "pragma table_info(\"orders\");", true },
	{ "PRAGMA main.index_list('a')", "PRAGMA main.index_list(b)", true },
	{ "PRAGMA main.index_list(a)", "PRAGMA index_list(a)", false },
	{ "PRAGMA table_info(a)", "PRAGMA index_list(a)", false },
	{ "PRAGMA journal_mode(WAL)", "PRAGMA journal_mode(DELETE)", false },
	{ "PRAGMA journal_mode = WAL", "PRAGMA journal_mode = MEMORY", false },
	{ "SELECT table_info(a) FROM t", "SELECT table_info(b) FROM t", false },
	{ "INSERT INTO \xc3\xa4 VALUES (1,'x',NULL)", "INSERT INTO \xc3\xa4 VALUES (2,'',NULL)", true },
};

static void pairs_differ(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		bool same = normalize_hash(pairs[i].left, strlen(pairs[i].left)) ==
		            normalize_hash(pairs[i].right, strlen(pairs[i].right));

		if (same != pairs[i].same)
			fail_msg("%s\n%s\nare %s", pairs[i].left, pairs[i].right,
			         same ? "the same" : "not the same");
	}
}

static uint64_t comments_of(const char *text)
{
	return normalize_comments(text, strlen(text));
}

static void comments_are_told_apart(void **state)
{
	(void)state;
	assert_int_equal(comments_of("SELECT 1 * 2"), 0);
	assert_int_equal(comments_of("SELECT '/*a=''1''*/' * 2 -- /*b*/"), 0);
	assert_int_not_equal(comments_of("/*a='1'*/ SELECT 1"), comments_of("/*a='2'*/ SELECT 1"));
	assert_int_equal(comments_of("/*a='1'*/ SELECT 1"), comments_of("SELECT 2 /*a='1'*/"));
	assert_int_equal(comments_of("/*a='1',traceparent='00-1'*/ SELECT 1"),
	                 comments_of("/*a='1',traceparent='00-2'*/ SELECT 1"));
	assert_int_not_equal(comments_of("/*parent='1'*/ SELECT 1"), comments_of("/*parent='2'*/ SELECT 1"));
}

/* Any bytes, cut anywhere, must be read within bounds; the sanitizers check it. */
static void any_bytes(void **state)
{
	static const char alphabet[] = "a1'\"`[]x-/*.e+?:@;, \n\xff";
	uint64_t random = 88172645463325252ull;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t size = (size_t)round % 24;
		char *text = test_malloc(size + 1);

		for (size_t i = 0; i < size; i++) {
			random ^= random << 13, random ^= random >> 7, random ^= random << 17;
			text[i] = alphabet[random % (sizeof(alphabet) - 1)];
		}
		normalize_hash(text, size);
		normalize_comments(text, size);
		test_free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_differ),
		cmocka_unit_test(comments_are_told_apart),
		cmocka_unit_test(any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
