/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated unwinder, because other tests check the content of stacks.
 */
#include "common.h"

#include <errno.h>

#include "handler/opcode.h"

const unsigned unwind_memo_bytes = 256, unwind_memo_head_bytes = 64;
int fake_depth = 5;
bool fake_truncated;
void (*fake_unwind_hook)(void);

struct unwind_result unwind_addresses(const void *ucontext, const struct unwind_stack *stack,
                                      struct unwind_memo *memo, uint64_t *trace, int max)
{
	int depth = fake_depth < max ? fake_depth : max;
	(void)ucontext;
	(void)stack;
	(void)memo;

	errno = EDOM; /* so that a handler that does not restore errno is noticed */
	if (fake_unwind_hook)
		fake_unwind_hook();
	for (int i = 0; i < depth; i++)
		trace[i] = (uint64_t)i + 1;
	return (struct unwind_result){ (int16_t)depth, fake_truncated || depth < fake_depth, 1, NULL };
}

uint64_t opcode_running(struct thread *thread, const struct query_tag *tag, const void *ucontext,
                        const struct unwind_result *unwound)
{
	(void)thread, (void)tag, (void)ucontext, (void)unwound;
	return OPCODE_UNKNOWN;
}

bool unwind_read_words(const struct unwind_stack *known, uintptr_t address, uintptr_t *words, unsigned count)
{
	(void)known, (void)address, (void)words, (void)count;
	return false;
}

struct run_start opcode_start(const struct query_counts *counts)
{
	return counts->start;
}
