/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/budget.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "handler/timer.h"
#include "settings/setting.h"
#include "wire/ring_layout.h"

/* A longer one has other reasons than samples: the file is opened, modules are read. */
#define STORE_SAMPLE_MOST_NS 40000

/* A signal's way through the kernel and back, in system calls that do nothing. */
#define SIGNAL_SYSCALLS 16
#define SYSCALL_TRIES 8

/* Old costs count half after so long. */
#define MEMORY_NS (0.5 * NS_PER_S)

/* A new stretch aims at this part of the budget; it returns below the other. */
#define AIM 0.85
#define RETURN_BELOW 0.7

/* A timer follows with its next signal. Until all have, part of the cost is that of their old
 * intervals: at most for this long, it changes nothing. */
#define HOLD_MOST_NS (2 * NS_PER_S)

/* The flusher is woken when the ring is half full. Intervals double above this part of it; but not for
 * ever, as another process may have the file. */
#define RING_FULL 0.625
#define RING_STRETCH_MOST 16

/* Threads that were in queries at one of the recent checks count, and so do those that ended a
 * moment ago: between two queries they are in none. */
#define CHECKS 4

/* In force from the next look on. */
SETTING_NUMBER(max_threads, "", 1, 100000, 16, .name = "query_profiler_max_threads", .zero = "no limit",
               .description = "Threads sampled on the wall clock at the full rate at the same time; with "
                              "more threads in queries, each has fewer samples, which weigh more");
SETTING_NUMBER(
	max_percent, "%", 1, 100, 2, .name = "query_profiler_max_overhead_percent", .zero = "no limit",
	.description =
		"Limit of the sampling cost, of the queries' CPU time or of one processor; above it samples "
		"are fewer and weigh more");
static uint64_t in_queries, threads_then, cost_ppm, signal_ns; /* atomic */
static uint64_t storing_now, stored_now;                       /* atomic; budget_note_storing() */
static uint64_t checked_ns;  /* atomic, CLOCK_REALTIME: the last one of a handler */
static uint32_t is_checking; /* atomic */

/* Only the thread that looks uses this. */
static struct {
	uint64_t at_ns;                       /* of the last check, 0: there was none */
	uint64_t signals, handler_ns, cpu_ns; /* sums of the ledger then */
	uint64_t taken, storing_ns, stored;
	double store_one_ns;              /* CPU time of the flusher for a sample; it comes late */
	double cost, time;                /* of the last second or so */
	double crowd;                     /* stretch for the sake of the threads */
	double overhead;                  /* and so much more of it for the sake of the cost */
	uint64_t longest_ns;              /* interval of the threads in queries, then */
	uint64_t hold_ns;                 /* until then the overhead stays */
	uint32_t counted[CHECKS], checks; /* threads in queries, by look */
	uint32_t threads;                 /* the most of them */
} budget = { .crowd = 1, .overhead = 1 };

void budget_after_fork(void)
{
	memset(&budget, 0, sizeof(budget));
	budget.crowd = 1;
	budget.overhead = 1;
	is_checking = 0;
	storing_now = stored_now = 0;
	timer_stretch[TIMER_CPU] = timer_stretch[TIMER_REAL] = TIMER_STRETCH_PARTS;
	in_queries = threads_then = cost_ppm = 0;
}

/* The fastest of some: others may have been interrupted. */
void budget_calibrate(void)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < SYSCALL_TRIES; i++) {
		uint64_t start = clock_ns(CLOCK_MONOTONIC);
		for (int call = 0; call < SIGNAL_SYSCALLS; call++)
			syscall(SYS_getppid);
		uint64_t took = clock_ns(CLOCK_MONOTONIC) - start;
		least = took < least ? took : least;
	}
	__atomic_store_n(&signal_ns, least, __ATOMIC_RELAXED);
}

/* What all slots have at a moment. */
struct seen {
	uint32_t threads, in_queries;
	uint64_t longest_ns; /* interval of the threads in queries */
	uint64_t ledger[LEDGER_COUNTERS];
};

static void see_slot(struct seen *seen, const struct thread *slot)
{
	const struct thread_timer *timer = &slot->timers[TIMER_REAL];

	seen->threads += __atomic_load_n(&slot->owner, __ATOMIC_RELAXED) != 0;
	for (int which = 0; which < LEDGER_COUNTERS; which++)
		seen->ledger[which] += __atomic_load_n(&slot->handler.counters[which], __ATOMIC_RELAXED);
	if (!TIMER_GET(timer, armed) || __atomic_load_n(&slot->nesting, __ATOMIC_RELAXED) == 0)
		return;
	seen->in_queries++;
	if (timer_interval(timer) > seen->longest_ns)
		seen->longest_ns = timer_interval(timer);
}

/* Each slot once: with thousands of threads each look at one is a cold one. Of slots that were never in use
 * all is 0. */
