/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bare system call: no function of libc's, which a library of the host's may have replaced.
 * Async-signal-safe.
 */
#pragma once

#include <errno.h>

#include "base/own_calls.h"

/* What the kernel returns: -errno for an error. errno is kept. One that the host's seccomp filter would
 * punish is not made. */
static inline long call_kernel(long number, long a, long b, long c, long d, long e, long f)
{
	if (own_call_is_forbidden(number))
		return -ENOSYS;
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
	                 : "=a"(result)
	                 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
	                 : "+r"(x0)
	                 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
	                 : "memory");
	return x0;
#endif
}

#define CALL_KERNEL_(number, a, b, c, d, e, f, ...)                                                          \
	call_kernel(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
/* CALL_KERNEL(SYS_..., up to six arguments) */
#define CALL_KERNEL(...) CALL_KERNEL_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

/* As libc's functions return it: -1 and errno. */
static inline long call_result(long result)
{
	if ((unsigned long)result <= -4096ul)
		return result;
	errno = (int)-result;
	return -1;
}

#define CALL(...) call_result(CALL_KERNEL(__VA_ARGS__))

/* Defines one of libc's functions that is a system call with these arguments, and nothing else. */
#define SYSTEM_CALL(type, name, parameters, ...)                                                             \
	type name parameters                                                                                 \
	{                                                                                                    \
		return (type)CALL(__VA_ARGS__);                                                              \
	}
