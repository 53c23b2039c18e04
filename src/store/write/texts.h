/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of statements' texts and of SQLite libraries, found or made.
 */
#pragma once

#include <stdbool.h>

#include "base/hash_table.h"
#include "store/write/prepared.h"

struct writer;

struct text_writer {
	struct hash_table known, libraries; /* by the text */
	struct {
		struct prepared find, add, remove_unused;
		struct prepared find_library, add_library;
	} sql;
};

extern const struct text_writer text_writer_new;

/* The row's number, > 0, or minus SQLite's code. stays: the row will not be removed as unused. shape:
 * normalize_hash() of the whole text; 0: of this text. */
int64_t intern_statement(struct writer *writer, const char *text, size_t size, bool is_cut, bool stays,
                         uint64_t shape);

/* Removes a statement's row that need not stay, if nothing names it. The batch's rows are written. SQLITE_OK
 * or the error. */
int intern_remove_unused(struct writer *writer, int64_t statement);

/* text: version, a space, path. Row 0 for no text. */
int64_t intern_library(struct writer *writer, const char *text, size_t size);
