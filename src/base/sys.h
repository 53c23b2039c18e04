/*
 * The few kernel calls of this folder, made directly: libc's own timer functions
 * keep a helper thread and allocate, and it has no futex function at all.
 * Async-signal-safe; they set errno when they fail, as syscall() does.
 */
#ifndef QUERYPROF_BASE_SYS_H
#define QUERYPROF_BASE_SYS_H

#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NS_PER_S 1000000000ull

static inline struct timespec timespec_of_ns(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) };
}

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now) != 0)
		return 0;
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Where the interrupted thread's stack ended; 0: not known. */
static inline uintptr_t interrupted_stack_pointer(const ucontext_t *context)
{
	if (context == NULL)
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

/* `flags` is 0 or TIMER_ABSTIME; first_ns 0 disarms. */
static inline int sys_timer_settime(int id, int flags, uint64_t first_ns, uint64_t period_ns)
{
	struct itimerspec when = { .it_interval = timespec_of_ns(period_ns),
		                   .it_value = timespec_of_ns(first_ns) };

	return (int)syscall(SYS_timer_settime, id, flags, &when, NULL);
}

/* Sleeps while *word is `expected`, until `deadline` on CLOCK_MONOTONIC (NULL:
 * without a limit). */
static inline int sys_futex_wait(uint32_t *word, uint32_t expected, const struct timespec *deadline)
{
	return (int)syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, deadline, NULL,
	                    FUTEX_BITSET_MATCH_ANY);
}

static inline int sys_futex_wake(uint32_t *word)
{
	return (int)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#endif
