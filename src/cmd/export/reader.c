/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/export/reader.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/file/frame_owner.h"
#include "cmd/file/run_sql.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "sql_export_call_frames.h"
#include "sql_export_plan.h"

int export_reader_begin(struct export_reader *reader, bool inlines)
{
	reader->names = reader->labels.names = names_create(inlines);
	return reader->names ? COMMAND_FINE : complain("out of memory");
}

void export_reader_free(struct export_reader *reader)
{
	reader_labels_free(&reader->labels);
	vector_free(&reader->bare_stacks);
	tally_free(&reader->blocks);
	vector_free(&reader->waits);
	frame_paths_free(&reader->nodes);
	frame_paths_free(&reader->calls);
	hash_table_free(&reader->made_stacks);
	index_free(&reader->wait_index);
	names_free(reader->names);
}

int export_reader_enter(struct export_reader *reader, sqlite3 *db, const char *path, uint32_t side)
{
	static const char wait_sql[] =
		"SELECT coalesce('[wait: ' || (SELECT name FROM wait_causes WHERE cause = ?1 & 255)"
		" || coalesce(' ' || (SELECT name FROM wait_objects WHERE object = ?1 >> 8), '') || ']', '')";

	reader->path = path;
	reader->side = side;
	reader->db = db;
	reader->blocks = (struct tally){ .keys = 2, .width = 2 };
	reader->made_stacks.entry_size = sizeof(struct made_stack);
	reader->made_stacks.limit = SIZE_MAX;
	names_enter(reader->names, trace_file_space(db));
	if (reader_labels_enter(&reader->labels, db, path, side) == SQLITE_OK &&
	    frame_paths_open(&reader->nodes, db, sql_export_plan) &&
	    frame_paths_open(&reader->calls, db, sql_export_call_frames) &&
	    sqlite3_prepare_v2(db, wait_sql, -1, &reader->wait_of, NULL) == SQLITE_OK &&
	    sqlite3_prepare_v2(db, "SELECT id, trace FROM stacks WHERE id BETWEEN ? AND ?", -1,
	                       &reader->stacks_of, NULL) == SQLITE_OK)
		return COMMAND_FINE;
	return complain("%s: %s", path, sqlite3_errmsg(db));
}

void export_reader_detach(struct export_reader *reader)
{
	vector_free(&reader->bare_stacks);
	tally_free(&reader->blocks);
	reader_labels_detach(&reader->labels);
	sqlite3_finalize(reader->stacks_of);
	sqlite3_finalize(reader->wait_of);
	frame_paths_close(&reader->nodes);
	frame_paths_close(&reader->calls);
	reader->stacks_of = reader->wait_of = NULL;
}

/* --- stacks ------------------------------------------------------------------------ */

#define BLOCK 16

/* Reads the rows of the block that are not read yet, because an export needs most of them. A bad row is
 * skipped until the export needs it. False after a complaint. */
static bool read_block(struct export_reader *reader, int64_t id, bool is_truncated, struct bare_stack *block)
{
	struct bare_stack *const asked = &block[id & (BLOCK - 1)];
	sqlite3_stmt *row = reader->stacks_of;
	bool bad = false, is_bad = false;
	int code;

	sqlite3_bind_int64(row, 1, id & -BLOCK);
	sqlite3_bind_int64(row, 2, id | (BLOCK - 1));
	while ((code = sqlite3_step(row)) == SQLITE_ROW) {
		struct bare_stack *bare = &block[sqlite3_column_int64(row, 0) & (BLOCK - 1)];

		if (bare->stack)
			continue;
		bare->stack = names_stack(reader->names, run_sql_text(row, 1), is_truncated, &bad);
		is_bad |= bare == asked && bad;
	}
	if (code != SQLITE_DONE)
		complain("%s: %s", reader->path, sqlite3_errmsg(reader->db));
	else if (is_bad)
		complain("%s: stack %lld is not an array of addresses", reader->path, (long long)id);
	/* A sample still took its time if its stack is missing. */
	else if (!asked->stack && !(asked->stack = names_stack(reader->names, "[]", is_truncated, &bad)))
		complain("out of memory");
	sqlite3_reset(row);
	return code == SQLITE_DONE && asked->stack;
}

/* NULL after a complaint. */
static struct bare_stack *find_bare_stack(struct export_reader *reader, int64_t id, bool is_truncated)
{
	const size_t number = tally_row(&reader->blocks, (const int64_t[]){ id & -BLOCK, is_truncated });
	const size_t end = (number + 1) * BLOCK;

	if (number == TALLY_NONE || !vector_at(&reader->bare_stacks, end - 1)) {
		complain("out of memory");
		return NULL;
	}
	struct bare_stack *block = &reader->bare_stacks.items[end - BLOCK], *bare = &block[id & (BLOCK - 1)];
	return bare->stack || read_block(reader, id, is_truncated, block) ? bare : NULL;
}

/* A frame for the wait of the thread, as if it were code: the cause and the object. "" if there is no wait;
 * NULL after a complaint. */
static const char *find_leaf(struct export_reader *reader, int64_t wait)
{
	if (!wait)
		return "";
	const char **leaf =
		index_item(&reader->wait_index,
	                   hash_words((const uint64_t[]){ reader->side, (uint64_t)wait }, 2), &reader->waits);
	if (leaf && !*leaf) {
		sqlite3_bind_int64(reader->wait_of, 1, wait);
		sqlite3_step(reader->wait_of);
		*leaf = names_keep(reader->names, run_sql_text(reader->wait_of, 0));
		sqlite3_reset(reader->wait_of);
	}
	if (!leaf || !*leaf) {
		complain("out of memory");
		return NULL;
	}
	return *leaf;
}

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

