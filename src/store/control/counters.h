/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's counters, for system.metrics and the tests. They belong to this process: a forked child
 * begins with zeros.
 */
#pragma once

#include <stdint.h>

enum store_counter {
	STORE_SAMPLES, /* rows written */
	STORE_QUERIES,
	STORE_LOST,    /* records taken from the ring that could not be written */
	STORE_TRIMMED, /* samples removed to keep the size bound */
	STORE_STACKS,  /* distinct stacks known to this process */
	STORE_FLUSHES, /* transactions */
	STORE_ERRORS,  /* failed transactions or opens */
	STORE_BYTES,   /* file and WAL after the newest flush */
	STORE_FLUSHER_CPU_TIME_NS,
	STORE_READER_CPU_TIME_NS,
	STORE_PACER_CPU_TIME_NS,
	STORE_FIELDS_SKIPPED, /* optional fields of samples that this build does not know */
	STORE_LABELS_UNKNOWN, /* label sets that samples name, and whose text is lost */
	STORE_SPANS,
	STORE_SPANS_LOST,    /* taken from the ring, and not written */
	STORE_PLANS_LOST,    /* the same of records of bytecode and plans, which are published again */
	STORE_PLANS_REMOVED, /* how often retention has removed some, whose statements may run again */
	STORE_COUNTERS,
};

uint64_t store_counter(enum store_counter which);

/* Adds. */
void store_count(enum store_counter which, uint64_t number);

/* For counters that are a state instead of a sum. */
void store_set_counter(enum store_counter which, uint64_t value);

/* Adds the calling thread's CPU time since `last_ns`, which becomes now. */
void store_count_cpu_time(enum store_counter which, uint64_t *last_ns);

/* In a forked child. */
void store_reset_counters(void);
