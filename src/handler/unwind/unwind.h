/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the registers of an interrupted thread to the addresses of its stack.
 *
 * Async-signal-safe: no malloc, no lock, no loader call. It reads the thread's
 * stack within [sp - 128, stack_end); 128 is the ABI's red zone, to which the rule of an
 * epilogue may still point. It reads another stack as far as the kernel allows.
 *
 * It needs at most 1 KiB of the interrupted thread's stack when the rules are cached, 1.5 KiB on an
 * unknown stack, and at most 4 KiB otherwise (measured on x86-64: 600 bytes, 2.5 KiB with the parser,
 * 3.1 KiB with all registers; up to 500 bytes more on an unknown stack).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/code_map.h"
#include "base/frame_location.h"
#include "handler/unwind/result.h"
#include "wire/ledger.h"

/* A thread's last stack, kept for its next sample. Zero-filled memory is an empty memo.
 * Functions accept NULL. */
struct unwind_memo;
extern const unsigned unwind_memo_bytes, unwind_memo_head_bytes; /* no frame counts without a head */

/* The size of a code map's rule cache (code_map.h). A process of 30 modules keeps 130 KiB
 * for unwinding, and a memo of 32 KiB for each sampled thread. */
extern const unsigned unwind_cache_bytes;

/* Writes at most `max` addresses, leaf first: the interrupted address itself, then for
 * each caller an address inside its call instruction (the return address less one), so
 * that a reader can symbolize every address as it is. A frame that a signal interrupted
 * has its exact address. */
struct unwind_result unwind_addresses(const void *ucontext, const struct unwind_stack *stack,
                                      struct unwind_memo *memo, uint64_t *addresses, int max);

/* Reads words of a frame, on the known stack or another one. */
bool unwind_read_words(const struct unwind_stack *known, uintptr_t address, uintptr_t *words, unsigned count);

/* Written by modules/publish.c. */
extern const struct code_map *code_map_published __attribute__((visibility("hidden")));

/* Async-signal-safe. NULL before the first publish. */
static inline const struct code_map *code_map_current(void)
{
	return __atomic_load_n(&code_map_published, __ATOMIC_ACQUIRE);
}
