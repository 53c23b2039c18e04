/* SPDX-License-Identifier: Apache-2.0 */
/*
 * If several threads compete for a processor, reading the CPU clock changes what it measures. The
 * kernel updates the thread's account for the reading and then decides, since Linux 6.6, that the
 * thread's turn is over, long before the tick that would have ended it. Its next turn begins after a
 * tick, ends at the next reading, and so on. So ticks no longer hit a thread that reads its clock at
 * the end of each short query, but the sampler's CPU timers depend on ticks (wire/timer_grid.h). Long
 * queries between the short ones would get the samples of all.
 *
 * Therefore the clock is read when a turn has just begun, so that no turn ends early: once after a
 * tick, and once after a context switch. At the beginning of a call a tick alone is no reason: the
 * turn that ends there would begin again with the call, after a tick again, and no tick would hit a
 * short call. Since the reading, the thread has been running, and its CPU clock advances with the
 * monotonic one, except for interrupts and a hypervisor; the next reading corrects that. The
 * corrected clock stops until it is right, instead of going back.
 */
#include "query/cpu_clock.h"

#include <stdbool.h>
#include <sys/resource.h>

#include "base/sys.h"

#define BASE_MAX_NS 20000000
#define READING_MAX_NS 3000

static uint64_t count_switches(struct thread *thread, const struct rusage *usage)
{
	thread->wait.switches = (uint64_t)usage->ru_nvcsw;
	return (uint64_t)usage->ru_nvcsw + (uint64_t)usage->ru_nivcsw;
}

uint64_t cpu_clock_count_switches(struct thread *thread)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) == 0 ? count_switches(thread, &usage) : 0;
}

/* `base_max_ns`: the maximum age, after a tick, of a reading that no switch followed. `usage`: the
 * caller's own reading, or NULL. */
static uint64_t read_clock(struct thread *thread, uint64_t base_max_ns, const struct rusage *usage)
{
	/* A switch from here on ends the turn. */
	turn_renew(thread);
	/* The moment is taken next, because the rest takes as long as some statements. The coarse
	 * clock is the time of the newest tick. This call, or the next one, notices a tick or a
	 * switch after the moment. */
	uint64_t now_ns = fast_clock_ns(&thread->clock), cpu_ns;
	uint64_t tick_ns = clock_ns(CLOCK_MONOTONIC_COARSE);
	uint64_t switches = usage ? count_switches(thread, usage) : cpu_clock_count_switches(thread);
	/* The newest estimate. Turns that were too short to be noticed are in it: without
	 * standing still for as long, the sum of many short calls was up to 90 % too high. */
	uint64_t estimated_ns = cpu_clock_estimate(thread, thread->seen_ns);

	if (thread->cpu_base_at_ns == 0 || switches != thread->cpu_switches ||
	    (tick_ns != thread->cpu_tick_ns && now_ns - thread->cpu_base_at_ns >= base_max_ns)) {
		thread->cpu_tick_ns = tick_ns;
		thread->cpu_switches = switches;
		thread->cpu_base_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		thread->cpu_base_at_ns = now_ns = fast_clock_ns(&thread->clock);
	}
	cpu_ns = thread->cpu_base_ns + (now_ns - thread->cpu_base_at_ns);
	thread->cpu_read_ns = cpu_ns > estimated_ns ? cpu_ns : estimated_ns;
	thread->cpu_from_ns = now_ns + (thread->cpu_read_ns - cpu_ns);
	thread->cpu_read_at_ns = thread->seen_ns = now_ns;
	thread->cpu_turn = thread->wait.turn;
	/* Between two readings the wall clock is taken to go with the monotonic one. */
	thread->realtime_offset_ns = clock_offset_ns(thread->realtime_offset_ns);
	return thread->cpu_read_ns;
}

uint64_t cpu_clock_now(struct thread *thread)
{
	return read_clock(thread, 0, NULL);
}

uint64_t cpu_clock_as_of(struct thread *thread, uint64_t now)
{
	uint64_t cpu_ns = cpu_clock_now(thread), reading_ns = thread->cpu_read_at_ns - now;

	/* If it took longer, another thread had its turn: reading the clock invites it. */
	return cpu_ns - (reading_ns < READING_MAX_NS ? reading_ns : 0);
}

uint64_t cpu_clock_before(struct thread *thread, const struct rusage *usage)
{
	return read_clock(thread, BASE_MAX_NS, usage);
}

bool cpu_clock_of(uint32_t thread_id, uint64_t *ns)
{
	struct timespec now;

	if (!clock_read(clock_of_thread(thread_id), &now))
		return false;
	*ns = ns_of_timespec(now);
	return true;
}
