/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program publishes OpenTelemetry's thread context according to OTEP 4947. Samples and queries have its
 * ids. Damaged data is ignored. The variable belongs to a library that the program loads with RTLD_LOCAL
 * after its first query, as interpreters do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <pthread.h>
#include <queryprof.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../lib/clock.h"
#include "../lib/spin.h"

struct context {
	uint8_t trace_id[16], span_id[8], valid, flags;
	uint16_t attributes_size;
	uint8_t attributes[612];
} __attribute__((packed));

static char path[] = "/tmp/queryprof-otel-XXXXXX";
static sqlite3 *file;
static void **(*variable)(void);

static char *ask(const char *sql)
{
	static char text[256] = "(none)";
	const char *found = NULL;
	sqlite3_stmt *stmt;

	assert_int_equal(qp_flush(20000), QP_OK);
	if (sqlite3_prepare_v2(file, sql, -1, &stmt, NULL))
		fail_msg("%s: %s", sql, sqlite3_errmsg(file));
	if (sqlite3_step(stmt) == SQLITE_ROW)
		found = (const char *)sqlite3_column_text(stmt, 0);
	snprintf(text, sizeof(text), "%s", found ? found : "(none)");
	if (sqlite3_finalize(stmt))
		fail_msg("%s: %s", sql, sqlite3_errmsg(file));
	return text;
}

/* Runs long enough for samples at ticks on a busy machine, even if spin() was calibrated on a slow
 * processor. */
static void run(const char *id)
{
	const qp_query query = { .size = sizeof(query), .text = "otel", .query_id = id };
	uint64_t start = cpu_ns();

	assert_int_equal(qp_query_begin(&query), QP_OK);
	do
		spin(100000000);
	while (cpu_ns() - start < 300000000);
	assert_int_equal(qp_query_end(0, NULL), QP_OK);
}

static void *run_other(void *unused)
{
	run("other thread");
	return unused;
}

/* Checks the ids of the query's samples, of which there must be some, and of its row. */
static void check(const char *id, const char *expected)
{
	char sql[256];

	for (int of_query = 0; of_query < 2; of_query++) {
		snprintf(sql, sizeof(sql),
		         "SELECT group_concat(DISTINCT otel_trace_id || '-' || otel_span_id) FROM %s WHERE "
		         "query_id = '%s'",
		         of_query ? "query_log" : "trace_log", id);
		if (strcmp(ask(sql), expected))
			fail_msg("%s: %s, expected %s", sql, ask(sql), expected);
	}
}

#define VALID "0102030405060708090a0b0c0d0e0f10-a1a2a3a4a5a6a7a8"
#define NONE "-"

static void fill(struct context *context)
{
	memset(context, 0, sizeof(*context));
	for (int i = 0; i < 16; i++)
		context->trace_id[i] = (uint8_t)(i + 1);
	for (int i = 0; i < 8; i++)
		context->span_id[i] = (uint8_t)(0xa1 + i);
	context->valid = 1;
}

static void test_published(void **state)
{
	struct context context;
	pthread_t other;

	(void)state;
	fill(&context);
	*variable() = &context;
	run("published");
	check("published", VALID);
	assert_string_equal(ask("SELECT trace_id || '-' || parent_span_id FROM span_log WHERE query_id = "
	                        "'published'"),
	                    VALID);
	/* Other threads do not have the context. */
	assert_int_equal(pthread_create(&other, NULL, run_other, NULL), 0);
	pthread_join(other, NULL);
	check("other thread", NONE);
	*variable() = NULL;
	run("withdrawn");
	check("withdrawn", NONE);
}

static void test_damaged(void **state)
{
	struct context context;
	char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	fill(&context);
	context.valid = 0;
	*variable() = &context;
	run("being written");
	check("being written", NONE);
	fill(&context);
	context.attributes_size = 613;
	run("too long");
	check("too long", NONE);
	memset(&context, 0, sizeof(context));
	context.valid = 1;
	run("zero");
	check("zero", NONE);
	*variable() = (void *)16;
	run("nowhere");
	check("nowhere", NONE);
	/* The context is on two pages, and then the second page is unmapped. */
	fill(&context);
	memcpy(pages + 4096 - 20, &context, sizeof(context));
	*variable() = pages + 4096 - 20;
	run("two pages");
	check("two pages", VALID);
	munmap(pages + 4096, 2 * 4096);
	run("one page");
	check("one page", NONE);
	*variable() = NULL;
	munmap(pages, 4096);
}

static int set_up(void **state)
{
	const qp_config config = { .size = sizeof(config), .trace_log_path = path };
	const struct timespec second = { .tv_sec = 1, .tv_nsec = 100000000 };
	void *library;

	(void)state;
	close(mkstemp(path));
	if (qp_init(&config) || qp_set(NULL, "query_profiler_max_overhead_percent", "0") ||
	    qp_set(NULL, "query_profiler_cpu_time_period_ns", "1000000"))
		fail_msg("%s", qp_error());
	run("before");
	library = dlopen(OTEL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fail_msg("%s", dlerror());
	variable = (void **(*)(void))(uintptr_t)dlsym(library, "variable");
	/* A thread looks for a new variable once a second. */
	nanosleep(&second, NULL);
	run("looks");
	run("looks");
	return sqlite3_open(path, &file) || sqlite3_busy_timeout(file, 300000);
}

static int tear_down(void **state)
{
	char other[64];

	(void)state;
	sqlite3_close(file);
	qp_shutdown();
	for (int i = 0; i < 3; i++) {
		snprintf(other, sizeof(other), "%s%s", path, (const char *[]){ "", "-wal", "-shm" }[i]);
		unlink(other);
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests_name("label_otel", tests, set_up, tear_down);
}
