/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that run queries with four texts, which get 50, 30, 15 and 5 % of the time, and that know how long
 * each took. A query consists of some CPU time and a wait. All threads together use less than one processor,
 * and are in queries nearly all the time.
 */
#ifndef TESTS_BUDGET_LOAD_H
#define TESTS_BUDGET_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#define LOAD_TEXTS 4
extern const char *const load_texts[LOAD_TEXTS];

/* The part of one processor that all threads use; set before a load begins. */
extern double load_used;

/* Starts so many threads; they go on until load_end(), which waits for them and adds what their
 * queries have taken by text, on the wall clock and of CPU time. One load at a time.
 * around_ns: the calls that begin and end the query included, where a thread may lose its
 * processor, too; the wall clock of the query itself lies between both. between_ns: of all threads,
 * outside of queries. */
struct load_truth {
	double real_ns[LOAD_TEXTS], around_ns[LOAD_TEXTS], cpu_ns[LOAD_TEXTS], between_ns;
	uint64_t queries;
};
void load_begin(int threads, uint64_t seed);
void load_end(struct load_truth *truth);

/* Sums of a type's samples in the trace file, and of their squares, by text. */
struct load_seen {
	double sum[LOAD_TEXTS], square[LOAD_TEXTS];
	int64_t samples;
};
bool load_read(const char *path, const char *type, struct load_seen *seen);

/* The average value of a sample of a type: a sum `is` of them has the standard error
 * sqrt(is * value). Unlike the root of their squares it does not depend on which of few came. */
double load_value(const struct load_seen *seen);

/* One of system.metrics. */
int64_t load_metric(const char *name);

/* Signals that reached the handler, without those that are accounted for: 0, as dropped
 * samples are accounted for, too. */
int64_t load_ledger_unknown(void);

int64_t load_now_ns(void);
void load_pause(int64_t ns);

#endif
