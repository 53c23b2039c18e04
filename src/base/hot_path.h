/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a statement: each step, reset and end passes it, and SQLite has filled the processor's
 * caches with its own code in between. So what the way costs is mostly the lines of code that have to
 * come back. The linker puts the functions that are on the way side by side; the compiler puts what
 * calls a function that is off the way elsewhere; and what the way touches stands first in its
 * structures, in the 128 bytes for which an instruction's offset takes one byte instead of four.
 */
#ifndef QUERYPROF_BASE_HOT_PATH_H
#define QUERYPROF_BASE_HOT_PATH_H

#define HOT_PATH __attribute__((hot))
#define COLD_PATH __attribute__((cold))

/* Part of its caller: what the call and the registers that it saves take is as much as what is done. */
#define HOT_INLINE static inline __attribute__((always_inline))

#endif
