/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mean of measured values and its standard error.
 */
#ifndef QUERYPROF_CMD_ADVISE_SUMS_H
#define QUERYPROF_CMD_ADVISE_SUMS_H

#include <math.h>
#include <stdint.h>

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

/* Of the mean. INFINITY if fewer than two values show no spread. */
static inline double sums_error(const struct sums *sums)
{
	const double count = (double)sums->count;

	return count < 2 ? INFINITY : sqrt(sums->square / (count - 1) / count);
}

/* How many standard errors a difference must exceed to be one: two-sided, 5 % (see sql/diff/statements.sql).
 */
static inline double sums_critical(int64_t count)
{
	const double d = (double)(count > 2 ? count - 1 : 1);

	return d < 2 ? 12.7 : 1.96 + 2.37 / d + 2.82 / d / d + 2.56 / d / d / d;
}

#endif
