/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples: a stack and what it stands for become one record in the ring.
 */
#ifndef QUERYPROF_HANDLER_SAMPLE_H
#define QUERYPROF_HANDLER_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "base/sample_type.h"
#include "handler/thread.h"

/* While disabled every timer that fires is disarmed, and nothing is written to a ring.
 * Disabled at first. */
void sample_enable(bool enabled);

/* One expired timer. Inside the handler; `overrun` is si_overrun. */
void sample_on_timer(struct thread *thread, enum timer_clock clock, int overrun, const void *ucontext);

/* A sample of ordinary code, with `value` in the type's unit; see sampler/take.h. Between
 * thread_enter_handler() and thread_leave_handler(). */
bool sample_on_call(struct thread *thread, enum trace_type type, int64_t value, const ucontext_t *context);

#endif
