/* SPDX-License-Identifier: Apache-2.0 */
#include "process/exec.h"

#include <errno.h>
#include <signal.h>

#include "base/own_process.h"
#include "base/sys.h"
#include "collect/open_waits.h"
#include "handler/thread.h"
#include "timers/signal.h"
#include "timers/stacks.h"
#include "timers/timers.h"

/* Throws away the timers' signals that are pending and blocked: no handler will take them. */
static void drop_pending(int number)
{
	const struct timespec now = { 0, 0 };
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	while (sigtimedwait(&set, &info, &now) == number) {
		if (thread_owns_signal(info.si_code, info.si_value.sival_ptr))
			continue;
		/* The host's thread, which continues to wait for the new program. */
		syscall(SYS_rt_tgsigqueueinfo, getpid(), sys_gettid(), number, &info);
		return;
	}
}

void sampler_before_exec(void)
{
	struct thread *thread = thread_current;
	int saved_errno = errno;

	signal_before_exec();
	if (!own_process_is_here())
		return;
	open_waits_before_exec();
	/* Other threads' signals end with them. */
	if (!thread)
		return;
	stacks_before_exec();
	timers_stop(thread);
	if (timers_are_blocked(sampler_signal()))
		drop_pending(sampler_signal());
	errno = saved_errno;
}
