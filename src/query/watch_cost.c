/* SPDX-License-Identifier: Apache-2.0 */
#include "query/watch_cost.h"

#include "query/statement_stats.h"

/* Looking a statement and its run up takes about as long as the clocks and the tag, which are
 * calibrated; beginning and ending a run as long as some rows (both as tests/bench/statement_bench has
 * it). */
#define ROW_CALLS 2
#define RUN_ROWS 3

static uint64_t row_ps; /* atomic; 0: not calibrated */

void watch_cost_set(uint64_t call_ps)
{
	__atomic_store_n(&row_ps, 1 + call_ps * ROW_CALLS, __ATOMIC_RELAXED);
}

bool watch_cost_is_set(void)
{
	return __atomic_load_n(&row_ps, __ATOMIC_RELAXED) != 0;
}

uint64_t watch_cost_of(uint64_t runs, uint64_t rows)
{
	return (runs * RUN_ROWS + rows) * __atomic_load_n(&row_ps, __ATOMIC_RELAXED) / 1000;
}

static void add(void *context, const struct statement_stats *stats)
{
	uint64_t *cost_ns = context;

	*cost_ns += watch_cost_of(stats->counts->sums[STATEMENT_CALLS], stats->counts->sums[STATEMENT_ROWS]);
}

uint64_t watch_cost_so_far(void)
{
	uint64_t cost_ns = 0;

	statement_stats_each(add, &cost_ns);
	return cost_ns;
}
