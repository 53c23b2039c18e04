/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/forward.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include "base/sys.h"

/* Actions by version: a writer fills the place after the newest version and then publishes it, so
 * that no thread reads a place that is being written, unless ACTIONS - 1 versions come during one
 * reading. The reader detects that by the version and reads again; it never waits for a writer,
 * which its own signal may have interrupted. */
#define ACTIONS 8

struct action {
	uintptr_t handler;
	uint64_t flags, mask; /* the kernel's 64 signals */
};

static struct action actions[ACTIONS]; /* atomic words */
static uint64_t newest;                /* version */
static uint64_t spent;                 /* version + 1 of the newest SA_RESETHAND that has run */

void forward_set(const struct sigaction *action)
{
	uint64_t version = __atomic_load_n(&newest, __ATOMIC_RELAXED) + 1, mask;
	struct action *to = &actions[version % ACTIONS];

	memcpy(&mask, &action->sa_mask, sizeof(mask));
	/* Release: after the publication of the previous version. A reader that sees a word of
	 * this one also sees that its own version is old. */
	__atomic_store_n(&to->handler, (uintptr_t)action->sa_handler, __ATOMIC_RELEASE);
	__atomic_store_n(&to->flags, (uint64_t)(unsigned)action->sa_flags, __ATOMIC_RELEASE);
	__atomic_store_n(&to->mask, mask, __ATOMIC_RELEASE);
	/* Release: the words before the version. */
	__atomic_store_n(&newest, version, __ATOMIC_RELEASE);
}

static struct action read_action(uint64_t *version)
{
	struct action action;

	do {
		/* Acquire: the words of this version. */
		*version = __atomic_load_n(&newest, __ATOMIC_ACQUIRE);
		const struct action *from = &actions[*version % ACTIONS];
		/* Acquire: each word before the second look at the version. */
		action.handler = __atomic_load_n(&from->handler, __ATOMIC_ACQUIRE);
		action.flags = __atomic_load_n(&from->flags, __ATOMIC_ACQUIRE);
		action.mask = __atomic_load_n(&from->mask, __ATOMIC_ACQUIRE);
	} while (__atomic_load_n(&newest, __ATOMIC_RELAXED) - *version >= ACTIONS - 1);
	return action;
}

/* The default action of a real-time signal ends the process. The signal is sent again, so that the
 * parent sees the same as without queryprof. */
static void act_by_default(int signal, siginfo_t *info)
{
	const uint64_t action[4] = { (uintptr_t)SIG_DFL }; /* as the kernel has it */
	uint64_t set = 1ull << (signal - 1);

	syscall(SYS_rt_sigaction, signal, action, NULL, sizeof(set));
	syscall(SYS_rt_tgsigqueueinfo, syscall(SYS_getpid), sys_gettid(), signal, info);
	syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &set, NULL, sizeof(set));
}

/* Blocks what would be blocked if the kernel had called the host's handler directly. */
static void apply_mask(int signal, const struct action *action, const ucontext_t *context)
{
	uint64_t mask;

	memcpy(&mask, &context->uc_sigmask, sizeof(mask));
	mask |= action->mask;
	if ((action->flags & SA_NODEFER) == 0)
		mask |= 1ull << (signal - 1);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

/* Whether this is the one signal that an action with SA_RESETHAND handles. Relaxed: about
 * no other memory. */
static bool claim_only_signal(uint64_t version)
{
	uint64_t before = __atomic_load_n(&spent, __ATOMIC_RELAXED);

	while (before <= version)
		if (__atomic_compare_exchange_n(&spent, &before, version + 1, false, __ATOMIC_RELAXED,
		                                __ATOMIC_RELAXED))
			return true;
	return false;
}

void forward_signal(int signal, siginfo_t *info, void *ucontext)
{
	uint64_t version;
	const struct action action = read_action(&version);

	if (action.handler == (uintptr_t)SIG_IGN)
		return;
	if (action.handler == (uintptr_t)SIG_DFL ||
	    ((action.flags & (unsigned)SA_RESETHAND) != 0 && !claim_only_signal(version))) {
		act_by_default(signal, info);
		return;
	}
	if (ucontext)
		apply_mask(signal, &action, ucontext);
	if ((action.flags & SA_SIGINFO) != 0)
		((void (*)(int, siginfo_t *, void *))action.handler)(signal, info, ucontext);
	else
		((void (*)(int))action.handler)(signal);
}
