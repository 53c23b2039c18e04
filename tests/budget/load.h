/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that run queries with four texts, which get 50, 30, 15 and 5 % of the time, and measure each
 * query's duration. A query consists of some CPU time and a wait. All threads together use less than one
 * processor, and are in queries nearly all the time.
 */
#ifndef TESTS_BUDGET_LOAD_H
#define TESTS_BUDGET_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#define LOAD_TEXTS 4
extern const char *const load_texts[LOAD_TEXTS];

/* The part of one processor that all threads use; set before a load begins. */
extern double load_used;

/* Starts `threads` threads. They run until load_end(), which waits for them and adds up their queries' wall
 * time and CPU time by text. There is one load at a time. around_ns includes the calls that begin and end the
 * query, in which a thread may also lose its processor; the query's own wall time is between real_ns and
 * around_ns. between_ns is the time of all threads outside of queries. */
struct load_truth {
	double real_ns[LOAD_TEXTS], around_ns[LOAD_TEXTS], cpu_ns[LOAD_TEXTS], between_ns;
	uint64_t queries;
};
void load_begin(int threads, uint64_t seed);
void load_end(struct load_truth *truth);

/* The sums of a type's samples in the trace file, and of their squares, by text. */
struct load_seen {
	double sum[LOAD_TEXTS], square[LOAD_TEXTS];
	int64_t samples;
};
bool load_read(const char *path, const char *type, struct load_seen *seen);

/* The average value of a type's sample. A sum `is` of samples has the standard error sqrt(is * value). This
 * error does not depend on which few samples came, unlike the root of the sum of their squares. */
double load_value(const struct load_seen *seen);

/* Reads a metric of system.metrics. */
int64_t load_metric(const char *name);

/* Signals that reached the handler, minus the accounted ones. It is 0, because dropped samples are accounted
 * for, too. */
int64_t load_ledger_unknown(void);

int64_t load_now_ns(void);
void load_pause(int64_t ns);

#endif
