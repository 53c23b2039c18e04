/* SPDX-License-Identifier: Apache-2.0 */
#include "interpreter/language.h"

#include <string.h>

#include "base/loaded_symbol.h"
#include "base/text.h"

uintptr_t language_symbol(const struct dl_phdr_info *info, const char *name, unsigned type)
{
	const ElfW(Sym) *symbol = loaded_symbol_find(info, name, type);

	return symbol ? info->dlpi_addr + symbol->st_value : 0;
}

bool language_tries(uint32_t *calls)
{
	uint32_t before = __atomic_fetch_add(calls, 1, __ATOMIC_RELAXED);

	return (before & (before + 1)) == 0;
}

static bool is_library(const struct frame_reader *reader, const char *file, size_t size)
{
	for (const char *const *part = reader->library_files; *part; part++)
		if (memmem(file, size, *part, strlen(*part)))
			return true;
	return false;
}

void language_put_frames(struct call_stack *stack, uintptr_t newest, uint32_t back,
                         bool (*put)(struct call_stack *stack, uintptr_t frame))
{
	uintptr_t frame = newest;

	for (int walked = 0; frame && walked < LANGUAGE_FRAMES_WALKED_MAX && put(stack, frame); walked++)
		frame = memory_word(stack->memory, frame + back);
}

static bool has_room(const struct call_stack *stack, unsigned frames, size_t size)
{
	return stack->frames + frames <= CALL_FRAMES_MAX && size <= CALL_STACK_BYTES - stack->size;
}

static void append(struct call_stack *stack, const struct call_frame *head, const char *file,
                   const char *function)
{
	char *to = stack->bytes + stack->size;

	memcpy(to, head, sizeof(*head));
	memcpy(to + sizeof(*head), file, head->file_size);
	memcpy(to + sizeof(*head) + head->file_size, function, head->function_size);
	stack->at[stack->frames++] = (uint16_t)stack->size;
	stack->size += sizeof(*head) + head->file_size + head->function_size;
}

/* A gap, so that a frame of that size follows. */
static void append_gap(struct call_stack *stack, size_t size)
{
	static const char mark[] = CALL_FRAMES_LEFT_OUT;
	const struct call_frame head = { .function_size = sizeof(mark) - 1, .is_library = true };

	while (stack->frames && !has_room(stack, 2, sizeof(head) + head.function_size + size))
		stack->size = stack->at[--stack->frames];
	append(stack, &head, "", mark);
}

bool language_put_frame(struct call_stack *stack, uint32_t line, const char *file, size_t file_size,
                        const char *function, size_t function_size)
{
	struct call_frame head = { .line = line };
	size_t size;

	file_size = file_size > CALL_FILE_BYTES ? text_cut(file, CALL_FILE_BYTES) : file_size;
	function_size =
		function_size > CALL_FUNCTION_BYTES ? text_cut(function, CALL_FUNCTION_BYTES) : function_size;
	size = sizeof(head) + file_size + function_size;
	head.file_size = (uint16_t)file_size;
	head.function_size = (uint8_t)function_size;
	head.is_library = is_library(stack->reader, file, file_size);
	if (stack->is_cut || !has_room(stack, 1, size)) {
		if (stack->has_application || stack->is_interrupted)
			return false;
		stack->is_cut = true;
		if (head.is_library)
			return true;
		append_gap(stack, size);
		stack->is_cut = false;
	}
	append(stack, &head, file, function);
	stack->has_application |= !head.is_library;
	return stack->frames < CALL_FRAMES_MAX || (!stack->has_application && !stack->is_interrupted);
}
