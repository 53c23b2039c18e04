/*
 * Vector, index and interner: they grow, keep their order, and find again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/index.h"
#include "base/interner.h"
#include "base/text.h"
#include "base/vector.h"

#define MANY 20000

struct item {
	uint32_t number;
	char filler[12];
};

static void vector_keeps_order(void **state)
{
	VECTOR(struct item) vector = { 0 };

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		assert_non_null(vector_add(&vector));
		assert_int_equal(vector.items[i].number, 0); /* a new item is zeroed */
		vector.items[i].number = i;
	}
	assert_int_equal(vector.count, MANY);
	assert_true(vector.room >= vector.count && vector.room <= 2 * MANY);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(vector.items[i].number, i);
	vector_free(&vector);
	assert_null(vector.items);
	assert_int_equal(vector.count + vector.room, 0);
}

static void vector_pushes(void **state)
{
	VECTOR(struct item) pairs = { 0 };
	VECTOR(const char *) texts = { 0 };

	(void)state;
	assert_true(vector_push(&texts, "one"));
	assert_true(vector_push(&texts, "two"));
	assert_string_equal(texts.items[1], "two");
	assert_true(vector_reserve(&pairs, 100));
	assert_true(pairs.room >= 100);
	assert_int_equal(pairs.count, 0);
	vector_free(&pairs);
	vector_free(&texts);
}

static void vector_refuses_more_than_memory(void **state)
{
	VECTOR(uint64_t) vector = { 0 };

	(void)state;
	assert_true(vector_push(&vector, 7));
	assert_false(vector_reserve(&vector, SIZE_MAX / 4));
	assert_int_equal(vector.count, 1);
	assert_int_equal(vector.items[0], 7);
	vector_free(&vector);
}

static void index_numbers_keys(void **state)
{
	struct index index = { 0 };

	(void)state;
	assert_int_equal(index_find(&index, hash_bytes("0", 1)), INDEX_NONE);
	for (uint64_t i = 0; i < MANY; i++)
		assert_int_equal(index_add(&index, hash_words(&i, 1)), i);
	for (uint64_t i = 0; i < MANY; i++)
		assert_int_equal(index_find(&index, hash_words(&i, 1)), i);
	index_free(&index);
}

static void interner_keeps_texts_once(void **state)
{
	struct interner interner = { 0 };
	const char *first = interner_keep(&interner, "t0 and more", 2);

	(void)state;
	assert_string_equal(first, "t0");
	for (int turn = 0; turn < 2; turn++)
		for (uint32_t i = 0; i < MANY; i++) {
			char text[16];

			snprintf(text, sizeof text, "t%u", i);
			assert_int_equal(interner_number(&interner, text), i);
			assert_string_equal(interner.texts.items[i], text);
		}
	assert_int_equal(interner.texts.count, MANY);
	assert_ptr_equal(interner_keep(&interner, "t0", 2), first); /* it has not moved */
	interner_free(&interner);
}

static void text_is_formatted(void **state)
{
	char *text = text_format("%s %d", "a", 7);

	(void)state;
	assert_string_equal(text, "a 7");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vector_keeps_order),
		cmocka_unit_test(vector_pushes),
		cmocka_unit_test(vector_refuses_more_than_memory),
		cmocka_unit_test(index_numbers_keys),
		cmocka_unit_test(interner_keeps_texts_once),
		cmocka_unit_test(text_is_formatted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
