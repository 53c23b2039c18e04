/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's signal: which one it takes, how it coexists with the host's handlers, blocked signals, errno.
 */
#include "alone.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

static void signal_is_chosen(void)
{
	struct sigaction action, host = { .sa_handler = SIG_IGN };
	int taken = SIGRTMAX - 4;

	CHECK(sampler_signal() == 0);
	CHECK(sampler_thread() == NULL);
	sigaction(taken, &host, NULL);
	begin();
	int number = sampler_signal();
	CHECK(number >= SIGRTMIN && number < taken);
	CHECK(sigaction(number, NULL, &action) == 0);
	CHECK(action.sa_sigaction == dispatch_signal);
	CHECK((action.sa_flags & (SA_SIGINFO | SA_RESTART | SA_ONSTACK)) ==
	      (SA_SIGINFO | SA_RESTART | SA_ONSTACK));
	CHECK(sigismember(&action.sa_mask, SIGTERM) == 1 && sigismember(&action.sa_mask, number) == 1);
	CHECK(sigismember(&action.sa_mask, SIGSEGV) == 0);
	CHECK(sigaction(taken, NULL, &action) == 0 && action.sa_handler == SIG_IGN);
	CHECK(sampler_init(ring) == 0 && sampler_signal() == number);
}

static volatile sig_atomic_t host_calls, host_mask_wrong;

static void host_handler(int number, siginfo_t *info, void *context)
{
	sigset_t mask;
	(void)context;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	host_mask_wrong |= sigismember(&mask, SIGUSR1) != 1 || sigismember(&mask, SIGUSR2) != 0 ||
	                   sigismember(&mask, number) != 1 || info->si_code != SI_TKILL;
	host_calls++;
}

/* All signals have handlers of the host. The sampler shares one of them, and the host's handler still gets
 * its signals, with the mask that the host set. */
static void signal_is_shared(void)
{
	struct sigaction host = { .sa_flags = SA_SIGINFO };
	sigset_t before, after;

	memset(&before, 0, sizeof(before)); /* only the kernel's part is written */
	memset(&after, 0, sizeof(after));
	host.sa_sigaction = host_handler;
	sigaddset(&host.sa_mask, SIGUSR1);
	for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
		sigaction(number, &host, NULL);
	begin();
	CHECK(sampler_signal() != 0);
	sigprocmask(SIG_BLOCK, NULL, &before);
	for (int i = 0; i < 3; i++)
		raise(sampler_signal());
	CHECK(host_calls == 3 && !host_mask_wrong);
	CHECK(ledger_read(LEDGER_FOREIGN) == 3);
	sigprocmask(SIG_BLOCK, NULL, &after);
	CHECK(memcmp(&before, &after, sizeof(before)) == 0);

	struct thread *thread = sampler_thread();
	push(thread, 1000000, 0);
	burn_for_samples(5);
	sampler_pop(thread);
	CHECK(host_calls == 3);
}

/* The host changes the action of the sampler's signal, and no hook reports it. Samples continue, with another
 * signal if the host set a handler. The host's action takes effect. */
static void signal_is_kept(void)
{
	struct sigaction host = { .sa_flags = SA_SIGINFO };

	host.sa_sigaction = host_handler;
	sigaddset(&host.sa_mask, SIGUSR1);
	begin();
	struct thread *thread = sampler_thread();
	int first = sampler_signal();
	for (int i = 0; i < 3; i++) {
		push(thread, 1000000, 1000000);
		thread->timers[TIMER_CPU].idle_max_ns = 20000000; /* not seconds, here */
		burn_for_samples(4);
		sampler_pop(thread);
		wait_for_idle(thread);
		if (i == 0)
			signal(sampler_signal(), SIG_DFL);
		else if (i == 1)
			sigaction(sampler_signal(), &host, NULL);
	}
	CHECK(sampler_signal() != first && sampler_counter(SAMPLER_SIGNAL_MOVES) == 1);
	raise(first);
	CHECK(host_calls == 1 && !host_mask_wrong && ledger_read(LEDGER_FOREIGN) == 0);
	signal(sampler_signal(), SIG_IGN);
	sampler_stop();
	CHECK(sampler_init(ring) == 0);
	raise(sampler_signal());
	CHECK(host_calls == 1 && ledger_read(LEDGER_FOREIGN) == 1);
}

