/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions, for formats that ignore where in a function a stack is: one for each name and file, numbered
 * from 0 in their order.
 */
#pragma once

#include "base/index.h"
#include "base/vector.h"
#include "export/export.h"

struct export_function {
	const char *name;
	const char *file;                   /* of the source; "" when it is not known */
	const struct export_module *module; /* NULL: in none */
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
