/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of a trace file, made into what the writers of src/export take. Stacks and labels, which
 * samples name by number, are read once each, and stay until the reader is freed.
 */
#ifndef QUERYPROF_CMD_EXPORT_READER_H
#define QUERYPROF_CMD_EXPORT_READER_H

#include <sqlite3.h>

#include "base/index.h"
#include "base/vector.h"
#include "cmd/export/frame_paths.h"
#include "export/export.h"
#include "export/names.h"

/* Parts of labels, which are many more than these. */
struct reader_statement {
	const char *text;
	int64_t hash, runs;
	int64_t comment; /* the row of its label set */
};

struct reader_query {
	const char *query_id, *database;
	uint32_t statement; /* one of `statements` */
	int64_t call_stack; /* its row */
};

/* The labels of a sample. */
struct reader_newest {
	int64_t run, thread, set, context, span;
	const struct export_labels *labels; /* NULL: none yet */
};
#define READER_NEWEST 512

struct reader_thread {
	const char *thread, *program, *host, *script;
	int64_t process, process_id, thread_id;
};

struct reader_sets {
	const char *labels, *root, *link;
};

/* A sample as the file has it, with the numbers of rows. run: 0, none. node: of the program's plan, 0: none
 * is wanted or known. */
struct reader_sample {
	int64_t time_ns, weight, period_ns, size, stack, run, thread, labels, comment, call_stack, statement,
		program, node, wait, context, span;
	bool is_truncated;
};

struct export_reader {
	const char *root_key; /* of the label that stacks stand on; NULL: none */
	bool has_links;       /* samples are wanted with the spans that they fell into */
	enum export_labels_read labels_read;
	enum {
		HOST_AS_SAMPLED,
		HOST_WITH_CALL_STACK,
		HOST_IS_CALL_STACK, /* without the frames of its interpreter */
	} host;
	struct names *names;
	struct index label_index, stack_index, link_index,
		wait_index; /* by side and row number; by span, by wait */
	struct index query_index, statement_index, thread_index, set_index; /* by side and row number */
	struct reader_newest newest[READER_NEWEST]; /* mostly those of the next sample of a thread, too */
	VECTOR(struct reader_statement) statements;
	VECTOR(struct reader_query) queries;
	VECTOR(struct reader_thread) threads;
	VECTOR(struct reader_sets) sets;
	VECTOR(struct export_labels *) labels;
	VECTOR(const struct export_stack *) stacks;
	VECTOR(const struct export_stack *) bare_stacks; /* of the file, by number, where these are low */
	VECTOR(const char *) links, waits;
	struct frame_paths nodes, calls;
	int64_t weight, value; /* of all samples so far */
	/* The file that is being read. */
	const char *path;
	uint32_t side;
	sqlite3 *db;
	sqlite3_stmt *query_of, *statement_of, *thread_of, *sets_of, *context_of, *stack_of, *link_of,
		*wait_of;
};

/* `reader` is zeroed, but for root_key, has_links, labels_read and host. A command_result. */
int export_reader_begin(struct export_reader *reader, bool inlines);
void export_reader_free(struct export_reader *reader);

/* From now on rows are of this file, opened by trace_file_open(), with temp.selected_statements. `side`: see
 * export_labels. A command_result. */
int export_reader_enter(struct export_reader *reader, sqlite3 *db, const char *path, uint32_t side);
void export_reader_detach(struct export_reader *reader);

/* `unit`: of the values, for complaints. False after a complaint. */
bool export_reader_sample(struct export_reader *reader, const struct reader_sample *read, const char *unit,
                          struct export_sample *sample);

#endif
