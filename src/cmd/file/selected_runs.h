/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The selected rows of queries (sql/read/selected.sql), in the order of their ids, for code that reads all of
 * them; and the statements that they name.
 */
#pragma once

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"

struct selected_statement {
	int64_t id, hash;
	int32_t comment; /* the label set of its SQL comments */
};

/* Start with a zeroed struct. */
struct selected_runs {
	VECTOR(int64_t) ids;
	VECTOR(struct selected_statement) statements;
};

/* Calls `take` for each run, with the values of the columns, like table_pages_each(): the first is "id". */
int selected_runs_each(struct selected_runs *runs, sqlite3 *db, const char *const *columns, size_t count,
                       int (*take)(void *context, const int64_t *row), void *context);

/* Only during selected_runs_each(). A missing statement has no hash and no comment. */
struct selected_statement selected_runs_statement(const struct selected_runs *runs, int64_t id);

void selected_runs_free(struct selected_runs *runs);
