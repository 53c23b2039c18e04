/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of this moment: system.processes, the running queries of all threads of the
 * process; system.stack_trace, the stack of each thread that the sampler knows.
 *
 * A statement that reads a table of the profiler is the profiler's own: neither table
 * shows it.
 */
#include "sql/tables_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/task_file.h"
#include "base/vector.h"
#include "query/inspect.h"
#include "query/wait.h"
#include "store/store.h"
#include "timers/stacks.h"
#include "timers/threads.h"
#include "wire/query_record.h"

/* --- processes ------------------------------------------------------------- */

static const struct column processes_columns[] = {
	{ "query_id", "TEXT", 0 },
	{ "initial_query_id", "TEXT", 0 },
	{ "is_initial_query", "INTEGER", 0 },
	{ "process_id", "INTEGER", 0 },
	{ "thread_id", "INTEGER", 0 },
	{ "thread_name", "TEXT", 0 },
	{ "session_id", "INTEGER", 0 },
	{ "is_running", "INTEGER", 0 }, /* 0: between two of its steps */
	{ "query_start_time_microseconds", "TEXT", 0 },
	{ "elapsed", "REAL", 0 },
	{ "elapsed_ns", "INTEGER", 0 },
	{ "cpu_time_ns", "INTEGER", 0 },
	{ "result_rows", "INTEGER", 0 },
	{ "samples_cpu", "INTEGER", 0 },
	{ "samples_real", "INTEGER", 0 },
	{ "query", "TEXT", 0 },
	{ "database", "TEXT", 0 },
	{ "library_version", "TEXT", 0 },
	{ "library_path", "TEXT", 0 },
	{ "parent_query_id", "TEXT", 0 },
	{ "wait_cause", "TEXT", 0 },
	{ "wait_object", "TEXT", 0 },
	{ "wait_ns", "INTEGER", 0 }, /* of the wait that it is in */
	{ "holder_session_id", "INTEGER", 0 },
	{ "holder_process_id", "INTEGER", 0 },
	{ "holder_thread_id", "INTEGER", 0 },
};

/* The name that the thread has now; false: there is no such thread, or no /proc. */
static bool read_thread_name(uint32_t thread_id, char name[32])
{
	size_t size;

	if (!task_file_read(thread_id, "comm", name, 32))
		return false;
	size = strlen(name);
	name[size - (name[size - 1] == '\n')] = 0;
	return true;
}

static void add_thread(struct table_rows *rows, uint32_t thread_id)
{
	char name[32];

	table_add_integer(rows, thread_id);
	table_add_text(rows, read_thread_name(thread_id, name) ? name : NULL);
}

/* Adds the time as a text in the form that query_log has. */
static void add_time(struct table_rows *rows, uint64_t ns)
{
	time_t seconds = (time_t)(ns / NS_PER_S);
	char text[64];
	struct tm parts;
	size_t size;

	gmtime_r(&seconds, &parts);
	size = strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
	snprintf(text + size, sizeof(text) - size, ".%06u", (unsigned)(ns % NS_PER_S / 1000));
	table_add_text(rows, text);
}

static bool is_none(struct query_key key)
{
	return !key.hi && !key.lo;
}

static bool is_same(struct query_key a, struct query_key b)
{
	return a.hi == b.hi && a.lo == b.lo;
}

/* The query's id as the logs have it: the user's own, which is known while it runs. */
static void add_id(struct table_rows *rows, struct query_key key)
{
	struct query_view view;
	char text[37] = "";
	bool found = false;

	if (!is_none(key))
		query_key_text(key, text);
	for (struct query_run *run = NULL; !found && !is_none(key) && (run = query_next_shown(run, &view));) {
		found = is_same(view.key, key) && view.query_id;
		if (found)
			table_add_text(rows, view.query_id);
		query_view_free(&view);
	}
	if (!found)
		table_add_text(rows, text);
}

/* "" as in query_log, for an engine that is no SQLite. */
static void add_library(struct table_rows *rows, const char *library)
{
	const char *path = library ? strchr(library, ' ') : NULL;
	char version[32] = "";

	if (path)
		snprintf(version, sizeof(version), "%.*s", (int)(path - library), library);
	table_add_text(rows, version);
	table_add_text(rows, path ? path + 1 : "");
}

static void add_wait(struct table_rows *rows, const struct query_view *view)
{
	struct wait_view wait = wait_inspect(view->working, view->entered_ns);

	table_add_text(rows, wait.cause);
	table_add_text(rows, wait.object);
	table_add_integer(rows, (int64_t)wait.ns);
	table_add_integer(rows, wait.holder_session);
	table_add_integer(rows, wait.holder_process);
	table_add_integer(rows, wait.holder_thread);
}

