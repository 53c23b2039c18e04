/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for a word in memory, within one process, by the bare system call: libc has no function for
 * it, and no library of the host can replace it. Async-signal-safe; errno is kept.
 *
 * Only base/bounded_wait.c and base/lock.c wait: each wait has a limit, or a thread that ends it.
 */
#pragma once

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#define FUTEX_NO_LIMIT UINT64_MAX

/* Sleeps while *word is `expected`, at most `ns`, which the kernel counts on its own CLOCK_MONOTONIC: no
 * clock is read here. 0, or why it returned early: ETIMEDOUT, EINTR, EAGAIN (the word is another). */
static inline int futex_wait(uint32_t *word, uint32_t expected, uint64_t ns)
{
	struct timespec time = timespec_of_ns(ns);
	int before = errno, error = 0;

	if (syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, ns == FUTEX_NO_LIMIT ? NULL : &time, NULL,
	            0))
		error = errno;
	errno = before;
	return error;
}

static inline void futex_wake(uint32_t *word, int threads)
{
	int before = errno;

	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
	errno = before;
}
