/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/push/stacks.h"

#include <stdlib.h>

#include "base/text.h"
#include "cmd/ui/complain.h"
#include "export/names.h"

bool push_stacks_begin(struct push_stacks *stacks, sqlite3 *db, const struct address_space *space)
{
	*stacks = (struct push_stacks){ .names = names_create(true) };
	if (!stacks->names || sqlite3_prepare_v2(db, "SELECT trace FROM stacks WHERE id = ?", -1,
	                                         &stacks->read, NULL) != SQLITE_OK) {
		complain("%s", stacks->names ? sqlite3_errmsg(db) : "out of memory");
		push_stacks_end(stacks);
		return false;
	}
	names_enter(stacks->names, space);
	return true;
}

void push_stacks_end(struct push_stacks *stacks)
{
	sqlite3_finalize(stacks->read);
	for (size_t i = 0; i < stacks->list.count; i++)
		free(stacks->list.items[i]);
	vector_free(&stacks->list);
	index_free(&stacks->index);
	names_free(stacks->names);
	*stacks = (struct push_stacks){ .read = NULL };
}

/* NULL: no memory. */
static const char *keep_line(struct names *names, const struct export_frame *frame)
{
	const struct export_line *line = &frame->lines[0];
	char *text;
	const char *kept;

	if (!line->line)
		return frame->module ? frame->module->path : "";
	text = text_format("%s:%d", line->file, line->line);
	kept = text ? names_keep(names, text) : NULL;
	free(text);
	return kept;
}

static struct push_stack *make_stack(struct push_stacks *stacks, const struct export_stack *stack)
{
	size_t count = stack->count;
	struct push_stack *made = calloc(
		1, sizeof(*made) + count * (sizeof(uint64_t) + 2 * sizeof(char *) + 2 * sizeof(uint32_t)));

	if (!made)
		return NULL;
	made->count = count;
	made->addresses = (uint64_t *)(made + 1);
	made->functions = (const char **)(made->addresses + count);
	made->lines = made->functions + count;
	made->words = (uint32_t *)(made->lines + count);
	for (size_t i = 0; i < count; i++) {
		const struct export_frame *frame = stack->frames[i];

		made->addresses[i] = frame->address;
		made->functions[i] = frame->lines[frame->line_count - 1].function;
		made->lines[i] = keep_line(stacks->names, frame);
		if (!made->lines[i]) {
			free(made);
			return NULL;
		}
	}
	return made;
}

/* An SQLite result. */
static int read_stack(struct push_stacks *stacks, int64_t id, struct push_stack **read)
{
	const struct export_stack *stack;
	const char *stack_json = NULL;
	bool bad = false;
	int code;

	sqlite3_bind_int64(stacks->read, 1, id);
	if (sqlite3_step(stacks->read) == SQLITE_ROW)
		stack_json = (const char *)sqlite3_column_text(stacks->read, 0);
	stack = names_stack(stacks->names, stack_json ? stack_json : "[]", false, &bad);
	if (bad) /* the sample still took its time */
		stack = names_stack(stacks->names, "[]", false, &bad);
	code = sqlite3_reset(stacks->read);
	if (code != SQLITE_OK)
		return code;
	*read = stack ? make_stack(stacks, stack) : NULL;
	if (!*read)
		return SQLITE_NOMEM;
	(*read)->id = id;
	return SQLITE_OK;
}

int push_stacks_find(struct push_stacks *stacks, int64_t id, struct push_stack **found)
{
	uint64_t word = (uint64_t)id;
	struct push_stack **stack = index_item(&stacks->index, hash_words(&word, 1), &stacks->list);
	int code = !stack ? SQLITE_NOMEM : *stack ? SQLITE_OK : read_stack(stacks, id, stack);

	*found = code == SQLITE_OK ? *stack : NULL;
	return code;
}
