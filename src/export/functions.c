/* SPDX-License-Identifier: Apache-2.0 */
#include "export/functions.h"

uint32_t functions_add(struct functions *functions, const struct export_frame *frame, size_t line)
{
	const struct export_line *at = &frame->lines[line];
	/* Equal texts of frames have equal pointers, see names.h. */
	uint64_t words[] = { (uintptr_t)at->function, (uintptr_t)at->file, (uintptr_t)frame->module };
	struct export_function *function =
		index_item(&functions->index, hash_words(words, 3), &functions->list);

	if (!function)
		return FUNCTIONS_NO_MEMORY;
	*function = (struct export_function){ at->function, at->file, frame->module };
	return (uint32_t)(function - functions->list.items);
}

void functions_free(struct functions *functions)
{
	vector_free(&functions->list);
	index_free(&functions->index);
}
