/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: what becomes of every signal that reaches the handler, and of every sample.
 */
#pragma once

#include <stdint.h>

#include "base/of_recorder.h"

/* In the end signals + taken = stored + dropped + idle + stacks + late + foreign +
 * reentered. */
enum ledger_counter {
	LEDGER_SIGNALS,
	LEDGER_TAKEN,     /* samples that ordinary code took, see sampler_record_observed() */
	LEDGER_STORED,    /* committed to the ring */
	LEDGER_DROPPED,   /* the ring was full */
	LEDGER_IDLE,      /* no query ran or was open on the thread, or no period had ended yet */
	LEDGER_STACKS,    /* requests for a live stack that got a response */
	LEDGER_LATE,      /* of a timer that the thread no longer has, or of an old request */
	LEDGER_FOREIGN,   /* not queryprof's: forwarded to the handler that was there */
	LEDGER_REENTERED, /* arrived inside the handler */
	LEDGER_OVERRUNS,  /* periods on top of a stored sample's first */
	LEDGER_TRUNCATED, /* stored samples whose stack is truncated */
	LEDGER_NO_OPCODE, /* samples of SQLite's statements that are at no opcode, see handler/opcode.h */
	LEDGER_COST_NS,   /* what the handler's samples took */
	LEDGER_CPU_NS,    /* CPU time of queries, and of the program while one is open, as samples show it */
	LEDGER_COUNTERS,
};

/* The unwinder's, over all threads. */
enum unwind_counter {
	UNWIND_CACHE_MISSES,   /* rules taken from the CFI parser */
	UNWIND_FULL_STEPS,     /* frames that needed all registers */
	UNWIND_NO_RULE,        /* walks that ended at code without a rule */
	UNWIND_BAD_READ,       /* walks that ended at a slot outside the stack */
	UNWIND_UNKNOWN_STACKS, /* traces of stacks other than the thread's own */
	UNWIND_COUNTERS,
};

/* Defined by handler/unwind/unwind.c. */
ADDRESS_OF_RECORDER(uint64_t, unwind_counters);
#ifdef QUERYPROF_REST
#define unwind_counters (unwind_counters_address())
#else
extern uint64_t unwind_counters[UNWIND_COUNTERS] __attribute__((visibility("hidden")));
#endif

/* Async-signal-safe. Relaxed: each counter is independent. */
static inline void unwind_count(enum unwind_counter which)
{
	__atomic_fetch_add(&unwind_counters[which], 1, __ATOMIC_RELAXED);
}

static inline uint64_t unwind_counter(enum unwind_counter which)
{
	return __atomic_load_n(&unwind_counters[which], __ATOMIC_RELAXED);
}
