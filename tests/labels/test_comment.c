/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels in SQL comments, as frameworks, people and attackers write them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "label/comment.h"
#include "../lib/seed.h"

static void check(const char *sql, const char *expected)
{
	char *labels = comment_labels(sql, strlen(sql));

	if (!labels != !expected || (labels && strcmp(labels, expected)))
		fail_msg("%s\n  is %s\n  expected %s", sql, labels ? labels : "(none)",
		         expected ? expected : "(none)");
	free(labels);
}

static void test_formats(void **state)
{
	(void)state;
	check("SELECT 1 /*action='show',controller='users'*/",
	      "{\"action\":\"show\",\"controller\":\"users\"}");
	check("SELECT 1 /* route='%2Fa%20b%3D%27c%27',db_driver='x\\'y' */;",
	      "{\"db_driver\":\"x'y\",\"route\":\"/a b='c'\"}");
	/* As Django's sqlcommenter writes a statement without parameters, which Django does not format. */
	check("SELECT 1 /*controller='users%%20show',framework='django%%3A3.2.25',route='%%5Ea/%%3Cb%%3E'*/",
	      "{\"controller\":\"users show\",\"framework\":\"django:3.2.25\",\"route\":\"^a/<b>\"}");
	check("SELECT 1 /*a='%',b='%%',c='%%2',d='%%%20',e='%2',f='%zz',g='%25%2520'*/",
	      "{\"a\":\"%\",\"b\":\"%%\",\"c\":\"%%2\",\"d\":\"% "
	      "\",\"e\":\"%2\",\"f\":\"%zz\",\"g\":\"%%20\"}");
	check("SELECT 1 /*application:Blog,controller:users*/",
	      "{\"application\":\"Blog\",\"controller\":\"users\"}");
	check("/*application:Blog,line:/a/b.rb:12:in `c'*/ SELECT 1",
	      "{\"application\":\"Blog\",\"line\":\"/a/b.rb:12:in `c'\"}");
	check("-- a title\n/*a='1'*/ SELECT 1 -- end\n/*a='2',b='3'*/ -- more", "{\"a\":\"2\",\"b\":\"3\"}");
	check("SELECT 1 /*key='1'*/ /*key='2'*/", "{\"key\":\"2\"}");
	check("SELECT 1 /*e=''*/", "{\"e\":\"\"}");
}

static void test_none(void **state)
{
	static const char *const none[] = {
		"",
		"SELECT 1",
		"SELECT 2*3",
		"SELECT '/*a=''1''*/'",
		"SELECT \"/*a='1'*/\", `/*a='1'*/`, [/*a='1'*/]",
		"SELECT /*a='1'*/ 1",
		"SELECT 1 -- /*a='1'*/",
		"SELECT 1 /* fetch users: all of them */",
		"SELECT 1 /* TODO: faster */",
		"SELECT 1 /*TODO: faster*/",
		"SELECT 1 /*+ INDEX(a) */",
		"SELECT 1 /*! 40101 */",
		"SELECT 1 /**/",
		"SELECT 1 /*,*/",
		"SELECT 1 /*a='1',*/",
		"SELECT 1 /*a='1' b='2'*/",
		"SELECT 1 /*a='1",
		"SELECT 1 /*a='1'*",
		"SELECT 1 /*a='1*/",
		"SELECT 1 /*a='\\*/",
		"SELECT 1 /*='1'*/",
		"SELECT 1 /*a:,b:2*/",
		"SELECT 1 /*a:1,*/",
		"SELECT 1 /*a:1,b*/",
		"SELECT 1 /*a b:1*/",
		"SELECT 1 /*a=1*/",
		"'/*a='1'*/",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		check(none[i], NULL);
}

static void test_hostile(void **state)
{
	const size_t size = 1 << 20;
	char *sql = malloc(size + 64), *labels;

	(void)state;
	/* SQL has no nested comments. The first end of a comment ends it. */
	check("SELECT 1 /*a='/*b=''*/", NULL);
	check("SELECT 1 /*a='1'/*b='2'*/*/", NULL);
	check("SELECT 1 /*a='%zz%4',b='%00%ff'*/", "{\"a\":\"%zz%4\",\"b\":\"\xef\xbf\xbd\xef\xbf\xbd\"}");
	check("SELECT 1 /*a='\"},{\"x\":1'*/", "{\"a\":\"\\\"},{\\\"x\\\":1\"}");
	memset(sql, 'x', size);
	memcpy(sql, "SELECT 1 /*a='", 14);
	memcpy(sql + size - 3, "'*/", 4);
	assert_null(comment_labels(sql, size));
	/* Each start of a comment is without an end. The search for an end must run only once. */
	for (size_t i = 0; i + 2 <= size; i += 2)
		memcpy(sql + i, "/*", 2);
	assert_null(comment_labels(sql, size));
	/* Many comments, many labels. */
	for (size_t i = 0; i + 16 <= size; i += 16)
		sprintf(sql + i, "/*k%05u='v'*/  ", (unsigned)(i / 16 % 100000));
	labels = comment_labels(sql, size / 16 * 16);
	assert_non_null(labels);
	free(labels);
	free(sql);
}

/* Random bytes: nothing outside the statement is read. */
static void test_noise(void **state)
{
	static const char bytes[] = "/*'='*/,:%\\\"`[];-- \n\0akx1\xff\xc3";
	uint64_t seed = test_seed(20261122);

	(void)state;
	for (int round = 0; round < 200000; round++) {
		size_t size = seed % 60;
		char *sql = malloc(size + 1);

		for (size_t i = 0; i < size; i++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			sql[i] = bytes[seed % (sizeof(bytes) - 1)];
		}
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		char *exact = malloc(size ? size : 1);
		memcpy(exact, sql, size);
		free(comment_labels(exact, size));
		free(exact);
		free(sql);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_noise),
	};

	return cmocka_run_group_tests_name("label_comment", tests, NULL, NULL);
}
