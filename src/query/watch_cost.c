/* SPDX-License-Identifier: Apache-2.0 */
#include "query/watch_cost.h"

#include <stdlib.h>

#include "base/clock.h"
#include "query/query.h"
#include "query/statement_stats.h"
#include "timers/push.h"

#define TRIES 16
#define CALLS 64

/* Looking a statement and its run up takes about as long as the clocks and the tag, which are
 * calibrated; beginning and ending a run as long as some rows (both as tests/bench/statement_bench has
 * it). */
#define ROW_CALLS 2
#define RUN_ROWS 3

static uint64_t row_ps; /* atomic; 0: not calibrated */

/* The work of each call on a statement that continues. */
static void enter_and_leave(struct query_run *run, struct thread *thread)
{
	sampler_push_again(thread, thread->queries[0].number, &run->key, __builtin_frame_address(0));
	query_enter(run, thread);
	query_leave(run, thread);
	nesting_set(thread, 0);
}

void watch_cost_calibrate(void)
{
	struct thread *thread;
	struct query_run run = { .session = 0 };
	uint64_t least = UINT64_MAX;

	if (__atomic_load_n(&row_ps, __ATOMIC_RELAXED) != 0)
		return;
	/* A slot without a thread: no signal finds it, and its queries want no samples. */
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return;
	run.open = &run.own_open;
	thread->id = 1;
	thread->queries[0].number = 1;
	/* The fastest of some: others were interrupted, or read the kernel's clocks. */
	for (int i = 0; i < TRIES; i++) {
		uint64_t start = clock_ns(CLOCK_MONOTONIC), took;
		for (int call = 0; call < CALLS; call++)
			enter_and_leave(&run, thread);
		took = clock_ns(CLOCK_MONOTONIC) - start;
		least = took < least ? took : least;
	}
	free(thread);
	__atomic_store_n(&row_ps, 1 + least * 1000 / CALLS * ROW_CALLS, __ATOMIC_RELAXED);
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
