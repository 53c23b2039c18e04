/* SPDX-License-Identifier: Apache-2.0 */
#include "timers/memory_sample.h"

#include <string.h>

#include "collect/state.h"
#include "handler/ring.h"
#include "settings/setting.h"
#include "timers/random.h"
#include "timers/sample_here.h"
#include "wire/record.h"

/* A thread looks at the setting again after so many bytes without samples. */
#define OFF_BYTES (INT64_C(64) << 20)

SETTING_NUMBER(
	step, "bytes", 1024, INT64_C(1) << 40, 0, .name = "query_profiler_memory_sample_bytes", .zero = "off",
	.description = "Bytes that SQLite allocates from one sample of memory to the next, on average");

__thread struct memory_countdown memory_countdown;

int64_t memory_sample_step(void)
{
	return __atomic_load_n(&step, __ATOMIC_RELAXED);
}

/* --- numbers --------------------------------------------------------------------------- */

/* The recorder has no libm. These are exact to ten digits. */

/* Above 0, at most 1. */
static double random_unit(struct thread *thread)
{
	return (double)((random_next(thread) >> 11) + 1) * 0x1p-53;
}

static double minus_log(double unit)
{
	uint64_t bits;
	double mantissa, z, power, sum = 0;

	memcpy(&bits, &unit, sizeof(bits));
	const int exponent = (int)(bits >> 52) - 1023;
	bits = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52;
	memcpy(&mantissa, &bits, sizeof(mantissa));
	/* log(m) = 2 atanh((m - 1) / (m + 1)) */
	power = z = (mantissa - 1) / (mantissa + 1);
	for (int i = 1; i < 22; i += 2, power *= z * z)
		sum += power / i;
	return -(exponent * 0.6931471805599453 + 2 * sum);
}

/* 1 - exp(-x), x not negative */
static double share_of(double x)
{
	double y = x / 1024, term = 1, sum = 1;

	if (x > 40)
		return 1;
	for (int i = 1; i < 8; i++)
		sum += term *= -y / i;
	for (int i = 0; i < 10; i++)
		sum *= sum;
	return 1 - sum;
}

static int64_t draw_distance(struct thread *thread, int64_t mean)
{
	return (int64_t)((double)mean * minus_log(random_unit(thread)));
}

static uint32_t draw_weight(struct thread *thread, size_t size, int64_t mean)
{
	const double weight = 1 / share_of((double)size / (double)mean);

	return weight < UINT32_MAX ? (uint32_t)(weight + 1 - random_unit(thread)) : UINT32_MAX;
}

/* --- blocks ---------------------------------------------------------------------------- */

/* This function, sampler_record_observed(), and the allocator's replacement. */
#define OWN_FRAMES 3

void memory_sample_allocated(const void *block, size_t size)
{
	struct memory_countdown *countdown = &memory_countdown;
	struct thread *thread = thread_current;
	const int64_t mean = memory_sample_step();

	if (!thread)
		return;
	if (countdown->step != mean) { /* the first allocation, or the setting has changed */
		countdown->step = mean;
		countdown->left = mean ? draw_distance(thread, mean) - (int64_t)size : -1;
		if (countdown->left >= 0)
			return;
	}
	countdown->left = mean ? draw_distance(thread, mean) : OFF_BYTES;
	if (!mean || !block || !sampler_ring())
		return;
	const struct memory_block sampled = { .address = (uintptr_t)block,
		                              .size = (uint32_t)size,
		                              .weight = draw_weight(thread, size, mean) };
	const bool is_followed = memory_blocks_add(&sampled);
	struct observation seen = { .type = SAMPLE_MEMORY,
		                    .weight = sampled.weight,
		                    .value = (int64_t)(sampled.weight * size),
		                    .pointer = is_followed ? sampled.address : 0,
		                    .skipped = OWN_FRAMES };
	struct memory_block taken;

	if (!is_followed)
		counter_add(SAMPLER_BLOCKS_LOST, 1);
	if (!sampler_record_observed(thread, &seen) && is_followed)
		memory_blocks_take(block, &taken);
}

/* Any thread, also one that runs no queries, or ends. */
void memory_sample_freed(const struct memory_block *taken)
{
	const int64_t value = -(int64_t)taken->size * (int64_t)taken->weight;
	struct thread *thread = thread_current;
	struct ring *ring = sampler_ring();
	struct sample_record *record;
	char *at;

	if (!ring)
		return;
	thread_count(thread, LEDGER_TAKEN, 1);
	record = ring_reserve(ring, sizeof(*record) + SAMPLE_FIELD_BYTES(sizeof(value)) +
	                                    SAMPLE_FIELD_BYTES(sizeof(taken->address)));
	if (!record) {
		thread_count(thread, LEDGER_DROPPED, 1);
		return;
	}
	*record = (struct sample_record){ .timestamp_ns = taken->freed_ns,
		                          .thread_id = thread ? thread->id : 0,
		                          .weight = taken->weight,
		                          .type = SAMPLE_MEMORY_FREE };
	at = sample_field_put(record, record->addresses, FIELD_VALUE, &value, sizeof(value));
	sample_field_put(record, at, FIELD_POINTER, &taken->address, sizeof(taken->address));
	ring_commit(ring, record, RECORD_SAMPLE);
	thread_count(thread, LEDGER_STORED, 1);
}

void memory_sample_refuse(size_t size)
{
	memory_countdown.refused = (struct memory_refused){ size, memory_blocks_bytes() };
}

struct memory_refused memory_sample_refused(void)
{
	const struct memory_refused refused = memory_countdown.refused;

	memory_countdown.refused.size = 0;
	return refused;
}

void memory_put_back(const struct memory_block *taken)
{
	if (!memory_blocks_add(taken))
		counter_add(SAMPLER_BLOCKS_LOST, 1);
}
