/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/state.h"

struct ring *state_ring;
DEFINE_ADDRESS_OF_RECORDER(struct ring *, state_ring)
int sampler_signal_number;

static uint64_t own_counters[SAMPLER_COUNTERS];
uint64_t *sampler_counters = own_counters;
DEFINE_ADDRESS_OF_RECORDER(uint64_t *, sampler_counters)

void state_set_counters(uint64_t counters[SAMPLER_COUNTERS])
{
	if (!counters)
		counters = own_counters;
	for (int which = 0; which < SAMPLER_COUNTERS; which++)
		counters[which] = sampler_counter((enum sampler_counter)which);
	sampler_counters = counters;
}

void state_set_ring(struct ring *ring)
{
	/* Release: the initialised ring. */
	__atomic_store_n(&state_ring, ring, __ATOMIC_RELEASE);
}

int sampler_signal(void)
{
	return __atomic_load_n(&sampler_signal_number, __ATOMIC_ACQUIRE);
}

uint64_t sampler_counter(enum sampler_counter which)
{
	return __atomic_load_n(&sampler_counters[which], __ATOMIC_RELAXED);
}
