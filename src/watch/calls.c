#include "watch/calls.h"

#include <stdlib.h>
#include <string.h>

#include "watch/runs.h"
#include "sampler/sampler.h"

static void write_label(struct run *run, const struct call_text *text)
{
	const char *parts[] = { text->schema ? text->schema : "main", text->table, text->column };
	size_t size = sizeof run->label;

	sqlite3_snprintf((int)size, run->label, "%s(%s", text->function, parts[0]);
	for (size_t i = 1; i < sizeof parts / sizeof *parts && parts[i]; i++) {
		size_t used = strlen(run->label);

		sqlite3_snprintf((int)(size - used), run->label + used, ".%s", parts[i]);
	}
	/* A long name is cut, the end of the call is there. */
	if (strlen(run->label) > size - 2)
		run->label[size - 2] = 0;
	strcat(run->label, ")");
}

static struct run *begin(struct query_step *step, struct session *session)
{
	if (!session || session->traced || !runs_wanted(session) || !(step->thread = sampler_thread()))
		return NULL;
	return step->run = runs_begin_call(session, step, step->thread);
}

static void enter(const struct query_step *step, const char *text, const char *database, const void *frame)
{
	step->run->query.text = text;
	step->run->query.database = database;
	query_show(&step->run->query);
	queries_enter_run(step->run, step->thread, frame);
}

void calls_begin(struct query_step *step, sqlite3 *db, const struct call_text *text, const void *frame)
{
	*step = (struct query_step){ 0 };
	if (!queries_at_top(frame) || !begin(step, session_follow(db)))
		return;
	write_label(step->run, text);
	enter(step, step->run->label, sqlite3_db_filename(db, text->schema ? text->schema : "main"), frame);
}

void calls_begin_exec(struct query_step *step, sqlite3 *db, const char *sql, const void *frame)
{
	*step = (struct query_step){ 0 };
	if (queries_idle() || !queries_at_top(frame) || !begin(step, session_follow(db)))
		return;
	strcpy(step->run->label, "sqlite3_exec()");
	enter(step, sql, step->run->session->database, frame);
}

void calls_end(const struct query_step *step, int rc)
{
	if (!step->run)
		return;
	queries_leave_run(step->thread);
	runs_end(step->run, step->thread, rc);
}

void calls_opened(const struct query_step *step, const void *handle, int rc)
{
	if (!handle) {
		calls_end(step, rc);
	} else if (step->run) {
		queries_leave_run(step->thread);
		runs_rename(step->run, handle);
	}
}

void calls_use(struct query_step *step, const void *handle, const void *frame)
{
	struct run *run;

	*step = (struct query_step){ 0 };
	if (!handle || !queries_at_top(frame) || !(run = runs_find(handle)) || run->stmt ||
	    !(step->thread = sampler_thread()))
		return;
	step->run = run;
	query_continue(&run->query, step->thread);
	queries_enter_run(run, step->thread, frame);
}

void calls_used(const struct query_step *step)
{
	if (step->run)
		queries_leave_run(step->thread);
}

/* A close that had nothing to do is no line, even where all queries are. */
#define CLOSE_MIN_NS 1000000

/* The session goes in the middle of the call, the connection at its end: what the run
 * needs of both is kept apart. */
void calls_close(struct closing_call *closing, sqlite3 *db, const void *frame)
{
	struct session *session;

	closing->step = (struct query_step){ 0 };
	closing->database = NULL;
	if (queries_idle() || !db || !queries_at_top(frame) || !(session = session_of(db)))
		return;
	closing->session = *session;
	closing->session.open_runs = 0;
	if (closing->session.settings.log_queries_min_query_duration_ns < CLOSE_MIN_NS)
		closing->session.settings.log_queries_min_query_duration_ns = CLOSE_MIN_NS;
	if (!begin(&closing->step, &closing->session))
		return;
	strcpy(closing->step.run->label, "sqlite3_close()");
	closing->database = session->database ? strdup(session->database) : NULL;
	enter(&closing->step, closing->step.run->label, closing->database, frame);
}

void calls_closed(struct closing_call *closing, int rc)
{
	calls_end(&closing->step, rc);
	free(closing->database);
}
