/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indexes that may help: of columns that statements compare, sort and group by, and of foreign keys.
 */
#pragma once

#include "cmd/advise/workload.h"

struct candidate {
	char *table, *name;
	char *create, *drop; /* SQL. For an index that is there, `drop` comes first. */
	char *list;          /* its columns, as in the SQL; NULL for an index that is there */
	char *condition;     /* of a partial index; NULL: it is not partial */
	char *parent;        /* of a foreign key, whose changes search the table; NULL: it is not for one */
	int columns;
	double ns; /* of the statements that it may help, as recorded */
	int64_t bytes;
	double saved, variance; /* over all recorded runs, in ns */
	bool is_out;            /* helps nothing, or cannot be made */
};

typedef VECTOR(struct candidate) candidates;

/* What the workload suggests, the one for the longest time first. */
void candidates_find(candidates *all, const struct workload *workload, struct connection *connection);

/* The indexes that no plan of the workload uses, and that may be dropped. */
void candidates_find_unused(candidates *all, const struct workload *workload, struct connection *connection);

/* Whether the plan of a statement has the index of that name, or a write may use it, which is in no plan: it
 * touches `parent`, NULL: the index is not for a foreign key. */
bool candidates_is_used(const struct workload *workload, struct connection *connection, const char *name,
                        const char *parent);

void candidates_free(candidates *all);
