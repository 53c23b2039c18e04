/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU time that the profiler adds to a second of query time with both timers at 1 ms, computed from its
 * parts: the cost of a sample times the samples of a second.
 *
 *   tools/bench added_cpu
 *
 * The parts come from one query with constant work. It runs without timers, with a bare timer whose handler
 * does nothing, and sampled. The period is short, so that the cost of many signals stands out from other work
 * on the machine. Each figure is the least of many alternating rounds. The samples of a second are counted at
 * 1 ms.
 *
 * The signal itself belongs to the kernel: the timer's interrupt, the entry into the handler and the return.
 * In a virtual machine the interrupt and each setting of the timer leave the guest. That alone can cost ten
 * times a whole signal on bare metal. So the check there uses a signal that the thread sends itself, with a
 * system call instead of the interrupt. Both are printed.
 */
#include <signal.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../lib/clock.h"
#include "../lib/must.h"

#define ROUNDS 25
#define SHORT_PERIOD_NS 25000
#define SHORT_TURNS 300000 /* some 30 ms */
#define LONG_TURNS 30000000
#define BUDGET_PERCENT 1.0

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static sqlite3 *db, *quiet;

/* CPU time of one run of the query. */
static double run_query(int turns)
{
	char sql[160];
	uint64_t start;

	snprintf(sql, sizeof(sql),
	         "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %d) "
	         "SELECT sum(x * 7 %% 13) FROM c",
	         turns);
	start = cpu_ns();
	must(db, sqlite3_exec(db, sql, NULL, NULL, NULL), sql);
	return (double)(cpu_ns() - start);
}

static void set_periods(long cpu, long real)
{
	char sql[160];

	snprintf(sql, sizeof(sql),
	         "PRAGMA query_profiler_cpu_time_period_ns = %ld; "
	         "PRAGMA query_profiler_real_time_period_ns = %ld",
	         cpu, real);
	must(db, sqlite3_exec(db, sql, NULL, NULL, NULL), sql);
}

static int read_number(void *context, int count, char **values, char **names)
{
	(void)names;
	*(double *)context = count && values[0] ? atof(values[0]) : 0;
	return 0;
}

/* Reading the log stores all samples first. */
static double metric(const char *name)
{
	double value = 0;
	char sql[160];

	must(db,
	     sqlite3_exec(quiet, "SELECT count(*) FROM system.trace_log WHERE thread_id = 0", NULL, NULL,
	                  NULL),
	     "drain");
	snprintf(sql, sizeof(sql), "SELECT value FROM system.metrics WHERE metric = '%s'", name);
	must(db, sqlite3_exec(quiet, sql, read_number, &value, NULL), sql);
	return value;
}

/* --- a bare timer ------------------------------------------------------------- */

static volatile unsigned handled;

static void do_nothing(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	handled++;
}

static timer_t make_bare_timer(void)
{
	struct sigaction action = { .sa_sigaction = do_nothing, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 7 };
	timer_t timer;

	sigfillset(&action.sa_mask);
	sigaction(SIGRTMIN + 7, &action, NULL);
	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer))
		exit(1);
	return timer;
}

/* ns for a signal without an interrupt. */
static double send_signals(void)
{
	enum { SIGNALS = 2000 };
	const pid_t process = getpid(), thread = (pid_t)syscall(SYS_gettid);
	uint64_t start = cpu_ns();

	for (int i = 0; i < SIGNALS; i++)
		syscall(SYS_tgkill, process, thread, SIGRTMIN + 7);
	return (double)(cpu_ns() - start) / SIGNALS;
}

static int is_virtual(void)
{
	char line[4096];
	int found = 0;
	FILE *file = fopen("/proc/cpuinfo", "r");

	while (file && fgets(line, sizeof(line), file))
		found |= strstr(line, " hypervisor") != NULL;
	if (file)
		fclose(file);
	return found;
}

static void set_bare_timer(timer_t timer, long period_ns)
{
	const struct itimerspec when = { { 0, period_ns }, { 0, period_ns } };

	timer_settime(timer, 0, &when, NULL);
}

/* ------------------------------------------------------------------------------ */

static double least(double before, double value)
{
	return !before || value < before ? value : before;
}

int main(void)
{
	double plain = 0, empty = 0, sent = 0, ours = 0, flusher, signals, cpu_samples, seconds, samples;
	timer_t timer = make_bare_timer();
	char *error = NULL;

	must(NULL, sqlite3_open(":memory:", &db), "open");
	must(db, sqlite3_enable_load_extension(db, 1), "enable");
	if (sqlite3_load_extension(db, QUERYPROF_LIBRARY, "sqlite3_queryprof_init", &error)) {
		fprintf(stderr, "%s\n", error);
		return 1;
	}
	must(NULL, sqlite3_open(":memory:", &quiet), "open");
	must(db, sqlite3_exec(quiet, "PRAGMA system.query_profiler_cpu_time_period_ns = 0", NULL, NULL, NULL),
	     "quiet");

	for (int round = 0; round < ROUNDS; round++) {
		double before, cost, without;

		set_periods(0, 0);
		run_query(SHORT_TURNS / 10); /* a timer that is still armed disarms itself */
		without = run_query(SHORT_TURNS);
		plain = least(plain, without);
		handled = 0;
		set_bare_timer(timer, SHORT_PERIOD_NS);
		cost = run_query(SHORT_TURNS) - plain;
		set_bare_timer(timer, 0);
		if (handled)
			empty = least(empty, cost / handled);
		sent = least(sent, send_signals());
		before = metric("query_profiler_runs");
		set_periods(0, SHORT_PERIOD_NS);
		cost = run_query(SHORT_TURNS) - plain;
		set_periods(0, 0);
		ours = least(ours, cost / (metric("query_profiler_runs") - before));
	}

	set_periods(1000000, 1000000);
	run_query(SHORT_TURNS);
	signals = metric("query_profiler_runs");
	samples = metric("samples");
	flusher = metric("store_flusher_cpu_time_ns");
	seconds = run_query(LONG_TURNS) / 1e9;
	set_periods(0, 0);
	signals = (metric("query_profiler_runs") - signals) / seconds;
	samples = metric("samples") - samples;
	flusher = (metric("store_flusher_cpu_time_ns") - flusher) / samples;
	samples /= seconds;
	cpu_samples = signals > 1000 ? signals - 1000 : 0;

	const double own = signals * (ours - empty) / 1e7, stored = samples * flusher / 1e7;
	const double here = signals * empty / 1e7, bare = signals * sent / 1e7;
	const int guest = is_virtual();
	const double judged = (guest ? bare : here) + own + stored;
	printf("in a second of query time, both periods 1 ms: %.0f signals, %.0f samples\n"
	       "(the kernel looks at the CPU clock in its tick only: about %.0f of them)\n",
	       signals, samples, cpu_samples);
	printf("  a timer's signal, handler empty      %6.0f ns   %6.3f %%\n", empty, here);
	printf("  a signal without the interrupt       %6.0f ns   %6.3f %%\n", sent, bare);
	printf("  our handler, beyond an empty one     %6.0f ns   %6.3f %%\n", ours - empty, own);
	printf("  the flusher, for a sample            %6.0f ns   %6.3f %%\n", flusher, stored);
	printf("added on this machine                               %6.3f %%\n", here + own + stored);
	printf("added%-47s%6.3f %%, %s the budget of %.0f %%\n",
	       guest ? " on bare metal, without the guest's interrupts" : "", judged,
	       judged <= BUDGET_PERCENT ? "within" : "over", BUDGET_PERCENT);
	sqlite3_close(quiet);
	sqlite3_close(db);
	return 0;
}