static void see_slots(struct seen *seen)
{
	/* Acquire: the blocks. */
	const uint32_t blocks = __atomic_load_n(&thread_block_count, __ATOMIC_ACQUIRE);
	const size_t bytes = thread_slot_bytes();

	memset(seen, 0, sizeof(*seen));
	for (int which = 0; which < LEDGER_COUNTERS; which++)
		seen->ledger[which] = __atomic_load_n(&thread_slotless_counters[which], __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < blocks * THREADS_PER_BLOCK; i++)
		see_slot(seen, (const struct thread *)(const void *)(thread_blocks[i / THREADS_PER_BLOCK] +
		                                                     i % THREADS_PER_BLOCK * bytes));
}

static double clip(double value, double least, double most)
{
	return value < least ? least : value > most ? most : value;
}

/* The threads that come and go around the number change nothing. */
static double stretch_for_crowd(uint32_t now)
{
	uint32_t limit = (uint32_t)__atomic_load_n(&max_threads, __ATOMIC_RELAXED);

	budget.counted[budget.checks++ % CHECKS] = now;
	budget.threads = 0;
	for (int i = 0; i < CHECKS; i++)
		budget.threads = budget.counted[i] > budget.threads ? budget.counted[i] : budget.threads;
	if (limit == 0)
		return 1;
	double wanted = clip((double)budget.threads / limit, 1, TIMER_STRETCH_MAX);

	return wanted > budget.crowd || 1.25 * budget.threads / limit < budget.crowd ? wanted : budget.crowd;
}

static bool gets_full(const struct ring *ring)
{
	return ring && (double)ring_used_bytes(ring) > RING_FULL * (double)ring->bytes;
}

static double stretch_for_overhead(double ratio, bool ring_gets_full)
{
	uint32_t percent = (uint32_t)__atomic_load_n(&max_percent, __ATOMIC_RELAXED);
	double wanted = budget.overhead;

	if (percent == 0)
		return 1;
	ratio *= 100.0 / percent;
	if (budget.at_ns < budget.hold_ns)
		return wanted;
	if (ring_gets_full)
		wanted *= wanted < RING_STRETCH_MOST ? 2 : 1;
	else if (ratio > 1 || ratio < RETURN_BELOW)
		wanted *= ratio / AIM;
	wanted = clip(wanted, 1, TIMER_STRETCH_MAX);
	/* The cost that was measured with the old stretch, as it would have been with the new one. */
	budget.cost *= budget.overhead / wanted;
	if (wanted != budget.overhead)
		budget.hold_ns =
			budget.at_ns + (budget.longest_ns < HOLD_MOST_NS ? budget.longest_ns : HOLD_MOST_NS);
	return wanted;
}

/* The growth of a sum since the last look. */
static double since(uint64_t *last, uint64_t now)
{
	uint64_t before = *last;

	*last = now;
	return now > before ? (double)(now - before) : 0;
}

/* Cost divided by time. `begun` threads have started: the first sample of each comes whatever the
 * stretch is, and predicts nothing. */
static double measure(uint64_t now, const uint64_t ledger[LEDGER_COUNTERS], double begun)
{
	double elapsed = (double)(now - budget.at_ns), keep = MEMORY_NS / (MEMORY_NS + elapsed);

	double signals = since(&budget.signals, ledger[LEDGER_SIGNALS]);
	double handlers = since(&budget.handler_ns, ledger[LEDGER_COST_NS]);
	double cpu = since(&budget.cpu_ns, ledger[LEDGER_CPU_NS]);
	double taken = since(&budget.taken, ledger[LEDGER_STORED]);
	double storing = since(&budget.storing_ns, __atomic_load_n(&storing_now, __ATOMIC_RELAXED));
	double samples = since(&budget.stored, __atomic_load_n(&stored_now, __ATOMIC_RELAXED));

	if (samples > 0)
		budget.store_one_ns =
			storing < samples * STORE_SAMPLE_MOST_NS ? storing / samples : STORE_SAMPLE_MOST_NS;

	budget.at_ns = now;
	double cost = handlers + signals * (double)signal_ns + taken * budget.store_one_ns;
	budget.cost = budget.cost * keep + (begun < signals ? cost * (1 - begun / signals) : 0);
	budget.time = budget.time * keep + (cpu > elapsed ? cpu : elapsed);
	return budget.cost / budget.time;
}

/* Steps an octave. A thread has a series in the file for each stretch that it ever had. */
#define STRETCH_STEPS 16

/* A stretch that a timer may have; a long one is a bit longer than requested. */
static double round_stretch(double stretch)
{
	stretch = clip(stretch, 1, TIMER_STRETCH_MAX);

	uint32_t step = 1;

	while (stretch / step >= 2 * STRETCH_STEPS)
		step *= 2;
	uint32_t rounded = (uint32_t)(stretch / step) * step;
	return step == 1 ? stretch : rounded < stretch ? rounded + step : rounded;
}

/* The share of timers with the longer interval such that all signals together are 1 / stretch of
 * their number without it. */
