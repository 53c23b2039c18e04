/*
 * Collapsed stacks, the lines that flame graph programs read: functions from the
 * root to the leaf with semicolons between them, a blank, a number.
 */
#ifndef QUERYPROF_TRACE_COLLAPSE_H
#define QUERYPROF_TRACE_COLLAPSE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct collapse;

struct collapse *collapse_create(void); /* NULL: no memory */
void collapse_free(struct collapse *collapse);

/* A stack is its frames, root first, then its weight. Equal ones are added up. A
 * semicolon or a line's end in a name would be read as something else and are
 * replaced. False: no memory. */
bool collapse_frame(struct collapse *collapse, const char *name);
bool collapse_stack(struct collapse *collapse, int64_t weight);

/* All lines, in the order of their bytes. False: no memory, or not written. */
bool collapse_write(struct collapse *collapse, FILE *out);

#endif
