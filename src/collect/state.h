/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state that all files of the sampler share: its ring, its signal's number, its counters.
 */
#pragma once

#include <stdint.h>

#include "base/of_recorder.h"

struct ring;

/* Atomic; sampler_ring(). */
ADDRESS_OF_RECORDER(struct ring *, state_ring);
#ifdef QUERYPROF_REST
#define state_ring (*state_ring_address())
#else
extern struct ring *state_ring;
#endif

/* The ring that samples go to, NULL while stopped. */
static inline struct ring *sampler_ring(void)
{
	/* Acquire: with state_set_ring(). */
	return __atomic_load_n(&state_ring, __ATOMIC_ACQUIRE);
}
void state_set_ring(struct ring *ring);

/* The signal in use, 0 before sampler_init(). It changes when the host takes it. */
int sampler_signal(void);

extern int sampler_signal_number; /* atomic; sampler_signal() */

enum sampler_counter {
	SAMPLER_THREADS,            /* slots in use */
	SAMPLER_SLOTS,              /* slots ever made */
	SAMPLER_TIMERS,             /* kernel timers that exist now */
	SAMPLER_TIMERS_FAILED,      /* timer_create refused */
	SAMPLER_TIMER_ERRNO,        /* errno of the newest refusal, 0: none */
	SAMPLER_THREADS_FAILED,     /* no memory for a slot */
	SAMPLER_SESSIONS_REFUSED,   /* connections that could not be given all of a session */
	SAMPLER_THREADS_BLOCKED,    /* threads that had the timers' signal blocked at their first query */
	SAMPLER_SIGNAL_MOVES,       /* the host has taken the timers' signal, and they got another */
	SAMPLER_ALLOCATORS_UNKNOWN, /* SQLite libraries whose allocations cannot be sampled */
	SAMPLER_BLOCKS_LOST,        /* sampled blocks whose free is not followed */
	SAMPLER_COUNTERS,
};
uint64_t sampler_counter(enum sampler_counter which);

/* Counters of sampler_counter(). Relaxed: they imply nothing about other memory. */
ADDRESS_OF_RECORDER(uint64_t *, sampler_counters);
#ifdef QUERYPROF_REST
#define sampler_counters (*sampler_counters_address())
#else
extern uint64_t *sampler_counters;
#endif

/* From now on they are here, in memory that another process holds, too; NULL: in this process's own. Before
 * the first thread is followed, and in a forked child, which begins with zeros. */
void state_set_counters(uint64_t counters[SAMPLER_COUNTERS]);

static inline void counter_add(enum sampler_counter which, int64_t by)
{
	__atomic_fetch_add(&sampler_counters[which], (uint64_t)by, __ATOMIC_RELAXED);
}

static inline void counter_set(enum sampler_counter which, uint64_t value)
{
	__atomic_store_n(&sampler_counters[which], value, __ATOMIC_RELAXED);
}
