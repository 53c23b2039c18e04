/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel calls made directly: libc's own timer functions keep a helper thread and
 * allocate. Async-signal-safe; they set errno on failure, as syscall() does.
 */
#pragma once

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"

/* The end of the interrupted thread's stack; 0: not known. */
static inline uintptr_t interrupted_stack_pointer(const ucontext_t *context)
{
	if (!context)
		return 0;
#if defined(__x86_64__)
	return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
	return (uintptr_t)context->uc_mcontext.sp;
#endif
}

static inline uint32_t sys_gettid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/* How often the calling thread has given its processor up to wait. */
static inline uint64_t sys_voluntary_switches(void)
{
	struct rusage usage;

	return syscall(SYS_getrusage, RUSAGE_THREAD, &usage) == 0 ? (uint64_t)usage.ru_nvcsw : 0;
}

/* `flags` is 0 or TIMER_ABSTIME; first_ns 0 disarms. */
static inline int sys_timer_settime(int id, int flags, uint64_t first_ns, uint64_t period_ns)
{
	struct itimerspec when = { .it_interval = timespec_of_ns(period_ns),
		                   .it_value = timespec_of_ns(first_ns) };

	return (int)syscall(SYS_timer_settime, id, flags, &when, NULL);
}
