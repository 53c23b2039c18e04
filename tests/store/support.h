/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of the store's tests: records as the handler would write them, a module map that the test defines,
 * and SQL queries with one result.
 */
#ifndef TESTS_STORE_SUPPORT_H
#define TESTS_STORE_SUPPORT_H

/* cmocka needs these four headers first. */
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
extern int64_t flush_interval_ns; /* of stores that start later */

/* The fixture of each test: a new directory for its files, which is also TMPDIR. A store that still runs is
 * stopped. */
extern char folder[64];
extern char trace_path[72]; /* x.db in the folder */
int set_up(void **state);
int tear_down(void **state);

char *in_folder(const char *name); /* a static buffer; the last four results are valid */

/* Sets the module map that the store sees; it is empty at first. */
void set_modules(const struct module *modules, size_t count);

/* Starts a store on `path` (NULL: temporary) with a new ring. */
void start_store(const char *path, int64_t max_bytes);
void start_store_with_ring(const char *path, int64_t max_bytes, size_t ring_bytes);
void stop_store(void);
void configure_store(const char *path, int64_t max_bytes);

/* A moment in 2026. */
#define T0 1790000000000000000ull

/* Puts a sample into the ring; false if the ring is full. */
struct a_sample {
	uint64_t timestamp_ns, period_ns;
	struct query_key query;
	uint32_t thread_id, weight, generation, cpu_id;
	uint8_t trace_type, flags;
	const uint64_t *trace;
	uint16_t depth;
	/* Optional fields, up to the first without a tag. */
	struct a_field {
		uint32_t tag, size;
		const void *content;
	} fields[4];
};
bool put_sample(struct a_sample sample);

/* Puts `count` samples, 1 us apart from `start_ns` on, with `stacks` different simple traces. Waits for
 * room. */
void put_samples(uint64_t start_ns, size_t count, size_t stacks, struct query_key query);

void put_thread(uint32_t thread_id, const char *name);

struct a_query {
	const char *query_id, *query, *database, *exception;
	struct query_record record; /* without sizes; last, because its texts follow it */
};
void put_query(const struct a_query *query);

/* Puts the start record that comes with a query's first sample. */
void put_start(struct query_key query, enum start_state state, const char *text);

/* The limit of store_drain() if everything can be stored. A loaded machine may need it. */
#define PATIENCE_MS 300000
void drain(void);
bool has_error(void); /* store_error() has something to report */

/* Returns one value from the store; fails and prints the SQL if there is none. */
int64_t ask(const char *sql);
char *ask_text(const char *sql); /* a static buffer; the last four results are valid */

/* The same for any SQLite file, with the installed sqlite3 program. */
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
