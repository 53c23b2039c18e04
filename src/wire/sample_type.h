/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of samples: what a sample's value counts, and in which unit.
 *
 * A type is not a clock: two of the types are taken by timers, each on a clock of its
 * own; others are taken where something happens (a wait ends, memory is allocated). A
 * reader may meet types that this build does not know, in a record or in a file that a
 * newer build wrote. Their values are shown in their own unit and never added to time.
 */
#pragma once

#include <stddef.h>
#include <time.h>

enum sample_type_number {
	SAMPLE_CPU = 0,
	SAMPLE_REAL = 1,
	SAMPLE_OFF_CPU = 2,
	SAMPLE_QUERY_TYPES = 3, /* those above are counted for their query */
	/* Of the program's own code while a query or a transaction of its thread is open, see wire/outside.h.
	 */
	SAMPLE_PROGRAM_CPU = 3,
	SAMPLE_PROGRAM_OFF_CPU = 4,
	/* Of an allocator's block: allocated, and, if that was sampled, freed (timers/memory_sample.h). */
	SAMPLE_MEMORY = 5,
	SAMPLE_MEMORY_FREE = 6,
	SAMPLE_TYPES = 7,
};

#define SAMPLE_TYPE_NO_CLOCK ((clockid_t)-1)

/* Units of values. */
#define UNIT_NS "ns"
#define UNIT_BYTES "bytes"
#define UNIT_UNKNOWN "unknown"

struct sample_type {
	const char *name; /* in trace_log.trace_type */
	const char *unit; /* of the value */
	/* The clock of the timer that takes the samples. The value of such a sample is its weight
	 * times its period. SAMPLE_TYPE_NO_CLOCK: no timer does. */
	clockid_t clock;
};

/* The types of this build, by their number; NULL past the last. */
const struct sample_type *sample_type_at(size_t number);
