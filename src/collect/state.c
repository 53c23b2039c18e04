/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/state.h"

struct ring *state_ring;
int sampler_signal_number;
uint64_t sampler_counters[SAMPLER_COUNTERS];

void state_set_ring(struct ring *ring)
{
	/* Release: the ring as it was made. */
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
