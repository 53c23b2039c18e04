/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks as writers take them: from the addresses of a trace to functions, files
 * and lines, each worked out once.
 */
#ifndef QUERYPROF_EXPORT_NAMES_H
#define QUERYPROF_EXPORT_NAMES_H

#include "export/export.h"

struct address_space;
struct names;

/* The names in an address space, which must outlive them. `inlines`: functions that were
 * inlined are frames of their own; else the one that they were inlined into is the only
 * one, at the line of the call. NULL: no memory. */
struct names *names_create(const struct address_space *space, bool inlines);
void names_free(struct names *names);

/* The stack of a trace, a JSON array of addresses, leaf first. The caller keeps it
 * and calls once a trace. NULL: no memory, or with *bad no such array. */
const struct export_stack *names_stack(struct names *names, const char *trace, bool is_truncated, bool *bad);

/* The text, kept as long as `names` is. NULL: no memory. */
const char *names_keep(struct names *names, const char *text);

#endif
