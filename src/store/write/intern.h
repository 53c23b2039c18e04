/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of what repeats: looked up in memory, else in the file, else added.
 */
#ifndef QUERYPROF_STORE_WRITE_INTERN_H
#define QUERYPROF_STORE_WRITE_INTERN_H

#include "sampler/thread_record.h"
#include "store/write/writer.h"

/* Rows, found or made: their numbers, > 0; else minus SQLite's code. */
int64_t intern_series(struct writer *writer, const struct sample_record *sample);
int64_t intern_stack(struct writer *writer, const struct sample_record *sample);

/* `shape`: normalize_hash() of the whole text, 0: of this one. */
int64_t intern_statement(struct writer *writer, const char *text, size_t size, bool is_cut, uint64_t shape);

/* `text`: version, a space, path. Row 0 for no text. */
int64_t intern_library(struct writer *writer, const char *text, size_t size);

/* The query's row and, in `*span`, its place in the batch. */
int64_t intern_query(struct writer *writer, struct query_key key, uint32_t *span);

/* Remembers a thread's name; the row comes with its first sample. */
void intern_thread_name(struct writer *writer, const struct thread_record *record);

#endif
