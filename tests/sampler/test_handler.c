/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls the handler as a plain function, with simulated signals. Tests which samples are stored, where other
 * signals go, and that the ledger adds up. No timer runs.
 */
#include "common.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "handler/timer.h"
#include "handler/budget.h"
#include "queryprof.h"
#include "settings/settings.h"
#include "collect/slots.h"
#include "collect/state.h"

static struct ring *ring;
static struct query_run run, outer_run;

/* A thread that runs `run` at 1 ms on both clocks, without real timers. */
static struct thread *running_thread(void)
{
	struct thread *thread = sampler_thread();

	assert_non_null(thread);
	memset(&run.counts, 0, sizeof(run.counts));
	run.key = (struct query_key){ 11, 12 };
	thread->queries[0] = tag_of(&run, 1000000, 1000000);
	thread->nesting = 1;
	for (int clock = 0; clock < TIMER_CLOCKS; clock++) {
		thread->timers[clock].period_ns = 1000000;
		thread->timers[clock].stretch = 1;
		thread->timers[clock].repeats = true;
		thread->timers[clock].armed = true;
		thread->timers[clock].idle_max_ns = NS_PER_S;
	}
	fake_depth = 5;
	fake_truncated = false;
	fake_unwind_hook = NULL;
	drain(ring, &(struct drained){ 0 });
	return thread;
}

static void send(const void *cookie, int code, int overrun)
{
	static __thread ucontext_t context; /* its mask: nothing was blocked */
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = sampler_signal();
	info.si_code = code;
	info.si_overrun = overrun;
	info.si_value.sival_ptr = (void *)(uintptr_t)cookie;
	dispatch_signal(sampler_signal(), &info, &context);
}

static void fire(struct thread *thread, enum timer_clock clock, int overrun)
{
	send(&thread->timers[clock], SI_TIMER, overrun);
}

/* Since `before`, this counter of the ledger has grown by one, and no other outcome has. */
static void assert_only(enum ledger_counter expected, const uint64_t before[LEDGER_COUNTERS])
{
	for (int i = LEDGER_STORED; i <= LEDGER_REENTERED; i++) {
		uint64_t moved = ledger_read((enum ledger_counter)i) - before[i];
		if (moved != (i == (int)expected))
			fail_msg("counter %d moved by %llu, expected was counter %d", i,
			         (unsigned long long)moved, (int)expected);
	}
}

static void note(uint64_t before[LEDGER_COUNTERS])
{
	for (int i = 0; i < LEDGER_COUNTERS; i++)
		before[i] = ledger_read((enum ledger_counter)i);
}

static void test_stored(void **state)
{
	struct thread *thread = running_thread();
	struct drained seen = { 0 };
	uint64_t before[LEDGER_COUNTERS];
	uint64_t now = clock_ns(CLOCK_REALTIME);
	(void)state;

	note(before);
	errno = 4711;
	fire(thread, TIMER_REAL, 6);
	assert_int_equal(errno, 4711);
	assert_only(LEDGER_STORED, before);
	drain(ring, &seen);
	assert_int_equal(seen.wrong, 0);
	assert_int_equal(seen.samples[SAMPLE_REAL], 1);
	assert_int_equal(seen.newest.weight, 7);
	assert_int_equal(seen.newest.depth, 5);
	assert_int_equal(seen.newest.flags, 0);
	assert_int_equal(seen.newest.period_ns, 1000000);
	assert_int_equal(seen.newest.thread_id, sys_gettid());
	assert_int_equal(seen.newest.query.hi, 11);
	assert_int_equal(seen.newest.query.lo, 12);
	assert_in_range(seen.newest.timestamp_ns, now, now + 10 * NS_PER_S);
	assert_int_equal(run.counts.samples[SAMPLE_REAL], 1);
	assert_int_equal(run.counts.weights[SAMPLE_REAL], 7);
	assert_int_equal(ledger_read(LEDGER_OVERRUNS) - before[LEDGER_OVERRUNS], 6);

	fire(thread, TIMER_CPU, INT_MAX); /* the kernel's maximum */
	drain(ring, &seen);
	assert_int_equal(seen.newest.weight, 1u + (unsigned)INT_MAX);
	assert_true(thread->timers[TIMER_CPU].armed);
}

