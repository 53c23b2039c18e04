/*
 * Samples: a stack and what it stands for become one record in the ring.
 */
#ifndef QUERYPROF_HANDLER_SAMPLE_H
#define QUERYPROF_HANDLER_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/sample_type.h"
#include "handler/thread.h"

/* While disabled every timer that fires is disarmed, and nothing is written to a ring.
 * Disabled at first. */
void sample_enable(bool enabled);

/* One expired timer. Inside the handler; `overrun` is si_overrun. */
void sample_on_timer(struct thread *thread, enum timer_clock clock, int overrun, const void *ucontext);

/* Takes a sample from ordinary code, at a hooked call: the calling thread's stack from its
 * caller on, with `value` in the type's unit. The sample goes to the query that runs; false,
 * and nothing is written, where none runs or there is no room. Signals wait meanwhile, so a
 * timer's sample is only late. Async-signal-safe; keeps errno. */
bool sample_take(struct thread *thread, enum trace_type type, int64_t value);

#endif
