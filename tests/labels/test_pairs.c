/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of labels as text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "label/pairs.h"

static void check(struct label_pairs *pairs, const char *expected)
{
	char *text = label_pairs_text(pairs);

	assert_string_equal(text, expected);
	free(text);
	label_pairs_free(pairs);
}

static void test_order(void **state)
{
	struct label_pairs pairs = { .items = { 0 } };

	(void)state;
	assert_true(label_pairs_add(&pairs, "b", 1, "2", 1));
	assert_true(label_pairs_add_number(&pairs, "a", -7, "bytes"));
	assert_true(label_pairs_add(&pairs, "b", 1, "later", 5));
	assert_true(label_pairs_add(&pairs, "", 0, "no key", 6));
	check(&pairs, "{\"a\":-7,\"b\":\"2\"}{\"a\":\"bytes\"}");
	check(&pairs, "");
}

/* The replacement for a byte that is not part of a character. */
#define BAD "\xef\xbf\xbd"

static void test_escapes(void **state)
{
	struct label_pairs pairs = { .items = { 0 } }, again = { .items = { 0 } };
	const struct label_pair *pair;
	const char value[] = "\"\\\n\x7f\xff\xc3\xa4\xed\xa0\x80\xf0\x9f\x98\x80\xe2\x82";
	char *text, *member;

	(void)state;
	assert_true(label_pairs_add(&pairs, "k\"", 2, value, sizeof(value) - 1));
	text = label_pairs_text(&pairs);
	assert_string_equal(text, "{\"k\\\"\":\"\\\"\\\\\\u000a\\u007f" BAD "\xc3\xa4" BAD BAD BAD
	                          "\xf0\x9f\x98\x80" BAD BAD "\"}");
	assert_true(label_pairs_add_set(&again, text));
	pair = label_pairs_find(&again, "k\"");
	assert_memory_equal(pair->text, "\"\\\n\x7f" BAD "\xc3\xa4", 9);
	member = label_pair_member(pair);
	assert_memory_equal(text + 1, member, strlen(member));
	assert_int_equal(strlen(member) + 2, strlen(text));
	free(member);
	check(&again, text);
	assert_int_equal(label_set_object(text), strlen(text));
	free(text);
	label_pairs_free(&pairs);
}

static void test_keys_of_others(void **state)
{
	struct label_pairs pairs = { .items = { 0 } };

	(void)state;
	assert_true(label_pairs_add_set(&pairs,
	                                "{\"k8s.io\\/app\":\"a\\nb\",\"n\\u0041\":5}{\"\\u006eA\":\"ms\"}"));
	assert_string_equal(label_pairs_find(&pairs, "k8s.io/app")->text, "a\nb");
	assert_true(label_pairs_add(&pairs, "k8s.io/app", 10, "later", 5));
	check(&pairs, "{\"k8s.io/app\":\"a\\u000ab\",\"nA\":5}{\"nA\":\"ms\"}");
}

static void test_sets(void **state)
{
	const char *inner = "{\"a\":\"1\",\"n\":5}{\"n\":\"rows\"}",
		   *outer = "{\"a\":\"2\",\"m\":6,\"n\":7}{\"m\":\"ms\",\"n\":\"s\"}";
	struct label_pairs pairs = { .items = { 0 } };

	(void)state;
	assert_true(label_pairs_add_set(&pairs, inner));
	assert_true(label_pairs_add_set(&pairs, outer));
	assert_true(label_pairs_add_set(&pairs, ""));
	assert_string_equal(label_pairs_find(&pairs, "m")->text, "6");
	assert_null(label_pairs_find(&pairs, "x"));
	label_pairs_remove(&pairs, "a");
	label_pairs_remove(&pairs, "nothing");
	check(&pairs, "{\"m\":6,\"n\":5}{\"m\":\"ms\",\"n\":\"rows\"}");
	assert_int_equal(label_set_object(inner), 15);
	label_pairs_free(&pairs);
}

/* A damaged file may contain these texts. */
static void test_no_sets(void **state)
{
	static const char *const texts[] = {
		"x",
		"[1]",
		"{\"a\"",
		"{\"a\":\"1\"",
		"{\"a\":\"1",
		"{\"a\":1}{\"a\":",
		/* The value is not valid JSON. */
		"{\"a\":}",
		"{\"a\":x}",
		"{\"a\":-}",
		"{\"a\":01}",
		"{\"a\":1 2}",
		"{\"a\":{\"b\":1}}",
		"{\"a\":\"\\q\"}",
		"{\"a\":\"\\u00g0\"}",
		"{\"a\":\"1\n2\"}",
		"{\"a\":\"1\"2}",
		"{\"a\":1}{\"a\":x}",
		"{\"a\":\"\n5}",
		"{\"a\":1}{\"a\":\"b\"}x",
	};
	struct label_pairs pairs = { .items = { 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_true(label_pairs_add_set(&pairs, texts[i]));
	check(&pairs, "");
}

/* Long texts are truncated, and excess labels are left out. */
static void test_limits(void **state)
{
	struct label_pairs pairs = { .items = { 0 } };
	char *text = malloc(1 << 20), key[16];

	(void)state;
	memset(text, 'x', 1 << 20);
	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "key%d", i);
		assert_true(label_pairs_add(&pairs, key, strlen(key), text, 1 << 20));
	}
	assert_int_equal(pairs.items.count, LABELS_OF_SET_MAX);
	assert_int_equal(strlen(pairs.items.items[0].text), LABEL_TEXT_MAX);
	label_pairs_free(&pairs);
	free(text);
}

static void check_json(const char *json, const char *expected)
{
	struct label_pairs pairs = { .items = { 0 } };

	assert_int_equal(label_pairs_add_json(&pairs, json), expected != NULL);
	if (expected)
		check(&pairs, expected);
	else
		label_pairs_free(&pairs);
}

static void test_json(void **state)
{
	(void)state;
	check_json("", "");
	check_json(" { \"a\" : 1 , \"b\" : null , \"c\" : \"x\" } ", "{\"a\":1,\"c\":\"x\"}");
	check_json("{\"a\":\"\\n\\/\\u0041\\u00e4\\u20ac\\ud83d\\ude00\"}",
	           "{\"a\":\"\\u000a/A\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"}");
	/* Half of a surrogate pair, or two first halves, are not a character. */
	check_json("{\"a\":\"\\ud83d!\"}", "{\"a\":\"\xef\xbf\xbd!\"}");
	check_json("{\"a\":\"\\ud83d\\ud83d\"}", "{\"a\":\"\xef\xbf\xbd\xef\xbf\xbd\"}");
	check_json("{\"a\":\"\\u00g1\"}", NULL);
	check_json("{\"a\":\"\\ud83d\\uzzzz\"}", NULL);
	check_json("{\"a\":\"\\", NULL);
	check_json("{\"a\":\"\\q\"}", NULL);
	check_json("{\"a\":\"\\u\"}", NULL);
	check_json("{\"a\":1.5}", NULL);
	check_json("{\"a\":9223372036854775807,\"b\":-9223372036854775808}",
	           "{\"a\":9223372036854775807,\"b\":-9223372036854775808}");
	check_json("{\"a\":9223372036854775808}", NULL);
	check_json("{\"\":1}", NULL);
	check_json("[]", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),          cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_keys_of_others), cmocka_unit_test(test_sets),
		cmocka_unit_test(test_no_sets),        cmocka_unit_test(test_limits),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests_name("label_pairs", tests, NULL, NULL);
}
