/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling thread's CPU clock, for the beginnings and ends of its queries.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "base/fast_clock.h"
#include "base/hot_path.h"
#include "handler/thread.h"
#include "query/turn.h"

/* CPU time of the calling thread, whose slot is `thread`. Never goes back. Notes in the
 * slot when it was read, on the clock of fast_clock_ns(), and CLOCK_REALTIME then. */
uint64_t cpu_clock_now(struct thread *thread);

/* The same at `now`, immediately before, on the clock of fast_clock_ns(): the time of the reading
 * itself does not count. */
uint64_t cpu_clock_as_of(struct thread *thread, uint64_t now);

/* cpu_clock_now() at the beginning of a call, when the thread's turn should not end: reads the
 * kernel's clock only if necessary. `usage`: the caller's own reading of the thread, or NULL. */
COLD_PATH uint64_t cpu_clock_before(struct thread *thread, const struct rusage *usage);

/* How often the thread has given its processor up, which it notes, or lost it. Half the price of reading the
 * clock, and without its effect. */
uint64_t cpu_clock_count_switches(struct thread *thread);

/* How long an estimate is valid: the thread is assumed to have run since the reading. It stays valid up to
 * CPU_CLOCK_LONG_NS if the turn in which the clock was read has not ended (turn.h), or if the thread comes
 * here again within CPU_CLOCK_NEAR_NS each time: giving up the processor and getting it back takes longer. */
#define CPU_CLOCK_VALID_NS 50000
#define CPU_CLOCK_NEAR_NS 10000
#define CPU_CLOCK_LONG_NS 500000

/* The thread runs at `now_ns`: whether an estimate is good. */
static inline bool cpu_clock_is_valid(struct thread *thread, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - thread->cpu_read_at_ns;
	bool is_near = __builtin_expect(now_ns - thread->seen_ns < CPU_CLOCK_NEAR_NS, 1) ||
	               turn_goes_on(thread, thread->cpu_turn);

	if (is_near ? __builtin_expect(since_ns >= CPU_CLOCK_LONG_NS, 0) : since_ns >= CPU_CLOCK_VALID_NS)
		return false;
	thread->seen_ns = now_ns;
	return true;
}

/* The CPU clock at `now_ns`, by a reading that returned `read_ns` and is constant until `from_ns`. */
static inline uint64_t cpu_clock_at(uint64_t read_ns, uint64_t from_ns, uint64_t now_ns)
{
	return read_ns + ((int64_t)(now_ns - from_ns) > 0 ? now_ns - from_ns : 0);
}

/* The CPU clock at `now_ns`, which is not before the newest reading by much. */
static inline uint64_t cpu_clock_estimate(const struct thread *thread, uint64_t now_ns)
{
	return cpu_clock_at(thread->cpu_read_ns, thread->cpu_from_ns, now_ns);
}

/* The CPU clock at `now_ns`, immediately before: an estimate if it is valid, else a reading. */
static inline uint64_t cpu_clock_until(struct thread *thread, uint64_t now_ns)
{
	return cpu_clock_is_valid(thread, now_ns) ? cpu_clock_estimate(thread, now_ns)
	                                          : cpu_clock_as_of(thread, now_ns);
}

/* The CPU clock of a thread of this process. False: there is no such thread. */
bool cpu_clock_of(uint32_t thread_id, uint64_t *ns);
