/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions, for formats that ignore the place within a function: one for each name and file, numbered from 0
 * in the order of arrival.
 */
#pragma once

#include "base/index.h"
#include "base/vector.h"
#include "export/export.h"

struct export_function {
	const char *name;
	const char *file;                   /* of the source; "" if it is not known */
	const struct export_module *module; /* NULL: not in a module */
};

/* Start with a zeroed struct. */
struct functions {
	struct index index;
	VECTOR(struct export_function) list; /* by number */
};

#define FUNCTIONS_NO_MEMORY INDEX_NONE

/* The number of the function at that line of the frame. */
uint32_t functions_add(struct functions *functions, const struct export_frame *frame, size_t line);

void functions_free(struct functions *functions);
