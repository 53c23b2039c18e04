/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a batch's samples, written in the order of time, which is their table's.
 */
#ifndef QUERYPROF_STORE_WRITE_SAMPLE_ROWS_H
#define QUERYPROF_STORE_WRITE_SAMPLE_ROWS_H

#include "store/write/writer.h"

/* Sorts and writes what the batch has gathered. SQLITE_OK or the error. */
int sample_rows_insert(struct writer *writer);

#endif
