/*
 * Starting, stopping, and the counters of the sampler.
 */
#ifndef QUERYPROF_SAMPLER_STATE_H
#define QUERYPROF_SAMPLER_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "handler/thread.h"

/* Chooses the signal, installs the handler, hooks fork. Idempotent; any thread.
 * 0 or an errno value: the library then works without samples. The ring must stay
 * for the life of the process: signals and ends of queries may come late. */
int sampler_init(struct ring *ring);

/* No more samples: pushes tag queries but arm nothing. The handler stays, as
 * signals may be on their way. sampler_init() starts again. */
void sampler_stop(void);

/* The ring that samples go to, NULL while stopped. */
struct ring *sampler_ring(void);

/* Waits until every handler that was running at the call has returned. Not from
 * a handler. False after a second of waiting (a thread is stopped by a debugger, or
 * starves): what handlers may use must then stay. */
bool sampler_quiesce(void);

enum sampler_counter {
	SAMPLER_THREADS,         /* slots in use */
	SAMPLER_SLOTS,           /* slots ever made */
	SAMPLER_TIMERS,          /* kernel timers that exist now */
	SAMPLER_TIMERS_FAILED,   /* timer_create refused */
	SAMPLER_TIMER_ERRNO,     /* errno of the newest refusal, 0: none */
	SAMPLER_THREADS_FAILED,  /* no memory for a slot */
	SAMPLER_THREADS_BLOCKED, /* threads that had our signal blocked at their first query */
	SAMPLER_SIGNAL_MOVES,    /* the host has taken our signal, we took another */
	SAMPLER_COUNTERS,
};
uint64_t sampler_counter(enum sampler_counter which);

/* Counters of sampler_counter(). Relaxed: they say nothing about other memory. */
extern uint64_t sampler_counters[SAMPLER_COUNTERS];

static inline void counter_add(enum sampler_counter which, int64_t by)
{
	__atomic_fetch_add(&sampler_counters[which], (uint64_t)by, __ATOMIC_RELAXED);
}

static inline void counter_set(enum sampler_counter which, uint64_t value)
{
	__atomic_store_n(&sampler_counters[which], value, __ATOMIC_RELAXED);
}

/* In a forked child. */
void sampler_after_fork(void);

#endif
