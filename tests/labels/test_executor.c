/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A typical executor in C: a queue, workers, tasks that create tasks, and coroutines that continue as
 * separate tasks. It calls queryprof in two places. A new task captures its creator's context, and the
 * worker enters and leaves that context.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <queryprof.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "../lib/spin.h"

#define WORKERS 4

struct task {
	struct task *next;
	void (*function)(void *argument);
	void *argument;
	qp_context context;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct task *first, **last;
	unsigned unfinished; /* queued and running tasks */
	pthread_t threads[WORKERS];
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .last = &pool.first };

static void add(void (*function)(void *), void *argument)
{
	struct task *task = malloc(sizeof(*task));

	*task = (struct task){ .function = function, .argument = argument, .context = qp_context_get() };
	pthread_mutex_lock(&pool.lock);
	*pool.last = task;
	pool.last = &task->next;
	pool.unfinished++;
	pthread_cond_signal(&pool.changed);
	pthread_mutex_unlock(&pool.lock);
}

static struct task *take(void)
{
	struct task *task;

	while (!(task = pool.first) && pool.unfinished)
		pthread_cond_wait(&pool.changed, &pool.lock);
	if (task && !(pool.first = task->next))
		pool.last = &pool.first;
	return task;
}

static void *work(void *unused)
{
	struct task *task;

	pthread_mutex_lock(&pool.lock);
	while ((task = take())) {
		pthread_mutex_unlock(&pool.lock);
		qp_context before = qp_context_set(task->context);
		task->function(task->argument);
		qp_context_set(before);
		free(task);
		pthread_mutex_lock(&pool.lock);
		if (--pool.unfinished == 0)
			pthread_cond_broadcast(&pool.changed);
	}
	pthread_mutex_unlock(&pool.lock);
	return unused;
}

/* Runs all tasks, and the tasks that they create. */
static void run_all(void)
{
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&pool.threads[i], NULL, work, NULL), 0);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(pool.threads[i], NULL);
	assert_int_equal(pool.unfinished, 0);
}

/* --- the trace file ----------------------------------------------------------------------- */

static char path[] = "/tmp/queryprof-executor-XXXXXX";
static sqlite3 *file;

static int set_up(void **state)
{
	const qp_config config = { .size = sizeof(config), .trace_log_path = path };

	(void)state;
	close(mkstemp(path));
	/* On a busy machine the budget would leave a query too few samples, or none. */
	if (qp_init(&config) || qp_set(NULL, "query_profiler_max_overhead_percent", "0") ||
	    qp_set(NULL, "query_profiler_cpu_time_period_ns", "1000000") || sqlite3_open(path, &file))
		fail_msg("%s", qp_error());
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	sqlite3_close(file);
	qp_shutdown();
	unlink(path);
	for (int i = 0; i < 2; i++) {
		char beside[sizeof(path) + 4];

		snprintf(beside, sizeof(beside), "%s%s", path, i ? "-wal" : "-shm");
		unlink(beside);
	}
	return 0;
}

static int64_t ask(const char *format, ...)
{
	va_list arguments;
	sqlite3_stmt *stmt;
	int64_t number = -1;

	va_start(arguments, format);
	char *sql = sqlite3_vmprintf(format, arguments);
	va_end(arguments);
	assert_int_equal(qp_flush(60000), QP_OK);
	if (sqlite3_prepare_v2(file, sql, -1, &stmt, NULL))
		fail_msg("%s: %s", sql, sqlite3_errmsg(file));
	if (sqlite3_step(stmt) == SQLITE_ROW)
		number = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_free(sql);
	return number;
}

/* --- queries ------------------------------------------------------------------------------ */

#define QUERIES 4

/* A query: samples show its handle's id, and its number from the label set. */
struct query {
	char id[32];
	qp_query_handle *handle;
	qp_label_set *labels;
};

static void start(struct query *query, const char *kind, int number)
{
	const qp_label label = { "number", NULL, number, NULL };

	snprintf(query->id, sizeof(query->id), "%s %d", kind, number);
	query->handle = qp_query_start(
		&(qp_query){ .size = sizeof(qp_query), .text = "of an executor", .query_id = query->id });
	query->labels = qp_labels_new(&label, 1);
	assert_non_null(query->handle);
	assert_non_null(query->labels);
}

/* Adds a task of the query from outside the pool. */
static void add_for(const struct query *query, void (*function)(void *), void *argument)
{
	uint64_t labels = qp_labels_enter(query->labels);
	qp_query_handle *before = qp_query_enter(query->handle);

	add(function, argument);
	qp_query_leave(before);
	qp_labels_leave(labels);
}

/* Every sample belongs to a query and has the query's number. Each query has samples and one row. */
static void finish(struct query *queries, const char *kind)
{
	for (int i = 0; i < QUERIES; i++) {
		qp_labels_free(queries[i].labels);
		assert_int_equal(qp_query_finish(queries[i].handle, 0, NULL), QP_OK);
	}
	assert_int_equal(ask("SELECT count(*) FROM trace_log WHERE query_id GLOB '%s *'"
	                     " AND labels IS NOT '{\"number\":' || substr(query_id, %d) || '}'",
	                     kind, (int)strlen(kind) + 2),
	                 0);
	for (int i = 0; i < QUERIES; i++) {
		assert_true(ask("SELECT count(*) FROM trace_log WHERE query_id = '%s'", queries[i].id) > 0);
		assert_int_equal(ask("SELECT count(*) FROM query_log WHERE query_id = '%s'", queries[i].id),
		                 1);
		assert_int_equal(
			ask("SELECT samples_cpu FROM query_log WHERE query_id = '%s'", queries[i].id),
			ask("SELECT count(*) FROM trace_log WHERE query_id = '%s' AND trace_type = 'CPU'",
		            queries[i].id));
	}
}

