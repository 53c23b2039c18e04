/*
 * Threads, timers, the signal, fork: everything that makes samples happen.
 *
 * Every thread that runs a query gets a slot (handler/thread.h) at its first one
 * and a pair of kernel timers as their periods ask for them; both go with the
 * thread. A timer ticks only where a query runs: the handler disarms it at the
 * first signal that finds none, sampler_push() arms it again without changing
 * its phase.
 */
#ifndef QUERYPROF_SAMPLER_SAMPLER_H
#define QUERYPROF_SAMPLER_SAMPLER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "handler/thread.h"
#include "sampler/push.h"

/* Limits of a period. Below the first the kernel spends its time on signals. */
#define PERIOD_MIN_NS 10000ull /* 10 us */
#define PERIOD_MAX_NS 3600000000000ull

/* Chooses the signal, installs the handler, hooks fork. Idempotent; any thread.
 * 0 or an errno value: the library then works without samples. The ring must stay
 * for the life of the process: signals and ends of queries may come late. */
int sampler_init(struct ring *ring);

/* No more samples: pushes tag queries but arm nothing. The handler stays, as
 * signals may be on their way. sampler_init() starts again. */
void sampler_stop(void);

/* The signal in use, 0 before sampler_init(). It changes when the host takes it. */
int sampler_signal(void);

/* The host is about to set the signal's action, to ask what it is, or to make a
 * descriptor for the signals of `set`. True: done, with what its call is to return; or
 * with the set that it is to use. False: the real function is to be called. Any thread,
 * also in a signal handler; in a child of vfork() they do nothing. */
bool sampler_host_sets_signal(int number, const struct sigaction *action, struct sigaction *before,
                              int *result);
bool sampler_host_asks_signal(int number, struct sigaction *action);
bool sampler_host_reads_signal(const sigset_t *set, sigset_t *without);

/* Whether a signal that the calling thread took by waiting for it (sigwaitinfo) is one
 * of ours; then its timer is stopped, or taking it would have made it go on. */
bool sampler_took_signal(const siginfo_t *info);

/* The calling thread is about to become another program, which has no handler: no
 * signal of ours is on its way to it afterwards. */
void sampler_before_exec(void);

/* The calling thread's slot, made at the first call. NULL when there is no
 * memory, on the profiler's own threads and after sampler_stop(). */
struct thread *sampler_thread(void);

/* The calling thread is the profiler's own: never sampled, never logged. */
void sampler_exclude_thread(void);

/* Waits until every handler that was running at the call has returned. Not from
 * a handler. False after a second of waiting (a thread is stopped by a debugger, or
 * starves): what handlers may use must then stay. */
bool sampler_quiesce(void);

/* The calling thread, on which no query runs, is about to wait: its timer of real time is
 * stopped now, if it still ticks, instead of by its next signal, which would cut the wait
 * short. Async-signal-safe. */
void sampler_rest(struct thread *thread);

/* `settle` is called on every thread that has a slot and ends, before the slot goes. */
void sampler_at_thread_end(void (*settle)(const struct thread *thread));

/* Finds out what nobody tells: frees slots and timers of threads that ended without
 * running destructors; gives up a signal that the host has set. The flusher calls it now
 * and then. */
void sampler_reap(void);

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

#endif
