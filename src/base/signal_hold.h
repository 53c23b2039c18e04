/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For a call that may raise a signal in the calling thread: SIGXFSZ where a file would grow beyond
 * RLIMIT_FSIZE, SIGPIPE where nobody reads a pipe. The signal is blocked during the call. If the call
 * fails for that reason the signal is pending, and is taken away, so that the host never gets it. A
 * signal of the host's that was pending before stays. Async-signal-safe; keeps errno.
 */
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct signal_hold {
	uint64_t mask;   /* the signal */
	uint64_t before; /* the previously blocked signals */
	bool was_pending;
};

static inline struct signal_hold signal_hold(int number)
{
	struct signal_hold hold = { .mask = 1ull << (number - 1) };
	uint64_t pending = 0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &hold.mask, &hold.before, sizeof(hold.mask));
	syscall(SYS_rt_sigpending, &pending, sizeof(pending));
	hold.was_pending = (pending & hold.mask) != 0;
	return hold;
}

/* `is_raised`: the call failed with the error that comes with the signal. */
static inline void signal_release(const struct signal_hold *hold, bool is_raised)
{
	const struct timespec now = { 0, 0 };
	int error = errno;

	if (is_raised && !hold->was_pending)
		syscall(SYS_rt_sigtimedwait, &hold->mask, NULL, &now, sizeof(hold->mask));
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &hold->before, NULL, sizeof(hold->before));
	errno = error;
}
