/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of span_batches that wait for the end of their transaction. One statement writes them all.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "store/file/made_table.h"
#include "store/write/prepared.h"

struct writer;
struct span_link;

/* The columns of both tables; the number of those that are integers. */
#define SPAN_ROW_COLUMNS                                                                                     \
	"trace_hi, trace_lo, parent, first_span, thread, start_ns, dropped, flags, lasted_ns, count, "       \
	"statements, duration_ns, spans"
#define SPAN_ROW_NUMBERS 12
#define SPAN_ROW_DURATION 11

struct span_row {
	int64_t numbers[SPAN_ROW_NUMBERS]; /* duration_ns < 0: none */
	size_t text, text_size;            /* in span_rows.text */
};

struct span_row_writer {
	VECTOR(struct span_row) rows; /* of the batch, not written yet */
	VECTOR(char) text;            /* of these, and of the next one */
	int64_t newest_row;           /* in the file; -1: not known */
	int64_t emptied_row;          /* in the file, to be removed; 0: none */
	struct {
		struct prepared newest, add_rows, remove_notes, empty_newest, remove_trace;
	} sql;
};

extern const struct span_row_writer span_row_writer_new;
void span_row_writer_free(struct span_row_writer *rows);

/* The waiting rows, as a virtual table; its data is the struct writer. */
extern const struct made_table span_rows_to_write;

/* Both inside a transaction: the id of the next row, > 0; otherwise minus SQLite's code. */
int64_t span_rows_next(struct writer *writer);

/* Adds a row: `numbers`, and as `spans` the writer's span_rows.text from `text` on. Returns its id. */
int64_t span_rows_add(struct writer *writer, const int64_t numbers[SPAN_ROW_NUMBERS], size_t text);

/* Writes them, before the table is read or changed, and before the commit. Clears span_rows.text. */
int span_rows_write(struct writer *writer);

/* Writes them, and removes the rows of the trace with their notes, except those that also belong to other
 * traces. The numbers of rows only grow. */
int span_rows_remove(struct writer *writer, const struct span_link *trace);

/* Writes them if there are many. */
int span_rows_bound(struct writer *writer);

/* Drops them when a transaction begins. */
void span_rows_clear(struct writer *writer);
