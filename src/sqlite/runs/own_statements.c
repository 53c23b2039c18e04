/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/runs/own_statements.h"

#include "query/inspect.h"
#include "sqlite/runs/runs.h"
#include "timers/nesting.h"

static struct run *find_run(const void *frame)
{
	struct calling *calling = sessions_idle() ? NULL : calling_here();
	struct call_slot *slot = calling ? calling_find(calling, frame) : NULL;

	return slot && slot->run ? slot->run : calling ? calling->event_run : NULL;
}

static void disown(struct run *run, const sqlite3 *db)
{
	const struct query_tag *tag;
	struct thread *thread;
	uintptr_t frame;

	if (!run || run->is_queryprofs || run->session->db != db)
		return;
	run->is_queryprofs = true;
	run->tag_slot = NULL; /* another tag than before */
	query_hide(&run->query);
	thread = run->tag_thread;
	if (!thread)
		return; /* nested: the samples belong to the outermost one */
	query_withdraw(&run->query);
	tag = nesting_find(thread, run->tag);
	frame = tag ? tag->frame : 0;
	runs_pop(run);
	runs_push(run, thread, (const void *)frame);
}

void own_statements_disown(const sqlite3 *db)
{
	disown(find_run(__builtin_frame_address(0)), db);
}

void own_statements_disown_prepared(const sqlite3 *db)
{
	struct run *run = find_run(__builtin_frame_address(0));

	/* Inside a step of another statement, a preparation has no run. */
	if (run && runs_is_preparation(run))
		disown(run, db);
}

void own_statements_begin_quiet(struct call *call, const void *frame)
{
	runs_enter_call(call, host_library(), frame);
	if (call->number)
		call->slot->is_quiet = true;
}

void own_statements_end_quiet(struct call *call)
{
	call_leave(call);
}