static void set_stretch(enum timer_clock clock, double wanted)
{
	double stretch = round_stretch(wanted);
	uint32_t whole = (uint32_t)stretch;
	double longer = (stretch - whole) * (whole + 1) / stretch;

	/* Relaxed: it is independent of other memory. */
	__atomic_store_n(&timer_stretch[clock], (uint32_t)((whole + longer) * TIMER_STRETCH_PARTS),
	                 __ATOMIC_RELAXED);
}

static uint64_t longest_stretch(enum timer_clock clock)
{
	uint32_t parts = __atomic_load_n(&timer_stretch[clock], __ATOMIC_RELAXED);

	return (parts + TIMER_STRETCH_PARTS - 1) / TIMER_STRETCH_PARTS;
}

uint32_t budget_first_stretch(const struct thread_timer *timer, enum timer_clock clock, uint64_t threads)
{
	uint64_t then, periods;
	uint32_t limit = (uint32_t)__atomic_load_n(&max_threads, __ATOMIC_RELAXED);
	uint32_t stretch = timer_stretch_of(timer, clock);

	then = __atomic_load_n(&threads_then, __ATOMIC_RELAXED);
	if (clock != TIMER_REAL || limit == 0 || threads <= then)
		return stretch;
	threads += __atomic_load_n(&in_queries, __ATOMIC_RELAXED) - then;
	periods = threads / limit;
	return (uint32_t)clip(round_stretch((double)periods), stretch, TIMER_STRETCH_MAX);
}

/* Above half of a limit. */
static bool is_busy(void)
{
	uint32_t limit = (uint32_t)__atomic_load_n(&max_threads, __ATOMIC_RELAXED);
	uint32_t percent = (uint32_t)__atomic_load_n(&max_percent, __ATOMIC_RELAXED);

	return longest_stretch(TIMER_CPU) > 1 || longest_stretch(TIMER_REAL) > 1 ||
	       (limit != 0 && budget.threads * 2 > limit) ||
	       (percent != 0 && budget.cost * 200 > budget.time * percent);
}

static void update(const struct ring *ring, uint64_t now)
{
	struct seen seen;

	if (budget.at_ns == 0)
		budget.at_ns = now - BUDGET_CHECK_NS;
	see_slots(&seen);
	double ratio = measure(now, seen.ledger,
	                       seen.in_queries > budget.threads ? seen.in_queries - budget.threads : 0);

	budget.longest_ns = seen.longest_ns;
	__atomic_store_n(&threads_then, seen.threads, __ATOMIC_RELAXED);
	__atomic_store_n(&in_queries, seen.in_queries, __ATOMIC_RELAXED);
	__atomic_store_n(&cost_ppm, (uint64_t)(ratio * 1e6), __ATOMIC_RELAXED);
	budget.crowd = stretch_for_crowd(seen.in_queries);
	budget.overhead = stretch_for_overhead(ratio, gets_full(ring));
	set_stretch(TIMER_REAL, budget.crowd * budget.overhead);
	set_stretch(TIMER_CPU, budget.overhead);
}

/* Another thread may be working on it, or have been interrupted there by this one's handler; that
 * is sufficient. */
bool budget_update(const struct ring *ring)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	bool busy;

	if (__atomic_exchange_n(&is_checking, 1, __ATOMIC_ACQUIRE))
		return true;
	if (budget.at_ns == 0 || now - budget.at_ns >= BUDGET_CHECK_NS / 2)
		update(ring, now);
	busy = is_busy();
	__atomic_store_n(&is_checking, 0, __ATOMIC_RELEASE);
	return busy;
}

/* A clock that was set back shows a long time. */
void budget_check(const struct ring *ring, uint64_t realtime_ns)
{
	uint64_t before = __atomic_load_n(&checked_ns, __ATOMIC_RELAXED);

	if (realtime_ns - before < BUDGET_CHECK_NS ||
	    !__atomic_compare_exchange_n(&checked_ns, &before, realtime_ns, false, __ATOMIC_RELAXED,
	                                 __ATOMIC_RELAXED))
		return;
	budget_update(ring);
}

void budget_note_storing(uint64_t storing_ns, uint64_t stored)
{
	__atomic_store_n(&storing_now, storing_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&stored_now, stored, __ATOMIC_RELAXED);
}

static uint64_t count(enum ledger_counter which)
{
	struct seen seen;

	see_slots(&seen);
	return seen.ledger[which];
}

uint64_t budget_figure(enum budget_figure which)
{
	switch (which) {
	case BUDGET_IN_QUERIES: return __atomic_load_n(&in_queries, __ATOMIC_RELAXED);
	case BUDGET_CPU_STRETCH: return longest_stretch(TIMER_CPU);
	case BUDGET_REAL_STRETCH: return longest_stretch(TIMER_REAL);
	case BUDGET_SIGNAL_NS: return __atomic_load_n(&signal_ns, __ATOMIC_RELAXED);
	case BUDGET_COST_NS:
		return count(LEDGER_COST_NS) +
		       count(LEDGER_SIGNALS) * __atomic_load_n(&signal_ns, __ATOMIC_RELAXED);
	case BUDGET_COST_PPM: return __atomic_load_n(&cost_ppm, __ATOMIC_RELAXED);
	}
	return 0;
}
