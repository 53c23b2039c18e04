/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of a trace file, in the form that the writers of src/export take. Stacks and labels, which samples
 * name by number, are read once each. Stacks live until the reader is freed.
 */
#pragma once

#include <sqlite3.h>

#include "base/hash_table.h"
#include "base/index.h"
#include "base/tally.h"
#include "base/vector.h"
#include "cmd/export/frame_paths.h"
#include "cmd/export/reader_labels.h"
#include "export/export.h"
#include "export/names.h"

/* A row of stacks. */
struct bare_stack {
	const struct export_stack *stack; /* NULL: not read yet */
	bool is_used;                     /* by a sample */
};

/* Its key: the row, and the frames that are added. */
struct made_stack {
	struct hash key;
	const struct export_stack *stack;
};

struct export_reader {
	enum {
		HOST_AS_SAMPLED,
		HOST_WITH_CALL_STACK,
		HOST_IS_CALL_STACK, /* without the frames of its interpreter */
	} host;
	struct reader_labels labels;
	struct names *names;
	struct hash_table made_stacks; /* with other frames than those of their row */
	struct index wait_index;       /* by side and wait */
	/* Of the current file. */
	struct tally blocks; /* of its stacks, by the first id, and whether they are truncated */
	VECTOR(struct bare_stack) bare_stacks; /* by number of the block and of the row in it */
	VECTOR(const char *) waits;
	struct frame_paths nodes, calls;
	int64_t weight, value; /* of all samples so far */
	/* The file that is being read. */
	const char *path;
	uint32_t side;
	sqlite3 *db;
	sqlite3_stmt *stacks_of, *wait_of;
};

/* `reader` is zeroed, except for host, and in labels for root_key, has_links and labels_read. A
 * command_result. */
int export_reader_begin(struct export_reader *reader, bool inlines);
void export_reader_free(struct export_reader *reader);

/* From now on, rows belong to this file, opened by trace_file_open(), with temp.selected_statements. side:
 * see export_labels. A command_result. */
int export_reader_enter(struct export_reader *reader, sqlite3 *db, const char *path, uint32_t side);
void export_reader_detach(struct export_reader *reader);

/* unit: of the values, for complaints. False after a complaint. */
bool export_reader_sample(struct export_reader *reader, const struct reader_sample *read, const char *unit,
                          struct export_sample *sample);
