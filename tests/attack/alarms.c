/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded, like another profiler: starts two timers in the command's own process before it starts a
 * program, one with setitimer() and one with timer_create().
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static void ignore(int number)
{
	(void)number;
}

__attribute__((constructor)) static void start(void)
{
	const struct itimerval often = { { 0, 5000 }, { 0, 5000 } };
	const struct itimerspec as_often = { { 0, 5000000 }, { 0, 5000000 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	timer_t timer;

	if (strcmp(program_invocation_short_name, "queryprof") != 0)
		return;
	signal(SIGALRM, ignore); /* until the command blocks it; the program gets the default action */
	setitimer(ITIMER_REAL, &often, NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
		timer_settime(timer, 0, &as_often, NULL);
}
