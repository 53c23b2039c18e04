/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries of engines other than SQLite: qp_query_begin() / qp_query_end(), and the
 * small functions for code that only wants to unwind.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/lock.h"
#include "entry/process.h"
#include "handler/running.h"
#include "base/code_map.h"
#include "label/pairs.h"
#include "modules/publish.h"
#include "query/look.h"
#include "query/statement_stats.h"
#include "sampler/push.h"
#include "sampler/threads.h"
#include "settings/settings.h"
#include "store/store.h"

/* The handler counts in `run`, so the memory of an engine_query is recycled and
 * never freed. */
struct engine_query {
	struct query_run run;
	struct engine_query *outer; /* or the next free one */
	struct thread *thread;
	uint64_t tag;
	struct session_settings settings;
	char *text, *database, *query_id;
};

static struct engine_query *unused;
LOCK_DEFINE(unused_lock, LOCK_ENGINE);
static __thread struct engine_query *innermost;

static struct engine_query *query_new(void)
{
	struct engine_query *query;

	pthread_mutex_lock(&unused_lock);
	query = unused;
	if (query)
		unused = query->outer;
	pthread_mutex_unlock(&unused_lock);
	return query ? query : calloc(1, sizeof *query);
}

static void query_recycle(struct engine_query *query)
{
	query_hide(&query->run);
	span_run_abandon(&query->run.span, query->settings.log_queries);
	free(query->text);
	free(query->database);
	free(query->query_id);
	query->text = query->database = query->query_id = NULL;
	pthread_mutex_lock(&unused_lock);
	query->outer = unused;
	unused = query;
	pthread_mutex_unlock(&unused_lock);
}

static bool copy_text(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return !from || *to;
}

static int begin(const qp_query *given)
{
	struct query_tag tag = { .mutex_owner = NULL };
	const struct query_tag *around;
	bool waits;
	struct engine_query *query;
	struct thread *thread;

	if (given->size < sizeof *given)
		return error_set(QP_INVALID, "qp_query.size = %zu: set it to sizeof(qp_query), %zu",
		                 given->size, sizeof *given);
	if (given->query_id && strlen(given->query_id) > QUERY_ID_MAX)
		return error_set(QP_INVALID, "qp_query.query_id has %zu bytes: allowed are up to %d",
		                 strlen(given->query_id), QUERY_ID_MAX);
	thread = sampler_thread();
	query = thread ? query_new() : NULL;
	if (!query)
		return error_set(QP_NOMEM, "qp_query_begin: no memory");
	if (!copy_text(&query->text, given->text) || !copy_text(&query->database, given->database) ||
	    !copy_text(&query->query_id, given->query_id)) {
		query_recycle(query);
		return error_set(QP_NOMEM, "qp_query_begin: no memory");
	}
	settings_defaults(&query->settings);
	query->thread = thread;
	query->outer = innermost;
	innermost = query;
	store_start(); /* samples will be written */
	query->run.text = query->text;
	query->run.database = query->database;
	query->run.query_id = query->query_id;
	query->run.is_logged = query->settings.log_queries;
	query_start(&query->run, thread);
	if (query->settings.labels[0])
		query->run.counts.labels =
			label_set_number(query->settings.labels, strlen(query->settings.labels));
	around = query_running(thread, (uintptr_t)__builtin_frame_address(0), &waits);
	if (around)
		query_set_around(&query->run, around->counts->start.initial, around->key);
	query_show(&query->run);
	tag.key = query->run.key;
	tag.counts = &query->run.counts;
	memcpy(tag.period_ns, query->settings.period_ns, sizeof tag.period_ns);
	tag.off_cpu_period_ns = query->settings.off_cpu_period_ns;
	query_start_clocks(&query->run, thread);
	query->tag = sampler_push(thread, &tag);
	return QP_OK;
}

int qp_query_begin(const qp_query *query)
{
	const qp_query nameless = { .size = sizeof nameless };

	if (!process_running())
		return error_set(QP_NOT_RUNNING,
		                 "qp_query_begin: queryprof is not running, call qp_init() first");
	return begin(query ? query : &nameless);
}

static bool is_worth_logging(const struct engine_query *query)
{
	for (int type = 0; type < TRACE_TYPES; type++)
		if (__atomic_load_n(&query->run.counts.samples[type], __ATOMIC_RELAXED))
			return true;
	return query_lasted(&query->run, query->settings.log_queries_min_query_duration_ns);
}

static void record_end(struct engine_query *query, const struct thread *thread, int64_t exception_code,
                       const char *exception)
{
	const struct statement_name name = { query->text, query->database };
	const struct query_end end = {
		.query_id = query->query_id,
		.query = query->text,
		.database = query->database,
		.work.exception_code = exception_code,
		.exception = exception,
		.off_cpu_period_ns = query->settings.off_cpu_period_ns,
	};
	struct statement_run counted;
	uint64_t statement = statement_stats_find(&name);

	const bool is_logged =
		is_worth_logging(query) ||
		(exception_code && statement_stats_is_first_failure(statement, (int)exception_code));
	const struct query_span_end span = { statement, is_logged, false, exception_code != 0 };

	query_sums(&query->run, &end.work, &counted);
	statement_stats_add(statement, thread ? thread->id : 0, &counted);
	query_end_span(&query->run, &span);
	if (is_logged)
		query_finish(&query->run, &end);
}

int qp_query_end(int64_t exception_code, const char *exception)
{
	struct engine_query *query = innermost;
	struct thread *thread = sampler_thread();

	if (!query)
		return error_set(QP_NOT_RUNNING,
		                 "qp_query_end: no query of qp_query_begin() runs on this thread");
	sampler_remove(query->thread, query->tag);
	if (thread)
		query_leave(&query->run, thread);
	innermost = query->outer;
	if (query->settings.log_queries)
		record_end(query, thread, exception_code, exception);
	query_recycle(query);
	return QP_OK;
}

int qp_unwind(const void *ucontext, uint64_t *trace, int max)
{
	const struct thread *thread = thread_current;
	const struct unwind_stack unknown = { 0 };
	/* The sampler does not count a handler of the host's. No memo, as its signal may have
	 * interrupted a sample of the same thread. */
	const unsigned side = publish_enter_reader();
	struct unwind_result result =
		unwind_trace(ucontext, thread ? &thread->stack : &unknown, NULL, trace, max);

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
