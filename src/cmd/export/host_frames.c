/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/export/host_frames.h"

#include <string.h>

#include "cmd/file/frame_owner.h"

static bool is_sqlite(const struct export_frame *frame)
{
	for (size_t i = 0; i < frame->line_count; i++)
		if (!strncmp(frame->lines[i].function, "sqlite3", 7))
			return true;
	return frame->module && !strncmp(frame->module->name, "libsqlite3", 10);
}

static bool is_interpreter(const struct export_frame *frame)
{
	return frame->module && module_is_interpreter(frame->module->name);
}

/* Whether the frame may be SQLite's: of a program that contains it, neither C++ nor V8's own code. */
static bool may_be_sqlite(const struct export_frame *frame, const struct export_module *sqlite)
{
	const char *function = frame->line_count ? frame->lines[0].function : "";

	return frame->module == sqlite && !strstr(function, "::") && strncmp(function, "Builtins_", 9) != 0;
}

bool host_frames_find(const struct export_stack *stack, size_t *from, size_t *end)
{
	size_t i = 0;

	while (i < stack->count && !is_sqlite(stack->frames[i]))
		i++;
	for (size_t k = i; k < stack->count && may_be_sqlite(stack->frames[k], stack->frames[i]->module); k++)
		if (is_sqlite(stack->frames[k]))
			i = k;
	i++;
	while (i < stack->count && !is_interpreter(stack->frames[i]))
		i++;
	*from = i;
	for (*end = i; i < stack->count; i++) {
		if (is_sqlite(stack->frames[i]))
			return false;
		if (is_interpreter(stack->frames[i]))
			*end = i + 1;
	}
	return *end > *from;
}
