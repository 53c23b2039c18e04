/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/labels.h"

#include <stddef.h>

#include "handler/unwind/arch.h"

/* Places in label/trampolines.S: the return address of its call, minus one, and the offset of the
 * two words in its frame. */
#if defined(__aarch64__)
#define CALL_AT 11u
#define WORDS_AT 16u
#else
#define CALL_AT 14u
#define WORDS_AT 0u
#endif

__thread uint64_t labels_entered;
uintptr_t labels_code, labels_code_bytes;

static void add(struct labels *labels, uint64_t number)
{
	if (number != 0)
		labels->numbers[labels->count++] = number;
}

/* `frames`: NULL, the trampolines only get their name. A return address minus one is never an
 * instruction's first byte, so an interrupted frame is not mistaken for a calling one. */
static uint64_t find_frames(struct labels *labels, const struct memo_frame *frames,
                            const struct unwind_stack *stack, uint64_t *addresses, int depth,
                            uint64_t entered)
{
	/* Relaxed: see the header. */
	const uintptr_t code = __atomic_load_n(&labels_code, __ATOMIC_RELAXED);
	const uintptr_t size = __atomic_load_n(&labels_code_bytes, __ATOMIC_RELAXED);
	uintptr_t words[2];
	uint32_t found = 0;

	for (int i = 0; size != 0 && i < depth; i++) {
		const uintptr_t offset = addresses[i] - code;
		if (__builtin_expect(offset >= size, 1))
			continue;
		addresses[i] = code + offset % LABEL_TRAMPOLINE_BYTES;
		if (!frames || offset % LABEL_TRAMPOLINE_BYTES != CALL_AT || found == LABELS_FRAMES_MAX ||
		    !unwind_read_words(stack, frames[i].at.sp + WORDS_AT, words, 2))
			continue;
		found++;
		/* A set that was entered inside a trampoline differs from the enclosing one. */
		if (words[1] != entered)
			add(labels, entered);
		add(labels, words[0]);
		entered = words[1];
	}
	return entered;
}

void labels_rename(uint64_t *addresses, int depth)
{
	find_frames(NULL, NULL, NULL, addresses, depth, 0);
}

void labels_collect(struct labels *labels, const struct unwind_stack *stack, uint64_t *addresses,
                    const struct unwind_result *unwound, uint64_t query)
{
	labels->count = 0;
	add(labels, find_frames(labels, unwound->frames, stack, addresses, unwound->depth, labels_entered));
	add(labels, query);
}
