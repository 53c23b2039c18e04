/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of the waits that are known only when a query has ended: the time that its thread was ready
 * without a processor, and the time of its major page faults. Their position within the query is
 * unknown, so their traces are empty.
 */
#pragma once

#include "wire/query_record.h"

#define DELAYS 2

/* Per kind: the rest of the period until the next sample. Starts as zeroes. */
struct delays {
	uint64_t due_ns[DELAYS];
	uint64_t period_ns[DELAYS];
};

/* Room for a sample's record. */
union delay_sample {
	struct sample_record record;
	uint64_t words[24];
};

/* Makes a sample of the periods that end within the query's delay of this kind. Returns the sample's
 * bytes; 0: no period ends in it. */
size_t delays_sample(struct delays *delays, int kind, const struct query_record *query,
                     union delay_sample *sample);
