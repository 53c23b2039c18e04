/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indexes that may help: of columns that statements compare, sort and group by, and of foreign keys.
 */
#pragma once

#include "cmd/advise/workload.h"

struct candidate {
	char *table, *name;
	char *create, *drop; /* SQL. If the index exists, `drop` comes first. */
	char *list;          /* its columns, as in the SQL; NULL if the index exists */
	char *condition;     /* the condition of a partial index; NULL: the index is not partial */
	char *parent;        /* of a foreign key, whose changes search the table; NULL: it is not for one */
	int columns;
	double ns; /* of the statements that it may help, as recorded */
	int64_t bytes;
	double saved, variance; /* over all recorded runs, in ns */
	bool is_out;            /* it helps no statement, or cannot be made */
};

typedef VECTOR(struct candidate) candidates;

/* The candidates that the workload suggests, ordered by the recorded time of their statements. */
void candidates_find(candidates *all, const struct workload *workload, struct connection *connection);

/* The indexes that no plan of the workload uses, and that may be dropped. */
void candidates_find_unused(candidates *all, const struct workload *workload, struct connection *connection);

/* Whether the statement may use the index of that name: its plan names the index, or the statement writes
 * to `parent`, which searches the index without a place in the plan. parent NULL: the index is not for a
 * foreign key. */
bool candidates_is_used(const struct workload *workload, struct connection *connection, const char *name,
                        const char *parent);

void candidates_free(candidates *all);
