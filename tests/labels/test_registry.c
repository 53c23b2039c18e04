/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many threads create, share, use and free label sets while a reader consumes the records. The sets'
 * trampolines are ordinary code here, so ThreadSanitizer sees everything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handler/labels.h"
#include "wire/record.h"
#include "label/sets.h"
#include "wire/label_record.h"
#include "queryprof.h"
#include "collect/ring_reader.h"
#include "collect/state.h"
#include "../lib/seed.h"

#define THREADS 8
#define ROUNDS 4000
#define SHARED 16 /* sets that all threads create */

/* Replaces the unwinder's function, which labels.c calls. */
bool unwind_read_words(const struct unwind_stack *known, uintptr_t address, uintptr_t *words, unsigned count)
{
	(void)known, (void)address, (void)words, (void)count;
	return false;
}

static uint32_t users[LABEL_TRAMPOLINES + 1]; /* sets that have the trampoline now; atomic */
static uint64_t seed;

static qp_label_set *make(int64_t number)
{
	const qp_label label = { "number", NULL, number, NULL };

	return qp_labels_new(&label, 1);
}

static void look(void *argument)
{
	*(bool *)argument = true;
}

static void *work(void *argument)
{
	int64_t own = (int64_t)(intptr_t)argument * ROUNDS + SHARED;
	uint64_t random = seed + (uint64_t)own;

	for (int64_t i = 0; i < ROUNDS; i++) {
		bool called = false;
		random = random * 6364136223846793005u + 1442695040888963407u;
		qp_label_set *mine = make(own + i), *shared = make((int64_t)(random >> 60));

		if (mine->trampoline)
			assert_int_equal(__atomic_add_fetch(&users[mine->trampoline], 1, __ATOMIC_RELAXED),
			                 1);
		uint64_t before = qp_labels_enter(shared);
		qp_labels_run(mine, look, &called);
		qp_labels_leave(before);
		assert_true(called);
		if (mine->trampoline)
			__atomic_sub_fetch(&users[mine->trampoline], 1, __ATOMIC_RELAXED);
		char *text = label_set_text(shared->number);
		assert_non_null(text);
		free(text);
		qp_labels_free(mine);
		qp_labels_free(shared);
	}
	return NULL;
}

static bool ended; /* atomic */

/* Returns the number of sets created minus the number freed. */
static void *read_records(void *argument)
{
	struct ring *ring = argument;
	int64_t balance = 0;
	unsigned kind;
	size_t size;

	for (bool last = false; !last;) {
		void *record;

		last = __atomic_load_n(&ended, __ATOMIC_ACQUIRE);
		while ((record = ring_peek(ring, &kind, &size))) {
			const struct label_record *set = record;

			assert_int_equal(kind, RECORD_LABELS);
			assert_int_equal(size, sizeof(*set) + set->size);
			balance += set->until_ns ? -1 : 1;
			if (!set->until_ns)
				assert_int_equal(label_set_number(set->text, set->size), set->number);
			ring_consume(ring);
		}
	}
	return (void *)(intptr_t)balance;
}

static void test_threads(void **state)
{
	struct ring *ring = ring_create(1 << 24);
	pthread_t threads[THREADS], reader;
	void *balance;

	(void)state;
	seed = test_seed(20261122);
	state_set_ring(ring);
	pthread_create(&reader, NULL, read_records, ring);
	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	__atomic_store_n(&ended, true, __ATOMIC_RELEASE);
	pthread_join(reader, &balance);
	assert_int_equal(label_counter(LABEL_SETS), 0);
	if (ring_dropped(ring) == 0)
		assert_int_equal((intptr_t)balance, 0);
	state_set_ring(NULL);
}

/* A new set gets the trampoline that has been free the longest. If none is free, sets share one. */
static void test_pool(void **state)
{
	qp_label_set **sets = calloc(LABEL_TRAMPOLINES + 10, sizeof(qp_label_set *));
	uint64_t without = label_counter(LABEL_SETS_WITHOUT);

	(void)state;
	for (int i = 0; i < (int)LABEL_TRAMPOLINES + 10; i++) {
		sets[i] = make(i);
		assert_int_equal(sets[i]->trampoline != 0, i < (int)LABEL_TRAMPOLINES);
		if (sets[i]->trampoline)
			assert_int_equal(++users[sets[i]->trampoline], 1);
		assert_true((uintptr_t)sets[i]->run ==
		            labels_code + sets[i]->trampoline * LABEL_TRAMPOLINE_BYTES);
	}
	assert_int_equal(label_counter(LABEL_SETS_WITHOUT) - without, 10);
	uint32_t first = sets[5]->trampoline, second = sets[3]->trampoline;
	qp_labels_free(sets[5]);
	qp_labels_free(sets[3]);
	sets[5] = make(100000);
	sets[3] = make(100001);
	assert_int_equal(sets[5]->trampoline, first);
	assert_int_equal(sets[3]->trampoline, second);
	/* An address in any trampoline becomes the same offset in the first trampoline. */
	uint64_t trace[2] = { (uintptr_t)sets[5]->run + 14, labels_code + labels_code_bytes };
	labels_rename(trace, 2);
	assert_int_equal(trace[0], labels_code + 14);
	assert_int_equal(trace[1], labels_code + labels_code_bytes);
	for (int i = 0; i < (int)LABEL_TRAMPOLINES + 10; i++)
		qp_labels_free(sets[i]);
	free(sets);
	assert_int_equal(label_counter(LABEL_SETS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_pool),
	};

	return cmocka_run_group_tests_name("label_registry", tests, NULL, NULL);
}
