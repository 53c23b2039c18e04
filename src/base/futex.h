/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for a word in memory, within one process. libc has no function for it.
 * Async-signal-safe; sets errno on failure, as syscall() does.
 */
#ifndef QUERYPROF_BASE_FUTEX_H
#define QUERYPROF_BASE_FUTEX_H

#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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
