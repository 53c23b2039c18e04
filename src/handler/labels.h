/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The labels of a sample: the sets of the interrupted thread.
 *
 * A set has a number, which is the hash of its content (label/sets.h). There are two ways to give a
 * thread a set. Either it enters the set, and the number is in a thread-local word. Or it runs a
 * function through a trampoline, and the number is in the trampoline's frame, together with the
 * previous value of the word. So the stack alone shows the sets and their order, whatever has
 * happened to the set or its trampoline since.
 */
#pragma once

#include <stdint.h>

#include "handler/unwind/unwind.h"

/* The number of the set that the thread has entered, 0: none. */
extern __thread uint64_t labels_entered __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The trampolines, which are consecutive; both 0: there are none. Set before the first is called,
 * the size last. A handler that sees one of the two finds no code there. */
#define LABEL_TRAMPOLINE_BYTES 32u
extern uintptr_t labels_code, labels_code_bytes __attribute__((visibility("hidden")));

/* The entered sets between the trampolines, a limited number of which count per stack, and those
 * of the query. */
#define LABELS_FRAMES_MAX 16
#define LABELS_MAX (2 * LABELS_FRAMES_MAX + 2)

/* Those of one sample, innermost first. In the thread's slot, because the interrupted stack may be small. */
struct labels {
	unsigned count;
	uint64_t numbers[LABELS_MAX];
};

/* In the stack each trampoline becomes the first one. */
void labels_rename(uint64_t *addresses, int depth);

/* Finds the thread's sets by the frames that the memo has kept, and renames the trampolines.
 * `query`: the number of the query's own set, 0: none. */
void labels_collect(struct labels *labels, const struct unwind_stack *stack, uint64_t *addresses,
                    const struct unwind_result *unwound, uint64_t query);
