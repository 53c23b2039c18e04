/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/runs/recent.h"

#include "sqlite/runs/end.h"
#include "timers/nesting.h"

struct run_call recent_resign(struct recent_call call, const struct host_library *library, const void *frame)
{
	return (struct run_call){ .call = { .calling = call.calling,
		                            .place = call.calling->places,
		                            .number = call.number,
		                            .library = library,
		                            .frame = frame },
		                  .run = call.run };
}

ON_THE_WAY bool recent_end(struct run *run, struct thread *thread, struct calling *calling, uint64_t number,
                           int rc)
{
	if (thread != thread_current || calling->used != 1 || call_place_number(calling->places) != number ||
	    !runs_is_own(run, number) || thread->nesting != 1 || thread->queries[0].number != run->tag ||
	    !sampler_ring())
		return false;
	nesting_set(thread, 0);
	query_leave(&run->query, thread);
	run->tag_thread = NULL;
	if (rc != SQLITE_ROW) {
		run_end(run, (struct run_result){ .thread = thread, .rc = rc });
	} else {
		run->query.rows++;
		runs_give_back_private(run, thread);
	}
	recent_leave_place(calling);
	return true;
}