/* A run publishes its start record once, with its first sample. */
static void test_start(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct thread *thread = running_thread();
	struct drained seen = { 0 };
	struct ring *tiny = ring_create(RING_MIN_BYTES), *own = thread->ring;
	char *text = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	(void)state;

	assert_true(text != MAP_FAILED);
	munmap(text + 2 * page, page);
	/* A run that is not to be logged publishes nothing. */
	run.text = "SELECT 1";
	run.is_logged = false;
	query_show(&run);
	fire(thread, TIMER_CPU, 0);
	query_hide(&run);
	drain(ring, &seen);
	assert_int_equal(seen.starts, 0);
	/* A run that had samples before it was shown is published immediately. */
	run.counts.start.realtime_ns = 123;
	run.counts.start.thread_id = 4;
	query_set_around(&run, (struct query_key){ 5, 6 }, (struct query_key){ 7, 8 });
	run.is_logged = true;
	query_show(&run);
	drain(ring, &seen);
	assert_int_equal(seen.starts, 1);
	for (int i = 0; i < 2; i++)
		fire(thread, TIMER_REAL, 0);
	drain(ring, &seen);
	assert_int_equal(seen.wrong, 0);
	assert_int_equal(seen.samples[SAMPLE_REAL], 2);
	assert_int_equal(seen.starts, 1);
	assert_string_equal(seen.text, "SELECT 1");
	assert_int_equal(seen.start.query.hi, 11);
	assert_int_equal(seen.start.run.realtime_ns, 123);
	assert_int_equal(seen.start.run.thread_id, 4);
	assert_int_equal(seen.start.run.initial.lo, 6);
	assert_int_equal(seen.start.run.parent.hi, 7);

	/* Another text, across two pages, as after the preparation of a statement. */
	query_hide(&run);
	run.text = text + page - 3;
	strcpy(text + page - 3, "SELECT 2");
	query_show(&run);
	fire(thread, TIMER_CPU, 0);
	drain(ring, &seen);
	assert_int_equal(seen.starts, 2);
	assert_string_equal(seen.text, "SELECT 2");

	/* A text longer than a record may have, a text that ends where the memory ends, and an unmapped
	 * text. */
	const char *const starts[] = { text, text + 2 * page - 5, text + 2 * page };
	const size_t sizes[] = { START_TEXT_MAX, 5, 0 };
	memset(text, 'x', 2 * page);
	for (int i = 0; i < 3; i++) {
		query_hide(&run);
		run.text = starts[i];
		run.mark = 0;
		run.version++;
		run.counts.start.text = run.text;
		run.counts.start.state = START_DUE;
		errno = 4711;
		fire(thread, TIMER_CPU, 0);
		assert_int_equal(errno, 4711);
		drain(ring, &seen);
		assert_int_equal(seen.wrong, 0);
		assert_int_equal(seen.start.text_size, sizes[i]);
	}
	assert_int_equal(seen.starts, 5);

	/* The start record fits the smallest ring. If the ring was full, it comes later. */
	run.counts.start.text = text;
	run.counts.start.state = START_DUE;
	thread->ring = tiny;
	void *filling = ring_reserve(tiny, ring_max_payload(tiny));
	ring_commit(tiny, filling, RECORD_THREAD);
	fire(thread, TIMER_CPU, 0);
	drain(tiny, &seen);
	assert_int_equal(seen.starts, 5);
	fire(thread, TIMER_CPU, 0);
	thread->ring = own;
	drain(tiny, &seen);
	assert_int_equal(seen.starts, 6);
	assert_int_equal(seen.start.text_size, START_TEXT_MAX);

	/* The profiler's own query is withdrawn, if it was published. */
	query_withdraw(&run);
	query_withdraw(&run);
	drain(ring, &seen);
	assert_int_equal(seen.starts, 7);
	assert_int_equal(seen.start.query.hi, 11);
	assert_int_equal(seen.start.run.state, START_KEPT);
	query_hide(&run);
	ring_destroy(tiny);
	munmap(text, 2 * page);
}

