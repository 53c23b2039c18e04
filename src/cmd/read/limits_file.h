/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits for `queryprof check` in a file. The syntax is a part of TOML: comments, the table [limits], the
 * tables [[statement]], and in these a key and a value in each line. A value is a whole number, true, false,
 * or a string in quotes. Anything else is an error, with its line.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/vector.h"

enum limits_key {
	LIMIT_SCAN,
	LIMIT_SORT,
	LIMIT_INDEX,
	LIMIT_TIME,
	LIMIT_RUNS,
	LIMITS_ID,
	LIMITS_LIKE,
	LIMITS_EXCEPT,
	LIMITS_KEYS
};

/* Limits, as on the command line; NULL: not given. "0" is false. id, like: the statements that they apply to,
 * NULL in the first item, which applies to all. */
struct limits {
	char *values[LIMITS_KEYS];
	int line; /* where they begin in the file */
};

typedef VECTOR(struct limits) limits_vector; /* the first one is [limits] */

/* A command_result, after a complaint. */
int limits_file_read(const char *path, limits_vector *file);

void limits_file_free(limits_vector *file);
