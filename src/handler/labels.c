/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/labels.h"

/* Of label/trampolines.S: where the return address of its call lies, less one, and where its
 * frame has the two words. */
#if defined(__aarch64__)
#define CALL_AT 11u
#define WORDS_AT 16u
#else
#define CALL_AT 14u
#define WORDS_AT 0u
#endif

__thread uint64_t labels_entered;
uintptr_t labels_code, labels_code_bytes;

bool labels_rename(uint64_t *trace, int depth)
{
	/* Relaxed: see the header. */
	const uintptr_t code = __atomic_load_n(&labels_code, __ATOMIC_RELAXED);
	const uintptr_t size = __atomic_load_n(&labels_code_bytes, __ATOMIC_RELAXED);
	bool found = false;

	for (int i = 0; i < depth; i++) {
		const uintptr_t place = trace[i] - code;
		if (__builtin_expect(place < size, 0)) {
			trace[i] = code + place % LABEL_TRAMPOLINE_BYTES;
			found = true;
		}
	}
	return found;
}

static void add(struct labels *labels, uint64_t number)
{
	if (number != 0)
		labels->numbers[labels->count++] = number;
}

void labels_collect(struct labels *labels, const void *ucontext, const struct unwind_stack *stack,
                    uint64_t *trace, int depth, uint64_t query)
{
	struct unwind_watch *watch = &labels->watch;
	uint64_t entered = labels_entered;

	labels->count = watch->count = 0;
	if (__builtin_expect(labels_rename(trace, depth), 0)) {
		watch->code = labels_code;
		watch->code_end = labels_code + labels_code_bytes;
		watch->bytes = LABEL_TRAMPOLINE_BYTES;
		watch->call = CALL_AT;
		watch->offset = WORDS_AT;
		unwind_watched(ucontext, stack, watch, depth);
	}
	/* What was entered inside of a trampoline is another set than the one around it. */
	for (uint32_t i = 0; i < watch->count; i++) {
		if (watch->words[i][1] != entered)
			add(labels, entered);
		add(labels, watch->words[i][0]);
		entered = watch->words[i][1];
	}
	add(labels, entered);
	add(labels, query);
}
