/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of an interpreter, read with handler/unwind/stack_copy.h: unreadable memory causes no
 * fault. A call stack alternates between frames, code and texts, so some pages are kept.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As it is at the first reading of each page, or from memory_open() on: open one for each call stack. Not on
 * the stack of the thread, which may be small. NULL: no memory. memory_close() frees it, or keeps it for the
 * next one. */
struct memory *memory_open(void);
void memory_close(struct memory *memory);

/* As memory_open(), without an allocation: there is one, and NULL means that somebody has it.
 * Async-signal-safe. */
struct memory *memory_acquire(void);
void memory_release(void);

/* False: some of it is unreadable. */
bool memory_read(struct memory *memory, uintptr_t at, void *to, size_t size);

/* The word there; 0: it is 0, or unreadable. */
uintptr_t memory_word(struct memory *memory, uintptr_t at);
