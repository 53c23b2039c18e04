/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries of engines other than SQLite: qp_query_begin() / qp_query_end(), and the
 * small functions for code that only wants to unwind.
 */
#include "base/error.h"
#include "recorder/engine_query.h"
#include "recorder/process.h"
#include "modules/publish.h"
#include "timers/push.h"
#include "timers/threads.h"

static __thread struct qp_query_handle *innermost;

int qp_query_begin(const qp_query *given)
{
	struct qp_query_handle *query;
	int code = engine_query_begin(given, "qp_query_begin", false, &query);

	if (code)
		return code;
	query->next = innermost;
	innermost = query;
	query_start_clocks(&query->run, query->thread);
	query->pushed = sampler_push(query->thread, &query->tag);
	return QP_OK;
}

int qp_query_end(int64_t exception_code, const char *exception)
{
	struct qp_query_handle *query = innermost;
	struct thread *thread = sampler_thread();

	if (!query)
		return error_set(QP_NOT_RUNNING,
		                 "qp_query_end: no query of qp_query_begin() runs on this thread");
	sampler_remove(query->thread, query->pushed);
	if (thread)
		query_leave(&query->run, thread);
	innermost = query->next;
	if (query->settings.log_queries)
		engine_query_record(query, thread, exception_code, exception);
	engine_query_give(query);
	return QP_OK;
}

int qp_unwind(const void *ucontext, uint64_t *addresses, int max)
{
	const struct thread *thread = thread_current;
	const struct unwind_stack unknown = { 0 };
	/* The sampler does not count a handler of the host's. No memo, as its signal may have
	 * interrupted a sample of the same thread. */
	const unsigned side = publish_enter_reader();
	struct unwind_result result =
		unwind_addresses(ucontext, thread ? &thread->stack : &unknown, NULL, addresses, max);

	publish_leave_reader(side);
	return result.truncated ? -result.depth : result.depth;
}

int qp_thread_register(void)
{
	if (!process_running())
		return error_set(QP_NOT_RUNNING,
		                 "qp_thread_register: queryprof is not running, call qp_init() first");
	if (!sampler_thread())
		return error_set(QP_NOMEM, "qp_thread_register: no memory");
	return QP_OK;
}
