/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of the store's tests: records as the handler would write them, a
 * map of modules that a test makes up, and one-number questions to the store.
 */
#ifndef TESTS_STORE_SUPPORT_H
#define TESTS_STORE_SUPPORT_H

/* cmocka wants these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>

#include "wire/query_record.h"
#include "wire/thread_record.h"
#include "collect/ring_reader.h"
#include "modules/modules.h"
#include "store/store.h"

extern struct ring *ring;
extern int64_t flush_interval_ns; /* of the stores that are started from now on */

/* Around each test: a fresh directory for its files, which TMPDIR names, too; a store that
 * still runs is stopped. */
extern char folder[64];
extern char trace_path[72]; /* x.db in it */
int set_up(void **state);
int tear_down(void **state);

char *in_folder(const char *name); /* a static buffer; four at a time */

/* The module map that the store sees: none until set. */
void set_modules(const struct module *modules, size_t count);

/* A store on `path` (NULL: temporary) with a new ring. */
void start_store(const char *path, int64_t max_bytes);
void start_store_with_ring(const char *path, int64_t max_bytes, size_t ring_bytes);
void stop_store(void);
void configure_store(const char *path, int64_t max_bytes);

/* A moment in 2026. */
#define T0 1790000000000000000ull

/* Puts a sample with the trace into the ring; false when it is full. */
struct a_sample {
	uint64_t timestamp_ns, period_ns;
	struct query_key query;
	uint32_t thread_id, weight, generation, cpu_id;
	uint8_t trace_type, flags;
	const uint64_t *trace;
	uint16_t depth;
	/* Optional fields, the first without a tag ends them. */
	struct a_field {
		uint32_t tag, size;
		const void *content;
	} fields[4];
};
bool put_sample(struct a_sample sample);

/* `count` samples with simple traces out of `stacks` different ones, 1 us apart
 * from `start_ns` on; waits for room. */
void put_samples(uint64_t start_ns, size_t count, size_t stacks, struct query_key query);

void put_thread(uint32_t thread_id, const char *name);

struct a_query {
	const char *query_id, *query, *database, *exception;
	struct query_record record; /* without sizes; last, as it ends in its texts */
};
void put_query(const struct a_query *query);

/* The data of a query in its first sample. */
void put_start(struct query_key query, enum start_state state, const char *text);

/* For store_drain() where all can be stored: long, as a loaded machine may need it. */
#define PATIENCE_MS 300000
void drain(void);
bool has_error(void); /* store_error() has something to report */

/* One value out of the store; the test fails, with the SQL, when there is none. */
int64_t ask(const char *sql);
char *ask_text(const char *sql); /* a static buffer; four at a time */

/* The same of any SQLite file, through the machine's sqlite3 program. */
char *ask_file(const char *path, const char *sql);
void assert_intact(const char *path);

/* Waits until the condition holds, 300 s at most. */
#define assert_eventually(condition)                                                                         \
	do {                                                                                                 \
		int tries_ = 0;                                                                              \
		while (!(condition) && tries_++ < 30000)                                                     \
			nap();                                                                               \
		if (!(condition))                                                                            \
			fail_msg("never became true: %s", #condition);                                       \
	} while (0)
void nap(void);

#endif
