/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of spans, compared with other ways to record them, all in this process:
 *
 *   span_bench                  a pair of begin and end; a loop, and the engine of tests/engine, with
 *                               5 spans a request of 10 us
 *   span_bench THREADS SPANS [TRACE]   THREADS threads with SPANS spans each, TRACE of them in a
 *                               trace (default: all): how many arrive, in which order, the file's
 *                               bytes and the flusher's CPU time a span
 *
 * The other ways include the recording thread's work only, not the later processing. fastrace: each thread
 * has a vector with a line for each span; begin appends a line and remembers the parent, end completes it.
 * Tracy: begin and end append one item each to the thread's queue, 32 bytes with the address of the source
 * location. Times are the least of many alternating rounds, so that other work on the machine counts less.
 */
#include <pthread.h>
#include <queryprof.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../lib/clock.h"
#include "engine.h"

#define PAIRS 500u /* of a round: as many as fit into a thread's array, and into the cache */
#define ROUNDS 4000

#if defined(__x86_64__)
#define TICKS() __builtin_ia32_rdtsc()
#else
#define TICKS() clock_read_ns(CLOCK_MONOTONIC)
#endif

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, qp_error());
	exit(1);
}

/* --- ways to record a span ------------------------------------------------------------------- */

static volatile uint64_t sink;

__attribute__((noinline)) static void two_ticks(void)
{
	for (unsigned i = 0; i < PAIRS; i++) {
		sink = TICKS();
		sink = TICKS();
	}
}

__attribute__((noinline)) static void two_clocks(void)
{
	for (unsigned i = 0; i < PAIRS; i++) {
		sink = clock_read_ns(CLOCK_MONOTONIC);
		sink = clock_read_ns(CLOCK_MONOTONIC);
	}
}

/* fastrace's RawSpan: id, parent, begin and end, name, kind and properties (32 bytes more). */
struct raw_span {
	uint64_t id, parent, begin, end;
	const char *name;
	uint64_t name_size, more[4];
};
static __thread struct line {
	struct raw_span *spans;
	uint64_t count, room, parent, next;
} line;

__attribute__((noinline)) static uint64_t line_begin(struct line *to, const char *name)
{
	struct raw_span *span;

	if (to->count == to->room) {
		to->room = to->room ? 2 * to->room : 1024;
		to->spans = realloc(to->spans, to->room * sizeof(*to->spans));
	}
	span = &to->spans[to->count];
	*span = (struct raw_span){
		.id = ++to->next, .parent = to->parent, .begin = TICKS(), .name = name, .name_size = 4
	};
	to->parent = span->id;
	return to->count++;
}

__attribute__((noinline)) static void line_end(struct line *to, uint64_t handle)
{
	to->spans[handle].end = TICKS();
	to->parent = to->spans[handle].parent;
}

__attribute__((noinline)) static void fastraces_way(void)
{
	for (unsigned i = 0; i < PAIRS; i++)
		line_end(&line, line_begin(&line, "work"));
	line.count = 0;
}

/* Tracy's QueueItem, in a block of its moodycamel queue: the producer publishes its tail. */
struct queue_item {
	uint64_t type, time, location, more;
};
static __thread struct queue {
	struct queue_item items[2 * PAIRS];
	uint64_t tail;
} queue;

static inline void queue_put(uint64_t type, const void *location)
{
	struct queue_item *item = &queue.items[queue.tail % (2 * PAIRS)];

	item->type = type;
	item->time = TICKS();
	item->location = (uint64_t)(uintptr_t)location;
	__atomic_store_n(&queue.tail, queue.tail + 1, __ATOMIC_RELEASE);
}

__attribute__((noinline)) static void tracys_way(void)
{
	static const char location[] = "work";

	for (unsigned i = 0; i < PAIRS; i++) {
		queue_put(1, location);
		queue_put(2, NULL);
	}
}

__attribute__((noinline)) static void our_way(void)
{
	static qp_span_site site = QP_SPAN_SITE("work");

	for (unsigned i = 0; i < PAIRS; i++)
		qp_span_end(qp_span_begin(&site));
}

static void with_trace(void)
{
	if (qp_trace_begin(NULL))
		fail("qp_trace_begin");
	our_way();
	qp_trace_end();
}

__attribute__((noinline)) static void nothing(void)
{
	for (unsigned i = 0; i < PAIRS; i++)
		__asm__ volatile("" ::: "memory");
}

static double least_ns(void (*way)(void), bool in_trace)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start, took;

		if (in_trace && qp_trace_begin(NULL))
			fail("qp_trace_begin");
		start = clock_read_ns(CLOCK_MONOTONIC);
		way();
		took = clock_read_ns(CLOCK_MONOTONIC) - start;
		if (in_trace)
			qp_trace_end();
		if (took < least)
			least = took;
	}
	return (double)least / PAIRS;
}

