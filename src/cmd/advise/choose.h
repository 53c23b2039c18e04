/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which indexes are worth their cost, by measured time.
 */
#pragma once

#include "cmd/advise/candidates.h"
#include "cmd/advise/turns.h"

/* What a run of a statement writes, in bytes; 0: it writes nothing, or that is not known. */
struct written {
	int64_t before, after;
};

struct choice {
	candidates chosen; /* in the order in which they were chosen */
	candidates drops;  /* indexes that save nothing */
	VECTOR(struct turns)
	turns; /* one for each statement of the workload, with all chosen indexes; count 0: not affected */
	VECTOR(struct written) written; /* the same */
	double saved, variance;         /* of all runs, ns */
	int tried, untried;
};

/* connections: to two equal copies. ns: the time for everything. */
/* Whether the set is worth its cost: it saves a part of the recorded time, by more than its error. */
bool choice_is_worth(const struct choice *choice, const struct workload *workload);
void choice_make(struct choice *choice, const struct workload *workload, struct connection connections[2],
                 int64_t ns);
void choice_free(struct choice *choice);
