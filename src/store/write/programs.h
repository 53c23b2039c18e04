/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of programs, plans and their nodes.
 */
#ifndef QUERYPROF_STORE_WRITE_PROGRAMS_H
#define QUERYPROF_STORE_WRITE_PROGRAMS_H

#include "store/write/writer.h"
#include "wire/program_record.h"

/* SQLITE_OK or the error, as all that takes a record. */
int programs_take(struct writer *writer, const struct program_record *record, size_t size);
int programs_take_rows(struct writer *writer, const struct program_rows_record *record, size_t size);

/* Removes those that no query names any more. */
int programs_remove_unused(struct writer *writer);

#endif