static void signal_kills_by_default(void)
{
	begin();
	raise(sampler_signal());
}

static void test_signal(void **state)
{
	(void)state;
	assert_int_equal(status_of(signal_is_chosen), 0);
	assert_int_equal(status_of(signal_is_shared), 0);
	assert_int_equal(status_of(signal_is_kept), 0);
	int status = status_of(signal_kills_by_default);
	assert_true(WIFSIGNALED(status));
	assert_in_range(WTERMSIG(status), SIGRTMIN, SIGRTMAX);
}

static void blocked_thread(void)
{
	sigset_t all, mask;

	begin();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	struct thread *thread = sampler_thread();
	CHECK(sampler_counter(SAMPLER_THREADS_BLOCKED) == 1);
	push(thread, 1000000, 0);
	burn(30000000);
	sampler_pop(thread);
	CHECK(ledger_read(LEDGER_SIGNALS) == 0);
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	CHECK(sigismember(&mask, sampler_signal()) == 1);
	/* The pending signal finds no query. */
	pthread_sigmask(SIG_UNBLOCK, &all, NULL);
	CHECK(stored() == 0);
	assert_ledger();
}

static void test_blocked_thread(void **state)
{
	(void)state;
	assert_int_equal(status_of(blocked_thread), 0);
}

static void errno_is_kept(void)
{
	begin();
	errno = 77;
	struct thread *thread = sampler_thread();
	push(thread, 1000000, 300000);
	uint64_t goal = stored() + 300;
	while (stored() < goal) {
		errno = 1234;
		for (volatile int i = 0; i < 20000; i++)
			;
		CHECK(errno == 1234);
	}
	sampler_pop(thread);
	CHECK(errno == 1234);
}

static void test_errno(void **state)
{
	(void)state;
	assert_int_equal(status_of(errno_is_kept), 0);
}

/* --- a thread that is cancelled ---------------------------------------------------------------- */

static bool is_inside, is_cancelled;

static void wait_for_cancel(void)
{
	__atomic_store_n(&is_inside, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&is_cancelled, __ATOMIC_ACQUIRE))
		;
	sched_yield(); /* pending signals arrive before it returns */
}

/* As inside read() and similar calls, in which a cancellation takes effect at any instruction. */
static void *wait_in_query(void *context)
{
	push(sampler_thread(), 0, 1000000);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	fake_unwind_hook = wait_for_cancel;
	for (;;)
		pause();
	return context;
}

/* The handler ends before the thread, so every reserved record is committed. */
static void cancelled_in_handler(void)
{
	pthread_t thread;
	void *result;

	begin();
	CHECK(pthread_create(&thread, NULL, wait_in_query, NULL) == 0);
	while (!__atomic_load_n(&is_inside, __ATOMIC_ACQUIRE))
		pause_for(100000);
	pthread_cancel(thread);
	__atomic_store_n(&is_cancelled, true, __ATOMIC_RELEASE);
	CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
	CHECK(stored() > 0);
	CHECK(ledger_read(LEDGER_SIGNALS) == stored() + ledger_read(LEDGER_IDLE) + ledger_read(LEDGER_LATE));
}

static void test_cancelled(void **state)
{
	(void)state;
	assert_int_equal(status_of(cancelled_in_handler), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_blocked_thread),
		cmocka_unit_test(test_errno),
		cmocka_unit_test(test_cancelled),
	};

	if (UNDER_TSAN) {
		puts("skipped: ThreadSanitizer delivers signals late");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
