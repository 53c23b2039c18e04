/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries that many threads work for at once: qp_query_start() to qp_query_finish(), and the
 * context that a task takes along from one thread to another.
 *
 * A thread is inside one handle at a time, whose tag it has. To enter costs no clock: what the
 * query has used of its threads' CPU time is what its samples stand for.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/lock.h"
#include "entry/process.h"
#include "handler/labels.h"
#include "label/pairs.h"
#include "query/look.h"
#include "query/statement_stats.h"
#include "queryprof.h"
#include "sampler/push.h"
#include "sampler/threads.h"
#include "settings/settings.h"
#include "span/context.h"
#include "span/handle.h"
#include "store/store.h"

#define THREADS_TOLD_APART 4096u /* slots beyond count as those that they follow by so many */

/* Handlers count in `run`: the memory is used again and never freed. */
struct qp_query_handle {
	struct query_run run;
	struct qp_query_handle *next; /* free one */
	struct session_settings settings;
	struct query_tag tag; /* what each thread pushes */
	char *text, *database, *query_id;
	uint64_t threads[THREADS_TOLD_APART / 64]; /* atomic: the slots that have entered */
};

static struct qp_query_handle *unused;
LOCK_DEFINE(handles_lock, LOCK_HANDLES);

/* The handles that the calling thread is inside of. */
static __thread struct {
	struct qp_query_handle *handle; /* NULL: none */
	struct thread *thread;
	uint64_t tag;
} inside;

static struct qp_query_handle *take_handle(void)
{
	struct qp_query_handle *handle;

	pthread_mutex_lock(&handles_lock);
	handle = unused;
	if (handle)
		unused = handle->next;
	pthread_mutex_unlock(&handles_lock);
	return handle ? handle : calloc(1, sizeof *handle);
}

static void give_handle(struct qp_query_handle *handle)
{
	query_hide(&handle->run);
	/* A context that is left of it finds another query. */
	handle->run.key = (struct query_key){ 0, 0 };
	free(handle->text);
	free(handle->database);
	free(handle->query_id);
	handle->text = handle->database = handle->query_id = NULL;
	pthread_mutex_lock(&handles_lock);
	handle->next = unused;
	unused = handle;
	pthread_mutex_unlock(&handles_lock);
}

static bool copy_text(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return !from || *to;
}

static void begin_run(struct qp_query_handle *handle, struct thread *thread)
{
	struct query_run *run = &handle->run;
	const char *labels = handle->settings.labels;
	const struct query_tag *around;
	bool waits;

	store_start();
	run->text = handle->text;
	run->database = handle->database;
	run->query_id = handle->query_id;
	run->is_logged = handle->settings.log_queries;
	memset(handle->threads, 0, sizeof handle->threads);
	query_start(run, thread);
	query_share(run);
	run->working = 0;
	if (*labels)
		run->counts.labels = label_set_number(labels, strlen(labels));
	around = query_running(thread, (uintptr_t)__builtin_frame_address(0), &waits);
	if (around)
		query_set_around(run, around->counts->start.initial, around->key);
	handle->tag = (struct query_tag){ .key = run->key,
		                          .off_cpu_period_ns = handle->settings.off_cpu_period_ns,
		                          .counts = &run->counts };
	memcpy(handle->tag.period_ns, handle->settings.period_ns, sizeof handle->tag.period_ns);
	query_show(run);
}

qp_query_handle *qp_query_start(const qp_query *query)
{
	const qp_query nameless = { .size = sizeof nameless };
	struct qp_query_handle *handle;
	struct thread *thread;

	if (!query)
		query = &nameless;
	if (!process_running()) {
		error_set(QP_NOT_RUNNING, "qp_query_start: queryprof is not running, call qp_init() first");
		return NULL;
	}
	if (query->size < sizeof *query) {
		error_set(QP_INVALID, "qp_query.size = %zu: set it to sizeof(qp_query), %zu", query->size,
		          sizeof *query);
		return NULL;
	}
	if (query->query_id && strlen(query->query_id) > QUERY_ID_MAX) {
		error_set(QP_INVALID, "qp_query.query_id has %zu bytes: allowed are up to %d",
		          strlen(query->query_id), QUERY_ID_MAX);
		return NULL;
	}
	thread = sampler_thread();
	handle = thread ? take_handle() : NULL;
	if (!handle || !copy_text(&handle->text, query->text) ||
	    !copy_text(&handle->database, query->database) ||
	    !copy_text(&handle->query_id, query->query_id)) {
		if (handle)
			give_handle(handle);
		error_set(QP_NOMEM, "qp_query_start: no memory");
		return NULL;
	}
	settings_defaults(&handle->settings);
	begin_run(handle, thread);
	return handle;
}

/* --- threads ------------------------------------------------------------------------------ */

static void leave(void)
{
	if (inside.handle)
		sampler_remove(inside.thread, inside.tag);
	inside.handle = NULL;
}

