/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of a process that has ended: committed records are read in order, reserved ones are not, and
 * damage never leads outside the ring.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/seed.h"
#include "wire/ring_layout.h"
#include "collect/ring_reader.h"
#include "collect/ring_remains.h"

static uint64_t seed;

static uint64_t next_random(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

/* The producers of a ring, in the order of their reservations. */
struct producers {
	struct ring *ring;
	uint64_t committed[512]; /* the numbers of the records */
	size_t count;
	uint64_t number;
};

/* As if the process ended between the reservation and the header. Neither the record nor the padding before
 * it has a header then. */
static void forget_headers(struct ring *ring, uint64_t from, uint64_t to)
{
	for (uint64_t at = from; at < to; at += RING_WORD)
		__atomic_store_n(ring_header_at(ring, at), 0, __ATOMIC_SEQ_CST);
}

static bool produce(struct producers *producers)
{
	struct ring *ring = producers->ring;
	uint64_t from = ring_head(ring), *record = ring_reserve(ring, 8 + next_random(40) * 8);

	if (record == NULL)
		return false;
	switch (next_random(6)) {
	case 0: forget_headers(ring, from, ring_head(ring)); return true;
	case 1: record[0] = UINT64_MAX; return true; /* a wrong payload, without a commit */
	default:
		record[0] = producers->committed[producers->count++] = producers->number++;
		ring_commit(ring, record, 1 + (unsigned)next_random(3));
		return true;
	}
}

/* Reads some records while the process lives, up to the first that is never committed. */
static size_t consume_some(struct ring *ring)
{
	size_t consumed = 0, wanted = next_random(4), size;
	unsigned kind;

	while (consumed < wanted && ring_peek(ring, &kind, &size)) {
		ring_consume(ring);
		consumed++;
	}
	return consumed;
}

static void test_committed_only(void **state)
{
	(void)state;
	for (long round = 0; round < test_rounds(3000); round++) {
		struct producers producers = { .ring = ring_create(RING_MIN_BYTES) };
		struct ring *ring = producers.ring;
		size_t size, taken;
		uint64_t *record;
		unsigned kind;

		/* Begins anywhere in the block. */
		for (uint64_t i = next_random(60); i > 0; i--) {
			record = ring_reserve(ring, 8 + next_random(40) * 8);
			ring_commit(ring, record, 1);
			ring_peek(ring, &kind, &size);
			ring_consume(ring);
		}
		for (uint64_t i = next_random(5); i > 0; i--) {
			producers.committed[producers.count] = producers.number;
			record = ring_reserve(ring, 16);
			record[0] = producers.number++;
			ring_commit(ring, record, 1);
			producers.count++;
		}
		taken = consume_some(ring);
		for (uint64_t i = next_random(100); i > 0 && produce(&producers); i--)
			;
		/* The process may end while the reader holds some records, or has freed a part of them. */
		uint64_t passed = next_random(3);
		for (uint64_t i = 0; i < passed && ring_peek(ring, &kind, &size); i++)
			ring_pass(ring);

		assert_ptr_equal(ring_remains_find(ring, ring_memory_bytes(RING_MIN_BYTES)), ring);
		ring_remains_repair(ring);
		for (size_t i = taken; i < producers.count; i++) {
			record = ring_peek(ring, &kind, &size);
			assert_non_null(record);
			assert_int_equal(record[0], producers.committed[i]);
			ring_consume(ring);
		}
		assert_null(ring_peek(ring, &kind, &size));
		ring_destroy(ring);
	}
}

static void test_damage(void **state)
{
	(void)state;
	for (long round = 0; round < test_rounds(3000); round++) {
		struct producers producers = { .ring = ring_create(RING_MIN_BYTES) };
		uint64_t *words = (uint64_t *)producers.ring, *record, end = 0;
		size_t size;
		unsigned kind;

		for (uint64_t i = next_random(60); i > 0 && produce(&producers); i--)
			;
		for (uint64_t i = next_random(30); i > 0; i--)
			words[next_random(ring_memory_bytes(RING_MIN_BYTES) / 8)] =
				next_random(2)
					? next_random(4096) | next_random(2) << 63 | next_random(3) << 32
					: seed;
		struct ring *ring = ring_remains_find(words, ring_memory_bytes(RING_MIN_BYTES));
		if (ring) {
			ring_remains_repair(ring);
			while ((record = ring_peek(ring, &kind, &size))) {
				assert_true(record >= words && size <= RING_MIN_BYTES);
				assert_true((char *)record + size <=
				            (char *)words + ring_memory_bytes(RING_MIN_BYTES));
				ring_consume(ring);
				assert_true(++end < RING_MIN_BYTES);
			}
		}
		words[offsetof(struct ring, bytes) / 8] = RING_MIN_BYTES;
		ring_destroy(producers.ring);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_committed_only),
		cmocka_unit_test(test_damage),
	};

	seed = test_seed(UINT64_C(0x2545f4914f6cdd1d));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
