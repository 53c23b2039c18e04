/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the library: malloc(), calloc(), realloc(), reallocarray() and free() of everything that is
 * linked into it. Not async-signal-safe.
 *
 * Those of the host's are not called: what a host preloads may write to files in them, wait for locks, or end
 * the process. So memory from here comes back here, and what a library of the host's made goes back to that
 * library (symbol/debuginfod.c).
 */
#pragma once

#include <stddef.h>

/* How much the kernel has given and not got back, in bytes; for tests. */
size_t memory_mapped(void);
