/*
 * Async-signal-safe, as what they stand for, and fit for a child of vfork().
 */
#include "signals.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "sampler/sampler.h"

static struct {
	int (*sigaction)(int, const struct sigaction *, struct sigaction *);
	sighandler_t (*signal)(int, sighandler_t);
	sighandler_t (*signal_once)(int, sighandler_t);
	int (*sigwait)(const sigset_t *, int *);
	int (*sigwaitinfo)(const sigset_t *, siginfo_t *);
	int (*sigtimedwait)(const sigset_t *, siginfo_t *, const struct timespec *);
	int (*signalfd)(int, const sigset_t *, int);
} real;

static int queryprof_sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
	int result;

	if (number == 0 || number != sampler_signal())
		return real.sigaction(number, action, before);
	if (action ? sampler_host_sets_signal(number, action, before, &result) :
	             before && sampler_host_asks_signal(number, before))
		return action ? result : 0;
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
	if (!sampler_host_sets_signal(number, &action, &before, &result))
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

/* Those that wait for all signals do not mean ours. */
static const sigset_t *without_ours(const sigset_t *set, sigset_t *room)
{
	int number = sampler_signal();

	if (number != 0 && set && sigismember(set, number) == 1 && sampler_host_waits_signal(set, room))
		return room;
	return set;
}

static int queryprof_sigwait(const sigset_t *set, int *number)
{
	sigset_t room;

	return real.sigwait(without_ours(set, &room), number);
}

static int queryprof_sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	sigset_t room;

	return real.sigwaitinfo(without_ours(set, &room), info);
}

static int queryprof_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *time)
{
	sigset_t room;

	return real.sigtimedwait(without_ours(set, &room), info, time);
}

static int queryprof_signalfd(int fd, const sigset_t *set, int flags)
{
	sigset_t room;

	return real.signalfd(fd, without_ours(set, &room), flags);
}

int signals_hooks(struct got_hook hooks[SIGNALS_HOOKS_MAX])
{
	int count = 0;

#define HOOK(name, called) \
	*(void **)&real.name = dlsym(RTLD_DEFAULT, called); \
	if (real.name) \
		hooks[count++] = (struct got_hook){ .symbol = called, .real = (void *)real.name, \
		                                    .replacement = (void *)queryprof_##name }
	HOOK(sigaction, "sigaction");
	HOOK(signal, "signal");
	HOOK(signal_once, "__sysv_signal");
	HOOK(sigwait, "sigwait");
	HOOK(sigwaitinfo, "sigwaitinfo");
	HOOK(sigtimedwait, "sigtimedwait");
	HOOK(signalfd, "signalfd");
#undef HOOK
	return count;
}
