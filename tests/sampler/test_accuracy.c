/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares weight x period with the clocks: for one long query, and for many short queries between code of
 * the host, during which the timers are disarmed and armed all the time.
 *
 * The expected error of short queries: the kernel's ticks, 250 a second, hit a query by chance. So a share p
 * that is measured over n ticks has a standard deviation of sqrt(p (1 - p) / n). On a loaded machine the
 * deviation is larger because the CPU time between ticks varies. Then it is computed from the differences
 * between the parts of a measurement. The bounds are five times the larger deviation.
 */
#include "common.h"
#include "../lib/seed.h"
#include "../lib/spin.h"
#include "handler/timer.h"

#include <math.h>
#include <pthread.h>
#include <sys/resource.h>

static struct ring *ring;
static struct query_run run; /* never unmapped */

/* QUERYPROF_TEST_FACTOR=10 makes everything ten times as long, and the bounds accordingly narrow. */
static double factor = 1;

static unsigned seed;

static double share(uint64_t part, uint64_t whole)
{
	return (double)part / (double)whole;
}

/* The parts of a measurement: the sampled time, and the clock's time. */
#define PARTS 20

struct parts {
	double sampled[PARTS], exact[PARTS];
};

static double total_of(const double of[PARTS])
{
	double sum = 0;

	for (int p = 0; p < PARTS; p++)
		sum += of[p];
	return sum;
}

/* Fails if the sums differ by more than chance. `by_ticks`: the deviation of their ratio for evenly spaced
 * ticks. `missed`: the share that ticks may miss. */
static void check_parts(const struct parts *parts, double by_ticks, double missed)
{
	double exact = total_of(parts->exact), found = total_of(parts->sampled) / exact, squares = 0;

	for (int p = 0; p < PARTS; p++)
		squares += pow(parts->sampled[p] - found * parts->exact[p], 2);
	double deviation = fmax(by_ticks, sqrt(squares * PARTS / (PARTS - 1)) / exact);
	printf("  found %.3f of %.2f s, deviation %.3f (%.3f by ticks)\n", found, exact / 1e9, deviation,
	       by_ticks);
	assert_true(found - 1 < 5 * deviation);
	assert_true(found - 1 > -5 * deviation - missed);
}

static void test_long_query(void **state)
{
	static const uint64_t periods[] = { 1000000, 20000000, 50000 };
	struct thread *thread = sampler_thread();
	(void)state;

	for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
		struct drained seen = { 0 };
		struct query_tag tag;

		drain(ring, &(struct drained){ 0 });
		query_start(&run, thread);
		tag = tag_of(&run, periods[i], periods[i]);
		uint64_t cpu = cpu_now(), wall = clock_ns(CLOCK_MONOTONIC);
		sampler_push(thread, &tag);
		while (cpu_now() - cpu < (uint64_t)(2e9 * factor)) {
			spin(100000000);
			drain(ring, &seen);
		}
		sampler_pop(thread);
		cpu = cpu_now() - cpu;
		wall = clock_ns(CLOCK_MONOTONIC) - wall;
		drain(ring, &seen);
		double cpu_share = share(seen.time_ns[SAMPLE_CPU], cpu);
		double real_share = share(seen.time_ns[SAMPLE_REAL], wall);
		printf("period %8llu: CPU %.4f of %.3f s, Real %.4f of %.3f s\n",
		       (unsigned long long)periods[i], cpu_share, (double)cpu / 1e9, real_share,
		       (double)wall / 1e9);
		assert_int_equal(seen.wrong, 0);
		/* The sums are exact, except for a period and a tick at each end. */
		assert_true(fabs(cpu_share - 1) < 0.005 + 0.025 / factor);
		assert_true(fabs(real_share - 1) < 0.005 + 0.025 / factor);
		assert_int_equal(run.counts.weights[SAMPLE_CPU], seen.weights[SAMPLE_CPU]);
		assert_int_equal(run.counts.samples[SAMPLE_REAL], seen.samples[SAMPLE_REAL]);
	}
}

/* At a query's end, the CPU time since the last tick that hit its thread is lost: one tick if the thread has
 * a CPU for itself, at most so many if it shares the CPU. */
#define TICKS_LOST 8

