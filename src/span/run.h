/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs of queries as spans. A run has begun and ended, and read the clock, for query_log; its
 * span reuses that. Runs need not nest as spans do, because a program steps statements in any order:
 * the span of a run is the running one while a call works for the run, and only then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hot_path.h"
#include "handler/thread.h"
#include "queryprof.h"

/* The setting trace_statements. */
enum span_statements { STATEMENTS_OFF, STATEMENTS_INSIDE, STATEMENTS_ALL };

struct span_run {
	uint64_t id;    /* 0: none */
	uint64_t outer; /* the running span around the present call */
};

/* Known at its end. key: zeroes if it has no row in query_log. */
struct span_run_end {
	uint64_t start_ns, duration_ns;
	struct query_key key;
	uint64_t hash; /* of the normalized text */
	bool is_preparation, is_failed;
};

extern uint32_t span_statements __attribute__((visibility("hidden"))); /* enum; atomic */

/* The thread has a trace, or the run is one. */
static inline bool span_run_is_wanted(const struct span_run *run)
{
	return run->id || __atomic_load_n(&span_statements, __ATOMIC_RELAXED) == STATEMENTS_ALL;
}

COLD_PATH void span_run_put(struct span_run *run, uint64_t start_ns);
void span_run_finish(struct span_run *run, const struct span_run_end *end);

/* For a run that no call will finish: it was abandoned (then it is marked), or did not belong to the host. */
void span_run_close(struct span_run *run, bool is_hosts);

static inline void span_run_abandon(struct span_run *run, bool is_hosts)
{
	if (__builtin_expect(run->id != 0, 0))
		span_run_close(run, is_hosts);
}

COLD_PATH void span_run_enter_slowly(struct span_run *run);

static inline void span_run_enter(struct span_run *run)
{
	if (__builtin_expect(run->id != 0, 0))
		span_run_enter_slowly(run);
}

/* With its first call. A run that is not logged is not a span. */
static inline void span_run_begin(struct span_run *run, uint64_t start_ns, bool is_logged)
{
	run->id = 0;
	if (__builtin_expect(!qp_span_here, 1) || !is_logged)
		return;
	span_run_put(run, start_ns);
	span_run_enter(run);
}

COLD_PATH void span_run_join_slowly(struct span_run *run, uint64_t start_ns);

/* With its first step: the preparation, which was the run's beginning, was in no trace, or in another. */
static inline void span_run_join(struct span_run *run, uint64_t start_ns, bool is_logged)
{
	if (__builtin_expect(run->id != 0 || qp_span_here != NULL, 0) && is_logged)
		span_run_join_slowly(run, start_ns);
}

static inline void span_run_leave(const struct span_run *run)
{
	if (__builtin_expect(run->id != 0 && span_current.id == run->id, 0))
		span_current.id = run->outer;
}
