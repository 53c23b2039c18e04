/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sources of names and lines, one line of a table each (sources.c).
 */
#pragma once

#include <stdbool.h>

#include "symbol/lines.h"
#include "symbol/object.h"
#include "symbol/symbol_table.h"
#include "symbol/why.h"

/* When a source is read: with the first name of the object, or, because it takes long,
 * only when an address has no name from the others. */
enum name_stage { NAMES_AT_ONCE, NAMES_LATE, NAME_STAGES };

/* The sources' results for one object. Starts as { 0 }. */
struct names_found {
	unsigned sources;   /* those that gave names, a bit each */
	bool has_locals;    /* one of them knows the local functions: no other is used then */
	struct why why_not; /* why the local functions are missing, unless has_locals */
};

/* The names that the sources of one stage have for the object; stages come in their order,
 * with the same `found`. Debug files are searched below `folders`, separated by colons.
 * NULL: nothing, or no memory. */
struct symbol_table *sources_read_names(const struct symbol_object *object, const char *folders,
                                        enum name_stage stage, struct names_found *found);

/* The source that gave most; NULL: none gave any. */
const char *sources_best(const struct names_found *found);

/* The object's lines; NULL when there are none. */
struct lines *sources_read_lines(const struct symbol_object *object, const char *folders);

/* The source that sources_read_lines() would read; NULL: none, `why` says why. */
const char *sources_lines_from(const struct symbol_object *object, const char *folders, struct why *why);