static void test_half_asleep(void **state)
{
	struct thread *thread = sampler_thread();
	struct drained seen = { 0 };
	(void)state;

	drain(ring, &(struct drained){ 0 });
	query_start(&run, thread);
	struct query_tag tag = tag_of(&run, 1000000, 1000000);
	uint64_t cpu = cpu_now(), wall = clock_ns(CLOCK_MONOTONIC);
	sampler_push(thread, &tag);
	for (int i = 0; i < 10; i++) {
		spin(50000000);
		pause_for(50000000);
	}
	sampler_pop(thread);
	cpu = cpu_now() - cpu;
	wall = clock_ns(CLOCK_MONOTONIC) - wall;
	drain(ring, &seen);
	double found = share(seen.time_ns[SAMPLE_CPU], cpu);
	printf("half asleep: CPU %.4f of %.3f s, Real %.4f\n", found, (double)cpu / 1e9,
	       share(seen.time_ns[SAMPLE_REAL], wall));
	assert_true(found - 1 < 0.05);
	/* Like each thread of test_busy_threads() at its end. */
	assert_true(found - 1 > -0.005 - TICKS_LOST * 4e6 / (double)cpu);
	assert_true(fabs(share(seen.time_ns[SAMPLE_REAL], wall) - 1) < 0.05);
}

/* Runs queries of `query_ns` of CPU time, with `host_ns` on average between them. The CPU clock is read only
 * between parts. A thread that reads it after each query would end its turns there (spin.h) and begin the
 * next turn with a query, so no tick would hit a query. Within a part, the queries' share of the CPU time is
 * their share of the rounds. Returns how many queries armed the timer. */
static int short_queries(uint64_t query_ns, uint64_t host_ns, uint64_t period_ns, double seconds)
{
	struct thread *thread = sampler_thread();
	struct drained seen = { 0 };
	struct parts parts = { 0 };
	uint64_t count = 0, total = 0, signals = ledger_read(LEDGER_SIGNALS);
	int armed = 0;

	seconds *= factor;
	drain(ring, &(struct drained){ 0 });
	query_start(&run, thread);
	struct query_tag tag = tag_of(&run, period_ns, 0);
	for (int part = 0; part < PARTS; part++) {
		uint64_t sampled = seen.time_ns[SAMPLE_CPU], queries = 0, all = 0, start = cpu_now();
		while ((double)all < seconds * 1e9 / PARTS) {
			/* The length is random so that it does not keep step with the tick. */
			uint64_t host = host_ns / 2 + (uint64_t)rand_r(&seed) % host_ns;
			armed += !thread->timers[TIMER_CPU].armed;
			sampler_push(thread, &tag);
			spin(query_ns);
			sampler_pop(thread);
			spin(host);
			queries += query_ns;
			all += query_ns + host;
			count++;
		}
		uint64_t cpu = cpu_now() - start;
		drain(ring, &seen);
		total += cpu;
		parts.exact[part] = (double)cpu * share(queries, all);
		parts.sampled[part] = (double)(seen.time_ns[SAMPLE_CPU] - sampled);
	}
	double p = total_of(parts.exact) / (double)total;
	/* Ticks that hit a query, or points of the grid, whichever are fewer. */
	double hits = seconds * p * (period_ns > 4000000 ? 1e9 / (double)period_ns : 250);
	printf("%6llu queries of %llu us in %4.1f %% of the CPU, period %8llu, %llu signals\n",
	       (unsigned long long)count, (unsigned long long)(query_ns / 1000), p * 100,
	       (unsigned long long)period_ns, (unsigned long long)(ledger_read(LEDGER_SIGNALS) - signals));
	check_parts(&parts, sqrt((1 - p) / hits), 0);
	return armed;
}

static void test_short_queries(void **state)
{
	(void)state;
	short_queries(1000000, 3000000, 1000000, 2);
	short_queries(1000000, 3000000, 20000000, 2);
	short_queries(1000000, 3000000, 10000, 1);
	short_queries(100000, 100000, 3900000, 1);
	short_queries(2000000, 7000000, 5000000, 1);
	short_queries(300000, 6000000, 100000, 1);
}

/* Acts as if queries were a second apart. The first queries arm the timer again, until it stays armed that
 * long. */
static void test_seldom_queries(void **state)
{
	struct thread_timer *timer = &sampler_thread()->timers[TIMER_CPU];
	uint64_t idle_max_ns = timer->idle_max_ns;
	(void)state;

	timer->idle_max_ns = 2000000;
	assert_in_range(short_queries(3000000, 20000000, 1000000, 2), 1, 10);
	timer->idle_max_ns = idle_max_ns;
}

/* Threads that live for one query, shorter than a tick. A loaded machine starts them right after a tick, so
 * they first do other work of random length. They read the CPU clock only at their end, see spin.h. */
#define SHORT_NS 1500000

static uint64_t threads_cpu_ns;
static int preempted;