static void compare_ways(void)
{
	static const struct {
		const char *name;
		void (*way)(void);
		bool in_trace;
	} ways[] = {
		{ "an empty loop", nothing, false },
		{ "two readings of the counter", two_ticks, false },
		{ "two of clock_gettime()", two_clocks, false },
		{ "fastrace's way", fastraces_way, false },
		{ "Tracy's way", tracys_way, false },
		{ "qp_span_begin() and _end(), in a trace", our_way, true },
		{ "the same, no trace", our_way, false },
		{ "500 of them with their trace, handed over", with_trace, false },
	};
	double ns[sizeof(ways) / sizeof(*ways)];

	/* Keeps no trace, because only the thread's part is measured. */
	qp_set(NULL, "trace_keep", "slow");
	qp_set(NULL, "trace_keep_min_duration_ns", "3600s");
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if (ways[i].way == with_trace) {
			qp_set(NULL, "trace_keep", "all");
			usleep(100000);
		}
		ns[i] = least_ns(ways[i].way, ways[i].in_trace);
	}
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		printf("  %-44s %6.1f ns  %5.2f of two readings\n", ways[i].name, ns[i], ns[i] / ns[1]);
	printf("  beyond two readings: %.1f ns (budget 5)\n", ns[5] - ns[1]);
}

/* --- a program --------------------------------------------------------------------------------- */

#define REQUESTS 2000
#define REQUEST_NS 10000
#define STEPS 5

static uint64_t step_loops = 1000;

__attribute__((noinline)) static void work(uint64_t loops)
{
	for (volatile uint64_t i = 0; i < loops; i++)
		;
}

__attribute__((noinline)) static void plain_request(void)
{
	for (int i = 0; i < STEPS; i++)
		work(step_loops);
}

__attribute__((noinline)) static void spanned_request(void)
{
	for (int i = 0; i < STEPS; i++) {
		QP_SPAN("step");
		work(step_loops);
	}
}

static void traced_request(void)
{
	if (qp_trace_begin(NULL))
		fail("qp_trace_begin");
	spanned_request();
	qp_trace_end();
}

/* The same without spans in it: see CMakeLists.txt. */
int bare_engine_run(const char *query, const char *id, uint64_t *result, const char **error);

static char engine_query[64]; /* of 5 stages, in 3 queries of the engine's */

static void write_query(void)
{
	snprintf(engine_query, sizeof(engine_query), "both (sum %llu) (sum %llu)",
	         (unsigned long long)step_loops, (unsigned long long)step_loops);
}

static void run_engine(int (*run)(const char *, const char *, uint64_t *, const char **))
{
	const char *error;
	uint64_t result;

	if (run(engine_query, NULL, &result, &error)) {
		fprintf(stderr, "%s: %s\n", engine_query, error);
		exit(1);
	}
}

static void bare_query(void)
{
	run_engine(bare_engine_run);
}

static void spanned_query(void)
{
	run_engine(engine_run);
}

static void traced_query(void)
{
	if (qp_trace_begin(NULL))
		fail("qp_trace_begin");
	spanned_query();
	qp_trace_end();
}

struct program {
	const char *name, *keep, *statements;
	void (*request)(void);
};

static double request_ns(void (*request)(void))
{
	uint64_t start = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);

	for (int i = 0; i < REQUESTS; i++)
		request();
	return (double)(clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - start) / REQUESTS;
}

#define PROGRAMS_MAX 5

/* The first is the baseline of the others; `resize` follows its loops. */
static void compare_programs(const struct program *programs, int count, void (*resize)(void))
{
	void (*plain)(void) = programs[0].request;
	double least[PROGRAMS_MAX];

	step_loops = 100;
	resize();
	for (double ns = request_ns(plain); ns < REQUEST_NS; ns = request_ns(plain)) {
		step_loops = (uint64_t)((double)step_loops * (ns > 2000 ? REQUEST_NS / ns : 2) + 1);
		resize();
	}
	for (int i = 0; i < count; i++)
		least[i] = 1e9;
	for (int round = 0; round < 60; round++)
		for (int i = 0; i < count; i++) {
			double ns;

			qp_set(NULL, "trace_keep", programs[i].keep);
			qp_set(NULL, "trace_statements", programs[i].statements);
			ns = request_ns(programs[i].request);
			least[i] = ns < least[i] ? ns : least[i];
		}
	for (int i = 0; i < count; i++)
		printf("  %-44s %6.0f ns  %+5.2f %%\n", programs[i].name, least[i],
		       (least[i] / least[0] - 1) * 100);
}

static void no_change(void)
{
}

static void compare_loops(void)
{
	static const struct program programs[] = {
		{ "without spans", "all", "off", plain_request },
		{ "5 spans, no trace", "all", "off", spanned_request },
		{ "5 spans in a trace that is left out", "slow", "off", traced_request },
		{ "5 spans in a trace that is kept", "all", "off", traced_request },
	};

	compare_programs(programs, 4, no_change);
}

