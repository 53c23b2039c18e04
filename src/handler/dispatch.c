/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler runs with every other asynchronous signal blocked, so no handler of the host can
 * interrupt it, or leave it by a longjmp with a half-written record. Everything that it writes
 * belongs to the interrupted thread, except the ring and a query's counts.
 */
#include "handler/dispatch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "handler/forward.h"
#include "handler/response.h"
#include "handler/sample.h"
#include "handler/thread.h"

/* The clock whose timer the cookie is; TIMER_CLOCKS: none of this thread's. Compares
 * pointers only, so a foreign cookie is never followed. */
static enum timer_clock find_clock(const struct thread *thread, const void *cookie)
{
	int clock = 0;

	while (clock < TIMER_CLOCKS && (!thread || cookie != &thread->timers[clock]))
		clock++;
	return (enum timer_clock)clock;
}

void dispatch_signal(int signal, siginfo_t *info, void *ucontext)
{
	int saved_errno = errno;
	struct thread *thread = thread_current;
	const void *cookie = info->si_value.sival_ptr;
	enum timer_clock clock = info->si_code == SI_TIMER ? find_clock(thread, cookie) : TIMER_CLOCKS;
	bool requested = info->si_code == SI_QUEUE && thread && cookie == &thread->response;

	thread_count(thread, LEDGER_SIGNALS, 1);
	if (clock == TIMER_CLOCKS && !requested) {
		bool ours = thread_owns_signal(info->si_code, cookie);
		thread_count(thread, ours ? LEDGER_LATE : LEDGER_FOREIGN, 1);
		errno = saved_errno;
		if (!ours)
			forward_signal(signal, info, ucontext); /* its errno is its own affair */
		return;
	}

	if (!thread_enter_handler(thread, (uintptr_t)__builtin_frame_address(0))) {
		thread_count(thread, LEDGER_REENTERED, 1);
	} else {
		if (requested)
			response_write(thread, ucontext);
		else
			sample_on_timer(thread, clock, info->si_overrun, ucontext);
		/* Release: the handler's work comes before. */
		__atomic_fetch_add(&thread->handler.done, 1, __ATOMIC_RELEASE);
		thread_leave_handler(thread);
	}
	errno = saved_errno;
}
