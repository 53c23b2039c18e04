/*
 * Collapsed stacks, the lines that flame graph programs read: functions from the
 * root to the leaf with semicolons between them, a space, a number.
 */
#ifndef QUERYPROF_TRACE_COLLAPSE_H
#define QUERYPROF_TRACE_COLLAPSE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct collapse;

struct collapse *collapse_create(void); /* NULL: no memory */
void collapse_free(struct collapse *collapse);

/* A stack is its functions, root first, then its weight. The weights of equal stacks are
 * added up. Semicolons and control characters in a name are replaced, since they have a
 * meaning in the lines. False: no memory. */
bool collapse_frame(struct collapse *collapse, const char *name);
bool collapse_stack(struct collapse *collapse, int64_t weight);

/* All lines, in the order of their bytes. False: no memory, or not written. */
bool collapse_write(struct collapse *collapse, FILE *out);

#endif
