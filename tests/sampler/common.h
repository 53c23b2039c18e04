/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the tests of the sampler: a simulated unwinder, a consumer that adds up the records of the ring,
 * and ways to spend time.
 */
#ifndef TESTS_SAMPLER_COMMON_H
#define TESTS_SAMPLER_COMMON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "wire/record.h"
#include "handler/dispatch.h"
#include "handler/forward.h"
#include "wire/ledger.h"
#include "handler/sample.h"
#include "base/sys.h"
#include "handler/thread.h"
#include "query/inspect.h"
#include "wire/query_record.h"
#include "process/exec.h"
#include "collect/ledger_reader.h"
#include "timers/nesting.h"
#include "timers/push.h"
#include "timers/quiesce.h"
#include "collect/ring_reader.h"
#include "collect/sample_reader.h"
#include "timers/signal.h"
#include "collect/slots.h"
#include "process/start.h"
#include "collect/state.h"
#include "timers/sample_here.h"
#include "wire/thread_record.h"
#include "timers/threads.h"
#include "timers/timers.h"

#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1 /* it delivers signals late, so their times mean nothing */
#else
#define UNDER_TSAN 0
#endif

/* The result of the simulated unwinder: so many frames, with address i + 1 in frame i. */
extern int fake_depth;
extern bool fake_truncated;
/* The simulated unwinder calls it if it is not NULL. */
extern void (*fake_unwind_hook)(void);

/* The records that drain() took from the ring, added up. */
struct drained {
	uint64_t samples[SAMPLE_TYPES], weights[SAMPLE_TYPES], time_ns[SAMPLE_TYPES];
	uint64_t queries, threads, starts;
	uint64_t wrong; /* inconsistent records */
	struct {
		struct query_key query;
		struct run_start run;
		size_t text_size;
	} start; /* the newest one, with its text */
	char text[START_TEXT_MAX + 1];
	struct sample_record newest; /* without its trace */
};
void drain(struct ring *ring, struct drained *to);

/* A tag for `run` with these periods. */
struct query_tag tag_of(struct query_run *run, uint64_t cpu_period_ns, uint64_t real_period_ns);

uint64_t cpu_now(void);
void burn(uint64_t cpu_ns);  /* the thread's CPU time; it reads the clock, see spin.h */
void pause_for(uint64_t ns); /* wall time, whatever signals come */

/* The number of the process's timers in the kernel's list; -1 if there is no list. */
int kernel_timers(void);

/* An assertion for a child, in which cmocka's assertions would not end the test. */
#define CHECK(condition)                                                                                     \
	((condition) ? (void)0                                                                               \
	             : (printf("%s:%d: %s\n", __FILE__, __LINE__, #condition), fflush(stdout), _exit(1)))

/* Asserts that samples, idle signals and the other outcomes add up to all signals. */
void assert_ledger(void);

#endif
