/*
 * Starting and stopping.
 */
#include "sampler/state.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "base/lock.h"
#include "handler/sample.h"
#include "handler/timer.h"
#include "sampler/fork.h"
#include "sampler/signal.h"
#include "sampler/threads.h"
#include "sampler/timers.h"

uint64_t sampler_counters[SAMPLER_COUNTERS];

LOCK_DEFINE(lock, LOCK_SAMPLER, .at_fork = LOCK_LEFT);
static struct ring *ring; /* NULL while stopped */

/* --- start and stop ---------------------------------------------------------------- */

struct ring *sampler_ring(void)
{
	return __atomic_load_n(&ring, __ATOMIC_ACQUIRE);
}

static int start(struct ring *new_ring)
{
	int error = threads_init();

	if (error == 0)
		error = fork_init();
	if (error == 0)
		error = signal_start();
	if (error != 0)
		return error;
	timers_init();
	threads_set_ring(new_ring);
	__atomic_store_n(&ring, new_ring, __ATOMIC_RELEASE);
	sample_enable(true);
	return 0;
}

int sampler_init(struct ring *new_ring)
{
	int saved_errno = errno;

	pthread_mutex_lock(&lock);
	int error = ring != NULL ? 0 : start(new_ring);
	pthread_mutex_unlock(&lock);
	errno = saved_errno;
	return error;
}

void sampler_stop(void)
{
	pthread_mutex_lock(&lock);
	/* Timers that are armed disarm themselves at their next signal. */
	sample_enable(false);
	__atomic_store_n(&ring, NULL, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
}

void sampler_after_fork(void)
{
	for (int which = 0; which < SAMPLER_COUNTERS; which++)
		counter_set((enum sampler_counter)which, 0);
	counter_set(SAMPLER_SLOTS, thread_slots());
	counter_set(SAMPLER_THREADS, thread_current != NULL);
	timers_after_fork();
}

#define QUIESCE_LIMIT_NS NS_PER_S
#define QUIESCE_PAUSE_NS 20000

bool sampler_quiesce(void)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + QUIESCE_LIMIT_NS;
	uint32_t slots = thread_slots();
	static uint32_t fence;

	/* What the caller stored comes before the looks at the handlers. */
	__atomic_fetch_add(&fence, 1, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < slots; i++) {
		struct thread *slot = thread_slot(i);
		uint32_t done = __atomic_load_n(&slot->handler.done, __ATOMIC_SEQ_CST);

		while (slot != thread_current &&
		       __atomic_load_n(&slot->handler.is_running, __ATOMIC_SEQ_CST) != 0 &&
		       __atomic_load_n(&slot->handler.done, __ATOMIC_ACQUIRE) == done) {
			struct timespec pause = timespec_of_ns(QUIESCE_PAUSE_NS);
			if (clock_ns(CLOCK_MONOTONIC) > deadline)
				return false;
			clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		}
	}
	return true;
}

uint64_t sampler_counter(enum sampler_counter which)
{
	return __atomic_load_n(&sampler_counters[which], __ATOMIC_RELAXED);
}
