/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which indexes are worth it, by measured time.
 */
#pragma once

#include "cmd/advise/candidates.h"
#include "cmd/advise/turns.h"

struct choice {
	candidates chosen; /* in the order in which they were chosen */
	candidates drops;  /* indexes that only cost */
	VECTOR(struct turns)
	turns; /* of each statement of the workload, with all chosen; count 0: not affected */
	double saved, variance; /* of all runs, ns */
	int tried, untried;
};

/* `connections`: to two equal copies. `ns`: for all. */
/* Whether the set is worth it: it saves a part of the recorded time, by more than its error. */
bool choice_is_worth(const struct choice *choice, const struct workload *workload);
void choice_make(struct choice *choice, const struct workload *workload, struct connection connections[2],
                 int64_t ns);
void choice_free(struct choice *choice);
