/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples: a stack and its value become one record in the ring.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "handler/thread.h"
#include "wire/sample_type.h"

/* While disabled every timer that fires is disarmed, and nothing is written to a ring.
 * Disabled at first. */
void sample_enable(bool enabled);

/* One expired timer. Inside the handler; `overrun` is si_overrun. */
void sample_on_timer(struct thread *thread, enum timer_clock clock, int overrun, const void *ucontext);

/* The values of a sample in addition to its stack. `is_timed`: it represents `weight` periods,
 * otherwise `value`, in the type's unit. */
struct observation {
	uint64_t period_ns, timestamp_ns;
	int64_t value;
	const struct wait_field *wait; /* NULL: it belongs to none */
	uint64_t pointer;              /* of a block of memory; 0: none */
	uint32_t weight;
	uint32_t stretch; /* from one signal to the next, in periods; 0: not by a timer */
	enum sample_type_number type;
	uint16_t skipped; /* frames at the leaf that are the profiler's */
	bool is_timed;
};

/* A sample of ordinary code; see timers/sample_here.h. Between thread_enter_handler() and
 * thread_leave_handler(). */
bool sample_on_call(struct thread *thread, const struct observation *seen, const ucontext_t *context);
