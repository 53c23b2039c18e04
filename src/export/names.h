/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks for writers: functions, files and lines instead of addresses, each looked up once.
 */
#pragma once

#include "export/export.h"

struct address_space;
struct names;

/* `inlines`: inlined functions become separate frames. Otherwise the function that contains them is the only
 * frame, at the line of the call. NULL: no memory. */
struct names *names_create(bool inlines);
void names_free(struct names *names);

/* The next stacks belong to that address space, which must exist until the next call. Names from earlier
 * spaces remain, and numbers continue. */
void names_enter(struct names *names, const struct address_space *space);

/* The frame at an address of the current space. NULL: no memory. */
const struct export_frame *names_frame(struct names *names, uint64_t address);

/* The stack of a JSON array of addresses, leaf first. Call it once per stack, because it keeps no record of
 * earlier ones. NULL: no memory, or, if *bad, the text is not such an array. */
const struct export_stack *names_stack(struct names *names, const char *json, bool is_truncated, bool *bad);

/* A copy of the stack whose frames from `at` up to, but not including, `end` are replaced by `count`
 * functions of these names, leaf first. `end` may equal `at`, and neither exceeds the stack's count. The
 * names must come from names_keep(). NULL: no memory. */
const struct export_stack *names_replace(struct names *names, const struct export_stack *stack, size_t at,
                                         size_t end, const char *const *functions, size_t count);

/* The stack with a wait as its leaf. It shares the other frames, because a stack may have many waits. The
 * name must come from names_keep(), and the stack has no such leaf yet. NULL: no memory. */
const struct export_stack *names_lead(struct names *names, const struct export_stack *stack,
                                      const char *wait);

/* Call it if a sample has this stack: it numbers the stack, its frames and their modules. Stacks without a
 * number are only parts of others. */
void names_use(struct names *names, const struct export_stack *stack);

/* The index of the frame that calls SQLite's interpreter for the innermost query of a stack. SIZE_MAX: not
 * known. */
size_t names_find_interpreter(const struct export_stack *stack);

/* A copy of the text that is valid as long as `names`. NULL: no memory. */
const char *names_keep(struct names *names, const char *text);
