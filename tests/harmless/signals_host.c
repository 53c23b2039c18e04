/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts that use signals in the usual ways.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

/* Signals that the host's handler received: the host's own signals, and signals of timers. */
static volatile int own_signals, timer_signals;
static volatile int own_of[65];

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code == SI_TIMER) {
		__atomic_fetch_add(&timer_signals, 1, __ATOMIC_RELAXED);
		return;
	}
	__atomic_fetch_add(&own_signals, 1, __ATOMIC_RELAXED);
	own_of[number]++;
}

static struct sigaction host_action(void)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO };

	action.sa_sigaction = on_signal;
	return action;
}

static void raise_each(void)
{
	int once = 0;

	for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
		raise(number);
	for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
		once += own_of[number] == 1;
	printf("%d of %d came, %d of them once\n", own_signals, SIGRTMAX - SIGRTMIN + 1, once);
}

/* --- handlers ----------------------------------------------------------------- */

/* No signal is free for queryprof, so it shares one with the host. */
static void handled_before(void)
{
	struct sigaction action = host_action();
	sqlite3 *db;

	for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
		sigaction(number, &action, NULL);
	db = open_db();
	burn(db, 25);
	raise_each();
	burn(db, 25);
	printf("%d signals of timers\n", timer_signals);
	tell_metrics(db);
}

static volatile int stop;

static void *keep_burning(void *context)
{
	sqlite3 *db;

	(void)context;
	CHECK(sqlite3_open(":memory:", &db) == SQLITE_OK);
	while (!stop)
		burn(db, 1);
	sqlite3_close(db);
	return NULL;
}

static int set_by_sigaction(int number)
{
	struct sigaction action = host_action(), before;

	CHECK(sigaction(number, &action, &before) == 0);
	return before.sa_handler == SIG_DFL;
}

static void on_plain_signal(int number)
{
	siginfo_t info = { .si_code = SI_USER };

	on_signal(number, &info, NULL);
}

static int set_by_signal(int number)
{
	return signal(number, on_plain_signal) == SIG_DFL;
}

/* Takes one signal after the other while two threads are sampled, so that several belong to queryprof. */
static void take_all(int (*set)(int number))
{
	sqlite3 *db = open_db();
	pthread_t threads[2];
	int was_default = 0;

	burn(db, 25);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, keep_burning, NULL) == 0);
	for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
		was_default += set(number);
		burn(db, 0); /* one query */
	}
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%d were at their default\n", was_default);
	raise_each();
	printf("%d signals of timers\n", timer_signals);
	burn(db, 25);
	tell_metrics(db);
}

static void taken_by_sigaction(void)
{
	take_all(set_by_sigaction);
}

static void taken_by_signal(void)
{
	take_all(set_by_signal);
}

/* The hooks do not see these calls. The host gets some of queryprof's signals, until queryprof notices. */
static void taken_unseen(void)
{
	int (*real_sigaction)(int, const struct sigaction *, struct sigaction *);
	struct sigaction action = host_action();
	sqlite3 *db = open_db();
	int seen;

	*(void **)&real_sigaction = dlsym(RTLD_DEFAULT, "sigaction");
	burn(db, 25);
	for (int number = SIGRTMIN + 3; number <= SIGRTMAX; number++)
		CHECK(real_sigaction(number, &action, NULL) == 0);
	burn(db, 25);
	usleep(20000); /* without a query, so that the timers stop and are armed again */
	burn(db, 25);
	for (int number = SIGRTMIN; number < SIGRTMIN + 3; number++)
		CHECK(sigaction(number, &action, NULL) == 0);
	seen = timer_signals;
	burn(db, 50);
	printf("%d signals of timers\n", timer_signals - seen);
	raise_each();
	tell_metrics(db);
}

/* Resets or ignores all signals, like programs that start others. */
static void default_again(void)
{
	struct sigaction action;
	sqlite3 *db = open_db();
	int as_set = 0;

	burn(db, 25);
	for (int round = 0; round < 3; round++) {
		sighandler_t handler = round == 1 ? SIG_IGN : SIG_DFL;

		for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
			CHECK(signal(number, handler) != SIG_ERR);
		burn(db, 25);
		for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
			as_set += !sigaction(number, NULL, &action) && action.sa_handler == handler;
		if (round == 1) {
			for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
				raise(number);
		}
	}
	printf("%d as they were set\n", as_set);
	tell_metrics(db);
}

