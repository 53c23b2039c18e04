/* SPDX-License-Identifier: Apache-2.0 */
#include "interpreter/interrupted.h"

#include <stddef.h>

#include "handler/outside.h"
#include "interpreter/memory.h"
#include "wire/call_frame.h"

static const struct frame_reader *const readers[] = { &frames_python, &frames_perl, &frames_php,
	                                              &frames_ruby };
#define READERS (sizeof(readers) / sizeof(readers[0]))

static char bytes[CALL_STACK_BYTES]; /* of who has memory_acquire() */

static size_t acquire(const struct outside *outside, const char **acquired)
{
	struct call_stack stack = { .reader = readers[outside->language - 1],
		                    .memory = memory_acquire(),
		                    .bytes = bytes,
		                    .is_interrupted = true };

	if (!stack.memory)
		return 0;
	stack.reader->read(&stack, outside->language_thread);
	*acquired = bytes;
	if (!stack.size)
		memory_release();
	return stack.size;
}

const struct outside_callers interrupted_callers = { acquire, memory_release };

static uint32_t number_of(const struct frame_reader *reader)
{
	uint32_t number = 0;

	while (number < READERS && readers[number] != reader)
		number++;
	return number;
}

bool interrupted_can_read(const struct frame_reader *reader)
{
	return number_of(reader) < READERS;
}

void interrupted_keep(const struct frame_reader *reader, uintptr_t at)
{
	struct thread *thread = thread_current;
	uint32_t number = number_of(reader);

	if (!thread || number == READERS)
		return;
	outside_set_callers(&interrupted_callers);
	/* A handler in between uses no address with another's language. */
	thread->outside.language = 0;
	HANDLER_BARRIER();
	thread->outside.language_thread = at;
	HANDLER_BARRIER();
	thread->outside.language = number + 1;
}