static void test_truncated(void **state)
{
	struct thread *thread = running_thread();
	struct drained seen = { 0 };
	struct ring *tiny = ring_create(RING_MIN_BYTES);
	(void)state;

	fake_truncated = true;
	fire(thread, TIMER_CPU, 0);
	drain(ring, &seen);
	assert_int_equal(seen.newest.flags, SAMPLE_TRUNCATED);
	assert_int_equal(run.counts.truncated, 1);

	fake_truncated = false;
	fake_depth = 10000;
	fire(thread, TIMER_CPU, 0);
	drain(ring, &seen);
	assert_int_equal(seen.newest.depth, STACK_FRAMES_MAX);
	assert_int_equal(seen.newest.flags, SAMPLE_TRUNCATED);

	/* A trace that a tiny ring cannot hold is cut, not lost. */
	thread->ring = tiny;
	fire(thread, TIMER_CPU, 0);
	drain(tiny, &seen);
	assert_in_range(seen.newest.depth, 190, 250);
	assert_int_equal(seen.newest.flags, SAMPLE_TRUNCATED);
	assert_int_equal(seen.wrong, 0);

	fake_depth = 5;
	uint64_t before[LEDGER_COUNTERS], stored = run.counts.samples[SAMPLE_CPU];
	do {
		note(before);
		fire(thread, TIMER_CPU, 0);
	} while (ledger_read(LEDGER_STORED) != before[LEDGER_STORED]);
	assert_only(LEDGER_DROPPED, before);
	assert_int_equal(run.counts.dropped, 1);
	assert_int_equal(ring_dropped(tiny), 1);
	assert_true(run.counts.samples[SAMPLE_CPU] > stored);
	thread->ring = ring;
	ring_destroy(tiny);
}

static void test_idle(void **state)
{
	struct thread *thread = running_thread();
	uint64_t before[LEDGER_COUNTERS];
	(void)state;

	thread->nesting = 0;
	note(before);
	fire(thread, TIMER_REAL, 3);
	assert_only(LEDGER_IDLE, before);
	assert_false(thread->timers[TIMER_REAL].armed);

	/* Without a query, the CPU timer continues for a second of the thread's CPU time, and for two seconds
	 * when it is armed again. */
	for (int seconds = 1; seconds <= 2; seconds++) {
		thread->timers[TIMER_CPU].armed = true;
		for (int i = 0; i < 200 * seconds; i++) {
			note(before);
			fire(thread, TIMER_CPU, 9);
			assert_only(LEDGER_IDLE, before);
			assert_true(thread->timers[TIMER_CPU].armed);
			if (i == 100 * seconds - 1) {
				thread->nesting = 1;
				fire(thread, TIMER_CPU, 0);
				thread->nesting = 0;
			}
		}
		fire(thread, TIMER_CPU, 9);
		assert_false(thread->timers[TIMER_CPU].armed);
	}

	/* A query that takes no samples of this type does not count. */
	running_thread();
	thread->queries[0].period_ns[TIMER_REAL] = 0;
	note(before);
	fire(thread, TIMER_REAL, 0);
	assert_only(LEDGER_IDLE, before);
	assert_false(thread->timers[TIMER_REAL].armed);
	note(before);
	fire(thread, TIMER_CPU, 0);
	assert_only(LEDGER_STORED, before);

	running_thread();
	sample_enable(false);
	note(before);
	fire(thread, TIMER_CPU, 0);
	assert_only(LEDGER_IDLE, before);
	assert_false(thread->timers[TIMER_CPU].armed); /* immediately */
	sample_enable(true);
}

