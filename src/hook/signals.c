/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Async-signal-safe, like the functions that they replace, and usable in a child of vfork().
 */
#include "hook/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "collect/state.h"
#include "timers/signal.h"
#include "timers/push.h"
#include "timers/timers.h"

static struct {
	int (*sigaction)(int, const struct sigaction *, struct sigaction *);
	sighandler_t (*signal)(int, sighandler_t);
	sighandler_t (*signal_once)(int, sighandler_t);
	int (*sigwaitinfo)(const sigset_t *, siginfo_t *);
	int (*sigtimedwait)(const sigset_t *, siginfo_t *, const struct timespec *);
	int (*signalfd)(int, const sigset_t *, int);
} real;

static bool sets_signal(int number, const struct sigaction *action, struct sigaction *before, int *result)
{
	bool done = sampler_host_sets_signal(number, action, before, result);

	sampler_follow();
	return done;
}

static int queryprof_sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
	int result;

	if (number == 0 || number != sampler_signal())
		return real.sigaction(number, action, before);
	if (!action) {
		if (before && sampler_host_reads_action(number, before))
			return 0;
	} else if (sets_signal(number, action, before, &result)) {
		return result;
	}
	return real.sigaction(number, action, before);
}

static sighandler_t set_handler(int number, sighandler_t handler, int flags,
                                sighandler_t (*otherwise)(int, sighandler_t))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags }, before;
	int result;

	if (number == 0 || number != sampler_signal())
		return otherwise(number, handler);
	sigemptyset(&action.sa_mask);
	if (!(flags & SA_NODEFER))
		sigaddset(&action.sa_mask, number);
	if (!sets_signal(number, &action, &before, &result))
		return otherwise(number, handler);
	return result ? SIG_ERR : before.sa_handler;
}

static sighandler_t queryprof_signal(int number, sighandler_t handler)
{
	return set_handler(number, handler, SA_RESTART, real.signal);
}

/* signal() of programs that are compiled for System V. */
static sighandler_t queryprof_signal_once(int number, sighandler_t handler)
{
	return set_handler(number, handler, (int)(SA_RESETHAND | SA_NODEFER), real.signal_once);
}

/* --- waiting ------------------------------------------------------------------ */

/* A thread that waits for a signal blocks it, so a signal that queryprof's timers sent before is
 * pending in addition to the host's own. That happens once or twice: then the timers are stopped. */

static int queryprof_sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	siginfo_t room;
	int number;

	do
		number = real.sigwaitinfo(set, info ? info : &room);
	while (number > 0 && sampler_acquired_signal(info ? info : &room));
	return number;
}

static int queryprof_sigwait(const sigset_t *set, int *number)
{
	int saved_errno = errno, found, error;
	siginfo_t info;

	do
		found = queryprof_sigwaitinfo(set, &info);
	while (found < 0 && errno == EINTR);
	error = found < 0 ? errno : 0;
	errno = saved_errno;
	if (!error)
		*number = found;
	return error;
}

/* Ours can only be pending before the first call, so retrying does not lengthen the timeout. */
static int queryprof_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *time)
{
	siginfo_t room;
	int number;

	do
		number = real.sigtimedwait(set, info ? info : &room, time);
	while (number > 0 && sampler_acquired_signal(info ? info : &room));
	return number;
}

/* A descriptor cannot leave queryprof's signal out. */
static int queryprof_signalfd(int fd, const sigset_t *set, int flags)
{
	int number = sampler_signal();
	sigset_t room;

	if (number != 0 && set && sigismember(set, number) == 1 && sampler_host_reads_signal(set, &room))
		set = &room;
	return real.signalfd(fd, set, flags);
}

int signals_hooks(struct import_hook hooks[SIGNALS_HOOKS_MAX])
{
	int count = 0;

#define HOOK(name) hooks[count++] = import_hook_of(#name, &real.name, (void *)queryprof_##name)
	HOOK(sigaction);
	HOOK(signal);
	HOOK(sigwaitinfo);
	HOOK(sigtimedwait);
	HOOK(signalfd);
#undef HOOK
	hooks[count++] = import_hook_of("__sysv_signal", &real.signal_once, (void *)queryprof_signal_once);
	hooks[count++] = import_hook_of("sigwait", NULL, (void *)queryprof_sigwait);
	return count;
}
