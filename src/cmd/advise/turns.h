/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures two ways to run the same work alternately, so that a disturbance affects both.
 */
#pragma once

#include <math.h>

#include "cmd/advise/connection.h"

/* The mean of measured values and its standard error. */
struct sums {
	int64_t count;
	double mean, square; /* square: the sum of the squared differences from the mean */
};

static inline void sums_add(struct sums *sums, double value)
{
	const double difference = value - sums->mean;

	sums->count++;
	sums->mean += difference / (double)sums->count;
	sums->square += difference * (value - sums->mean);
}

/* The error of the mean. INFINITY if there are fewer than two values. */
static inline double sums_error(const struct sums *sums)
{
	const double count = (double)sums->count;

	return count < 2 ? INFINITY : sqrt(sums->square / (count - 1) / count);
}

/* One side: what it prepares, and where. `prepare` returns NULL after an error, with the reason in
 * connection->error. */
struct side {
	struct connection *connection;
	sqlite3_stmt *(*prepare)(const struct side *side, int variant);
	const void *what;
};

/* CPU time of a run in ns. saved: before - after, over pairs of runs with the same values. */
struct turns {
	struct sums before, after, saved;
	bool is_cut; /* a run took longer than the limit, so its time is at least that */
};

struct turns_limit {
	int64_t ns, run_ns; /* for all runs, for one run */
	int64_t pairs;      /* at least, if the time suffices */
	double error;       /* a sufficient standard error of `saved`, as a part of the time before */
};

#define TURNS_ENOUGH 0.005 /* such an error, for a verdict on a difference of a few per cent */

/* The second side in comparison with the first: "faster" or "slower" if the difference is three standard
 * errors and 1 %, because different places in memory can make a smaller one, else "no difference". "not
 * known" without two pairs. */
const char *turns_verdict(const struct turns *turns);

/* False: one side failed, with the reason in its connection->error. */
bool turns_take(struct turns *turns, const struct side sides[2], int variants,
                const struct turns_limit *limit);