/* The host's steps are not hooked. The owner of the connection's mutex shows whether the query runs. */
static void test_mutex_owner(void **state)
{
	struct thread *thread = running_thread();
	volatile int owner = (int)thread->id;
	const volatile int *volatile cell = &owner;
	struct drained seen = { 0 };
	uint64_t before[LEDGER_COUNTERS];
	(void)state;

	thread->queries[0].mutex_owner = &cell;
	note(before);
	fire(thread, TIMER_CPU, 0);
	assert_only(LEDGER_STORED, before);

	owner = 0;
	note(before);
	fire(thread, TIMER_CPU, 0);
	assert_only(LEDGER_IDLE, before);
	/* The timer stays armed because no code would arm it at the next step. */
	assert_true(thread->timers[TIMER_CPU].armed);
	/* But a statement left open does not interrupt the host's sleeps for ever. */
	int fired = 0;
	for (; thread->timers[TIMER_REAL].armed && fired < 5000; fired++) {
		fire(thread, TIMER_REAL, 0);
		fire(thread, TIMER_CPU, 0);
	}
	assert_in_range(fired, 1000, 1002); /* a second at 1 ms */
	assert_true(thread->timers[TIMER_CPU].armed);
	cell = NULL; /* the connection is closed */
	note(before);
	fire(thread, TIMER_CPU, 0);
	assert_only(LEDGER_IDLE, before);

	/* Then the outer query runs. */
	outer_run.key = (struct query_key){ 21, 22 };
	thread->queries[1] = thread->queries[0];
	thread->queries[0] = tag_of(&outer_run, 1000000, 0);
	thread->nesting = 2;
	fire(thread, TIMER_CPU, 0);
	drain(ring, &seen);
	assert_int_equal(seen.newest.query.hi, 21);
	thread->nesting = 1;
}

static void test_late(void **state)
{
	struct thread *thread = running_thread();
	uint64_t before[LEDGER_COUNTERS];
	(void)state;

	note(before);
	send(&slots_get(thread->index + 1)->timers[TIMER_REAL], SI_TIMER, 0);
	assert_only(LEDGER_LATE, before);

	/* The thread has released its slot. */
	thread_current = NULL;
	note(before);
	fire(thread, TIMER_CPU, 0);
	assert_only(LEDGER_LATE, before);
	thread_current = thread;
	assert_false(thread_owns_signal(SI_TIMER, &thread->timers[0].grid_ns));
	assert_false(thread_owns_signal(SI_TIMER, thread));
	assert_false(thread_owns_signal(SI_TIMER, &thread->timers[TIMER_CLOCKS]));
	assert_false(thread_owns_signal(SI_TIMER, (const void *)8));
	assert_true(thread_owns_signal(SI_TIMER, &slots_get(slots_count() - 1)->timers[TIMER_REAL]));
	assert_true(thread_owns_signal(SI_QUEUE, &thread->response));
	assert_false(thread_owns_signal(SI_QUEUE, &thread->response.given));
	assert_false(thread_owns_signal(SI_QUEUE, &thread->timers[0]));
	assert_false(thread_owns_signal(SI_TIMER, &thread->response));
}

/* --- foreign ---------------------------------------------------------------------- */

static int plain_calls, full_calls;
static void *full_cookie;

static void on_plain(int number)
{
	assert_int_equal(number, sampler_signal());
	plain_calls++;
	errno = 99;
}

static void on_full(int number, siginfo_t *info, void *context)
{
	assert_int_equal(number, sampler_signal());
	assert_non_null(context);
	full_cookie = info->si_value.sival_ptr;
	full_calls++;
}

static void test_foreign(void **state)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction plain = { .sa_handler = on_plain };
	struct sigaction full = { .sa_flags = SA_SIGINFO | SA_NODEFER };
	uint64_t before[LEDGER_COUNTERS];
	sigset_t mask;
	(void)state;

	full.sa_sigaction = on_full;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	running_thread();
	forward_set(&ignore);
	note(before);
	send(NULL, SI_USER, 0);
	assert_only(LEDGER_FOREIGN, before);

	forward_set(&plain);
	note(before);
	send(NULL, SI_TKILL, 0);
	send((void *)1, SI_TIMER, 0);                    /* a timer of the host, with any value */
	send(&sampler_thread()->timers[0], SI_QUEUE, 0); /* ours, but not from a timer */
	assert_int_equal(ledger_read(LEDGER_FOREIGN) - before[LEDGER_FOREIGN], 3);
	assert_int_equal(plain_calls, 3);
	assert_int_equal(errno, 99); /* as the host's handler left it */

	forward_set(&full);
	send(&plain_calls, SI_TIMER, 0);
	assert_int_equal(full_calls, 1);
	assert_ptr_equal(full_cookie, &plain_calls);
	sigprocmask(SIG_SETMASK, &mask, NULL); /* sigreturn would have done it */
}

