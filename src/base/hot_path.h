/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hot path of a statement: each step, reset and end takes it, and SQLite has filled the
 * processor's caches with its own code in between. So the cost is dominated by instruction-cache
 * misses. The linker puts the functions of the hot path next to each other; the compiler moves code
 * that calls a function outside it elsewhere; and its data comes first in its structures, in the 128
 * bytes for which an instruction's offset takes one byte instead of four.
 */
#pragma once

#define HOT_PATH __attribute__((hot))
#define COLD_PATH __attribute__((cold))

/* Part of its caller, because the call and the registers that it saves cost as much as the work. */
#define HOT_INLINE static inline __attribute__((always_inline))
