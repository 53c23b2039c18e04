/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a batch's samples: gathered as their records come, written in the order of time,
 * which is their table's.
 */
#ifndef QUERYPROF_STORE_WRITE_SAMPLE_ROWS_H
#define QUERYPROF_STORE_WRITE_SAMPLE_ROWS_H

#include "store/write/writer.h"

/* Decodes the record and interns what it names; the row is written at the batch's end. Another
 * record than a sample's is left out. SQLITE_OK or the error. */
int sample_rows_take(struct writer *writer, const struct sample_record *record, size_t size);

/* Sorts and writes what the batch has gathered. SQLITE_OK or the error. */
int sample_rows_insert(struct writer *writer);

#endif
