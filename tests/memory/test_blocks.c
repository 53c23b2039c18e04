/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of sampled blocks (timers/memory_blocks.h).
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "timers/memory_blocks.h"

#define THREADS 4
#define TURNS 20000
#define AT_ONCE 300

static void *block_at(uintptr_t number)
{
	return (void *)(0x7f0000000000 + 16 * number);
}

static bool add(uintptr_t number)
{
	return memory_blocks_add(&(struct memory_block){
		(uintptr_t)block_at(number), .size = (uint32_t)number, .weight = (uint32_t)number + 1 });
}

static bool take(uintptr_t number)
{
	struct memory_block taken = { .size = 0 };

	if (!memory_blocks_may_have(block_at(number)) || !memory_blocks_take(block_at(number), &taken))
		return false;
	assert_int_equal(taken.address, (uintptr_t)block_at(number));
	assert_int_equal(taken.size, number);
	assert_int_equal(taken.weight, number + 1);
	return true;
}

static void test_all_come_back(void **state)
{
	const uintptr_t count = MEMORY_BUCKETS; /* one in eight places */

	(void)state;
	assert_false(take(1));
	assert_false(memory_blocks_take(NULL, &(struct memory_block){ 0 }));
	for (uintptr_t i = 0; i < count; i++)
		assert_true(add(i));
	for (uintptr_t i = 0; i < count; i++)
		assert_true(take(i));
	for (uintptr_t i = 0; i < count; i++)
		assert_false(take(i));
	for (uint32_t i = 0; i < MEMORY_BUCKETS; i++)
		assert_int_equal(memory_bucket_counts[i], 0);
}

static void test_full(void **state)
{
	uintptr_t stored = 0, taken = 0, count = (uintptr_t)MEMORY_BUCKETS * MEMORY_BUCKET_BLOCKS * 4;

	(void)state;
	for (uintptr_t i = 0; i < count; i++)
		stored += add(i);
	assert_true(stored <= (uintptr_t)MEMORY_BUCKETS * MEMORY_BUCKET_BLOCKS);
	assert_true(stored > (uintptr_t)MEMORY_BUCKETS * MEMORY_BUCKET_BLOCKS / 2);
	for (uintptr_t i = 0; i < count; i++)
		taken += take(i);
	assert_int_equal(taken, stored);
	assert_true(add(7));
	memory_blocks_forget();
	assert_false(take(7));
	assert_true(add(7));
	assert_true(take(7));
}

/* Each thread has blocks of its own, in the same buckets. */
static void *add_and_take(void *from)
{
	uintptr_t first = (uintptr_t)from;

	for (int turn = 0; turn < TURNS / AT_ONCE; turn++) {
		for (uintptr_t i = 0; i < AT_ONCE; i++)
			if (!add(first + THREADS * i))
				abort();
		for (uintptr_t i = 0; i < AT_ONCE; i++)
			if (!take(first + THREADS * i) || take(first + THREADS * i))
				abort();
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_and_take, (void *)i), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (uint32_t i = 0; i < MEMORY_BUCKETS; i++)
		assert_int_equal(memory_bucket_counts[i], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_come_back),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
