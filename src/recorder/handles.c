/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries that many threads work for at the same time: qp_query_start() to qp_query_finish(), and the
 * context that a task carries from one thread to another.
 *
 * A thread is inside one handle at a time and has its tag. Entering reads no clock, because the
 * query's CPU time is the time that its samples represent.
 */
#include "base/error.h"
#include "recorder/engine_query.h"
#include "recorder/process.h"
#include "handler/labels.h"
#include "span/context.h"
#include "span/handle.h"
#include "timers/push.h"
#include "timers/threads.h"

/* The handles that the calling thread is inside of. */
static __thread struct {
	struct qp_query_handle *handle; /* NULL: none */
	struct thread *thread;
	uint64_t tag;
} inside;

qp_query_handle *qp_query_start(const qp_query *query)
{
	qp_query_handle *handle;

	return engine_query_begin(query, "qp_query_start", true, &handle) ? NULL : handle;
}

/* False: its query has ended, and the memory is unused or belongs to a query of qp_query_begin(). */
static bool is_begun(const struct qp_query_handle *handle)
{
	return handle->is_shared && handle->run.key.lo;
}

/* --- threads ------------------------------------------------------------------------------ */

static void detach(void)
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
	/* Relaxed: they are counted after all have left. */
	if (!(__atomic_load_n(&handle->threads[bit / 64], __ATOMIC_RELAXED) >> bit % 64 & 1))
		__atomic_fetch_or(&handle->threads[bit / 64], 1ull << bit % 64, __ATOMIC_RELAXED);
}

static void move_to(struct qp_query_handle *handle)
{
	if (handle == inside.handle)
		return;
	detach();
	if (handle && is_begun(handle))
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
		__atomic_load_n(&run->counts.weights[SAMPLE_CPU], __ATOMIC_RELAXED) *
		handle->settings.period_ns[TIMER_CPU];
	run->threads = 0;
	for (size_t i = 0; i < sizeof(handle->threads) / sizeof(*handle->threads); i++)
		run->threads += (uint32_t)__builtin_popcountll(handle->threads[i]);
}

int qp_query_finish(qp_query_handle *handle, int64_t exception_code, const char *exception)
{
	struct thread *thread = sampler_thread();

	if (!handle || !is_begun(handle))
		return error_set(QP_INVALID, "qp_query_finish: %s",
		                 handle ? "the handle's query has already ended" : "no handle");
	if (inside.handle == handle)
		detach();
	if (thread && handle->settings.log_queries) {
		sum_up(handle, thread);
		engine_query_record(handle, thread, exception_code, exception);
	}
	engine_query_give(handle);
	return QP_OK;
}

/* --- contexts ----------------------------------------------------------------------------- */

/* A context is taken along to tasks, or was there before one: then its spans wait on the thread. */
enum {
	CONTEXT_BEFORE = 1,
	CONTEXT_JOINED = 2, /* and the new context has a part of its own trace */
	CONTEXT_DEPTH = 8,  /* from this bit on: the thread's previous traces */
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
		span = qp_span_fork();
		context.trace_hi = span.trace_hi;
		context.trace_lo = span.trace_lo;
		context.span = span.span;
	}
	return context;
}

/* The thread switches to the context's trace. A context without a trace has no part in the thread's trace. */
static uint64_t move_spans(const qp_context *to)
{
	const qp_span_handle span = { .trace_hi = to->trace_hi, .trace_lo = to->trace_lo, .span = to->span };
	uint64_t depth;

	/* What the task has left ends, too; it may have ended its part itself. */
	if (to->flags & CONTEXT_JOINED)
		context_end_to((uint32_t)(to->flags >> CONTEXT_DEPTH));
	depth = context_depth();
	if (to->flags & CONTEXT_BEFORE || !(qp_span_here || to->trace_hi || to->trace_lo) ||
	    !process_running() || handle_join(span))
		return CONTEXT_BEFORE;
	return CONTEXT_BEFORE | CONTEXT_JOINED | depth << CONTEXT_DEPTH;
}

qp_context qp_context_set(qp_context context)
{
	qp_context before = context_here();
	bool is_there = context.query && context.query->run.key.lo == context.query_key;

	before.flags = move_spans(&context);
	/* A sample in between belongs to no query, instead of one with the other query's labels. */
	if (context.labels != labels_entered)
		detach();
	HANDLER_BARRIER();
	labels_entered = context.labels;
	HANDLER_BARRIER();
	move_to(is_there ? context.query : NULL);
	return before;
}
