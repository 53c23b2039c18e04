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

/* A key as queries have it: of the time of its run, to the millisecond. */
#define KEY(ns, n) ((struct query_key){ (ns) / 1000000 << 16 | 0x7000, 0x8000000000000000ull + (n) })

extern struct writer writer;

/* Around each test: set_up() and tear_down(), a ring, and a writer of trace_path. */
int begin_alone(void **state);
int end_alone(void **state);

/* The file that the writer has open from now on. */
void change_file(const char *path);

void run_sql(const char *sql);
int64_t number(const char *sql);
void assert_text(const char *sql, const char *expected);
int64_t used_bytes(void);

/* Retention, of at most so many steps. Its result. */
int apply(struct retention *retention, int64_t bound, int steps);

/* The flusher's work until the ring is empty: batches, each with some retention. 0: there is no bound. */
void flush(int64_t bound);

/* Retention to the lower mark; one that goes on for ever fails. */
void trim(int64_t bound);

/* A query that has ended, with a text of its own; `id`: the host's, or NULL. */
void put_run(uint64_t start_ns, struct query_key key, const char *id);

/* A span of a statement's run, alone in its trace. */
void put_run_span(uint64_t start_ns, uint32_t thread, struct query_key key, uint64_t shape);

/* Room for a record, all zeros. */
void *reserve(size_t size);

#endif
