/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Label sets and trace contexts in the file. A set is found by its number, which is a hash of
 * its text (label/pairs.h) and so the same for each process that writes.
 */
#pragma once

#include <stdbool.h>

#include "base/hash_table.h"
#include "store/write/prepared.h"
#include "wire/record.h"
#include "wire/label_record.h"

struct writer;

struct label_writer {
	struct hash_table known;    /* by a set's number, or those of several combined sets */
	struct hash_table contexts; /* by the two ids */
	struct hash_table texts;    /* of the sets of another process, by number */
	struct {
		struct prepared find, add, text, touch;
		struct prepared add_value, add_use, end_use;
		struct prepared find_context, add_context, touch_context;
	} sql;
};

extern const struct label_writer label_writer_new;
void label_writer_free(struct label_writer *labels);
void label_writer_forget(struct label_writer *labels);

/* Rows of label_sets: > 0; 0 for no labels, or sets whose text is lost; else minus SQLite's code. */

/* The set of these, innermost first. If two labels have the same key, the first one wins. */
int64_t labels_combine(struct writer *writer, const uint64_t *numbers, size_t count);

/* The row of trace_contexts; 0: the context is empty. */
int64_t labels_intern_context(struct writer *writer, const struct trace_context *context);

/* Stores a record of the kind RECORD_LABELS. */
int labels_add(struct writer *writer, const struct label_record *record);

/* Remembers the text of such a record, at any time: the process may use the set later, in another file, or
 * after a failed batch. Not for this process's own sets, whose text is available. */
void labels_remember(struct writer *writer, const struct label_record *record);

/* The set in the comments of the statement, if the setting query_comment_labels is on. */
int64_t labels_of_comments(struct writer *writer, const char *sql, size_t size);

/* Removes unneeded rows that were stored before the epoch, with `all` also later ones; and the history of
 * trampolines before `time_ns`. */
int labels_remove(struct writer *writer, int64_t epoch, int64_t time_ns, bool all);
