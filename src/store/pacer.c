/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pacer.h"

#include <stdint.h>

#include "base/bounded_wait.h"
#include "base/futex.h"
#include "collect/state.h"
#include "store/control/control.h"
#include "store/control/counters.h"
#include "handler/budget.h"

enum state { NONE, AWAKE, ASLEEP, ENDING };
static uint32_t state; /* atomic, enum state, a futex. It decides which thread may check */
static struct store_thread thread;

/* After this many checks with nothing to do, it sleeps. */
#define CALM_CHECKS 8

static bool change(enum state from, enum state to)
{
	uint32_t expected = from;

	return __atomic_compare_exchange_n(&state, &expected, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static bool update_budget(void)
{
	budget_note_storing(store_counter(STORE_FLUSHER_CPU_TIME_NS), store_counter(STORE_SAMPLES));
	return budget_update(sampler_ring());
}

BOUNDED_WAIT_DEFINE(for_work, "the pacer: something to do", BOUND_NONE, "the flusher");
BOUNDED_WAIT_DEFINE(for_next_update, "the pacer: the time of its next look", NS_PER_S,
                    "the flusher, to end it");

static void pacer_main(void)
{
	struct bounded_wait calm_wait = bounded_wait_begin(&for_work), update_wait;
	uint64_t used_ns = 0;
	int calm = 0;

	while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != ENDING) {
		calm = update_budget() ? 0 : calm + 1;
		store_count_cpu_time(STORE_PACER_CPU_TIME_NS, &used_ns);
		if (calm == CALM_CHECKS) {
			calm = 0;
			if (change(AWAKE, ASLEEP))
				bounded_wait_futex(&calm_wait, &state, ASLEEP, BOUND_NONE);
			continue;
		}
		update_wait = bounded_wait_begin_within(&for_next_update, BUDGET_CHECK_NS);
		bounded_wait_futex(&update_wait, &state, AWAKE, BOUND_NONE);
	}
}

bool pacer_check(void)
{
	uint32_t now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);

	if (now == AWAKE)
		return false;
	if (!update_budget())
		return false;
	__atomic_store_n(&state, AWAKE, __ATOMIC_RELEASE);
	if (now == ASLEEP) {
		futex_wake(&state, 1);
	} else if (control_make_thread(&thread, pacer_main) != 0) {
		__atomic_store_n(&state, NONE, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

void pacer_end(void)
{
	if (__atomic_exchange_n(&state, ENDING, __ATOMIC_ACQ_REL) != NONE) {
		futex_wake(&state, 1);
		control_join_thread(&thread);
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
