/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks for writers: functions, files and lines instead of addresses, each looked up once.
 */
#pragma once

#include "export/export.h"

struct address_space;
struct names;

/* `inlines`: functions that were inlined are frames of their own; else the one that they
 * were inlined into is the only one, at the line of the call. NULL: no memory. */
struct names *names_create(bool inlines);
void names_free(struct names *names);

/* Begins stacks of that address space, which must exist while it is the current one. Names of earlier
 * spaces remain, and numbers continue. */
void names_enter(struct names *names, const struct address_space *space);

/* The frame at an address of the current space. NULL: no memory. */
const struct export_frame *names_frame(struct names *names, uint64_t address);

/* The stack of a JSON array of addresses, leaf first. The caller keeps it
 * and calls once a stack. NULL: no memory, or with *bad no such array. */
const struct export_stack *names_stack(struct names *names, const char *json, bool is_truncated, bool *bad);

/* A copy of the stack in which `count` frames, functions of these names, leaf first, replace its frames
 * from `at` to before `end`. `end` may equal `at`, and neither exceeds the stack's count. Names must be
 * kept ones. NULL: no memory. */
const struct export_stack *names_replace(struct names *names, const struct export_stack *stack, size_t at,
                                         size_t end, const char *const *functions, size_t count);

/* A sample has this stack. Numbers the stack, its frames and their modules; other stacks are only parts. */
void names_use(struct names *names, const struct export_stack *stack);

/* The number of the frame that calls SQLite's interpreter for the innermost query of a stack, SIZE_MAX: none
 * is known. */
size_t names_find_interpreter(const struct export_stack *stack);

/* The text, kept as long as `names` is. NULL: no memory. */
const char *names_keep(struct names *names, const char *text);
