/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler on one thread, with real timers: timers, grids, nesting, stop and start, queries. Each test
 * runs in a separate process, because most need the sampler's very first steps.
 */
#include "alone.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include "handler/timer.h"

/* --- timers ---------------------------------------------------------------------------- */

static void refused_timers(void)
{
	struct rlimit usual, none;

	begin();
	struct thread *thread = sampler_thread();
	CHECK(getrlimit(RLIMIT_SIGPENDING, &usual) == 0);
	none = usual;
	none.rlim_cur = 0;
	CHECK(setrlimit(RLIMIT_SIGPENDING, &none) == 0);
	for (int i = 0; i < 100000; i++) {
		push(thread, 1000000, 1000000);
		sampler_pop(thread);
	}
	printf("refused %llu times, errno %llu\n", (unsigned long long)sampler_counter(SAMPLER_TIMERS_FAILED),
	       (unsigned long long)sampler_counter(SAMPLER_TIMER_ERRNO));
	CHECK(sampler_counter(SAMPLER_TIMERS_FAILED) >= 1);
	CHECK(sampler_counter(SAMPLER_TIMERS_FAILED) < 10); /* not tried at each query */
	CHECK(sampler_counter(SAMPLER_TIMER_ERRNO) == EAGAIN);
	CHECK(sampler_counter(SAMPLER_TIMERS) == 0);
	/* The sampler tries again later, and then there are samples. */
	CHECK(setrlimit(RLIMIT_SIGPENDING, &usual) == 0);
	while (stored() == 0) {
		push(thread, 1000000, 0);
		burn(5000000);
		sampler_pop(thread);
	}
	CHECK(sampler_counter(SAMPLER_TIMERS) == 1);
}

static void test_refused_timers(void **state)
{
	(void)state;
	assert_int_equal(status_of(refused_timers), 0);
}

static uint64_t time_left(const struct thread_timer *timer)
{
	struct itimerspec left = { { 0, 0 }, { 0, 0 } };

	syscall(SYS_timer_gettime, timer_id(timer), &left);
	return (uint64_t)left.it_value.tv_sec * NS_PER_S + (uint64_t)left.it_value.tv_nsec;
}

/* Whether the kernel's next expiry is a point of the grid. It lies between the times that two readings of the
 * clock give, so a point must be there. */
static bool is_on_grid(const struct thread_timer *timer)
{
	uint64_t from = clock_ns(CLOCK_MONOTONIC), left = time_left(timer);
	uint64_t to = clock_ns(CLOCK_MONOTONIC) + left + 1;

	return timer_points(timer, to, to - (from + left) + 1) != 0;
}

static void phase_is_kept(void)
{
	const uint64_t period = 40000000;
	uint64_t grid = 0;

	begin();
	struct thread *thread = sampler_thread();
	struct thread_timer *timer = &thread->timers[TIMER_REAL];
	for (int i = 0; i < 12; i++) {
		push(thread, 0, period);
		CHECK(timer->armed && timer->period_ns == period);
		if (i == 0)
			grid = timer->grid_ns;
		CHECK(timer->grid_ns == grid);
		CHECK(is_on_grid(timer));
		sampler_pop(thread);
		while (timer->armed) /* until the signal that finds no query */
			pause_for(1000000);
		CHECK(time_left(timer) == 0);
		pause_for((uint64_t)i * 7000000);
	}
	CHECK(ledger_read(LEDGER_IDLE) == 12);
	/* Another period has another grid. */
	push(thread, 0, period + 1);
	CHECK(timer->grid_ns != grid && is_on_grid(timer));
}

static void test_phase_is_kept(void **state)
{
	(void)state;
	assert_int_equal(status_of(phase_is_kept), 0);
}

#define IDLE_MS 250 /* instead of a second */

