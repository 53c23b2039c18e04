/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of tests of the writer without the flusher: the test decides when each batch and each step of
 * retention happens.
 */
#ifndef TESTS_STORE_ALONE_H
#define TESTS_STORE_ALONE_H

#include "support.h"

#include "store/write/batch.h"
#include "store/write/lifecycle.h"
#include "store/write/retention.h"

#define KB 1024
#define MB (1 << 20)
#define SECOND 1000000000ull
#define HOUR (3600 * SECOND)

/* A query key like the library's: it contains the start time of the run, in ms. */
#define KEY(ns, n) ((struct query_key){ (ns) / 1000000 << 16 | 0x7000, 0x8000000000000000ull + (n) })

extern struct writer writer;

/* The fixture of each test: set_up() and tear_down(), a ring, and a writer that has trace_path open. */
int begin_alone(void **state);
int end_alone(void **state);

/* Closes the writer's file, and opens this one. */
void change_file(const char *path);

void run_sql(const char *sql);
int64_t number(const char *sql);
void assert_text(const char *sql, const char *expected);
int64_t used_bytes(void);

/* Runs at most `steps` steps of retention; returns the result of retention_apply(). */
int apply(struct retention *retention, int64_t bound, int steps);

/* Works like the flusher until the ring is empty: batches, with retention after each. `bound` 0: no bound. */
void flush(int64_t bound);

/* Runs retention down to the lower mark; fails if it does not end. */
void trim(int64_t bound);

/* Puts an ended query with a unique text; `id`: the query id that the host set, or NULL. */
void put_run(uint64_t start_ns, struct query_key key, const char *id);

/* Puts the span of a statement's run, the only span of its trace. */
void put_run_span(uint64_t start_ns, uint32_t thread, struct query_key key, uint64_t shape);

/* Reserves a zeroed record. */
void *reserve(size_t size);

#endif