/* A task creates the next task of the same query, without knowing the query. */
static void chain(void *left)
{
	spin(1000000);
	if (left)
		add(chain, (char *)left - 1);
}

static void test_tasks(void **state)
{
	struct query queries[QUERIES];

	(void)state;
	for (int i = 0; i < QUERIES; i++) {
		start(&queries[i], "chain", i);
		for (int j = 0; j < 3; j++)
			add_for(&queries[i], chain, (void *)(uintptr_t)80);
	}
	run_all();
	finish(queries, "chain");
}

/* --- coroutines --------------------------------------------------------------------------- */

struct coroutine {
	ucontext_t own, worker;
	char *stack;
	bool ended;
};

static __thread struct coroutine *current;

/* Not inlined, because the thread may be different after a switch. */
__attribute__((noinline)) static struct coroutine *here(void)
{
	return current;
}

static void resume(void *argument)
{
	struct coroutine *one = argument;

	current = one;
	swapcontext(&one->worker, &one->own);
	if (!one->ended)
		add(resume, one);
}

static void body(void)
{
	for (int i = 0; i < 60; i++) {
		spin(5000000);
		swapcontext(&here()->own, &here()->worker);
	}
	here()->ended = true;
	setcontext(&here()->worker);
}

static void test_coroutines(void **state)
{
	struct coroutine ones[QUERIES] = { { .ended = false } };
	struct query queries[QUERIES];

	(void)state;
	for (int i = 0; i < QUERIES; i++) {
		start(&queries[i], "coroutine", i);
		ones[i].stack = malloc(256 * 1024);
		getcontext(&ones[i].own);
		ones[i].own.uc_stack = (stack_t){ .ss_sp = ones[i].stack, .ss_size = 256 * 1024 };
		makecontext(&ones[i].own, body, 0);
		add_for(&queries[i], resume, &ones[i]);
	}
	run_all();
	finish(queries, "coroutine");
	for (int i = 0; i < QUERIES; i++)
		free(ones[i].stack);
}

/* --- spans -------------------------------------------------------------------------------- */

static void inner_task(void *unused)
{
	(void)unused;
	QP_SPAN("inner task");
	spin(100000);
}

static void outer_task(void *unused)
{
	(void)unused;
	QP_SPAN("outer task");
	add(inner_task, NULL);
	add(inner_task, NULL);
	spin(100000);
}

#define CHILDREN                                                                                             \
	"SELECT count(*) FROM span_log AS c JOIN span_log AS p ON p.span_id = c.parent_span_id AND "         \
	"p.trace_id = c.trace_id WHERE c.operation_name = '%s' AND p.operation_name = '%s'"

/* A task's spans are children of the span in which the task was created. */
static void test_spans(void **state)
{
	const qp_context none = qp_context_get();

	(void)state;
	assert_int_equal(qp_trace_begin(NULL), QP_OK);
	{
		QP_SPAN("request");
		for (int i = 0; i < 10; i++)
			add(outer_task, NULL);
		run_all();
		/* A context without a trace does not belong to this trace. */
		qp_context before = qp_context_set(none);
		assert_null(qp_span_here);
		inner_task(NULL);
		qp_context_set(before);
		assert_non_null(qp_span_here);
		/* A context of this trace belongs to it, also on this thread. */
		qp_context own = qp_context_get();
		before = qp_context_set(own);
		{
			QP_SPAN("own");
		}
		qp_context_set(before);
		QP_SPAN("last");
	}
	qp_trace_end();
	assert_null(qp_span_here);
	assert_int_equal(ask(CHILDREN, "outer task", "request"), 10);
	assert_int_equal(ask(CHILDREN, "inner task", "outer task"), 20);
	assert_int_equal(ask(CHILDREN, "own", "request"), 1);
	assert_int_equal(ask(CHILDREN, "last", "request"), 1);
	assert_int_equal(ask("SELECT count(*) FROM span_log WHERE operation_name GLOB '* task'"), 30);
	assert_int_equal(ask("SELECT count(DISTINCT trace_id) FROM span_log"), 1);
}

/* If a task leaves a trace open or ends too many, the thread still returns to its own trace. */
static void test_left_traces(void **state)
{
	qp_context task, before;

	(void)state;
	assert_int_equal(qp_trace_begin(NULL), QP_OK);
	{
		QP_SPAN("makes tasks");
		task = qp_context_get();
	}
	qp_trace_end();
	assert_int_equal(qp_trace_begin(NULL), QP_OK);
	{
		QP_SPAN("runs tasks");
		before = qp_context_set(task);
		assert_int_equal(qp_trace_begin(NULL), QP_OK);
		qp_context_set(before);
		{
			QP_SPAN("behind one that left a trace");
		}
		before = qp_context_set(task);
		qp_trace_end();
		qp_context_set(before);
		{
			QP_SPAN("behind one that ended too much");
		}
	}
	qp_trace_end();
	assert_null(qp_span_here);
	assert_int_equal(ask(CHILDREN, "behind one that left a trace", "runs tasks"), 1);
	assert_int_equal(ask(CHILDREN, "behind one that ended too much", "runs tasks"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tasks),
		cmocka_unit_test(test_coroutines),
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_left_traces),
	};

	return cmocka_run_group_tests_name("label_executor", tests, set_up, tear_down);
}
