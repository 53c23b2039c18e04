/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fast_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/cancel.h"
#include "base/clock.h"
#include "base/newer_glibc.h"

#define CALIBRATION_NS 20000000ull
/* A rate that is known a tenth as well reaches a tenth as far. */
#define ROUGH 10
#define TRIALS 4
#define TRIAL_NS 1000 /* longer than a reading of both takes that nothing interrupts */
#define MEET_AGAIN_NS 1000000000ull

uint64_t fast_clock_scale, fast_clock_reach;
ptrdiff_t fast_clock_core_at;

/* Atomic. */
static enum state { UNKNOWN, STARTING, CALIBRATING, ROUGHLY, USED, VARIANT, DISTRUSTED, ASTRAY } state;
static struct fast_clock first; /* written in STARTING; ns and core are atomic */

#if !defined(QUERYPROF_TEST_CORE)
#define CPU_ID_AT 4 /* in struct rseq */

static void find_core(void)
{
	if (&__rseq_offset && &__rseq_size && __rseq_size)
		__atomic_store_n(&fast_clock_core_at, __rseq_offset + CPU_ID_AT, __ATOMIC_RELAXED);
}
#else
static void find_core(void)
{
}
#endif

/* The counter runs at one rate in all states of the processor, and may be read. */
static bool is_invariant(void)
{
#if defined(QUERYPROF_TEST_INVARIANT)
	return QUERYPROF_TEST_INVARIANT();
#elif defined(__x86_64__)
	unsigned a, b, c, d = 0;
	int mode = PR_TSC_SIGSEGV;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8 && !prctl(PR_GET_TSC, &mode) &&
	       mode == PR_TSC_ENABLE;
#elif defined(__aarch64__)
	return true;
#else
	return false;
#endif
}

#if !defined(QUERYPROF_TEST_SOURCES)
#define QUERYPROF_TEST_SOURCES "/sys/devices/system/clocksource/clocksource0/available_clocksource"
#endif

/* Whether the kernel could use the counter itself: it removes a counter from its list if it has
 * drifted, or if cores do not share it. A KVM guest's own clock is computed from the counter, with a rate and
 * an offset of each core that change if the guest moves to another machine. The next comparison notices that.
 * If there is no list, it must suffice that the counter is invariant. */
static bool is_trusted(void)
{
	static const char *const counters[] = { "tsc", "kvm-clock", "arch_sys_counter" };
	char list[256], *rest = list, *name;
	int saved_errno = errno, cancel = cancel_hold(),
	    file = open(QUERYPROF_TEST_SOURCES, O_RDONLY | O_CLOEXEC);
	ssize_t size = file >= 0 ? read(file, list, sizeof(list) - 1) : -1;
	bool is_listed = size <= 0;

	if (file >= 0)
		close(file);
	cancel_release(cancel);
	errno = saved_errno;
	list[size > 0 ? size : 0] = '\0';
	while (!is_listed && (name = strsep(&rest, " \n")))
		for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++)
			is_listed |= !strcmp(name, counters[i]);
	return is_listed;
}

/* Both at the same moment. False: the thread was interrupted between the two, each time. */
static bool read_both(struct fast_clock *best)
{
	uint64_t scale = __atomic_load_n(&fast_clock_scale, __ATOMIC_RELAXED);
	uint64_t least = UINT64_MAX;

	/* Without a scale the least of them is the measure. */
	for (int trial = 0; trial < TRIALS || least == UINT64_MAX; trial++) {
		uint32_t core = fast_clock_core();
		uint64_t before = fast_clock_ticks(), ns = clock_ns(CLOCK_MONOTONIC),
			 took = fast_clock_ticks() - before;

		if (took < least && fast_clock_core() == core) {
			*best = (struct fast_clock){ .ticks = before + took / 2, .ns = ns, .core = core };
			least = took;
		}
		if (scale && least != UINT64_MAX && least * scale >> 32 < TRIAL_NS)
			return true;
	}
	return !scale;
}

static void use(uint64_t scale, bool is_rough)
{
	__atomic_store_n(&fast_clock_scale, scale, __ATOMIC_RELAXED);
	/* Release: the scale first. The old one reaches less far. */
	__atomic_store_n(&fast_clock_reach,
	                 ((is_rough ? FAST_CLOCK_REACH_NS / ROUGH : FAST_CLOCK_REACH_NS) << 32) / scale,
	                 __ATOMIC_RELEASE);
	__atomic_store_n(&state, is_rough ? ROUGHLY : USED, __ATOMIC_RELEASE);
}

/* The two readings are far enough from each other, and on one core. */
static bool can_calibrate(enum state from, uint64_t ns, uint32_t core)
{
	uint64_t passed = ns - __atomic_load_n(&first.ns, __ATOMIC_RELAXED);

	return passed >= (from == ROUGHLY ? CALIBRATION_NS : CALIBRATION_NS / ROUGH) && passed < UINT32_MAX &&
	       core == __atomic_load_n(&first.core, __ATOMIC_RELAXED);
}

/* A later reading has a longer interval, but at most 2^32 ns; and maybe no thread comes to that core. */
static bool is_late(uint64_t ns, uint32_t core)
{
	uint64_t passed = ns - __atomic_load_n(&first.ns, __ATOMIC_RELAXED);

	return passed >= UINT32_MAX ||
	       (passed > MEET_AGAIN_NS && core != __atomic_load_n(&first.core, __ATOMIC_RELAXED));
}