static void idle_thread(void)
{
	begin();
	struct thread *thread = sampler_thread();
	for (uint64_t turn = 1; turn <= 2; turn++) {
		push(thread, 1000000, 1000000);
		if (turn == 1) {
			CHECK(thread->timers[TIMER_CPU].idle_max_ns == NS_PER_S);
			thread->timers[TIMER_CPU].idle_max_ns = IDLE_MS * 1000000;
		}
		burn_for_samples(4);
		sampler_pop(thread);
		/* The timer of wall time sends one signal. The CPU timer sends at most one for each period of
		 * IDLE_MS, and of twice as long the next time. */
		uint64_t signals = ledger_read(LEDGER_SIGNALS), cpu = cpu_now();
		while (thread->timers[TIMER_REAL].armed)
			burn(1000000);
		CHECK(thread->timers[TIMER_CPU].armed);
		wait_for_idle(thread);
		cpu = cpu_now() - cpu;
		signals = ledger_read(LEDGER_SIGNALS) - signals;
		printf("%llu signals after the last query, in %.3f s\n", (unsigned long long)signals,
		       (double)cpu / 1e9);
		CHECK(signals <= IDLE_MS * turn + 3);
		CHECK(cpu > (IDLE_MS * turn - 10) * 1000000);
		signals = ledger_read(LEDGER_SIGNALS);
		burn(30000000);
		CHECK(ledger_read(LEDGER_SIGNALS) == signals);
	}
	assert_ledger();
}

static void test_idle_thread(void **state)
{
	(void)state;
	assert_int_equal(status_of(idle_thread), 0);
}

/* Threads' phases are uniform in (0, period], with mean 1 / 2 and standard deviation 1 / sqrt(12 n). */
#define PHASES 400

static double phase_sum;

static void *add_phase(void *context)
{
	struct thread *thread = sampler_thread();
	struct query_tag tag = tag_of(&run, 0, 100 * NS_PER_S);
	(void)context;

	uint64_t before = clock_ns(CLOCK_MONOTONIC);
	sampler_push(thread, &tag);
	uint64_t grid = thread->timers[TIMER_REAL].grid_ns;
	CHECK(grid > before);
	CHECK(grid <= clock_ns(CLOCK_MONOTONIC) + 100 * NS_PER_S);
	phase_sum += (double)(grid - before) / (100e9);
	sampler_pop(thread);
	return NULL;
}

static void phases(void)
{
	begin();
	query_start(&run, sampler_thread());
	for (int i = 0; i < PHASES; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, add_phase, NULL);
		pthread_join(thread, NULL);
	}
	printf("mean phase %.3f\n", phase_sum / PHASES);
	CHECK(fabs(phase_sum / PHASES - 0.5) < 4.5 / sqrt(12.0 * PHASES));
}

static void test_phases(void **state)
{
	(void)state;
	assert_int_equal(status_of(phases), 0);
}

/* A thread that is about to wait gets no more signals, and has the same grid afterwards. */
static void rest(void)
{
	begin();
	struct thread *thread = sampler_thread();
	const struct thread_timer *timer = &thread->timers[TIMER_REAL];
	push(thread, 0, 1000000);
	CHECK(timer->armed);
	sampler_pop(thread);
	sampler_rest(thread);
	CHECK(!timer->armed);
	uint64_t signals = ledger_read(LEDGER_SIGNALS), grid = timer->grid_ns;
	struct timespec time = timespec_of_ns(20000000);
	CHECK(nanosleep(&time, NULL) == 0);
	CHECK(ledger_read(LEDGER_SIGNALS) == signals);
	push(thread, 0, 1000000);
	CHECK(timer->armed && timer->grid_ns == grid);
	/* A signal ends a sleep early, unless the thread gets no processor until the sleep's end. */
	while (ledger_read(LEDGER_SIGNALS) == signals)
		nanosleep(&time, NULL);
	sampler_pop(thread);
}

static void test_rest(void **state)
{
	(void)state;
	assert_int_equal(status_of(rest), 0);
}

/* --- nesting ------------------------------------------------------------------------------ */

