/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of statements and their parts, by the hash of a statement's shape. For statement_stats.c,
 * which holds its lock at each call. An index is that of an entry (statement_memory.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/statement_memory.h"

/* Before the first use: makes "(other)". False: no memory. */
bool statement_table_begin(void);

/* Entries that are in use, without "(other)"; without the lock, too. */
uint64_t statement_table_kept(void);

/* The entry of this part, made if it is new. If the table has no space for the part, it is the one
 * without a layout and labels; if it has none for the statement, "(other)", STATEMENT_OTHER.
 * `most`: the limit of entries. `part.period` is ignored. */
uint32_t statement_table_find(size_t most, uint64_t hash, const char *text, size_t size, const char *database,
                              struct statement_part part);

/* The parts of a statement, one after another. STATEMENT_OTHER: no more. */
uint32_t statement_table_first(uint64_t hash, const char *database);
uint32_t statement_table_next(uint32_t index);

/* An entry that is not in the table any more is found by nobody; it is put back, or its place is free. */
void statement_table_unlink(uint32_t index);
void statement_table_link(uint32_t index);
void statement_table_free(uint32_t index);

/* In a forked child: an empty table. */
void statement_table_reset_in_child(void);
