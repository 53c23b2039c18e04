/* SPDX-License-Identifier: Apache-2.0 */
#include "timers/sample_here.h"

#include <errno.h>

#include "base/clock.h"
#include "base/sys.h"
#include "handler/sample.h"
#include "timers/registers.h"
#include "timers/signal.h"

/* Not inlined, because a query's frame encloses this one. */
__attribute__((noinline)) bool sampler_record_observed(struct thread *thread, struct observation *seen)
{
	const uint64_t blocked = signal_asynchronous();
	int saved_errno = errno;
	ucontext_t context;
	uint64_t mask;
	bool taken = false;

	/* Blocked as in the handler: the handler must not interrupt this code, which uses the
	 * thread's memo and stack, nor may a handler of the host leave it by a longjmp. */
	if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, &mask, sizeof(mask)) != 0) {
		errno = saved_errno;
		return false;
	}
	registers_here(&context);
	if (thread_enter_handler(thread, (uintptr_t)__builtin_frame_address(0))) {
		seen->timestamp_ns = clock_ns(CLOCK_REALTIME);
		taken = sample_on_call(thread, seen, &context);
		thread_leave_handler(thread);
	}
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
	errno = saved_errno;
	return taken;
}
