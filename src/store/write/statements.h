/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores the statements' counters (query/statement_stats.h) in the table statement_counters. It adds
 * to the existing values, because several processes write to one file.
 */
#pragma once

#include <stdbool.h>

#include "store/write/prepared.h"

struct statement_reading;
struct writer;

struct counter_writer {
	int64_t rows;      /* of statement_counters, upper limit; -1: not known */
	int64_t batch;     /* the number of the transaction that stores counters of statements */
	bool is_announced; /* state.statement_batches has it */
	struct {
		struct prepared add, add_part;
	} sql;
};

extern const struct counter_writer counter_writer_new;

/* Inside a transaction: adds the changes since the last time, and keeps the number of rows within
 * log_statements_max. statement_stats_commit() follows. SQLITE_OK or the error. */
int statements_write(struct writer *writer);

/* Inside a transaction: adds the changes in the counters of the writer's process, of which `memory` is a copy
 * (wire/statement_memory.h). statement_reading_commit() follows. SQLITE_OK or the error. */
int statements_write_other(struct writer *writer, const void *memory, size_t size,
                           struct statement_reading *reading);

/* The rows of statements, without "(other)". */
int64_t statements_count(const struct writer *writer);

/* Inside a transaction: the `count` least used become part of "(other)", one for each program. SQLITE_OK or
 * the error. */
int statements_fold(struct writer *writer, int64_t count);