static void *live_shortly(void *context)
{
	struct query_tag *tag = context;
	struct thread *thread = sampler_thread();
	uint64_t before = (uint64_t)(random() % 4000000); /* one thread at a time */
	struct rusage usage;

	spin(before);
	sampler_push(thread, tag);
	spin(SHORT_NS);
	sampler_pop(thread);
	threads_cpu_ns += cpu_now() * SHORT_NS / (before + SHORT_NS);
	preempted += getrusage(RUSAGE_THREAD, &usage) == 0 && usage.ru_nivcsw > 0;
	return NULL;
}

static void test_short_threads(void **state)
{
	struct drained seen = { 0 };
	struct parts parts = { 0 };
	(void)state;

	drain(ring, &(struct drained){ 0 });
	query_start(&run, sampler_thread());
	threads_cpu_ns = 0;
	preempted = 0;
	struct query_tag tag = tag_of(&run, 1000000, 0);
	int count = (int)(800 * factor);
	for (int i = 0; i < count; i++) {
		uint64_t cpu = threads_cpu_ns, sampled = seen.time_ns[SAMPLE_CPU];
		int part = i * PARTS / count;
		pthread_t thread;
		assert_int_equal(pthread_create(&thread, NULL, live_shortly, &tag), 0);
		pthread_join(thread, NULL);
		drain(ring, &seen);
		parts.exact[part] += (double)(threads_cpu_ns - cpu);
		parts.sampled[part] += (double)(seen.time_ns[SAMPLE_CPU] - sampled);
	}
	printf("%d threads of 1.5 ms, %d preempted, period 1 ms\n", count, preempted);
	/* If a turn has lasted long enough, the kernel ends it when the query arms the timer, and the due
	 * tick never comes. */
	check_parts(&parts, sqrt(1 / ((double)threads_cpu_ns / 4e6)), (double)preempted / count);
}

/* More threads than processors, each with a query of its own. */
#define BUSY 8

static uint64_t busy_cpu_ns[BUSY];
static uint64_t busy_period_ns;

static void *be_busy(void *context)
{
	static struct query_run runs[BUSY];
	uint64_t *spent = context;
	struct query_run *mine = &runs[spent - busy_cpu_ns];
	struct thread *thread = sampler_thread();

	query_start(mine, thread);
	struct query_tag tag = tag_of(mine, busy_period_ns, 0);
	uint64_t start = cpu_now();
	sampler_push(thread, &tag);
	spin((uint64_t)(250000000 * factor));
	sampler_pop(thread);
	*spent = cpu_now() - start;
	return NULL;
}

static void test_busy_threads(void **state)
{
	static const uint64_t periods[] = { 1000000, 20000000 };
	pthread_t threads[BUSY];
	(void)state;

	for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
		struct drained seen = { 0 };
		uint64_t cpu = 0;

		drain(ring, &(struct drained){ 0 });
		busy_period_ns = periods[i];
		for (int t = 0; t < BUSY; t++)
			assert_int_equal(pthread_create(&threads[t], NULL, be_busy, &busy_cpu_ns[t]), 0);
		for (int t = 0; t < BUSY; t++) {
			pthread_join(threads[t], NULL);
			cpu += busy_cpu_ns[t];
		}
		drain(ring, &seen);
		double found = share(seen.time_ns[SAMPLE_CPU], cpu);
		printf("%d threads, period %8llu: CPU %.4f of %.3f s\n", BUSY, (unsigned long long)periods[i],
		       found, (double)cpu / 1e9);
		assert_int_equal(seen.wrong, 0);
		/* Each thread deviates by half a period. Its first tick counts as a whole tick, however soon
		 * it comes; threads that begin together may all begin right before a tick. */
		double deviation = 0.5 * sqrt(BUSY) * (double)busy_period_ns / (double)cpu;
		double gained = BUSY * (double)timer_tick_ns / (double)cpu;
		double lost = BUSY * TICKS_LOST * 4e6 / (double)cpu;
		assert_true(found - 1 < 0.005 + gained + 4.5 * deviation);
		assert_true(found - 1 > -0.005 - lost - 4.5 * deviation);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_long_query),     cmocka_unit_test(test_busy_threads),
		cmocka_unit_test(test_half_asleep),    cmocka_unit_test(test_short_queries),
		cmocka_unit_test(test_seldom_queries), cmocka_unit_test(test_short_threads),
	};

	if (getenv("QUERYPROF_TEST_FACTOR"))
		factor = atof(getenv("QUERYPROF_TEST_FACTOR"));
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	seed = (unsigned)test_seed(1);
	ring = ring_create(8 << 20);
	if (ring == NULL || sampler_init(ring) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
