/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/push/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cmd/ui/complain.h"
#include "export/names.h"

static const struct clickhouse_values texts = { .kind = CLICKHOUSE_TEXT };

static void free_stack(struct bytes *stack)
{
	if (stack)
		vector_free(&stack->data);
	free(stack);
}

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
		free_stack(stacks->list.items[i]);
	vector_free(&stacks->list);
	index_free(&stacks->index);
	names_free(stacks->names);
	*stacks = (struct push_stacks){ .read = NULL };
}

/* file:line, or the module. */
static void put_line(struct bytes *to, const struct export_frame *frame)
{
	const struct export_line *line = &frame->lines[0];
	char *made = line->line ? text_format("%s:%d", line->file, line->line) : NULL;
	const char *text = made ? made : frame->module ? frame->module->path : "";

	to->failed |= line->line && !made;
	clickhouse_put_text(to, &texts, text, strlen(text));
	free(made);
}

/* NULL: no memory. */
static struct bytes *make_stack(const struct export_stack *stack)
{
	struct bytes *made = calloc(1, sizeof(*made));

	if (!made)
		return NULL;
	clickhouse_put_count(made, stack->count);
	for (size_t i = 0; i < stack->count; i++)
		bytes_put(made, &export_stack_frame(stack, i)->address, sizeof(uint64_t));
	clickhouse_put_count(made, stack->count);
	for (size_t i = 0; i < stack->count; i++) { /* the function whose code it is */
		const struct export_frame *frame = export_stack_frame(stack, i);
		const char *function = frame->lines[frame->line_count - 1].function;

		clickhouse_put_text(made, &texts, function, strlen(function));
	}
	clickhouse_put_count(made, stack->count);
	for (size_t i = 0; i < stack->count; i++)
		put_line(made, export_stack_frame(stack, i));
	if (!made->failed)
		return made;
	free_stack(made);
	return NULL;
}

/* An SQLite result. */
static int read_stack(struct push_stacks *stacks, int64_t id, struct bytes **read)
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
	*read = stack ? make_stack(stack) : NULL;
	return *read ? SQLITE_OK : SQLITE_NOMEM;
}

int push_stacks_find(struct push_stacks *stacks, int64_t id, const struct bytes **found)
{
	uint64_t word = (uint64_t)id;
	struct bytes **stack = index_item(&stacks->index, hash_words(&word, 1), &stacks->list);
	int code = !stack ? SQLITE_NOMEM : *stack ? SQLITE_OK : read_stack(stacks, id, stack);

	*found = code == SQLITE_OK ? *stack : NULL;
	return code;
}
