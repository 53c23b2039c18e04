/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vector, index, interner, tally, sums by text and binary search: they grow, keep their order, and find each
 * item.
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
#include "base/search.h"
#include "base/tally.h"
#include "base/text.h"
#include "base/text_sums.h"
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

static void index_gives_each_key_an_item(void **state)
{
	struct index index = { 0 };
	VECTOR(struct item) items = { 0 };

	(void)state;
	for (uint64_t turn = 0; turn < 2; turn++)
		for (uint64_t i = 0; i < MANY; i++) {
			struct item *item = index_item(&index, hash_words(&i, 1), &items);

			assert_ptr_equal(item, &items.items[i]);
			assert_int_equal(item->number, turn ? i + 1 : 0); /* a new item is zeroed */
			item->number = (uint32_t)i + 1;
		}
	assert_int_equal(items.count, MANY);
	vector_free(&items);
	index_free(&index);
}

/* The tally grows during these calls, and some keys occur more than once. */
static void tally_finds_rows_of_many_keys(void **state)
{
	struct tally tally = { .keys = 2, .width = 3 };
	int64_t keys[2 * TALLY_ROWS_MAX];
	uint32_t rows[TALLY_ROWS_MAX];

	(void)state;
	for (int64_t turn = 0; turn < 40; turn++) {
		for (int64_t i = 0; i < TALLY_ROWS_MAX; i++) {
			keys[2 * i] = turn / 2;
			keys[2 * i + 1] = i / 2;
		}
		assert_true(tally_rows(&tally, keys, TALLY_ROWS_MAX, rows));
		for (int64_t i = 0; i < TALLY_ROWS_MAX; i++) {
			assert_int_equal(rows[i], turn / 2 * TALLY_ROWS_MAX / 2 + i / 2);
			assert_int_equal(rows[i], tally_row(&tally, &keys[2 * i]));
			tally_at(&tally, rows[i])[2]++;
		}
	}
	assert_int_equal(tally.count, 20 * TALLY_ROWS_MAX / 2);
	for (size_t i = 0; i < tally.count; i++)
		assert_int_equal(tally_at(&tally, i)[2], 4);
	tally_free(&tally);
}

static void tally_finds_rows_by_their_key(void **state)
{
	struct tally tally = { .keys = 2, .width = 4 };

	(void)state;
	for (int turn = 0; turn < 2; turn++)
		for (int64_t i = 0; i < MANY; i++) {
			const size_t row = tally_row(&tally, (const int64_t[]){ i / 7, -i });

			assert_int_equal(row, i);
			tally_at(&tally, row)[2] += i;
			tally_add(&tally_at(&tally, row)[3], 0.5);
		}
	assert_int_equal(tally.count, MANY);
	for (int64_t i = 0; i < MANY; i++) {
		const int64_t *words = tally_at(&tally, (size_t)i);

		assert_true(words[0] == i / 7 && words[1] == -i && words[2] == 2 * i);
		assert_true(tally_number(words[3]) == 1.0);
	}
	tally_free(&tally);
	assert_int_equal(tally_row(&tally, (const int64_t[]){ 1, 1 }), 0);
	tally_free(&tally);
}

static void search_counts_those_before(void **state)
{
	const int sorted[] = { 1, 3, 3, 7 };

	(void)state;
	for (int wanted = 0; wanted < 9; wanted++)
		for (size_t count = 0; count <= 4; count++) {
			size_t expected = 0;

			while (expected < count && sorted[expected] <= wanted)
				expected++;
			assert_int_equal(SEARCH_COUNT(count, i, sorted[i] <= wanted), expected);
		}
}

static void sums_stay_in_range(void **state)
{
	struct text_sums sums = { 0 };

	(void)state;
	assert_true(text_sums_add(&sums, "b", 2));
	assert_true(text_sums_add(&sums, "c", INT64_MAX));
	assert_true(text_sums_add(&sums, "a", INT64_MIN));
	assert_true(text_sums_add(&sums, "b", 3));
	assert_true(text_sums_add(&sums, "c", 1));
	assert_true(text_sums_add(&sums, "a", -1));
	assert_int_equal(sums.list.count, 3);
	assert_string_equal(sums.list.items[0].text, "b");
	text_sums_sort(&sums);
	assert_string_equal(sums.list.items[0].text, "a");
	assert_true(sums.list.items[0].sum == INT64_MIN);
	assert_int_equal(sums.list.items[1].sum, 5);
	assert_true(sums.list.items[2].sum == INT64_MAX);
	text_sums_free(&sums);
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

			snprintf(text, sizeof(text), "t%u", i);
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
		cmocka_unit_test(index_gives_each_key_an_item),
		cmocka_unit_test(tally_finds_rows_by_their_key),
		cmocka_unit_test(tally_finds_rows_of_many_keys),
		cmocka_unit_test(search_counts_those_before),
		cmocka_unit_test(sums_stay_in_range),
		cmocka_unit_test(interner_keeps_texts_once),
		cmocka_unit_test(text_is_formatted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