/* A signal without a handler of the host ends the process, even if queryprof uses the signal. */
static void sent_by_default(void)
{
	sqlite3 *db = open_db();
	int killed = 0;

	burn(db, 25);
	for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
		pid_t child = fork();
		int status;

		if (!child) {
			union sigval value = { .sival_int = 1 };

			burn(db, 2);
			if (number % 3 == 0)
				kill(getpid(), number);
			else if (number % 3 == 1)
				sigqueue(getpid(), number, value);
			else
				pthread_kill(pthread_self(), number);
			pause();
			_exit(1);
		}
		CHECK(waitpid(child, &status, 0) == child);
		killed += WIFSIGNALED(status) && WTERMSIG(status) == number;
	}
	printf("%d killed\n", killed);
	tell_metrics(db);
}

/* Prints which signals from 33 on a child's new program ignores. */
static void print_ignored(int by_vfork)
{
	static const char script[] = "s/^SigIgn:.*\\(........\\)........$/\\1/p";
	int status;
	pid_t child;

	fflush(stdout);
	child = by_vfork ? vfork() : fork();
	if (!child) {
		execl("/bin/sed", "sed", "-n", script, "/proc/self/status", (char *)NULL);
		_exit(1);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void ignored_behind_exec(void)
{
	sqlite3 *db = open_db();

	burn(db, 25);
	for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
		CHECK(signal(number, SIG_IGN) != SIG_ERR);
	burn(db, 25);
	print_ignored(0);
	print_ignored(1);
	burn(db, 25);
	tell_metrics(db);
}

/* --- masks and waits ------------------------------------------------------------ */

static void set_mask(int how)
{
	sigset_t all;

	sigfillset(&all);
	CHECK(pthread_sigmask(how, &all, NULL) == 0);
}

/* Takes all pending signals, like a host that waits for any signal. Returns their number. */
static int take_waiting(void)
{
	const struct timespec time = { .tv_nsec = 50000000 };
	siginfo_t info;
	sigset_t all;
	int count = 0;

	sigfillset(&all);
	while (sigtimedwait(&all, &info, &time) > 0 && count < 1000)
		count++;
	CHECK(count || errno == EAGAIN);
	return count;
}

static int read_waiting(void)
{
	struct signalfd_siginfo info;
	struct pollfd poll_fd = { .events = POLLIN };
	sigset_t all;
	int count = 0;

	sigfillset(&all);
	poll_fd.fd = signalfd(-1, &all, SFD_NONBLOCK);
	CHECK(poll_fd.fd >= 0);
	while (poll(&poll_fd, 1, 50) > 0 && count < 1000)
		count += read(poll_fd.fd, &info, sizeof(info)) == sizeof(info);
	close(poll_fd.fd);
	return count;
}

static void blocked_before(void)
{
	sqlite3 *db;

	set_mask(SIG_SETMASK);
	db = open_db();
	burn(db, 25);
	printf("%d %d came\n", read_waiting(), take_waiting());
	fprintf(stderr, "samples while blocked: %lld\n", metric(db, "samples"));
	set_mask(SIG_UNBLOCK);
	burn(db, 25);
	tell_metrics(db);
}

static int block_all(void)
{
	set_mask(SIG_SETMASK);
	return 1;
}

/* Blocks all signals in the middle of a query, while both timers run. */
static void block_within(sqlite3 *db)
{
	CHECK(ask(db,
	          "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 200000) "
	          "SELECT count(*) + sum(CASE x WHEN 100000 THEN block_all() ELSE 0 END) FROM c") == 200001);
}

static void blocked_within(void)
{
	sqlite3 *db = open_db();

	add_function(db, "block_all", block_all);
	block_within(db);
	printf("%d came to a wait\n", take_waiting());
	burn(db, 20);
	set_mask(SIG_UNBLOCK);
	burn(db, 20);
	block_within(db);
	printf("%d came to a descriptor\n", read_waiting());
	set_mask(SIG_UNBLOCK);
	burn(db, 25);
	tell_metrics(db);
}

/* A thread waits for all of the host's own signals while other threads run queries. */
static void *wait_for_each(void *context)
{
	siginfo_t info;
	sigset_t all;
	int count = 0;
	long sum = 0;

	sigemptyset(&all);
	for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
		sigaddset(&all, number);
	burn(context, 25);
	for (count = 0; count < SIGRTMAX - SIGRTMIN + 1; count++) {
		int number;

		if (count % 2 == 0) {
			CHECK(sigwait(&all, &number) == 0);
			sum += number;
			continue;
		}
		number = sigwaitinfo(&all, &info);
		CHECK(number > 0 && info.si_code == SI_QUEUE);
		sum += number;
	}
	printf("%d waited for, in all %ld\n", count, sum);
	return NULL;
}

static void waited_for(void)
{
	sqlite3 *db = open_db();
	sqlite3 *of_thread = open_db();
	union sigval value = { .sival_int = 1 };
	pthread_t thread;

	burn(db, 20);
	set_mask(SIG_BLOCK);
	CHECK(pthread_create(&thread, NULL, wait_for_each, of_thread) == 0);
	for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
		burn(db, 0); /* one query */
		CHECK(sigqueue(getpid(), number, value) == 0);
	}
	pthread_join(thread, NULL);
	set_mask(SIG_UNBLOCK);
	burn(db, 25);
	tell_metrics(db);
}

/* --- faults ------------------------------------------------------------------------ */

static char *guarded;
static volatile int faults;
static sigjmp_buf after_fault;

static void open_page(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	CHECK((char *)info->si_addr == guarded);
	mprotect(guarded, 4096, PROT_READ | PROT_WRITE);
	faults++;
}

static void leave(int number)
{
	(void)number;
	faults++;
	siglongjmp(after_fault, 1);
}

static int touch(void)
{
	mprotect(guarded, 4096, PROT_NONE);
	*(volatile char *)guarded = 1;
	return 1;
}

static int touch_and_leave(void)
{
	volatile int result = 2;

	if (!sigsetjmp(after_fault, 1))
		*(volatile char *)guarded = 1;
	else
		result = 1;
	return result;
}

static void fault_often(sqlite3 *db, const char *function)
{
	char *sql = sqlite3_mprintf(
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 8000) "
		"SELECT sum(%s()) FROM c",
		function);

	printf("%lld from a query", ask(db, sql));
	printf(", %d faults\n", faults);
	sqlite3_free(sql);
}

