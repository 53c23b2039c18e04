/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of all threads' slots.
 */
#pragma once

#include <stdint.h>

#include "handler/thread.h"

/* Slots ever made, and one of them by its index. Async-signal-safe, lock-free, both. */
uint32_t slots_count(void);
struct thread *slots_get(uint32_t index);

/* Takes a free slot, or makes one; NULL: out of memory. slots_release() frees it again. */
struct thread *slots_acquire(void);
void slots_release(struct thread *slot);

/* In a forked child: no slot is free until it is given back. */
void slots_forget_free(void);
