/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pacer.h"

#include <pthread.h>
#include <stdint.h>

#include "base/sys.h"
#include "query/watch_cost.h"
#include "sampler/budget.h"
#include "sampler/shared_timer.h"
#include "sampler/threads.h"
#include "store/control.h"
#include "store/counters.h"

enum state { NONE, AWAKE, ASLEEP, ENDING };
static uint32_t state; /* atomic, enum state, a futex. It says which thread may look */
static pthread_t thread;

/* So many looks with nothing to do, and it sleeps. */
#define CALM_LOOKS 8

static bool change(enum state from, enum state to)
{
	uint32_t expected = from;

	return __atomic_compare_exchange_n(&state, &expected, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static bool look(void)
{
	watch_cost_calibrate();
	return budget_look(store_counter(STORE_FLUSHER_CPU_TIME_NS), store_counter(STORE_SAMPLES));
}

static void *pacer_main(void *unused)
{
	uint64_t used_ns = 0;
	int calm = 0;

	(void)unused;
	pthread_setname_np(pthread_self(), "queryprof");
	sampler_exclude_thread();
	while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != ENDING) {
		uint64_t pause = shared_timer_visit();
		bool busy = look() || pause != 0;
		struct timespec until;

		store_count_own_time(STORE_PACER_CPU_TIME_NS, &used_ns);
		calm = busy ? 0 : calm + 1;
		if (calm == CALM_LOOKS) {
			calm = 0;
			if (change(AWAKE, ASLEEP))
				sys_futex_wait(&state, ASLEEP, NULL);
			continue;
		}
		until = timespec_of_ns(clock_ns(CLOCK_MONOTONIC) + (pause != 0 ? pause : BUDGET_LOOK_NS));
		sys_futex_wait(&state, AWAKE, &until);
	}
	return NULL;
}

bool pacer_look(void)
{
	uint32_t now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);

	if (now == AWAKE)
		return false;
	bool busy = look();
	if (!busy && shared_timer_members() == 0)
		return false;
	__atomic_store_n(&state, AWAKE, __ATOMIC_RELEASE);
	if (now == ASLEEP) {
		sys_futex_wake(&state);
	} else if (control_make_thread(&thread, pacer_main) != 0) {
		__atomic_store_n(&state, NONE, __ATOMIC_RELEASE);
		return busy;
	}
	return false;
}

void pacer_end(void)
{
	if (__atomic_exchange_n(&state, ENDING, __ATOMIC_ACQ_REL) != NONE) {
		sys_futex_wake(&state);
		pthread_join(thread, NULL);
	}
	__atomic_store_n(&state, NONE, __ATOMIC_RELEASE);
}

bool pacer_has_thread(void)
{
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE) != NONE;
}

void pacer_after_fork(void)
{
	state = NONE;
}