static void own_faults(void)
{
	static char stack[65536];
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_flags = SA_SIGINFO | SA_ONSTACK };
	sqlite3 *db = open_db();

	guarded = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(sigaltstack(&alternate, NULL) == 0);
	action.sa_sigaction = open_page;
	CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
	add_function(db, "touch", touch);
	fault_often(db, "touch");

	mprotect(guarded, 4096, PROT_NONE);
	action.sa_flags = SA_ONSTACK;
	action.sa_handler = leave;
	CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
	add_function(db, "touch_and_leave", touch_and_leave);
	fault_often(db, "touch_and_leave");
	CHECK(sigaction(SIGSEGV, NULL, &action) == 0 && action.sa_handler == leave);
	tell_metrics(db);
}

/* --- other timers -------------------------------------------------------------------- */

static volatile int ticks;

static void on_tick(int number)
{
	(void)number;
	ticks++;
}

static double seconds_since(clockid_t clock, const struct timespec *start)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

/* The host profiles the CPU time of the whole process. The kernel checks its timer only at ticks, which
 * may all hit other processes. So the host works until it has received its ticks. A tick charges 4 ms to
 * the thread that it hits, even if the thread ran only 1 ms. So the only certain limit is the processors'
 * time. */
static void other_profiler(void)
{
	struct itimerval period = { { 0, 10000 }, { 0, 10000 } }, none = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = on_tick, .sa_flags = SA_RESTART };
	sqlite3 *db = open_db();
	struct timespec cpu_start, start;
	double passed;

	CHECK(sigaction(SIGPROF, &action, NULL) == 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu_start);
	clock_gettime(CLOCK_MONOTONIC, &start);
	CHECK(setitimer(ITIMER_PROF, &period, NULL) == 0);
	while (ticks < 10 && seconds_since(CLOCK_PROCESS_CPUTIME_ID, &cpu_start) < 5)
		use_cpu(db, 20);
	CHECK(setitimer(ITIMER_PROF, &none, NULL) == 0);
	passed = seconds_since(CLOCK_MONOTONIC, &start) * (double)sysconf(_SC_NPROCESSORS_ONLN);
	fprintf(stderr, "%d ticks in %.3f s of processors\n", ticks, passed);
	printf("ticks are %s\n", ticks >= 10 && ticks * 0.01 <= passed ? "all there" : "wrong");
	tell_metrics(db);
}