/* Two actions, each identified by its mask, set alternately while another thread forwards. */
#define FORWARDS 20000

static bool stop_setting;
static uint32_t torn;

static void on_first(int number)
{
	sigset_t mask;

	(void)number;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	torn += sigismember(&mask, SIGUSR1) != 1 || sigismember(&mask, SIGUSR2) != 0;
}

static void on_second(int number, siginfo_t *info, void *context)
{
	sigset_t mask;

	(void)number;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	torn += sigismember(&mask, SIGUSR2) != 1 || sigismember(&mask, SIGUSR1) != 0;
	torn += info == NULL || context == NULL || info->si_code != SI_USER;
}

static void *keep_setting(void *context)
{
	struct sigaction first = { .sa_handler = on_first }, second = { .sa_flags = SA_SIGINFO };

	(void)context;
	second.sa_sigaction = on_second;
	sigaddset(&first.sa_mask, SIGUSR1);
	sigaddset(&second.sa_mask, SIGUSR2);
	while (!__atomic_load_n(&stop_setting, __ATOMIC_ACQUIRE)) {
		/* Three, so that no action always has the same place. */
		forward_set(&first);
		forward_set(&second);
		forward_set(&second);
	}
	return NULL;
}

static void test_foreign_meanwhile(void **state)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	pthread_t setter;
	sigset_t mask;
	(void)state;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	running_thread();
	forward_set(&ignore);
	assert_int_equal(pthread_create(&setter, NULL, keep_setting, NULL), 0);
	for (int i = 0; i < FORWARDS; i++) {
		send(NULL, SI_USER, 0);
		sigprocmask(SIG_SETMASK, &mask, NULL);
	}
	__atomic_store_n(&stop_setting, true, __ATOMIC_RELEASE);
	pthread_join(setter, NULL);
	forward_set(&ignore);
	assert_int_equal(torn, 0);
}

static void test_foreign_by_default(void **state)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	(void)state;

	for (int reset = 0; reset < 2; reset++) {
		if (reset)
			action = (struct sigaction){ .sa_handler = on_plain, .sa_flags = (int)SA_RESETHAND };
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			forward_set(&action);
			if (reset)
				send(NULL, SI_USER, 0);
			send(NULL, SI_USER, 0);
			_exit(1);
		}
		int status = 0;
		waitpid(child, &status, 0);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != sampler_signal())
			fail_msg("status %#x", status);
	}
}

/* --- inside the handler -------------------------------------------------------------- */

static struct thread *hook_thread;
static jmp_buf way_out;

static void fire_again(void)
{
	assert_int_equal(hook_thread->handler.is_running, 1);
	fake_unwind_hook = NULL;
	fire(hook_thread, TIMER_REAL, 0);
}

static void leave(void)
{
	longjmp(way_out, 1);
}

static void test_reentered(void **state)
{
	uint64_t before[LEDGER_COUNTERS];
	(void)state;

	hook_thread = running_thread();
	note(before);
	fake_unwind_hook = fire_again;
	fire(hook_thread, TIMER_CPU, 0);
	assert_int_equal(ledger_read(LEDGER_REENTERED) - before[LEDGER_REENTERED], 1);
	assert_int_equal(ledger_read(LEDGER_STORED) - before[LEDGER_STORED], 1);
	assert_int_equal(hook_thread->handler.is_running, 0);
	assert_true(sampler_quiesce());
}

/* The host's handler for a fault leaves the sampler's handler by longjmp(). The next sample is taken as if
 * the sampler's handler had returned. */
static void test_abandoned(void **state)
{
	struct thread *thread = running_thread();
	uint64_t before[LEDGER_COUNTERS];
	(void)state;

	fake_unwind_hook = leave;
	if (setjmp(way_out) == 0)
		fire(thread, TIMER_CPU, 0);
	fake_unwind_hook = NULL;
	note(before);
	fire(thread, TIMER_CPU, 0);
	assert_only(LEDGER_STORED, before);
	assert_int_equal(thread->handler.is_running, 0);
	/* The ledger lacks the abandoned signal, so the test counts it. */
	thread_count(thread, LEDGER_REENTERED, 1);
}

