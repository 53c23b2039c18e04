/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bounded_wait.h"

#include <errno.h>

#include "base/futex.h"

/* The minimum time counted for a return from the kernel: a wake-up takes as long, and a yield is
 * quicker. A clock that has not moved does not count the time, and signals may come every ms. */
#define RETURN_NS 1000
#define YIELD_NS 200
#define RETURN_UNSEEN_NS 1000000
#define NAP_UNSEEN_NS 50000

/* The linker names the ends of a section. Weak, because a program may have no wait at all. */
extern const struct bounded_wait_kind *const __start_queryprof_bounded_waits[]
	__attribute__((weak, visibility("hidden")));
extern const struct bounded_wait_kind *const __stop_queryprof_bounded_waits[]
	__attribute__((weak, visibility("hidden")));

uint32_t bounded_wait_kinds(const struct bounded_wait_kind *const **first)
{
	*first = __start_queryprof_bounded_waits;
	return (uint32_t)(__stop_queryprof_bounded_waits - __start_queryprof_bounded_waits);
}

struct bounded_wait bounded_wait_begin_within(const struct bounded_wait_kind *kind, uint64_t ns)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	return (struct bounded_wait){ .start_ns = now,
		                      .limit_ns = ns < kind->limit_ns ? ns : kind->limit_ns,
		                      .seen_ns = now };
}

struct bounded_wait bounded_wait_begin(const struct bounded_wait_kind *kind)
{
	return bounded_wait_begin_within(kind, kind->limit_ns);
}

uint64_t bounded_wait_remaining(const struct bounded_wait *wait)
{
	uint64_t passed = wait->counted_ns;
	int64_t by_clock;

	if (wait->limit_ns == BOUND_NONE)
		return BOUND_NONE;
	by_clock = (int64_t)(clock_ns(CLOCK_MONOTONIC) - wait->start_ns);
	/* A clock that has gone backwards is meaningless. */
	if (by_clock > 0 && (uint64_t)by_clock > passed)
		passed = (uint64_t)by_clock;
	return passed < wait->limit_ns ? wait->limit_ns - passed : 0;
}

static bool clock_has_moved(struct bounded_wait *wait)
{
	const uint64_t before = wait->seen_ns;

	wait->seen_ns = clock_ns(CLOCK_MONOTONIC);
	return wait->seen_ns > before;
}

bool bounded_wait_futex(struct bounded_wait *wait, uint32_t *word, uint32_t expected, uint64_t most_ns)
{
	uint64_t ns = bounded_wait_remaining(wait);
	int error;

	if (!ns)
		return false;
	if (most_ns < ns)
		ns = most_ns;
	error = futex_wait(word, expected, ns);
	if (error == ETIMEDOUT)
		wait->counted_ns += ns;
	else
		wait->counted_ns += clock_has_moved(wait) ? RETURN_NS : RETURN_UNSEEN_NS;
	return error != ETIMEDOUT;
}

void bounded_wait_pause(const struct bounded_wait_kind *kind, uint64_t ns)
{
	struct bounded_wait wait = bounded_wait_begin_within(kind, ns);

	bounded_wait_nap(&wait, ns);
}

bool bounded_wait_nap(struct bounded_wait *wait, uint64_t ns)
{
	uint32_t asleep = 0; /* no thread knows of it */

	if (!bounded_wait_remaining(wait))
		return false;
	if (!ns) {
		syscall(SYS_sched_yield);
		wait->counted_ns += YIELD_NS;
		ns = clock_has_moved(wait) ? 0 : NAP_UNSEEN_NS;
	}
	if (ns)
		bounded_wait_futex(wait, &asleep, 0, ns);
	return true;
}
