/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a host's limits (RLIMIT_AS, RLIMIT_DATA) leave it enough memory if the library takes its own. A
 * host that fits into its limit alone must also fit when it is recorded, and nobody knows how much it will
 * need.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What recording a process takes at least: code, the shared ring's memory, a thread's stack and the store's
 * memory; and the part of it that is private and writable. */
#define MEMORY_OF_LIBRARY (64u << 20)
#define MEMORY_OF_DATA (16u << 20)

#define MEMORY_SENTENCE_SIZE 200

/* Whether so many bytes of address space, and MEMORY_OF_DATA of them, are a small share of what the limits
 * leave. False: `why` is a sentence. */
bool memory_has_headroom(size_t bytes, char why[MEMORY_SENTENCE_SIZE]);