static void nesting(void)
{
	static struct query_run runs[40];

	begin();
	struct thread *thread = sampler_thread();
	struct thread_timer *timer = &thread->timers[TIMER_CPU];
	for (int i = 0; i < 40; i++) {
		query_start(&runs[i], thread);
		CHECK(runs[i].counts.start.initial.lo == runs[i].key.lo &&
		      runs[i].counts.start.parent.lo == 0);
		struct query_tag tag = tag_of(&runs[i], 1000000 + (uint64_t)i % QUERY_NESTING, 0);
		sampler_push(thread, &tag);
		int innermost = i < QUERY_NESTING ? i : QUERY_NESTING - 1;
		CHECK(nesting_top(thread)->counts == &runs[innermost].counts);
		CHECK(timer->period_ns == 1000000 + (uint64_t)innermost);
	}
	burn_for_samples(3);
	CHECK(runs[QUERY_NESTING - 1].counts.samples[SAMPLE_CPU] >= 1);
	for (int i = 39; i >= 0; i--) {
		sampler_pop(thread);
		int innermost = i - 1 < QUERY_NESTING ? i - 1 : QUERY_NESTING - 1;
		if (i == 0)
			CHECK(nesting_top(thread) == NULL);
		else
			CHECK(nesting_top(thread)->counts == &runs[innermost].counts &&
			      timer->period_ns == 1000000 + (uint64_t)innermost);
	}
	sampler_pop(thread); /* one pop too many is ignored */
	CHECK(thread->nesting == 0);

	/* A query without samples inside a query with samples. */
	push(thread, 1000000, 0);
	struct query_tag none = tag_of(&runs[1], 0, 0);
	sampler_push(thread, &none);
	uint64_t before = stored();
	while (timer->armed)
		burn(1000000);
	CHECK(stored() == before);
	sampler_pop(thread);
	CHECK(timer->armed);
	burn_for_samples(3);
	sampler_pop(thread);
}

static void test_nesting(void **state)
{
	(void)state;
	assert_int_equal(status_of(nesting), 0);
}

/* --- stop, start, exclude -------------------------------------------------------------------- */

static void stop_and_start(void)
{
	struct drained seen = { 0 };

	begin();
	struct thread *thread = sampler_thread();
	push(thread, 1000000, 1000000);
	burn_for_samples(4);
	sampler_stop();
	CHECK(sampler_quiesce());
	CHECK(sampler_thread() == NULL);
	drain(ring, &seen);
	uint64_t before = stored();
	burn(30000000);
	CHECK(stored() == before);
	sampler_pop(thread);
	push(thread, 1000000, 1000000);
	query_leave(&run, thread);
	query_finish(&run, &(struct query_end){ .query = "late" });
	burn(30000000);
	sampler_pop(thread);
	CHECK(stored() == before);
	CHECK(ring_head(ring) == ring_tail(ring));
	int number = sampler_signal();
	CHECK(sampler_init(ring) == 0);
	CHECK(sampler_signal() == number && sampler_thread() == thread);
	push(thread, 1000000, 1000000);
	burn_for_samples(4);
	sampler_pop(thread);
	assert_ledger();
}

static void excluded(void)
{
	begin();
	CHECK(sampler_thread() != NULL);
	CHECK(sampler_counter(SAMPLER_THREADS) == 1);
	sampler_exclude_thread();
	CHECK(sampler_thread() == NULL);
	CHECK(sampler_counter(SAMPLER_THREADS) == 0);
}

static void test_stop_and_start(void **state)
{
	(void)state;
	assert_int_equal(status_of(stop_and_start), 0);
	assert_int_equal(status_of(excluded), 0);
}

/* --- queries ----------------------------------------------------------------------------------- */

static struct query_record *newest_query(void)
{
	static struct query_record *copy;
	unsigned kind;
	size_t size;
	void *record;

	while ((record = ring_peek(ring, &kind, &size))) {
		if (kind == RECORD_QUERY) {
			free(copy);
			copy = malloc(size);
			memcpy(copy, record, size);
		}
		ring_consume(ring);
	}
	CHECK(copy != NULL);
	return copy;
}