static void enter(struct qp_query_handle *handle)
{
	struct thread *thread = sampler_thread();
	uint32_t bit;

	if (!thread)
		return;
	inside.tag = sampler_push(thread, &handle->tag);
	inside.thread = thread;
	inside.handle = handle;
	bit = thread->index % THREADS_TOLD_APART;
	/* Relaxed: they are counted when all have left. */
	if (!(__atomic_load_n(&handle->threads[bit / 64], __ATOMIC_RELAXED) >> bit % 64 & 1))
		__atomic_fetch_or(&handle->threads[bit / 64], 1ull << bit % 64, __ATOMIC_RELAXED);
}

static void move_to(struct qp_query_handle *handle)
{
	if (handle == inside.handle)
		return;
	leave();
	if (handle)
		enter(handle);
}

qp_query_handle *qp_query_enter(qp_query_handle *handle)
{
	struct qp_query_handle *before = inside.handle;

	move_to(handle);
	return before;
}

void qp_query_leave(qp_query_handle *before)
{
	move_to(before);
}

/* --- the end ------------------------------------------------------------------------------ */

static void sum_up(struct qp_query_handle *handle, struct thread *thread)
{
	struct query_run *run = &handle->run;

	run->left_ns = fast_clock_ns(&thread->clock);
	if (run->left_ns < run->start_monotonic_ns)
		run->left_ns = run->start_monotonic_ns;
	run->execution_ns = run->left_ns - run->start_monotonic_ns;
	run->cpu_ns = run->cpu_estimated_ns =
		__atomic_load_n(&run->counts.weights[TRACE_CPU], __ATOMIC_RELAXED) *
		handle->settings.period_ns[TIMER_CPU];
	run->threads = 0;
	for (size_t i = 0; i < sizeof handle->threads / sizeof *handle->threads; i++)
		run->threads += (uint32_t)__builtin_popcountll(handle->threads[i]);
}

static bool is_worth_logging(const struct qp_query_handle *handle)
{
	for (int type = 0; type < TRACE_TYPES; type++)
		if (__atomic_load_n(&handle->run.counts.samples[type], __ATOMIC_RELAXED))
			return true;
	return query_lasted(&handle->run, handle->settings.log_queries_min_query_duration_ns);
}

static void record_end(const struct qp_query_handle *handle, const struct thread *thread,
                       int64_t exception_code, const char *exception)
{
	const struct statement_name name = { handle->text, handle->database };
	const struct query_end end = {
		.query_id = handle->query_id,
		.query = handle->text,
		.database = handle->database,
		.work.exception_code = exception_code,
		.exception = exception,
		.off_cpu_period_ns = handle->settings.off_cpu_period_ns,
	};
	struct statement_run counted;
	uint64_t statement = statement_stats_find(&name);

	query_sums(&handle->run, &end.work, &counted);
	statement_stats_add(statement, thread->id, &counted);
	if (is_worth_logging(handle) ||
	    (exception_code && statement_stats_is_first_failure(statement, (int)exception_code)))
		query_finish(&handle->run, &end);
}

int qp_query_finish(qp_query_handle *handle, int64_t exception_code, const char *exception)
{
	struct thread *thread = sampler_thread();

	if (!handle)
		return error_set(QP_INVALID, "qp_query_finish: no handle");
	if (inside.handle == handle)
		leave();
	if (thread && handle->settings.log_queries) {
		sum_up(handle, thread);
		record_end(handle, thread, exception_code, exception);
	}
	give_handle(handle);
	return QP_OK;
}

/* --- contexts ----------------------------------------------------------------------------- */

/* A context is taken along to tasks, or was there before one: then its spans wait on the thread. */
enum {
	CONTEXT_BEFORE = 1,
	CONTEXT_JOINED = 2, /* and what came has a part of a trace of its own */
};

static qp_context context_here(void)
{
	const struct qp_query_handle *handle = inside.handle;

	return (qp_context){ .labels = labels_entered,
		             .query = inside.handle,
		             .query_key = handle ? handle->run.key.lo : 0 };
}

qp_context qp_context_get(void)
{
	qp_context context = context_here();
	qp_span_handle span;

	if (qp_span_here) {
		span = handle_fork();
		context.trace_hi = span.trace_hi;
		context.trace_lo = span.trace_lo;
		context.span = span.span;
	}
	return context;
}

/* The thread goes over to the context's trace. One without a trace has no part in that of the thread. */
static uint64_t move_spans(const qp_context *to)
{
	const qp_span_handle span = { .trace_hi = to->trace_hi, .trace_lo = to->trace_lo, .span = to->span };

	if (to->flags & CONTEXT_JOINED)
		context_end();
	if (to->flags & CONTEXT_BEFORE || !(qp_span_here || to->trace_hi || to->trace_lo) ||
	    !process_running() || handle_join(span))
		return CONTEXT_BEFORE;
	return CONTEXT_BEFORE | CONTEXT_JOINED;
}

qp_context qp_context_set(qp_context context)
{
	qp_context before = context_here();
	bool is_there = context.query && context.query->run.key.lo == context.query_key;

	before.flags = move_spans(&context);
	/* A sample in between is of no query, and not of one with the other's labels. */
	if (context.labels != labels_entered)
		leave();
	HANDLER_BARRIER();
	labels_entered = context.labels;
	HANDLER_BARRIER();
	move_to(is_there ? context.query : NULL);
	return before;
}