static void add_process(struct table_rows *rows, const struct query_view *view)
{
	bool is_initial = is_same(view->key, view->initial);
	char key[37];

	query_key_text(view->key, key);
	table_add_text(rows, view->query_id ? view->query_id : key);
	if (is_initial)
		table_add_text(rows, view->query_id ? view->query_id : key);
	else
		add_id(rows, view->initial);
	table_add_integer(rows, is_initial);
	table_add_integer(rows, getpid());
	add_thread(rows, view->working ? view->working : view->thread_id);
	table_add_integer(rows, view->session);
	table_add_integer(rows, view->working != 0);
	add_time(rows, view->start_realtime_ns);
	table_add_real(rows, (double)view->elapsed_ns / NS_PER_S);
	table_add_integer(rows, (int64_t)view->elapsed_ns);
	table_add_integer(rows, (int64_t)view->cpu_time_ns);
	table_add_integer(rows, (int64_t)view->rows);
	table_add_integer(rows, (int64_t)view->samples[SAMPLE_CPU]);
	table_add_integer(rows, (int64_t)view->samples[SAMPLE_REAL]);
	table_add_text(rows, view->text);
	table_add_text(rows, view->database);
	add_library(rows, view->library);
	add_id(rows, view->parent);
	add_wait(rows, view);
}

static void fill_processes(struct table_rows *rows, struct session *session)
{
	struct query_view view;

	for (struct query_run *run = NULL; (run = query_next_shown(run, &view));) {
		if (session_may_see(session, view.session))
			add_process(rows, &view);
		query_view_free(&view);
	}
}

/* --- stack_trace ----------------------------------------------------------- */

static const struct column stack_trace_columns[] = {
	{ "thread_name", "TEXT", 0 },
	{ "thread_id", "INTEGER", 0 },
	{ "query_id", "TEXT", 0 },
	{ "trace", "TEXT", 0 },
	{ "truncated", "INTEGER", 0 },
	{ "symbols", "TEXT", COLUMN_HIDDEN | COLUMN_SYMBOLS },
	{ "lines", "TEXT", COLUMN_HIDDEN | COLUMN_LINES },
};

/* The stacks are copied while the sampler collects them, and become rows afterwards. */
struct kept_stack {
	struct thread_stack stack;
	uint64_t *addresses;
};

struct stacks {
	VECTOR(struct kept_stack) kept;
	bool failed;
};

static void keep_stack(void *context, const struct thread_stack *stack)
{
	struct stacks *stacks = context;
	uint64_t *addresses = calloc((size_t)stack->depth + 1, sizeof(*addresses));

	if (!addresses || !vector_push(&stacks->kept, (struct kept_stack){ *stack, addresses })) {
		free(addresses);
		stacks->failed = true;
	} else if (stack->depth) {
		memcpy(addresses, stack->addresses, (size_t)stack->depth * sizeof(*addresses));
	}
}

/* The query of a thread that delivered no stack is found by the thread. */
static void add_query_id(struct table_rows *rows, const struct thread_stack *stack)
{
	struct query_key key = stack->query;
	struct query_view view;

	for (struct query_run *run = NULL;
	     !stack->depth && is_none(key) && (run = query_next_shown(run, &view));) {
		if (view.working == stack->thread_id)
			key = view.key;
		query_view_free(&view);
	}
	add_id(rows, key);
}

static void add_stack(struct table_rows *rows, struct kept_stack *kept)
{
	char text[STACK_FRAMES_MAX * 21 + 3];
	size_t size = 0;

	store_location(kept->addresses, (size_t)kept->stack.depth, kept->stack.generation);
	text[size++] = '[';
	for (int i = 0; i < kept->stack.depth; i++)
		size += (size_t)sprintf(text + size, "%s%lld", i ? "," : "", (long long)kept->addresses[i]);
	text[size++] = ']';
	text[size] = 0;
	table_add_text(rows, text);
}

static void fill_stack_trace(struct table_rows *rows, struct session *session)
{
	struct stacks stacks = { 0 };

	sampler_thread(); /* the calling thread is known from now on */
	sampler_stacks(session->settings.stack_trace_timeout_ms, keep_stack, &stacks);
	for (size_t i = 0; i < stacks.kept.count; i++) {
		struct kept_stack *kept = &stacks.kept.items[i];
		char name[32];

		/* A session may always see its own thread. */
		if (kept->stack.thread_id != (uint32_t)gettid() &&
		    !session_may_see(session, query_key_session(kept->stack.query))) {
			free(kept->addresses);
			continue;
		}
		table_add_text(rows, read_thread_name(kept->stack.thread_id, name) ? name : NULL);
		table_add_integer(rows, kept->stack.thread_id);
		add_query_id(rows, &kept->stack);
		add_stack(rows, kept);
		table_add_integer(rows, kept->stack.truncated);
		table_add_text(rows, NULL); /* symbols, lines: made of the stack */
		table_add_text(rows, NULL);
		free(kept->addresses);
	}
	vector_free(&stacks.kept);
	if (stacks.failed)
		table_add_failed(rows);
}

const struct table table_stack_trace = {
	.name = "stack_trace",
	TABLE_COLUMNS(stack_trace_columns),
	.fill = fill_stack_trace,
};
const struct table table_processes = { .name = "processes",
	                               TABLE_COLUMNS(processes_columns),
	                               .fill = fill_processes };
