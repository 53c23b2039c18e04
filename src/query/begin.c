/* SPDX-License-Identifier: Apache-2.0 */
#include "query/begin.h"

#include <string.h>

uint64_t query_begin_ms(struct thread *thread, uint64_t now_ns)
{
	uint64_t in_ms = now_ns % QUERY_NS_PER_MS;

	thread->key_ms_ns = now_ns - in_ms;
	thread->key_ms = now_ns / QUERY_NS_PER_MS << (QUERY_FRACTION_BITS + 4) |
	                 QUERY_UUID_VERSION << QUERY_FRACTION_BITS;
	return in_ms;
}

uint64_t query_carry_key(struct thread *thread)
{
	uint64_t ms = (thread->newest_key >> (QUERY_FRACTION_BITS + 4)) + 1;

	return ms << (QUERY_FRACTION_BITS + 4) | QUERY_UUID_VERSION << QUERY_FRACTION_BITS;
}

uint64_t query_renew_clocks(struct thread *thread, uint64_t now)
{
	if (now - thread->account.at_ns >= ACCOUNT_VALID_NS)
		account_read(thread);
	else
		cpu_clock_before(thread, NULL);
	return fast_clock_ns(&thread->clock);
}

void query_clear_counts(struct query_counts *counts)
{
	memset(counts->samples, 0, sizeof(counts->samples));
	memset(counts->weights, 0, sizeof(counts->weights));
	counts->dropped = counts->truncated = counts->worker_cpu_ns = 0;
	counts->worker_wait_ns = counts->cost_ns = counts->taken = 0;
	counts->is_counted = false;
}
