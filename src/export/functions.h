/*
 * Functions for formats that put the places within a function together: one for
 * each name and file, numbered from 0 as they come.
 */
#ifndef QUERYPROF_EXPORT_FUNCTIONS_H
#define QUERYPROF_EXPORT_FUNCTIONS_H

#include "export/export.h"
#include "base/hash_table.h"

struct report_function {
	const char *name;
	const char *file;                   /* of the source; "" when it is not known */
	const struct report_module *module; /* NULL: in none */
};

/* Start with a zeroed struct. */
struct functions {
	struct hash_table table;
	struct report_function *list; /* by number */
	uint32_t count, capacity;
};

#define FUNCTIONS_NO_MEMORY UINT32_MAX

/* The number of the function at that line of the frame. */
uint32_t functions_add(struct functions *functions, const struct report_frame *frame, size_t line);

void functions_free(struct functions *functions);

#endif
