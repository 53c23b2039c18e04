/* SPDX-License-Identifier: Apache-2.0 */
#include "base/own_calls.h"

uint64_t own_calls_forbidden[OWN_CALL_NUMBERS / 64];
DEFINE_ADDRESS_OF_RECORDER(uint64_t, own_calls_forbidden)

#define ENTRY(name, callers, loss) { #name, SYS_##name, callers, loss },
const struct own_call own_calls[] = { OWN_CALLS(ENTRY) };
#undef ENTRY
const size_t own_calls_count = sizeof(own_calls) / sizeof(*own_calls);

static pid_t process;

pid_t own_calls_process(void)
{
	return __atomic_load_n(&process, __ATOMIC_RELAXED);
}

/* The only thread of a forked child has the number of the process. */
void own_calls_renew_in_child(void)
{
	if (own_call_is_forbidden(SYS_getpid) && !own_call_is_forbidden(SYS_gettid))
		__atomic_store_n(&process, (pid_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
}

void own_call_forbid(const struct own_call *call, bool is_forbidden)
{
	uint64_t *word = &own_calls_forbidden[call->number / 64], bit = 1ull << call->number % 64;

	if (call->number == SYS_getpid)
		__atomic_store_n(&process, getpid(), __ATOMIC_RELAXED);
	if (is_forbidden)
		__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(word, ~bit, __ATOMIC_RELAXED);
}