/* Whether the frame may be SQLite's: in the module that contains SQLite, and neither C++ nor V8's own. */
static bool may_be_sqlite(const struct export_frame *frame, const struct export_module *sqlite)
{
	const char *function = frame->line_count ? frame->lines[0].function : "";

	return frame->module == sqlite && !strstr(function, "::") && strncmp(function, "Builtins_", 9) != 0;
}

/* The range of frames that a call stack replaces: from the interpreter's frame that calls SQLite, or the
 * program's own code, to the interpreter's frame nearest to the root, with the frames in between, such as
 * those of the language's modules. False: the stack does not have such frames, or SQLite is called again in
 * between. Then it is not known which of the call stack's frames are on which side of that call. */
static bool find_host_frames(const struct export_stack *stack, bool is_programs, size_t *from, size_t *end)
{
	size_t i = 0;

	while (!is_programs && i < stack->count && !is_sqlite(stack->frames[i]))
		i++;
	for (size_t k = i; k < stack->count && may_be_sqlite(stack->frames[k], stack->frames[i]->module); k++)
		if (is_sqlite(stack->frames[k]))
			i = k;
	i += !is_programs;
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

/* Adds the program's frames, the plan's nodes, the wait as the leaf, and the root from the labels. NULL after
 * a complaint. */
static const struct export_stack *find_stack(struct export_reader *reader, int64_t id, bool is_truncated,
                                             bool is_programs, const char *root,
                                             const struct frame_path *call, const struct frame_path *path,
                                             const char *leaf)
{
	const struct export_stack *made;
	struct bare_stack *bare;
	uint64_t words[] = { reader->side,
		             (uint64_t)id,
		             is_truncated | (uint64_t)is_programs << 1,
		             (uintptr_t)root,
		             call->count ? (uintptr_t)call : 0,
		             path->count ? (uintptr_t)path : 0,
		             (uintptr_t)leaf };
	size_t at, end;

	if (!root[0] && !call->count && !path->count && !leaf[0]) {
		if ((bare = find_bare_stack(reader, id, is_truncated)) && !bare->is_used) {
			bare->is_used = true;
			names_use(reader->names, bare->stack);
		}
		return bare ? bare->stack : NULL;
	}
	const struct hash key = hash_words(words, 7);
	const struct made_stack *known = hash_table_find(&reader->made_stacks, key);
	if (known)
		return known->stack;
	if (!(bare = find_bare_stack(reader, id, is_truncated)))
		return NULL;
	made = bare->stack;
	if (call->count && find_host_frames(made, is_programs, &at, &end))
		made = names_replace(reader->names, made, at, reader->host == HOST_IS_CALL_STACK ? end : at,
		                     call->functions, call->count);
	if (made && path->count && (at = names_find_interpreter(made)) != SIZE_MAX)
		made = names_replace(reader->names, made, at, at, path->functions, path->count);
	if (made && leaf[0])
		made = names_lead(reader->names, made, leaf);
	if (made && root[0])
		made = names_replace(reader->names, made, made->count, made->count, &root, 1);
	struct made_stack *kept = made ? hash_table_add(&reader->made_stacks, key) : NULL;
	if (!kept) {
		complain("out of memory");
		return NULL;
	}
	names_use(reader->names, made);
	return kept->stack = made;
}

/* --- reading --------------------------------------------------------------------- */

/* Computes the largest sum, that of all samples, so no writer has to check for overflow. False after a
 * complaint. */
static bool check_numbers(struct export_reader *reader, const struct reader_sample *read, const char *unit,
                          struct export_sample *sample)
{
	int64_t time;

	if (read->weight >= 0 && read->period_ns >= 0 &&
	    !__builtin_mul_overflow(read->weight, read->period_ns, &time) &&
	    !__builtin_add_overflow(time, read->size, &sample->value) && sample->value >= 0 &&
	    !__builtin_add_overflow(reader->weight, sample->weight, &reader->weight) &&
	    !__builtin_add_overflow(reader->value, sample->value, &reader->value))
		return true;
	complain("%s: weight %lld, period %lld ns, value %.15g %s: no sample can have these numbers",
	         reader->path, (long long)read->weight, (long long)read->period_ns,
	         (double)read->size + (double)read->weight * (double)read->period_ns, unit);
	return false;
}

bool export_reader_sample(struct export_reader *reader, const struct reader_sample *read, const char *unit,
                          struct export_sample *sample)
{
	*sample = (struct export_sample){
		.time_ns = read->time_ns,
		.weight = read->weight,
		.period_ns = read->period_ns,
		.labels = reader_labels_find(&reader->labels, read),
	};
	if (!sample->labels || !check_numbers(reader, read, unit, sample))
		return false;
	const struct frame_path *path, *call;
	int code = frame_paths_find(&reader->nodes, reader->names, reader->side, read->program, read->node,
	                            &path);
	if (code == SQLITE_OK)
		code = frame_paths_find(&reader->calls, reader->names, reader->side, 0,
		                        reader->host != HOST_AS_SAMPLED ? read->call_stack : 0, &call);
	const char *leaf = find_leaf(reader, read->wait);
	if (code != SQLITE_OK) {
		complain("%s: %s", reader->path, sqlite3_errstr(code));
		return false;
	}
	if (!leaf)
		return false;
	sample->stack = find_stack(reader, read->stack, read->is_truncated, read->is_programs,
	                           sample->labels->root, call, path, leaf);
	return sample->stack;
}