static void give_up(enum state why)
{
	__atomic_store_n(&state, why, __ATOMIC_RELEASE);
	__atomic_store_n(&fast_clock_scale, 0, __ATOMIC_RELAXED);
}

static void calibrate(const struct fast_clock *now)
{
	uint64_t ns = now->ns - first.ns, ticks = now->ticks - first.ticks;

	/* Counters of 10 MHz to 10 GHz. */
	if (ticks > ns / 100 && ticks < ns * 10)
		use((ns << 32) / ticks, ns < CALIBRATION_NS);
	else
		give_up(VARIANT);
}

static void begin(void)
{
	struct fast_clock now;

	find_core(); /* and read once more: now it is known where */
	read_both(&now);
	first.ticks = now.ticks;
	__atomic_store_n(&first.ns, now.ns, __ATOMIC_RELAXED);
	__atomic_store_n(&first.core, now.core, __ATOMIC_RELAXED);
	__atomic_store_n(&state,
	                 !is_invariant() ? VARIANT
	                 : is_trusted()  ? CALIBRATING
	                                 : DISTRUSTED,
	                 __ATOMIC_RELEASE);
}

/* Begins or ends to calibrate, unless another thread is at it. */
static void go_on(enum state from, const struct fast_clock *now)
{
	enum state expected = from;

	/* Acquire: what the other thread wrote; the stores above release it. */
	if (!__atomic_compare_exchange_n(&state, &expected, STARTING, false, __ATOMIC_ACQUIRE,
	                                 __ATOMIC_RELAXED))
		return;
	if (from == UNKNOWN || is_late(now->ns, now->core))
		begin();
	else if (can_calibrate(from, now->ns, now->core))
		calibrate(now);
	else
		__atomic_store_n(&state, from, __ATOMIC_RELEASE);
}

/* Whether the counter has recently kept pace since the thread's last reading. Returned times may
 * have been ahead of the kernel's clock, which is the reading then: less than nothing has passed. */
static bool is_astray(const struct fast_clock *before, const struct fast_clock *now)
{
	uint64_t scale = __atomic_load_n(&fast_clock_scale, __ATOMIC_RELAXED);
	int64_t passed = (int64_t)(now->ns - before->ns), off;
	uint64_t ticks = now->ticks - before->ticks;

	if (!before->ns || !scale || before->core != now->core ||
	    passed > (int64_t)(100 * FAST_CLOCK_REACH_NS) || ticks > UINT32_MAX)
		return false;
	off = (int64_t)(ticks * scale >> 32) - passed;
	return llabs(off) > TRIAL_NS + llabs(passed) / 100;
}

static uint64_t advance(struct fast_clock *clock, uint64_t ns)
{
	return clock->newest = ns > clock->newest ? ns : clock->newest;
}

uint64_t fast_clock_compare(struct fast_clock *clock)
{
	enum state now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
	uint64_t newest = clock->newest, ns;
	struct fast_clock both;
	bool is_close;

	if (now != UNKNOWN && now != ROUGHLY && now != USED) {
		/* Nothing to compare yet, and every reading of the clock comes here. */
		uint32_t core = fast_clock_core();

		ns = clock_ns(CLOCK_MONOTONIC);
		if (now != CALIBRATING || !(can_calibrate(now, ns, core) || is_late(ns, core)))
			return advance(clock, ns);
	}
	is_close = read_both(&both);
	if (now != USED) {
		if (is_close)
			go_on(now, &both);
	} else if (is_close && is_astray(clock, &both)) {
		give_up(ASTRAY);
	}
	/* A time that was returned before may be some ns ahead of it: no time is less than an earlier one. */
	both.ns = both.newest = both.ns > newest ? both.ns : newest;
	/* Acquire: with use(). */
	both.reach = __atomic_load_n(&fast_clock_reach, __ATOMIC_ACQUIRE);
	both.scale = __atomic_load_n(&fast_clock_scale, __ATOMIC_RELAXED);
	if (!both.scale)
		both.reach = 0;
	*clock = both;
	return both.ns;
}

struct fast_moment fast_clock_moment_slowly(void)
{
	return (struct fast_moment){ clock_ns(CLOCK_MONOTONIC), 0 };
}

uint64_t fast_clock_between(struct fast_moment from, uint64_t ticks, uint64_t ns)
{
	uint64_t passed = (from.scale ? ticks : ns) - from.at;

	if ((int64_t)passed <= 0)
		return 0;
	return from.scale ? (uint64_t)((unsigned __int128)passed * from.scale >> 32) : passed;
}

uint64_t fast_clock_since(struct fast_moment from)
{
	return from.scale ? fast_clock_between(from, fast_clock_ticks(), 0)
	                  : fast_clock_between(from, 0, clock_ns(CLOCK_MONOTONIC));
}

const char *fast_clock_source(void)
{
	switch (__atomic_load_n(&state, __ATOMIC_RELAXED)) {
	case ROUGHLY:
	case USED: return "the processor's counter";
	case VARIANT: return "the kernel: the processor's counter does not run at one rate";
	case DISTRUSTED: return "the kernel: it does not trust the processor's counter";
	case ASTRAY: return "the kernel: the processor's counter went astray";
	default: return "the kernel: the processor's counter is not measured yet";
	}
}
