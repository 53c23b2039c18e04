/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/filters.h"
#include "base/own_calls.h"
#include "handler/unwind/stack_copy.h"
#include "hook/seccomp_filter.h"

static const struct confine_callbacks *callbacks;
static size_t forbidden; /* atomic */
static int seen;         /* atomic */

/* --- arguments ------------------------------------------------------------------------------------- */

/* The arguments of the library's calls that filters check. A call without a row here may have any
 * arguments. */
static const struct seccomp_call variants[] = {
	{ SYS_clock_gettime, { CLOCK_PROCESS_CPUTIME_ID }, 1, false },
	{ SYS_clock_gettime, { CLOCK_THREAD_CPUTIME_ID }, 1, false },
	{ SYS_fcntl, { 0, F_ADD_SEALS }, 2, false },
	{ SYS_fcntl, { 0, F_GETFD }, 2, false },
	{ SYS_fcntl, { 0, F_SETFD }, 2, false },
	{ SYS_fcntl, { 0, F_SETLK }, 2, false },
	{ SYS_fcntl, { 0, F_GETLK }, 2, false },
	{ SYS_futex, { 0, FUTEX_WAIT_PRIVATE }, 2, false },
	{ SYS_futex, { 0, FUTEX_WAIT_BITSET_PRIVATE }, 2, false },
	{ SYS_futex, { 0, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME }, 2, false },
	{ SYS_futex, { 0, FUTEX_WAKE_PRIVATE }, 2, false },
	{ SYS_getrusage, { (uint64_t)RUSAGE_THREAD }, 1, false },
	{ SYS_madvise, { 0, 0, MADV_DONTNEED }, 4, false },
	{ SYS_membarrier, { MEMBARRIER_CMD_PRIVATE_EXPEDITED }, 1, false },
	{ SYS_membarrier, { MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED }, 1, false },
	{ SYS_mmap, { 0, 0, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS }, 12, false },
	{ SYS_mmap, { 0, 0, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE }, 12, false },
	{ SYS_mmap, { 0, 0, PROT_READ, MAP_PRIVATE }, 12, false },
	{ SYS_mprotect, { 0, 0, PROT_READ | PROT_WRITE }, 4, false },
	{ SYS_mprotect, { 0, 0, PROT_READ }, 4, false },
	{ SYS_prctl, { PR_SET_NAME }, 1, false },
	{ SYS_prctl, { PR_GET_NAME }, 1, false },
	{ SYS_prctl, { PR_GET_SECCOMP }, 1, false },
	/* One that fails returns to where a signal's frame is. */
	{ .number = SYS_rt_sigreturn, .must_succeed = true },
	{ SYS_rt_sigprocmask, { SIG_BLOCK }, 1, false },
	{ SYS_rt_sigprocmask, { SIG_SETMASK }, 1, false },
	{ SYS_socket, { AF_UNIX }, 1, false },
};

/* --- evaluation ------------------------------------------------------------------------------------ */

struct filter {
	struct sock_filter *program; /* NULL: the strict mode */
	size_t length;
};

static bool is_strictly_allowed(int number)
{
	return number == SYS_read || number == SYS_write || number == SYS_exit || number == SYS_rt_sigreturn;
}

static bool punishes(const struct filter *filter, int number)
{
	const struct seccomp_call any = { .number = number };
	bool has_variant = false;

	if (!filter->program)
		return !is_strictly_allowed(number);
	for (size_t i = 0; i < sizeof(variants) / sizeof(*variants); i++) {
		if (variants[i].number != number)
			continue;
		has_variant = true;
		if (seccomp_punishes(filter->program, filter->length, &variants[i]))
			return true;
	}
	return !has_variant && seccomp_punishes(filter->program, filter->length, &any);
}

/* A copy, because the host's pointer may be invalid, and then the kernel refuses. */
static bool copy_filter(const void *given, struct filter *filter)
{
	struct sock_fprog program;
	size_t bytes;

	if (!stack_copy_part((uintptr_t)given, &program, sizeof(program)) || !program.len ||
	    program.len > BPF_MAXINSNS)
		return false;
	bytes = program.len * sizeof(*program.filter);
	filter->length = program.len;
	filter->program = malloc(bytes);
	if (filter->program && stack_copy_part((uintptr_t)program.filter, filter->program, bytes))
		return true;
	free(filter->program);
	return false;
}

/* The calls that were allowed until now and no longer are. */
struct change {
	struct confinement confinement;
	uint64_t calls[2]; /* bits of own_calls[] */
	size_t before;     /* how many were forbidden */
};
_Static_assert(sizeof(((struct change *)0)->calls) * 8 >= 128, "one bit for each call");

