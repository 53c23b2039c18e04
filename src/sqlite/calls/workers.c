/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite sorts with its own threads (PRAGMA threads), which exist for one sort. Their work belongs to
 * the query of the thread that made them: they start with that query, and when they end, their CPU
 * time is added to it.
 */
#include "sqlite/calls/workers.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/sys.h"
#include "handler/running.h"
#include "sqlite/library/calling.h"
#include "sqlite/runs/runs.h"
#include "sqlite/runs/trace_callback.h"
#include "sqlite/session/session.h"
#include "timers/push.h"
#include "timers/threads.h"

static int (*real_create_thread)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

struct worker {
	void *(*run)(void *);
	void *argument;
	struct query_tag tag;
};

/* Named for a reader who meets them on a stack, as the wrappers are. */
static void *queryprof_worker(void *context)
{
	struct worker worker = *(struct worker *)context;
	struct thread *thread = sampler_thread();
	void *result;

	free(context);
	if (thread)
		sampler_push_worker(thread, &worker.tag);
	result = worker.run(worker.argument);
	if (thread)
		sampler_pop_worker(thread);
	/* All that the thread has used. The query waits for it to end. */
	query_counts_begin(worker.tag.counts);
	__atomic_add_fetch(&worker.tag.counts->worker_cpu_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID),
	                   __ATOMIC_RELAXED);
	return result;
}

/* For a library inside the program the slot belongs to the program, too: threads made by a
 * function of the host outlive the sort. SQLite makes threads only if a connection allows them. */
static bool is_of_sqlite(void)
{
	struct calling *calling = calling_current;
	const struct call_slot *slot = calling ? calling_find(calling, __builtin_frame_address(0)) : NULL;
	const struct run *run = slot ? slot->run : NULL;

	return !run || !host_is_patched(slot->library) ||
	       (run->session && run->session->db &&
	        sqlite3_limit(run->session->db, SQLITE_LIMIT_WORKER_THREADS, -1) > 0);
}

/* The query that a thread made now works for, NULL: none. The calls of a static copy belong to the
 * program, and a query followed by the trace callback stays on the stack between its steps. */
static const struct query_tag *query_of_worker(void)
{
	struct thread *thread = thread_current;
	const struct query_tag *tag;
	const volatile int *owner;
	bool waits;

	tag = thread ? query_running(thread, (uintptr_t)__builtin_frame_address(0), &waits) : NULL;
	if (!tag || !is_of_sqlite())
		return NULL;
	if (!trace_callback_runs())
		return tag;
	owner = tag->mutex_owner ? *tag->mutex_owner : NULL;
	return owner && *owner == (int)thread->id ? tag : NULL;
}

static int queryprof_create_thread(pthread_t *id, const pthread_attr_t *attributes, void *(*run)(void *),
                                   void *argument)
{
	const struct query_tag *tag = query_of_worker();
	struct worker *worker = tag ? malloc(sizeof(*worker)) : NULL;
	int error;

	if (!worker)
		return real_create_thread(id, attributes, run, argument);
	*worker = (struct worker){ .run = run, .argument = argument, .tag = *tag };
	/* The worker works while its maker holds the connection's mutex. */
	worker->tag.mutex_owner = NULL;
	worker->tag.frame = 0; /* of another stack */
	error = real_create_thread(id, attributes, queryprof_worker, worker);
	if (error)
		free(worker);
	return error;
}

struct import_hook workers_hook(const struct host_library *library)
{
	*(void **)&real_create_thread = dlsym(RTLD_DEFAULT, "pthread_create");
	return (struct import_hook){
		.symbol = "pthread_create",
		.real = (void *)real_create_thread,
		.replacement = (void *)queryprof_create_thread,
		.only_in = (const void *)library->start,
	};
}
