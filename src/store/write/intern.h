/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of what repeats: looked up in memory, else in the file, else added.
 */
#ifndef QUERYPROF_STORE_WRITE_INTERN_H
#define QUERYPROF_STORE_WRITE_INTERN_H

#include "store/write/writer.h"
#include "wire/thread_record.h"

/* Rows, found or made: their numbers, > 0; else minus SQLite's code. */
/* `stretch`: periods from one signal to the next. */
int64_t intern_series(struct writer *writer, const struct sample_record *sample, uint32_t stretch);
int64_t intern_stack(struct writer *writer, const struct sample_record *sample);

/* `stays`: the row will not be removed as an unused one. `shape`: normalize_hash() of the whole
 * text, 0: of this one. */
int64_t intern_statement(struct writer *writer, const char *text, size_t size, bool is_cut, bool stays,
                         uint64_t shape);

/* `text`: version, a space, path. Row 0 for no text. */
int64_t intern_library(struct writer *writer, const char *text, size_t size);

/* Removes a statement's row that was not to stay, if nothing names it. The batch's rows are written.
 * SQLITE_OK or the error. */
int intern_remove_unused(struct writer *writer, int64_t statement);

/* The query's row, which may be written at the batch's end only, and in `*span` its place in
 * the batch. */
int64_t intern_query(struct writer *writer, struct query_key key, uint32_t *span);

/* The entry of a query that was interned; NULL: there is no memory for it. */
struct known_query *intern_known_query(const struct writer *writer, struct query_key key);

int64_t intern_process(struct writer *writer);
int64_t intern_thread(struct writer *writer, uint32_t thread_id);

/* Bounds what is remembered of queries. */
void intern_begin_batch(struct writer *writer);

/* Remembers a thread's name, for its row. */
void intern_thread_name(struct writer *writer, const struct thread_record *record);

#endif
