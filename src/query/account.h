/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's counts of a thread: how long it was ready while other threads had the processors, its
 * page faults, its switches. Reading them costs some microseconds, so a reading is reused for a
 * millisecond: a query that begins within that time is charged with the counts of that time.
 */
#pragma once

#include <stdint.h>

#include "base/hot_path.h"
#include "handler/thread.h"

#define ACCOUNT_VALID_NS 1000000

/* Reads the calling thread's account, and its CPU clock, into its slot. Keeps errno. */
COLD_PATH void account_read(struct thread *thread);

/* The difference of two readings. */
struct thread_account account_since(const struct thread_account *start, const struct thread_account *now);