static void find_change(const struct filter *filter, struct change *change)
{
	*change = (struct change){ .before = __atomic_load_n(&forbidden, __ATOMIC_RELAXED) };
	change->confinement.forbidden = change->before;
	for (size_t i = 0; i < own_calls_count; i++) {
		const struct own_call *call = &own_calls[i];

		if (own_call_is_forbidden(call->number) || !punishes(filter, call->number))
			continue;
		change->calls[i / 64] |= 1ull << i % 64;
		change->confinement.callers |= call->callers;
		change->confinement.losses |= call->loss ? 1u << call->loss : 0;
		change->confinement.forbidden++;
	}
}

static void apply(const struct change *change, bool is_forbidden)
{
	for (size_t i = 0; i < own_calls_count; i++)
		if (change->calls[i / 64] >> i % 64 & 1)
			own_call_forbid(&own_calls[i], is_forbidden);
}

/* --- the host's call ------------------------------------------------------------------------------- */

enum { NO_FILTER, STRICT, BY_PROGRAM };

/* What the call would install. */
static int look(long number, long a, long b, long c, const void **program, bool *is_result_thread)
{
	long mode = number == SYS_seccomp ? a : b;

	*program = (const void *)c;
	if (number == SYS_prctl)
		return a != PR_SET_SECCOMP           ? NO_FILTER
		       : mode == SECCOMP_MODE_STRICT ? STRICT
		       : mode == SECCOMP_MODE_FILTER ? BY_PROGRAM
		                                     : NO_FILTER;
	*is_result_thread = (b & SECCOMP_FILTER_FLAG_TSYNC) && !(b & SECCOMP_FILTER_FLAG_NEW_LISTENER);
	return mode == SECCOMP_SET_MODE_STRICT   ? (b || c ? NO_FILTER : STRICT)
	       : mode == SECCOMP_SET_MODE_FILTER ? BY_PROGRAM
	                                         : NO_FILTER;
}

/* One change at a time is applied; it is what a refusal undoes. */
static struct change newest;

struct confining confine_before_call(long number, long a, long b, long c)
{
	/* Acquire: with confine_follow() */
	const struct confine_callbacks *now = __atomic_load_n(&callbacks, __ATOMIC_ACQUIRE);
	struct confining confining = { .is_forbidding = false };
	struct filter filter = { .program = NULL };
	const void *program;
	int kind = look(number, a, b, c, &program, &confining.is_result_thread);
	int error = errno;

	if (kind == NO_FILTER || !now || !now->is_here() ||
	    (kind == BY_PROGRAM && !copy_filter(program, &filter)))
		return confining;
	find_change(&filter, &newest);
	free(filter.program);
	confining.is_filter = true;
	if (newest.calls[0] || newest.calls[1]) {
		now->begins(&newest.confinement);
		apply(&newest, true);
		__atomic_store_n(&forbidden, newest.confinement.forbidden, __ATOMIC_RELAXED);
		confining.is_forbidding = true;
	}
	errno = error;
	return confining;
}

void confine_after_call(const struct confining *confining, long result)
{
	bool is_refused = result < 0 || (result > 0 && confining->is_result_thread);
	int error = errno;

	if (confining->is_filter && !is_refused)
		__atomic_fetch_add(&seen, 1, __ATOMIC_RELAXED);
	if (!confining->is_forbidding || !is_refused)
		return;
	apply(&newest, false);
	__atomic_store_n(&forbidden, newest.before, __ATOMIC_RELAXED);
	callbacks->was_refused();
	errno = error;
}

static int (*real_prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);

static int queryprof_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	struct confining confining;
	int result;

	if (option != PR_SET_SECCOMP)
		return real_prctl(option, a, b, c, d);
	confining = confine_before_call(SYS_prctl, option, (long)a, (long)b);
	result = real_prctl(option, a, b, c, d);
	confine_after_call(&confining, result);
	return result;
}

/* --- what others ask ------------------------------------------------------------------------------- */

int confine_seen(void)
{
	return __atomic_load_n(&seen, __ATOMIC_RELAXED);
}

char *confine_names(char *to, size_t room)
{
	size_t used = 0;

	*to = '\0';
	for (size_t i = 0; i < own_calls_count && used < room; i++)
		if (own_call_is_forbidden(own_calls[i].number))
			used += (size_t)snprintf(to + used, room - used, "%s%s", used ? ", " : "",
			                         own_calls[i].name);
	return to;
}

static bool has_unknown; /* atomic */

void confine_inspect(void)
{
	if (filters_here() > confine_seen())
		__atomic_store_n(&has_unknown, true, __ATOMIC_RELAXED);
}

bool confine_has_unknown_filter(void)
{
	return __atomic_load_n(&has_unknown, __ATOMIC_RELAXED);
}

void confine_follow(const struct confine_callbacks *given)
{
	__atomic_store_n(&callbacks, given, __ATOMIC_RELEASE);
}

int confine_hooks(struct import_hook hooks[CONFINE_HOOKS_MAX])
{
	hooks[0] = import_hook_of("prctl", &real_prctl, (void *)queryprof_prctl);
	return 1;
}
