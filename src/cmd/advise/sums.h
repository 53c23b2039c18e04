/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mean of measured values and its standard error.
 */
#pragma once

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

/* The error of the mean. INFINITY if there are fewer than two values. */
static inline double sums_error(const struct sums *sums)
{
	const double count = (double)sums->count;

	return count < 2 ? INFINITY : sqrt(sums->square / (count - 1) / count);
}
