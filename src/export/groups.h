/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples by statement: all its runs, which may be thousands, are one group. Queries that differ only in
 * literals are one statement.
 */
#pragma once

#include "base/index.h"
#include "base/vector.h"
#include "export/export.h"

struct group {
	char *name;    /* the first query's text in one line, shortened */
	int64_t value; /* of all its samples */
};

/* Start with a zeroed struct. */
struct groups {
	struct index index;
	VECTOR(struct group) list;  /* by number */
	VECTOR(uint32_t) of_labels; /* by the labels' number: the group's number, from 1; 0: not known yet */
};

#define GROUPS_NO_MEMORY INDEX_NONE

/* The number of the labels' group, or GROUPS_NO_MEMORY. */
uint32_t groups_find(struct groups *groups, const struct export_labels *labels);

/* Adds the sample to its group, for writers that keep all labels. Returns the group's number, or
 * GROUPS_NO_MEMORY. */
uint32_t groups_add(struct groups *groups, const struct export_sample *sample);

/* The groups' numbers by descending value; malloc'ed. NULL: no memory. */
uint32_t *groups_order(const struct groups *groups);

void groups_free(struct groups *groups);
