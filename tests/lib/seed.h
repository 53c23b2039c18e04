/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seed of a test's random numbers. It is fixed, so that all runs are equal, unless QUERYPROF_TEST_SEED
 * sets another one (tools/test --long does). The test prints it, so that a failure can be repeated.
 */
#ifndef TESTS_LIB_SEED_H
#define TESTS_LIB_SEED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline uint64_t test_seed(uint64_t fixed)
{
	const char *text = getenv("QUERYPROF_TEST_SEED");
	/* Never 0, because a shift register would stay at 0. */
	const uint64_t seed = text ? strtoull(text, NULL, 0) * UINT64_C(0x9e3779b97f4a7c15) | 1 : fixed;

	printf("QUERYPROF_TEST_SEED=%s\n", text ? text : "(fixed)");
	return seed;
}

/* The number of a test's rounds: QUERYPROF_TEST_ROUNDS, or the usual number. */
static inline long test_rounds(long usual)
{
	const char *text = getenv("QUERYPROF_TEST_ROUNDS");

	return text ? atol(text) : usual;
}

#endif
