/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which traces are kept, and their counts: most traces are uninteresting, which is known only at
 * their end.
 *
 * The thread of the root decides. Spans that other threads recorded, or that were too many for one
 * chunk, are in the file by then; they are removed if the trace is not kept.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* Any of the active ones keeps a trace. */
enum keep_rule {
	KEEP_ALL = 1,
	KEEP_SLOW = 2,    /* as long as the least duration, or longer */
	KEEP_SAMPLED = 4, /* a sample fell into a span of it */
	KEEP_RANDOM = 8,  /* one of many */
};

/* Whether a trace that begins will be kept whatever it is like. */
bool keep_choose(struct thread *thread);

/* Whether an ended one is kept because of its properties. */
bool keep_decide(uint64_t duration_ns, bool is_sampled);

/* Whether a part of a trace is kept that another program began and whose end is not reported. The rule
 * `random` decides the same for all parts of the trace. */
bool keep_decide_foreign(uint64_t trace, uint64_t duration_ns, bool is_sampled);

/* A sample fell into a span of the trace on a thread that is not the root's; and whether that
 * was so, or may have been. keep_watch(): from now on, the trace has such threads. */
void keep_watch(uint64_t trace);
void keep_note_sample(uint64_t trace);
bool keep_was_sampled(uint64_t trace);

enum keep_counter {
	TRACES_KEPT,
	TRACES_UNKEPT,
	SPANS_RECORDED, /* handed to the ring */
	SPANS_DROPPED,  /* no room in the ring, no memory */
	SPANS_UNENDED,
	KEEP_COUNTERS,
};
void keep_count(enum keep_counter which, uint64_t by);
uint64_t keep_counter(enum keep_counter which);
void keep_after_fork(void);