static void queries(void)
{
	char text[37];
	struct query_key last = { 0, 0 };

	begin();
	struct thread *thread = sampler_thread();
	for (int i = 0; i < 20000; i++) {
		query_start(&run, thread);
		CHECK(run.key.hi > last.hi);
		last = run.key;
	}
	query_key_text((struct query_key){ 0x0123456789ab7def, 0x8123456789abcdef }, text);
	CHECK(strcmp(text, "01234567-89ab-7def-8123-456789abcdef") == 0);
	query_key_text(run.key, text);
	CHECK(text[14] == '7' && strchr("89ab", text[19]));
	uint64_t ms = clock_ns(CLOCK_REALTIME) / 1000000;
	CHECK(run.key.hi >> 16 < ms + 1000 && run.key.hi >> 16 > ms - 10000);

	query_start(&run, thread);
	uint64_t cpu = cpu_now();
	burn(20000000);
	run.counts.samples[SAMPLE_REAL] = 3;
	query_leave(&run, thread);
	query_finish(&run, &(struct query_end){ .query_id = "mine",
	                                        .query = "select 1",
	                                        .database = "/tmp/x",
	                                        .work = { .exception_code = 5, .rows = 8 },
	                                        .exception = "locked" });
	cpu = cpu_now() - cpu;
	struct query_record *record = newest_query();
	CHECK(record->query.hi == run.key.hi && record->initial.lo == run.key.lo);
	/* The CPU clock at the start is an estimate, accurate to CPU_CLOCK_VALID_NS. */
	CHECK(record->cpu_time_ns >= 20000000 - 2 * CPU_CLOCK_VALID_NS &&
	      record->cpu_time_ns <= cpu + 1000000);
	CHECK(record->duration_ns >= 20000000 && record->result_rows == 8);
	CHECK(record->samples[SAMPLE_REAL] == 3 && record->exception_code == 5);
	CHECK(record->thread_id == sys_gettid() && record->flags == 0);
	CHECK(record->query_id_size == 4 && record->query_size == 8 && record->database_size == 6 &&
	      record->exception_size == 6);
	CHECK(memcmp(record->text, "mineselect 1/tmp/xlocked", 24) == 0);

	/* A text longer than a record may be is cut, but not inside a character. */
	size_t size = 1 << 21;
	char *longest = malloc(size + 1);
	for (size_t i = 0; i < size; i += 2)
		memcpy(longest + i, "\xc3\xa4", 2);
	longest[size] = '\0';
	query_leave(&run, thread);
	query_finish(&run, &(struct query_end){ .query = longest, .query_id = "x" });
	record = newest_query();
	CHECK(record->flags == QUERY_TEXT_CUT && record->query_id_size == 1);
	CHECK(record->query_size % 2 == 0 && record->query_size > ring_bytes(ring) / 17);
	CHECK(memcmp(record->text + 1, longest, record->query_size) == 0);
	free(longest);
}

static void test_queries(void **state)
{
	(void)state;
	assert_int_equal(status_of(queries), 0);
}

/* --- a stack without a limit ------------------------------------------------------------ */

/* From now on, malloc() uses memory to which the stack may grow, according to the C library. */
static void unlimited_stack(void)
{
	begin();
	const struct unwind_stack *stack = &sampler_thread()->stack;
	CHECK((uintptr_t)__builtin_frame_address(0) - stack->start < stack->end - stack->start);
	void *blocks[100];
	for (int i = 0; i < 100; i++) {
		blocks[i] = malloc(65536);
		CHECK((uintptr_t)blocks[i] - stack->start >= stack->end - stack->start);
	}
	for (int i = 0; i < 100; i++)
		free(blocks[i]);
}

static void start_unlimited(void)
{
	struct rlimit limit;

	CHECK(getrlimit(RLIMIT_STACK, &limit) == 0);
	limit.rlim_cur = limit.rlim_max;
	CHECK(setrlimit(RLIMIT_STACK, &limit) == 0);
	execl("/proc/self/exe", "test_sampler", "unlimited", NULL);
	_exit(1);
}

static void test_unlimited_stack(void **state)
{
	(void)state;
	assert_int_equal(status_of(start_unlimited), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused_timers),
		cmocka_unit_test(test_phase_is_kept),
		cmocka_unit_test(test_idle_thread),
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_rest),
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_stop_and_start),
		cmocka_unit_test(test_queries),
		cmocka_unit_test(test_unlimited_stack),
	};

	if (argc > 1 && strcmp(argv[1], "unlimited") == 0) {
		unlimited_stack();
		return 0;
	}

	if (UNDER_TSAN) {
		puts("skipped: ThreadSanitizer delivers signals late");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
