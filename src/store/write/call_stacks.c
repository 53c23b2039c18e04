/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/call_stacks.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "store/write/writer.h"
#include "wire/call_frame.h"

struct known_call_stack {
	struct hash key;
	int64_t row;
};

const struct call_stack_writer call_stack_writer_new = {
	.known = HASH_TABLE_OF(struct known_call_stack, 1 << 14),
	.sql = {
		.find.sql = "SELECT id FROM call_stacks WHERE hash = :hash AND frames = :frames",
		.add.sql = "INSERT INTO call_stacks (hash, frames, caller, caller_function, function)"
		           " VALUES (:hash, :frames, :caller, :caller_function, :function)",
	},
};

/* caller: the newest frame of the application; if there is none, the newest one. called: what it calls, or
 * itself. False: the stack has no frame. */
static bool find_caller(const char *bytes, size_t size, struct call_frame_view *caller,
                        struct call_frame_view *called)
{
	struct call_frame_view view, newer;
	bool is_found = call_frame_next(&bytes, &size, caller);

	*called = newer = *caller;
	for (view = *caller; is_found;) {
		if (!view.frame.is_library) {
			*caller = view;
			*called = newer.frame.file_size ? newer : view; /* not a gap */
			return true;
		}
		newer = view;
		if (!call_frame_next(&bytes, &size, &view))
			return true;
	}
	return false;
}

/* A JSON array of [file, line, function], newest first. */
static char *frames_as_json(const char *bytes, size_t size, size_t *json_size)
{
	/* Each frame's head leaves room for its line and brackets. */
	char *json = malloc(JSON_TEXT_MAX(size) + size / sizeof(struct call_frame) * 32 + 3), *to = json;
	struct call_frame_view view;

	if (!json)
		return NULL;
	for (*to++ = '['; call_frame_next(&bytes, &size, &view); *to++ = ']') {
		if (to[-1] == ']')
			*to++ = ',';
		*to++ = '[';
		to = json_put_text(to, view.file, view.frame.file_size);
		to += sprintf(to, ",%u,", view.frame.line);
		to = json_put_text(to, view.function, view.frame.function_size);
	}
	*to++ = ']';
	*json_size = (size_t)(to - json);
	return json;
}

static struct prepared *bind_frames(struct writer *writer, struct prepared *prepared, struct hash key,
                                    const char *json, size_t size)
{
	struct prepared *bind = writer_bind(writer, prepared);

	bind_number(bind, "hash", (int64_t)key.first);
	bind_text(bind, "frames", json, size);
	return bind;
}

static int64_t add(struct writer *writer, struct hash key, const struct call_frame_view *caller,
                   const struct call_frame_view *called, const char *json, size_t json_size)
{
	struct prepared *bind = bind_frames(writer, &writer->call_stacks->sql.add, key, json, json_size);
	char place[UINT16_MAX + 16];
	int size = caller->frame.line ? sprintf(place, "%.*s:%u", caller->frame.file_size, caller->file,
	                                        caller->frame.line)
	                              : sprintf(place, "%.*s", caller->frame.file_size, caller->file);

	bind_text(bind, "caller", place, (size_t)size);
	bind_text(bind, "caller_function", caller->function, caller->frame.function_size);
	bind_text(bind, "function", called->function, called->frame.function_size);
	writer->bytes += json_size + 100;
	return writer_insert(writer, bind);
}

int64_t intern_call_stack(struct writer *writer, const char *bytes, size_t size)
{
	struct hash_table *table = &writer->call_stacks->known;
	struct call_frame_view caller, called;
	struct known_call_stack *known;
	size_t json_size;
	char *json;
	int64_t row;

	/* A record may be a stranger's. */
	if (size > CALL_STACK_BYTES || !find_caller(bytes, size, &caller, &called))
		return 0;
	struct hash key = hash_bytes(bytes, size);
	known = hash_table_find(table, key);
	if (known)
		return known->row;
	json = frames_as_json(bytes, size, &json_size);
	if (!json)
		return -SQLITE_NOMEM;
	row = writer_number(writer,
	                    bind_frames(writer, &writer->call_stacks->sql.find, key, json, json_size));
	if (!row)
		row = add(writer, key, &caller, &called, json, json_size);
	free(json);
	if (row > 0 && (known = hash_table_add(table, key)))
		known->row = row;
	return row;
}
