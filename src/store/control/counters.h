/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's counters, for system.metrics and the tests. Each process has its own; a forked child begins
 * with zeros.
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
	STORE_FIELDS_SKIPPED, /* optional fields of samples that this build cannot read */
	STORE_LABELS_UNKNOWN, /* label sets of samples whose text is lost */
	STORE_SPANS,
	STORE_SPANS_LOST,    /* taken from the ring, and not stored */
	STORE_PLANS_LOST,    /* the same for records of bytecode and plans, which are published again */
	STORE_PLANS_REMOVED, /* times that retention removed plans of statements that may run again */
	STORE_COUNTERS,
};

uint64_t store_counter(enum store_counter which);

/* Adds. */
void store_count(enum store_counter which, uint64_t number);

/* Sets a counter that is a state instead of a sum. */
void store_set_counter(enum store_counter which, uint64_t value);

/* Adds the calling thread's CPU time since `last_ns`, and sets that to the current time. */
void store_count_cpu_time(enum store_counter which, uint64_t *last_ns);

/* In a forked child. */
void store_reset_counters(void);