/* --- many threads --------------------------------------------------------------------- */

#define THREADS 6
#define SIGNALS 20000

static uint32_t finished;

static void *fire_many(void *context)
{
	struct thread *thread = sampler_thread();
	struct query_run *mine = context;

	query_start(mine, thread);
	for (int i = 0; i < SIGNALS; i++) {
		enum timer_clock clock = i % 2 ? TIMER_CPU : TIMER_REAL;
		if (i % 100 == 0)
			thread->nesting = 0;
		else if (i % 100 == 1) {
			thread->queries[0] = tag_of(mine, 1000000, 1000000);
			thread->timers[TIMER_CPU].period_ns = 1000000;
			thread->timers[TIMER_REAL].period_ns = 1000000;
			thread->timers[TIMER_CPU].stretch = thread->timers[TIMER_REAL].stretch = 1;
			thread->timers[TIMER_CPU].repeats = thread->timers[TIMER_REAL].repeats = true;
			thread->nesting = 1;
		}
		fire(thread, clock, i % 3);
	}
	struct query_end end = { .query = "select 1" };
	thread->nesting = 0;
	query_leave(mine, thread);
	query_finish(mine, &end);
	__atomic_fetch_add(&finished, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void test_many_threads(void **state)
{
	static struct query_run runs[THREADS];
	pthread_t threads[THREADS];
	struct drained seen = { 0 };
	uint64_t before[LEDGER_COUNTERS], samples = 0, dropped = 0;
	(void)state;

	running_thread()->nesting = 0;
	fake_depth = 40;
	note(before);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fire_many, &runs[i]), 0);
	while (__atomic_load_n(&finished, __ATOMIC_ACQUIRE) != THREADS) {
		drain(ring, &seen);
		ring_wait(ring, 1000000);
		sampler_quiesce();
		sampler_reap();
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	drain(ring, &seen);
	for (int i = 0; i < THREADS; i++) {
		for (int type = 0; type < SAMPLE_QUERY_TYPES; type++)
			samples += runs[i].counts.samples[type];
		dropped += runs[i].counts.dropped;
	}
	printf("%llu samples, %llu dropped\n", (unsigned long long)samples, (unsigned long long)dropped);
	assert_int_equal(seen.wrong, 0);
	assert_int_equal(seen.samples[0] + seen.samples[1], samples);
	assert_int_equal(ledger_read(LEDGER_STORED) - before[LEDGER_STORED], samples);
	assert_int_equal(ledger_read(LEDGER_DROPPED) - before[LEDGER_DROPPED], dropped);
	assert_int_equal(ledger_read(LEDGER_IDLE) - before[LEDGER_IDLE], THREADS * SIGNALS / 100);
	assert_int_equal(ledger_read(LEDGER_SIGNALS) - before[LEDGER_SIGNALS], THREADS * SIGNALS);
	assert_ledger();
}

/* --- the arithmetic of grids ------------------------------------------------------------- */

static void test_grid(void **state)
{
	unsigned seed = 3;
	(void)state;

	for (int i = 0; i < 20000; i++) {
		struct thread_timer timer = { .period_ns = 1 + (uint64_t)rand_r(&seed) % 50,
			                      .stretch = 1,
			                      .grid_ns = (uint64_t)rand_r(&seed) % 300 };
		uint64_t now = 400 + (uint64_t)rand_r(&seed) % 400, window = (uint64_t)rand_r(&seed) % 200;
		uint64_t points = 0;
		for (uint64_t t = now - window + 1; t <= now; t++)
			points += (t + 1000 * timer.period_ns - timer.grid_ns) % timer.period_ns == 0;
		uint64_t next = now + 1;
		while ((next + 1000 * timer.period_ns - timer.grid_ns) % timer.period_ns != 0)
			next++;
		assert_int_equal(timer_points(&timer, now, window), points);
		assert_int_equal(timer_next_point(&timer, now), next);
	}
	/* A grid that begins later than now, a window longer than the clock's life. */
	struct thread_timer timer = { .period_ns = 100, .stretch = 1, .grid_ns = 950 };
	assert_int_equal(timer_next_point(&timer, 20), 950);
	assert_int_equal(timer_points(&timer, 20, 400), 4);
}

#define CHANGES_PERIOD_NS 100
#define CHANGES_BIN_NS 1000
#define CHANGES_BINS 64

/* The stretch often changes before a timer with the previous stretch has fired. */
static uint32_t stretch_at(uint64_t ns)
{
	static const uint32_t stretches[] = { 1, 40, 44, 51, 46, 80, 7, 1, 1, 3, 40, 36, 2, 1, 60, 64 };

	return stretches[ns / (4 * CHANGES_BIN_NS) % (sizeof(stretches) / sizeof(*stretches))];
}

/* Adds up the time that one timer's signals represent, by the time of their points. Some signals are late. */
static void simulate(uint64_t start, unsigned *seed, double *sums)
{
	struct thread_timer timer = { .period_ns = CHANGES_PERIOD_NS,
		                      .stretch = stretch_at(0),
		                      .repeats = stretch_at(0) == 1,
		                      .cell_ns = start };

	timer.grid_ns = start + 1 + (uint64_t)rand_r(seed) % timer_interval(&timer);
	uint64_t now = timer.grid_ns;
	while (now - start <= CHANGES_BINS * CHANGES_BIN_NS) {
		uint64_t bin = (now - start - 1) / CHANGES_BIN_NS, late = (uint64_t)rand_r(seed) % 8 == 0;
		uint32_t stretch = stretch_at(now - start), before = timer.stretch;
		uint64_t periods = timer.repeats ? 1 : 0;
		/* A late signal stays within its bin, because it counts where its points are. */
		late = late && now + 150 - start <= (bin + 1) * CHANGES_BIN_NS ? 150 : 0;
		if (timer.repeats)
			periods += late / CHANGES_PERIOD_NS;
		now += late;
		if (!timer.repeats || stretch != before) {
			periods += timer_pass(&timer, now, stretch);
			timer.repeats = before == 1 && timer.stretch == 1;
		}
		sums[bin] += (double)(periods * CHANGES_PERIOD_NS);
		now = timer_next_point(&timer, now);
	}
}

/* On average over all phases, each ns counts once, however the stretch changes: in each bin, and until the
 * end of each bin because a thread may end anywhere. (A change from a stretch of 1 may move time within a
 * period.) */
static void test_changes(void **state)
{
	const int rounds = 20000;
	double mean[CHANGES_BINS] = { 0 }, square[CHANGES_BINS] = { 0 };
	double mean_until[CHANGES_BINS] = { 0 }, square_until[CHANGES_BINS] = { 0 };
	unsigned seed = 14;
	(void)state;

	for (int round = 0; round < rounds; round++) {
		double sums[CHANGES_BINS] = { 0 }, until = 0;
		/* The time is the seed of the timer's random numbers. */
		simulate(1000000 + (uint64_t)round * 1000003, &seed, sums);
		for (int bin = 0; bin < CHANGES_BINS; bin++) {
			until += sums[bin];
			mean[bin] += sums[bin] / rounds;
			square[bin] += sums[bin] * sums[bin] / rounds;
			mean_until[bin] += until / rounds;
			square_until[bin] += until * until / rounds;
		}
	}
	for (int bin = 0; bin < CHANGES_BINS; bin++) {
		double end = (bin + 1) * (double)CHANGES_BIN_NS;
		double error = sqrt(fmax(square[bin] - mean[bin] * mean[bin], 0) / rounds);
		double error_until =
			sqrt(fmax(square_until[bin] - mean_until[bin] * mean_until[bin], 0) / rounds);
		printf("until %5.0f: %6.1f of %d, error %4.1f; %7.1f in all, error %4.1f\n", end, mean[bin],
		       CHANGES_BIN_NS, error, mean_until[bin], error_until);
		assert_true(fabs(mean[bin] - CHANGES_BIN_NS) < 6 * error + 5);
		assert_true(fabs(mean_until[bin] - end) < 6 * error_until + 5);
	}
}

/* A signal that was in flight when the interval changed counts nothing. */
static void test_stale(void **state)
{
	struct thread *thread = running_thread();
	struct thread_timer *timer = &thread->timers[TIMER_REAL];
	uint64_t before[LEDGER_COUNTERS];
	(void)state;

	timer->stretch = 3600000;
	timer->repeats = false;
	timer_stretch[TIMER_REAL] = 3600000 * TIMER_STRETCH_PARTS;
	timer->cell_ns = clock_ns(CLOCK_MONOTONIC);
	timer->grid_ns = timer->cell_ns + 60 * NS_PER_S;
	note(before);
	fire(thread, TIMER_REAL, 0);
	assert_only(LEDGER_IDLE, before);
	timer->grid_ns = clock_ns(CLOCK_MONOTONIC) - 1;
	note(before);
	fire(thread, TIMER_REAL, 0);
	assert_only(LEDGER_STORED, before);
	assert_int_equal(run.counts.weights[SAMPLE_REAL], 3600000);
	timer_stretch[TIMER_REAL] = TIMER_STRETCH_PARTS;
}

/* Neighbouring threads share a fractional stretch: some of them have one period more. */
static void test_parts(void **state)
{
	struct thread *made[32];
	(void)state;

	running_thread();
	for (int i = 0; i < 32; i++)
		assert_non_null(made[i] = slots_acquire());
	for (uint32_t parts = TIMER_STRETCH_PARTS; parts <= 3 * TIMER_STRETCH_PARTS; parts++) {
		timer_stretch[TIMER_REAL] = parts;
		for (uint32_t first = 0; first + 16 <= slots_count(); first++) {
			double sum = 0, wanted = 16.0 * parts / TIMER_STRETCH_PARTS;
			for (uint32_t i = first; i < first + 16; i++) {
				const struct thread_timer *timer = &slots_get(i)->timers[TIMER_REAL];
				uint32_t stretch = timer_stretch_of(timer, TIMER_REAL);
				assert_in_range(stretch, parts / TIMER_STRETCH_PARTS,
				                parts / TIMER_STRETCH_PARTS + 1);
				sum += stretch;
			}
			assert_true(fabs(sum - wanted) <= 1.5);
		}
	}
	for (int i = 0; i < 32; i++)
		slots_release(made[i]);
	timer_stretch[TIMER_REAL] = TIMER_STRETCH_PARTS;
}

static void set_max_threads(const char *value)
{
	char *error;

	assert_int_equal(settings_set(NULL, "query_profiler_max_threads", value, SETTING_FROM_C, &error),
	                 QP_OK);
}

/* Threads that the budget has not checked yet count for the first interval of later threads. */
static void test_first_stretch(void **state)
{
	const struct thread_timer *timer = &running_thread()->timers[TIMER_REAL];
	(void)state;

	set_max_threads("DEFAULT");
	assert_int_equal(budget_first_stretch(timer, TIMER_REAL, 1), 1);
	/* 64 threads, and some that a look of the budget may have counted meanwhile. */
	assert_int_equal(budget_first_stretch(timer, TIMER_REAL, 72), 4);
	assert_int_equal(budget_first_stretch(timer, TIMER_CPU, 64), 1);
	set_max_threads("0");
	assert_int_equal(budget_first_stretch(timer, TIMER_REAL, 64), 1);
	set_max_threads("1");
	/* The stretch has steps of a 16th of an octave, and a maximum. */
	assert_int_equal(budget_first_stretch(timer, TIMER_REAL, 1000001), TIMER_STRETCH_MAX);
	assert_int_equal(budget_first_stretch(timer, TIMER_REAL, 1000), 1024);
	set_max_threads("DEFAULT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stored),
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_mutex_owner),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_foreign_meanwhile),
		cmocka_unit_test(test_foreign_by_default),
		cmocka_unit_test(test_reentered),
		cmocka_unit_test(test_abandoned),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_grid),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_stale),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_first_stretch),
	};

	ring = ring_create(1 << 20);
	if (ring == NULL || sampler_init(ring) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
