/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a host's limits (RLIMIT_AS, RLIMIT_DATA) leave it enough memory beside the library's. A host that
 * fits into its limit alone must do so when it is recorded, and how much it will need is not known.
 */
#ifndef QUERYPROF_BASE_MEMORY_LEFT_H
#define QUERYPROF_BASE_MEMORY_LEFT_H

#include <stdbool.h>
#include <stddef.h>

/* What a recorded process has at least: code, the shared ring and what lies behind it, a thread's stack, the
 * memory of the store; and what of it is private and can be written. */
#define MEMORY_OF_LIBRARY (64u << 20)
#define MEMORY_OF_DATA (16u << 20)

#define MEMORY_SENTENCE_SIZE 200

/* Whether so many bytes of address space, and MEMORY_OF_DATA of them, are a small share of what the limits
 * leave. False: `why` is a sentence. */
bool memory_is_left(size_t bytes, char why[MEMORY_SENTENCE_SIZE]);

#endif
