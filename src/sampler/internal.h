/*
 * What the files of the sampler know of each other.
 */
#ifndef QUERYPROF_SAMPLER_INTERNAL_H
#define QUERYPROF_SAMPLER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "handler/thread.h"
#include "handler/timer.h"
#include "sampler/sampler.h"

/* Keeps the compiler from moving what the handler reads across this point; the
 * handler runs on the same thread, so the processor needs no fence. */
#define HANDLER_BARRIER() __atomic_signal_fence(__ATOMIC_SEQ_CST)

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

/* --- sampler.c --- */

/* The ring that samples go to, NULL while stopped. */
struct ring *sampler_ring(void);

/* --- signal.c --- */

extern int sampler_signal_number; /* atomic; sampler_signal() */

/* Chooses the signal if there is none yet and installs the handler. 0 or an errno value. */
int signal_start(void);

/* Puts the handler back, or takes another signal, if the host has set ours without
 * telling. False: it could not be done now. */
bool sampler_keep_signal(void);

/* The signals, bit number - 1, that are not blocked inside the handler. */
uint64_t signal_unblockable(void);

/* --- query.c --- */

/* The CPU clock of a thread of this process. False: there is no such thread. */
bool query_read_cpu_of(uint32_t thread_id, uint64_t *ns);

/* --- threads.c --- */

/* Makes the key whose destructor frees slots. 0 or an errno value. */
int threads_init(void);

/* Hands the ring (NULL: none) to all slots. */
void threads_set_ring(struct ring *ring);

/* Writes the thread's name to the ring if it is new; at most once a second. Only
 * the thread itself, when it is registered and, behind each signal, with its next query. */
void threads_tell_name(struct thread *thread);

/* Waits until no thread but the calling one is where timers_arm() was when this was
 * called; a second at most. */
void threads_wait_arming(void);

/* Stops, in the kernel, all timers that send this signal. */
void threads_silence(int number);

/* The next random number of the thread. */
uint64_t threads_random(struct thread *thread);

/* In a forked child: only the calling thread's slot is left. */
void threads_after_fork(void);

/* --- timers.c --- */

/* Sets the tick of timer.h. */
void timers_init(void);

/* In a forked child. */
void timers_after_fork(void);

/* Arms the timer with `period_ns`, creating it when needed. Cold: sampler_push()
 * calls it only when the timer is not armed with that period. Keeps errno. */
void timers_arm(struct thread *thread, enum timer_clock clock, uint64_t period_ns);

/* The calling thread ends: what its whole timer of the CPU clock has not told yet. */
void timers_tell_rest(const struct thread *thread);

/* Deletes the thread's kernel timers. Any thread, when no other does the same. */
void timers_delete(struct thread *thread);

/* Whether this is the process whose timers the slots name: not a child that was made
 * without fork()'s hooks. */
bool timers_in_process(void);

/* The kernel has no timers of ours any more (a forked child). */
void timers_forget(struct thread *thread);

/* Arms what the query wants and is not armed. On every start of a query. */
static inline void timers_follow(struct thread *thread, const struct query_tag *tag)
{
	for (int clock = 0; clock < TIMER_CLOCKS; clock++) {
		const struct thread_timer *timer = &thread->timers[clock];
		uint64_t period_ns = tag->period_ns[clock];
		/* Relaxed: a signal that moves right now is looked at by timers_arm(). */
		if (period_ns != 0 &&
		    !(timer->armed && timer->period_ns == period_ns &&
		      timer_signal(timer) == __atomic_load_n(&sampler_signal_number, __ATOMIC_RELAXED)))
			timers_arm(thread, (enum timer_clock)clock, period_ns);
	}
}

/* --- fork.c --- */

/* Installs the hooks, once. 0 or an errno value. */
int fork_init(void);

/* --- stacks.c --- */

/* The calling thread begins to exec: waits until nobody is sending it a question, and
 * nobody does for a second. Async-signal-safe. */
void stacks_before_exec(void);

/* In a forked child. */
void stacks_after_fork(void);

/* --- for fork.c, in the child --- */
void sampler_after_fork(void);

#endif
