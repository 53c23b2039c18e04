/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of bytecode and its plan (wire/bytecode_record.h), written to the ring.
 */
#pragma once

#include "sqlite/plan/plan.h"
#include "wire/bytecode_record.h"

struct published_bytecode {
	uint64_t bytecode, layout; /* as in struct bytecode_record */
	const char *text, *library;
};

/* False, here and below: the ring is full, or there is none. */
bool publish_bytecode(const struct published_bytecode *of, const struct plan *plan);

/* Why the plan of the bytecode was not read. */
bool publish_missing(uint64_t bytecode, const char *reason);

/* Rows about a run, of at most BYTECODE_ROWS_BYTES. */
void publish_counts(struct query_key run, uint64_t bytecode, const void *rows, size_t size);
