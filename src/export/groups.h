/*
 * Samples by statement: all runs of one together, which may be thousands. Queries
 * that differ only in literals are one statement.
 */
#ifndef QUERYPROF_EXPORT_GROUPS_H
#define QUERYPROF_EXPORT_GROUPS_H

#include "export/export.h"
#include "base/hash_table.h"

struct group {
	char *name; /* the first one's text, in one line and not too long */
	int64_t samples, ns;
};

/* Start with a zeroed struct. */
struct groups {
	struct hash_table table;
	struct group *list; /* by number */
	uint32_t count, capacity;
};

#define GROUPS_NO_MEMORY UINT32_MAX

/* Adds the sample to its group; the group's number, or GROUPS_NO_MEMORY. */
uint32_t groups_add(struct groups *groups, const struct report_sample *sample);

/* The groups' numbers, the one with the most time first; malloc'ed, NULL: no
 * memory. */
uint32_t *groups_order(const struct groups *groups);

void groups_free(struct groups *groups);

#endif
