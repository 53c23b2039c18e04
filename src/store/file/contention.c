/* SPDX-License-Identifier: Apache-2.0 */
#include "store/file/contention.h"

#include "base/bounded_wait.h"

#define NAP_MS 2
BOUNDED_WAIT_DEFINE(for_process, "the flusher, the reading thread: a lock on the trace file",
                    BOUND_MS(NAP_MS *CONTENTION_NAPS_MAX),
                    "nothing: another process has it, so it looks every 2 ms");
BOUNDED_WAIT_DEFINE(for_turn, "the flusher: another process takes a lock on the trace file",
                    BOUND_MS(NAP_MS + 1), "nothing: it takes 3 ms");

bool contention_nap(const struct contention_limit *limit, int naps, int most)
{
	if (naps >= most || (limit->give_up && limit->give_up(limit->context)))
		return false;
	bounded_wait_pause(&for_process, BOUND_MS(NAP_MS));
	return true;
}

void contention_yield(void)
{
	bounded_wait_pause(&for_turn, BOUND_MS(NAP_MS + 1));
}
