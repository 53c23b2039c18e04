/*
 * Tables of what happens now: system.processes, the queries that run, of all threads of
 * the process.
 *
 * A statement that reads a table of the profiler is the profiler's own: it is in none of
 * them, the one that asks included.
 */
#include "tables.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sampler/query.h"

#define NS_PER_S 1000000000ull

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
};

/* The name that the thread has now; false: there is no such thread, or no /proc. */
static bool read_thread_name(uint32_t thread_id, char name[32])
{
	char path[64];
	ssize_t size;
	int fd;

	snprintf(path, sizeof path, "/proc/self/task/%u/comm", thread_id);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	size = fd < 0 ? -1 : read(fd, name, 31);
	if (fd >= 0)
		close(fd);
	if (size <= 0)
		return false;
	name[size - (name[size - 1] == '\n')] = 0;
	return true;
}

static void add_thread(struct table_rows *rows, uint32_t thread_id)
{
	char name[32];

	table_add_integer(rows, thread_id);
	table_add_text(rows, read_thread_name(thread_id, name) ? name : NULL);
}

/* As query_log has times. */
static void add_time(struct table_rows *rows, uint64_t ns)
{
	time_t seconds = (time_t)(ns / NS_PER_S);
	char text[64];
	struct tm parts;
	size_t size;

	gmtime_r(&seconds, &parts);
	size = strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
	snprintf(text + size, sizeof text - size, ".%06u", (unsigned)(ns % NS_PER_S / 1000));
	table_add_text(rows, text);
}

static void add_process(struct table_rows *rows, const struct query_view *view)
{
	bool is_initial = view->key.hi == view->initial.hi && view->key.lo == view->initial.lo;
	char key[37];

	query_key_text(view->key, key);
	table_add_text(rows, view->query_id ? view->query_id : key);
	if (is_initial && view->query_id) {
		table_add_text(rows, view->query_id);
	} else {
		query_key_text(view->initial, key);
		table_add_text(rows, key);
	}
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
	table_add_integer(rows, (int64_t)view->samples[TRACE_CPU]);
	table_add_integer(rows, (int64_t)view->samples[TRACE_REAL]);
	table_add_text(rows, view->text);
	table_add_text(rows, view->database);
}

static void fill_processes(struct table_rows *rows, struct session *session)
{
	struct query_view view;

	(void)session;
	for (struct query_run *run = NULL; (run = query_next_shown(run, &view));) {
		add_process(rows, &view);
		query_view_free(&view);
	}
}

const struct table table_processes = { .name = "processes", TABLE_COLUMNS(processes_columns), .fill = fill_processes };
