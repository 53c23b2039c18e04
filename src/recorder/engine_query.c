/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder/engine_query.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/lock.h"
#include "handover/storing.h"
#include "recorder/process.h"
#include "label/pairs.h"
#include "query/inspect.h"
#include "query/statement_stats.h"
#include "timers/threads.h"

static struct qp_query_handle *unused;
LOCK_DEFINE(unused_lock, LOCK_ENGINE);

static struct qp_query_handle *pop_unused(void)
{
	struct qp_query_handle *query;

	lock_acquire(&unused_lock);
	query = unused;
	if (query)
		unused = query->next;
	lock_release(&unused_lock);
	return query ? query : calloc(1, sizeof(*query));
}

void engine_query_give(struct qp_query_handle *query)
{
	query_hide(&query->run);
	if (query->is_shared)
		/* A context that is left of it finds another query. */
		query->run.key = (struct query_key){ 0, 0 };
	else
		span_run_abandon(&query->run.span, query->settings.log_queries);
	free(query->text);
	free(query->database);
	free(query->query_id);
	query->text = query->database = query->query_id = NULL;
	lock_acquire(&unused_lock);
	query->next = unused;
	unused = query;
	lock_release(&unused_lock);
}

static bool copy_text(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return !from || *to;
}

static void begin_run(struct qp_query_handle *query, struct thread *thread)
{
	struct query_run *run = &query->run;
	const char *labels = query->settings.labels;

	storing_begin(); /* samples will be written */
	run->text = query->text;
	run->database = query->database;
	run->query_id = query->query_id;
	run->is_logged = query->settings.log_queries;
	run->publish_after_ns = (uint64_t)query->settings.log_queries_min_query_duration_ns;
	query_start(run, thread);
	if (query->is_shared) {
		/* No span, because the query may outlast the trace and end on another thread. */
		span_run_abandon(&run->span, false);
		memset(query->threads, 0, sizeof(query->threads));
		query_share(run);
		run->working = 0;
	}
	if (*labels)
		run->counts.labels = label_set_number(labels, strlen(labels));
	query_find_around(run, thread, __builtin_frame_address(0));
	query->tag = (struct query_tag){ .key = run->key,
		                         .off_cpu_period_ns = query->settings.off_cpu_period_ns,
		                         .counts = &run->counts };
	memcpy(query->tag.period_ns, query->settings.period_ns, sizeof(query->tag.period_ns));
	query_show(run);
}

int engine_query_begin(const qp_query *given, const char *function, bool is_shared,
                       struct qp_query_handle **begun)
{
	const qp_query nameless = { .size = sizeof(nameless) };
	struct qp_query_handle *query;
	struct thread *thread;

	if (!given)
		given = &nameless;
	if (!process_running())
		return error_set(QP_NOT_RUNNING, "%s: queryprof is not running, call qp_init() first",
		                 function);
	if (given->size < sizeof(*given))
		return error_set(QP_INVALID, "qp_query.size = %zu: set it to sizeof(qp_query), %zu",
		                 given->size, sizeof(*given));
	if (given->query_id && strlen(given->query_id) > QUERY_ID_MAX)
		return error_set(QP_INVALID, "qp_query.query_id has %zu bytes; at most %d are allowed",
		                 strlen(given->query_id), QUERY_ID_MAX);
	thread = sampler_thread();
	query = thread ? pop_unused() : NULL;
	if (!query)
		return error_set(QP_NOMEM, "%s: no memory", function);
	query->is_shared = is_shared;
	if (!copy_text(&query->text, given->text) || !copy_text(&query->database, given->database) ||
	    !copy_text(&query->query_id, given->query_id)) {
		engine_query_give(query);
		return error_set(QP_NOMEM, "%s: no memory", function);
	}
	session_defaults(&query->settings);
	query->thread = thread;
	begin_run(query, thread);
	*begun = query;
	return QP_OK;
}

void engine_query_record(struct qp_query_handle *query, const struct thread *thread, int64_t exception_code,
                         const char *exception)
{
	const struct statement_name name = { .text = query->text, .database = query->database };
	const struct query_end end = {
		.query_id = query->query_id,
		.query = query->text,
		.database = query->database,
		.work.exception_code = exception_code,
		.exception = exception,
		.off_cpu_period_ns = query->settings.off_cpu_period_ns,
	};
	const struct query_ending ending = {
		.statement = statement_stats_find(&name),
		.least_ns = (uint64_t)query->settings.log_queries_min_query_duration_ns,
		.exception_code = exception_code,
		.is_without_span = query->is_shared,
	};

	query_count(&query->run, ending.statement, thread ? thread->id : 0, &end.work);
	if (query_end_run(&query->run, &ending))
		query_finish(&query->run, &end);
}
