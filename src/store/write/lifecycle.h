/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a writer and of its parts: memory, the file, and the rows that they know.
 */
#pragma once

#include "store/write/writer.h"

/* Allocates memory, and finds this process's identity; opens nothing. False: no memory. */
bool writer_init(struct writer *writer, bool (*give_up)(void *context), void *context);
void writer_free(struct writer *writer);

/* After a fork, because this is another process. */
void writer_reset_identity(struct writer *writer);

/* Returns the same as database_open(); the file uses `path` while it is open. */
int writer_open(struct writer *writer, const char *path, const struct database_limits *limits, char **error);
void writer_close(struct writer *writer, bool last);

/* Detaches the open file; another writer adopts it, because SQLite has already parsed the schema, which takes
 * longer than storing the records of a short process. */
struct database writer_detach(struct writer *writer);
void writer_adopt(struct writer *writer, const char *path, struct database database);

/* Forgets all rows it knows. */
void writer_forget(struct writer *writer);

/* Forgets rows that retention has removed: stacks of earlier epochs, and queries up to row `query` that are
 * no longer in the file. In the transaction that removes them. */
void writer_forget_before(struct writer *writer, int64_t epoch, int64_t query);

/* All statements: those of the transaction and of each part. */
#define WRITER_SETS 20
void writer_sets(struct writer *writer, struct prepared_set sets[WRITER_SETS]);

/* Forgets the statements of a connection that belongs to another process. */
void writer_forget_statements(struct writer *writer);
