/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/run/recent.h"

void recent_resign(struct run_call *call)
{
	call->call.outer = NULL;
	call->call.outer_number = 0;
	call->call.running = call->call.around = NULL;
	call->call.is_quiet = call->call.is_in_exec = false;
	call->is_nested = false;
	call->mutex = NULL;
	call->alone = NULL;
}
