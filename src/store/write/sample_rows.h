/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a batch's samples, gathered from their records, and written in the order of time, as in their
 * table.
 */
#pragma once

#include "store/file/made_table.h"
#include "store/write/delays.h"
#include "store/write/prepared.h"
#include "wire/record.h"

struct pending_sample;
struct writer;

struct sample_writer {
	struct pending_sample *pending; /* of the batch, WRITER_BATCH at most */
	size_t count;
	size_t inserted, at;    /* rows in the file, and the one that the INSERT reads */
	size_t delay_count;     /* of the samples of delays, which have no record in the ring */
	size_t fields_skipped;  /* optional fields of samples that this build does not know */
	struct delays delays;   /* kept from batch to batch */
	int64_t process_newest; /* time of the process's newest sample in earlier batches */
	int64_t first, last;    /* times of the batch's samples */
	struct {
		struct prepared insert, last_time, newest, add_late;
	} sql;
};

extern const struct sample_writer sample_writer_new;
/* Allocates `pending`. False: no memory. */
bool sample_writer_reserve(struct sample_writer *samples);
void sample_writer_free(struct sample_writer *samples);

/* Begins a batch. */
void sample_writer_clear(struct sample_writer *samples);

/* Decodes the record and interns the names in it; the row is written at the end of the batch. Ignores records
 * of other kinds. SQLITE_OK or the error. */
int sample_rows_add(struct writer *writer, const struct sample_record *record, size_t size);

/* Sorts and writes the gathered rows. SQLITE_OK or the error. */
int sample_rows_insert(struct writer *writer);

/* The rows to write, as a virtual table; its data is the struct writer. */
extern const struct made_table samples_to_write;
