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

/* `inlines`: functions that were inlined are frames of their own; else the one that they
 * were inlined into is the only one, at the line of the call. NULL: no memory. */
struct names *names_create(bool inlines);
void names_free(struct names *names);

/* From now on traces are of that address space, which stays as long as it is the current
 * one. What came from others stays as it is, and numbers go on. */
void names_enter(struct names *names, const struct address_space *space);

/* The stack of a trace, a JSON array of addresses, leaf first. The caller keeps it
 * and calls once a trace. NULL: no memory, or with *bad no such array. */
const struct export_stack *names_stack(struct names *names, const char *trace, bool is_truncated, bool *bad);

/* The stack with one frame more, a function of this name at its root. The caller keeps it.
 * NULL: no memory. */
const struct export_stack *names_on_root(struct names *names, const struct export_stack *stack,
                                         const char *root);

/* The same with a function at its leaf. */
const struct export_stack *names_under_leaf(struct names *names, const struct export_stack *stack,
                                            const char *leaf);

/* The text, kept as long as `names` is. NULL: no memory. */
const char *names_keep(struct names *names, const char *text);

#endif
