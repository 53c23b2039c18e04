#include "export/functions.h"

uint32_t functions_add(struct functions *functions, const struct export_frame *frame, size_t line)
{
	const struct export_line *at = &frame->lines[line];
	/* Equal texts of frames are one text, see names.h. */
	uint64_t words[] = { (uintptr_t)at->function, (uintptr_t)at->file, (uintptr_t)frame->module };
	struct hash key = hash_words(words, 3);
	uint32_t number = index_find(&functions->index, key);

	if (number != INDEX_NONE || !vector_reserve(&functions->list, functions->list.count + 1) ||
	    (number = index_add(&functions->index, key)) == INDEX_NONE)
		return number;
	vector_push(&functions->list, (struct export_function){ at->function, at->file, frame->module });
	return number;
}

void functions_free(struct functions *functions)
{
	vector_free(&functions->list);
	index_free(&functions->index);
}