static void compare_engines(void)
{
	static const struct program programs[] = {
		{ "without spans", "all", "off", bare_query },
		{ "5 spans, no trace", "all", "off", spanned_query },
		{ "5 spans in a trace that is left out", "slow", "off", traced_query },
		{ "5 spans in a trace that is kept", "all", "off", traced_query },
		{ "the same, and its 3 queries as spans", "all", "inside", traced_query },
	};

	compare_programs(programs, 5, write_query);
}

/* --- many spans ---------------------------------------------------------------------------------- */

static uint64_t spans_each, spans_a_trace;

static void record_trace(void)
{
	static qp_span_site outer = QP_SPAN_SITE("outer"), inner = QP_SPAN_SITE("inner");
	qp_span root;

	if (qp_trace_begin(NULL))
		fail("qp_trace_begin");
	root = qp_span_begin(&outer);
	for (uint64_t i = 1; i < spans_a_trace; i++)
		qp_span_end(qp_span_begin(&inner));
	qp_span_end(root);
	qp_trace_end();
}

static void *record_spans(void *unused)
{
	for (uint64_t i = 0; i < spans_each; i += spans_a_trace)
		record_trace();
	return unused;
}

static int print_metric(void *context, const qp_metric *metric)
{
	static const char *const shown[] = { "spans", "spans_dropped", "store_spans", "store_spans_lost",
		                             "ring_dropped" };

	for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
		if (!strcmp(metric->name, shown[i]))
			printf("  %-44s %12lld\n", metric->name, (long long)metric->value);
	if (!strcmp(metric->name, "store_flusher_cpu_time_ns"))
		*(int64_t *)context = metric->value;
	return 0;
}

static void ask(const char *path, const char *name, const char *sql)
{
	sqlite3 *db;
	sqlite3_stmt *stmt = NULL;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) ||
	    sqlite3_prepare_v2(db, sql, -1, &stmt, NULL))
		printf("  %s: %s\n", name, sqlite3_errmsg(db));
	else if (sqlite3_step(stmt) == SQLITE_ROW)
		printf("  %-44s %12s\n", name, sqlite3_column_text(stmt, 0));
	sqlite3_finalize(stmt);
	sqlite3_close(db);
}

static void record_many(const char *path, int threads)
{
	pthread_t *ids = calloc((size_t)threads, sizeof(*ids));
	double spans = (double)threads * (double)spans_each;
	int64_t flusher_ns = 0;
	struct rusage usage;
	struct stat file;

	qp_set(NULL, "trace_wait_ms", "60000");
	qp_set(NULL, "trace_log_max_bytes", "0");
	for (int i = 0; i < threads; i++)
		pthread_create(&ids[i], NULL, record_spans, NULL);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	free(ids);
	if (qp_flush(600000))
		fail("qp_flush");
	qp_metrics(print_metric, &flusher_ns);
	getrusage(RUSAGE_SELF, &usage);
	qp_shutdown();
	stat(path, &file);
	ask(path, "spans in the file", "SELECT sum(count) FROM span_batches");
	ask(path, "traces whose spans are all there",
	    "SELECT count(*) FROM traces WHERE dropped = 0 AND spans = (SELECT max(spans) FROM traces)");
	ask(path, "batches out of order (the root's waits for it)",
	    "SELECT count(*) FROM (SELECT b.first_span < lag(b.first_span) OVER (PARTITION BY b.trace_hi, "
	    "b.trace_lo ORDER BY b.id) AS late FROM (SELECT trace_hi, trace_lo, min(first_span) AS root FROM "
	    "span_batches GROUP BY 1, 2) AS f JOIN span_batches AS b USING (trace_hi, trace_lo) WHERE "
	    "b.first_span <> f.root) WHERE late");
	printf("  %-44s %12.1f\n", "bytes a span (budget 40)", (double)file.st_size / spans);
	printf("  %-44s %12.1f\n", "flusher's CPU time, ns a span (budget 200)", (double)flusher_ns / spans);
	printf("  %-44s %12ld\n", "largest memory, MiB", usage.ru_maxrss / 1024);
}

int main(int argc, char **argv)
{
	char path[] = "/tmp/queryprof-spans-XXXXXX", other[64];
	const qp_config config = { .size = sizeof(config), .trace_log_path = path };
	int fd = mkstemp(path);

	close(fd);
	if (qp_init(&config))
		fail("qp_init");
	if (argc > 2) {
		spans_each = spans_a_trace = strtoull(argv[2], NULL, 10);
		if (argc > 3)
			spans_a_trace = strtoull(argv[3], NULL, 10);
		printf("%s threads, %s spans each\n", argv[1], argv[2]);
		record_many(path, (int)strtol(argv[1], NULL, 10));
	} else {
		printf("a span\n");
		compare_ways();
		printf("a request of 10 us, a loop\n");
		compare_loops();
		printf("the same, a query of an engine\n");
		compare_engines();
		qp_shutdown();
	}
	unlink(path);
	for (int i = 0; i < 2; i++) {
		snprintf(other, sizeof(other), "%s%s", path, i ? "-shm" : "-wal");
		unlink(other);
	}
	return 0;
}
