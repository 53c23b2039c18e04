/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One batch: records from the ring, in one transaction.
 */
#pragma once

#include "store/write/losses.h"
#include "store/write/writer.h"

struct ring;
struct statement_reading;

/* The outcome of a batch. */
struct writer_result {
	size_t records;          /* taken from the ring */
	size_t samples, queries; /* stored */
	size_t fields_skipped;   /* of their records */
	size_t lost;             /* with spans_lost */
	size_t spans, spans_lost, plans_lost;
	bool more; /* the batch was full: the ring may have more */
	bool busy; /* another process kept writing: nothing was taken */
};

/* Takes records from the ring and stores them in one transaction, at most
 * `most_records`, and about `most_bytes` of the file. SQLITE_OK or the error, after
 * which the batch is lost. */
int writer_store(struct writer *writer, struct ring *ring, size_t most_records, size_t most_bytes,
                 struct writer_result *result);

/* Stores the counters of another process's statements in one transaction, see statements_write_other().
 * SQLITE_OK or the error. */
int writer_store_statements(struct writer *writer, const void *memory, size_t size,
                            struct statement_reading *reading);

/* Stores missing losses in one transaction. SQLITE_OK or the error. */
int writer_store_losses(struct writer *writer, struct losses *losses);

/* The rows and spans of the record whose loss users must know. */
uint64_t writer_rows_in(unsigned kind, const void *record, size_t size);

/* Whether it is a part of bytecode or of its plan, which is published again if it is lost. */
bool writer_is_plan(unsigned kind);

/* Takes one record that will not be stored, and remembers what later ones need. */
void writer_discard(struct writer *writer, unsigned kind, const void *record, size_t size);
