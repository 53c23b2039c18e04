/* SPDX-License-Identifier: Apache-2.0 */
#include "load.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../lib/spin.h"
#include "queryprof.h"

#define CPU_NS 200000      /* of a query, approximately, if all threads use: */
#define USED 0.6           /* of one processor */
#define BLOCK_NS 100000000 /* of one text */
#define STACK_BYTES 65536

const char *const load_texts[LOAD_TEXTS] = { "half", "thirty", "fifteen", "five" };
static const int cycle[] = { 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0, 1, 0, 2, 0, 1 };
#define CYCLE (int)(sizeof(cycle) / sizeof(*cycle))

struct worker {
	pthread_t thread;
	int index;
	uint64_t random;
	struct load_truth truth;
};

double load_used = USED;

static struct worker *workers;
static int worker_count;
static volatile bool stopping;

static int64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int64_t load_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

void load_pause(int64_t ns)
{
	int64_t end = load_now_ns() + ns;
	const struct timespec time = { end / 1000000000, end % 1000000000 };

	/* Sleeps until the end. A query that a sample's signal ended would never end before its sample. */
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
		;
}

static double next_random(struct worker *worker)
{
	worker->random ^= worker->random << 13;
	worker->random ^= worker->random >> 7;
	worker->random ^= worker->random << 17;
	return (double)(worker->random >> 11) / (double)(UINT64_C(1) << 53);
}

static void run_query(struct worker *worker, int text)
{
	const qp_query query = { .size = sizeof(query), .text = load_texts[text] };
	double size = 0.5 + next_random(worker);
	double cpu_ns = CPU_NS / USED * load_used, waits = CPU_NS / USED * worker_count - cpu_ns;

	int64_t before = load_now_ns();
	qp_query_begin(&query);
	int64_t cpu = read_clock(CLOCK_THREAD_CPUTIME_ID), start = load_now_ns();
	spin((uint64_t)(cpu_ns * size));
	load_pause((int64_t)(waits * size));
	worker->truth.real_ns[text] += (double)(load_now_ns() - start);
	worker->truth.cpu_ns[text] += (double)(read_clock(CLOCK_THREAD_CPUTIME_ID) - cpu);
	qp_query_end(0, NULL);
	worker->truth.around_ns[text] += (double)(load_now_ns() - before);
	worker->truth.queries++;
}

static void *work(void *of)
{
	struct worker *worker = of;
	int64_t began = load_now_ns();

	for (int block = worker->index; !stopping; block++) {
		int64_t end = load_now_ns() + (int64_t)(BLOCK_NS * (0.5 + next_random(worker)));
		do
			run_query(worker, cycle[block % CYCLE]);
		while (!stopping && load_now_ns() < end);
	}
	worker->truth.between_ns = (double)(load_now_ns() - began);
	for (int text = 0; text < LOAD_TEXTS; text++)
		worker->truth.between_ns -= worker->truth.real_ns[text];
	return NULL;
}

void load_begin(int threads, uint64_t seed)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	stopping = false;
	worker_count = threads;
	workers = calloc((size_t)threads, sizeof(*workers));
	for (int i = 0; workers && i < threads; i++) {
		workers[i].index = i;
		workers[i].random = seed * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)i * 7919 + 1;
		if (pthread_create(&workers[i].thread, &attributes, work, &workers[i])) {
			perror("pthread_create");
			exit(1);
		}
	}
	pthread_attr_destroy(&attributes);
}

void load_end(struct load_truth *truth)
{
	stopping = true;
	for (int i = 0; i < worker_count; i++) {
		pthread_join(workers[i].thread, NULL);
		for (int text = 0; text < LOAD_TEXTS; text++) {
			truth->real_ns[text] += workers[i].truth.real_ns[text];
			truth->around_ns[text] += workers[i].truth.around_ns[text];
			truth->cpu_ns[text] += workers[i].truth.cpu_ns[text];
		}
		truth->between_ns += workers[i].truth.between_ns;
		truth->queries += workers[i].truth.queries;
	}
	free(workers);
	workers = NULL;
}

bool load_read(const char *path, const char *type, struct load_seen *seen)
{
	sqlite3_stmt *statement = NULL;
	sqlite3 *db = NULL;
	int code = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL);

	*seen = (struct load_seen){ .samples = 0 };
	if (!code)
		code = sqlite3_prepare_v2(
			db,
			"SELECT x.query, total(s.weight * r.period_ns),"
			" total(1.0 * s.weight * r.period_ns * s.weight * r.period_ns), count(*) FROM "
			"samples AS s"
			" JOIN series AS r ON r.id = s.series JOIN queries AS q ON q.id = s.query"
			" JOIN statements AS x ON x.id = q.statement WHERE r.trace_type = ?1 GROUP BY 1",
			-1, &statement, NULL);
	if (!code)
		sqlite3_bind_text(statement, 1, type, -1, SQLITE_STATIC);
	while (!code && sqlite3_step(statement) == SQLITE_ROW) {
		for (int text = 0; text < LOAD_TEXTS; text++) {
			if (strcmp((const char *)sqlite3_column_text(statement, 0), load_texts[text]) != 0)
				continue;
			seen->sum[text] = sqlite3_column_double(statement, 1);
			seen->square[text] = sqlite3_column_double(statement, 2);
			seen->samples += sqlite3_column_int64(statement, 3);
		}
	}
	if (code)
		fprintf(stderr, "%s: %s\n", path, sqlite3_errmsg(db));
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return code == SQLITE_OK;
}

double load_value(const struct load_seen *seen)
{
	double sum = 0, square = 0;

	for (int text = 0; text < LOAD_TEXTS; text++) {
		sum += seen->sum[text];
		square += seen->square[text];
	}
	return sum > 0 ? square / sum : 0;
}

struct asked {
	const char *name;
	int64_t value;
};

static int look_at(void *of, const qp_metric *metric)
{
	struct asked *asked = of;

	if (strcmp(metric->name, asked->name) != 0)
		return 0;
	asked->value = metric->value;
	return 1;
}

int64_t load_metric(const char *name)
{
	struct asked asked = { .name = name, .value = -1 };

	qp_metrics(look_at, &asked);
	return asked.value;
}

static int add_up(void *of, const qp_metric *metric)
{
	static const struct {
		const char *name;
		int sign;
	} parts[] = {
		{ "query_profiler_runs", 1 }, { "samples_taken", 1 },    { "samples", -1 },
		{ "samples_dropped", -1 },    { "signals_idle", -1 },    { "signals_asked", -1 },
		{ "signals_late", -1 },       { "signals_foreign", -1 }, { "signals_reentered", -1 },
	};
	int64_t *sum = of;

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (!strcmp(metric->name, parts[i].name))
			*sum += parts[i].sign * metric->value;
	return 0;
}

int64_t load_ledger_unknown(void)
{
	int64_t sum = 0;

	qp_metrics(add_up, &sum);
	return sum;
}
