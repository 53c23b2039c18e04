/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The labels of samples: texts of the rows that a sample names by number, each row read once.
 *
 * Nearly each run has its own labels, so they are the part of an export that grows with the file. After a
 * run's last sample, its labels can be dropped (reader_labels_drop()), so the memory is that of the
 * simultaneous runs.
 */
#pragma once

#include <sqlite3.h>

#include "base/hash_table.h"
#include "base/index.h"
#include "base/vector.h"
#include "export/export.h"
#include "export/names.h"

/* A sample of the file, with the numbers of rows. run 0: none; last_ns: of the run's last sample. node: of
 * the program's plan; 0: not wanted or not known. */
struct reader_sample {
	int64_t time_ns, weight, period_ns, size, stack, run, last_ns, thread, labels, comment, call_stack,
		statement, program, node, wait, context, span;
	bool is_truncated, is_programs; /* of the program's own code, as is call_stack */
};

/* Parts of labels, which many labels share. */
struct reader_statement {
	const char *text;
	int64_t hash, runs;
	int64_t comment; /* the row of its label set */
};

struct reader_thread {
	const char *thread, *program, *host, *script;
	int64_t process, process_id, thread_id;
};

struct reader_sets {
	const char *labels, *root, *link;
};

/* The labels of a recent sample. */
struct reader_newest {
	int64_t run, thread, set, context, span;
	const struct export_labels *labels; /* NULL: none yet */
};
#define READER_NEWEST 4096

/* A row of queries. query_id: NULL: not read, or taken. */
struct reader_query {
	int64_t id, statement;
	char *query_id;
	const char *database;
};
#define READER_BLOCK 32 /* rows that are read together */
#define READER_ROWS 1024

/* Items by key until their runs have ended. Their numbers and memory are reused. */
struct reader_live {
	struct hash_table table;
	size_t size; /* per item */
	uint32_t next;
	VECTOR(uint32_t) free;
	VECTOR(char *) blocks;
};

struct reader_labels {
	const char *root_key; /* of the label at the root of stacks; NULL: none */
	bool has_links;       /* samples get the spans that contain them */
	enum export_labels_read labels_read;
	struct names *names;
	/* By side and row number; links by span. */
	struct index link_index, statement_index, thread_index, set_index;
	VECTOR(const char *) links;
	VECTOR(struct reader_statement) statements;
	VECTOR(struct reader_thread) threads;
	VECTOR(struct reader_sets) sets;
	const char *database; /* of the newest query */
	/* Kept until their runs have ended. */
	struct reader_live labels, queries;
	struct reader_newest newest[READER_NEWEST]; /* the next sample of a thread mostly has the same */
	struct reader_query rows[READER_ROWS];      /* by id */
	/* The file that is being read. */
	const char *path;
	uint32_t side;
	sqlite3 *db;
	sqlite3_stmt *query_of, *statement_of, *thread_of, *sets_of, *context_of, *link_of;
};

/* `labels` is zeroed, except for its first members up to names. An SQLite result. From now on, rows belong to
 * this file, as for export_reader_enter(). */
int reader_labels_enter(struct reader_labels *labels, sqlite3 *db, const char *path, uint32_t side);
void reader_labels_detach(struct reader_labels *labels);
void reader_labels_free(struct reader_labels *labels);

/* The labels live until they are dropped. NULL after a complaint. */
const struct export_labels *reader_labels_find(struct reader_labels *labels,
                                               const struct reader_sample *read);

/* Drops the labels whose last_ns is before that time. False: no memory. */
bool reader_labels_drop(struct reader_labels *labels, int64_t now_ns);