/* Samples more often than some machines can handle. Uses the shortest run, because on some virtual
 * machines stolen time counts as the thread's CPU time. */
static void short_period(void)
{
	double least = 0;
	sqlite3 *db = open_db();

	ask(db, "SELECT 1");
	for (int i = 0; i < 5; i++) {
		struct timespec start;
		double took;

		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
		CHECK(ask(db,
		          "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 100000) "
		          "SELECT /* often */ count(*) FROM c") == 100000);
		took = seconds_since(CLOCK_THREAD_CPUTIME_ID, &start);
		least = i && least < took ? least : took;
	}
	fprintf(stderr, "cpu %.0f\n", least * 1e9);
	tell_metrics(db);
}

/* The host wants its read to be interrupted. */
static void own_alarm(void)
{
	/* Repeats, because on a busy machine the first alarm may precede the read. */
	struct itimerval period = { { 0, 20000 }, { 0, 20000 } }, off = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = on_tick };
	sqlite3 *db = open_db();
	int interrupted = 0, ends[2];
	char byte;

	CHECK(pipe(ends) == 0);
	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	for (int i = 0; i < 20; i++) {
		burn(db, 2);
		CHECK(setitimer(ITIMER_REAL, &period, NULL) == 0);
		interrupted += read(ends[0], &byte, 1) < 0 && errno == EINTR;
		CHECK(setitimer(ITIMER_REAL, &off, NULL) == 0);
	}
	printf("%d of 20 reads interrupted, %s\n", interrupted, ticks >= 20 ? "by alarms" : "by others");
	tell_metrics(db);
}

/* Runs in a query. The alarm repeats, because the first one may precede the sleep. */
static int sleep_for_long(void)
{
	struct itimerval period = { { 0, 20000 }, { 0, 20000 } }, off = { { 0, 0 }, { 0, 0 } };
	unsigned left;

	CHECK(setitimer(ITIMER_REAL, &period, NULL) == 0);
	left = sleep(1000000);
	CHECK(setitimer(ITIMER_REAL, &off, NULL) == 0);
	return left < 1000000 && left > 999000;
}

static void rest_of_a_sleep(void)
{
	struct sigaction action = { .sa_handler = on_tick };
	sqlite3 *db = open_db();

	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	add_function(db, "sleep_for_long", sleep_for_long);
	printf("%lld\n", ask(db, "SELECT sleep_for_long()"));
	burn(db, 25);
	tell_metrics(db);
}

/* --- threads -------------------------------------------------------------------------- */

static sqlite3 *of_clone;

static int query_in_clone(void *context)
{
	(void)context;
	burn(of_clone, 25);
	return 0;
}

/* A thread without glibc shares its creator's thread-local memory, so the creator waits. */
static void bare_clone(void)
{
	size_t size = 1 << 20;
	sqlite3 *db = open_db();

	of_clone = db;
	for (int i = 0; i < 5; i++) {
		char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		pid_t thread = 1;

		burn(db, 5);
		CHECK(stack != MAP_FAILED);
		CHECK(clone(query_in_clone, stack + size,
		            CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
		                    CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID,
		            NULL, &thread, NULL, &thread) > 0);
		for (pid_t now; (now = __atomic_load_n(&thread, __ATOMIC_ACQUIRE)) != 0;)
			syscall(SYS_futex, &thread, FUTEX_WAIT, now, NULL, NULL, 0);
		munmap(stack, size);
	}
	burn(db, 25);
	printf("%lld\n", ask(db, "SELECT 42"));
	tell_metrics(db);
}

const struct scenario scenarios[] = {
	{ "handled_before", handled_before },
	{ "taken_by_sigaction", taken_by_sigaction },
	{ "taken_by_signal", taken_by_signal },
	{ "taken_unseen", taken_unseen },
	{ "default_again", default_again },
	{ "sent_by_default", sent_by_default },
	{ "ignored_behind_exec", ignored_behind_exec },
	{ "blocked_before", blocked_before },
	{ "blocked_within", blocked_within },
	{ "waited_for", waited_for },
	{ "own_faults", own_faults },
	{ "other_profiler", other_profiler },
	{ "own_alarm", own_alarm },
	{ "rest_of_a_sleep", rest_of_a_sleep },
	{ "short_period", short_period },
	{ "bare_clone", bare_clone },
	{ NULL, NULL },
};
