/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/response.h"

#include "base/sys.h"
#include "handler/labels.h"
#include "handler/running.h"

uint32_t response_count;

void response_write(struct thread *thread, const void *ucontext)
{
	struct thread_response *to = &thread->response;
	bool waits;
	const struct query_tag *tag = query_running(thread, interrupted_stack_pointer(ucontext), &waits);

	/* Sequentially consistent with the requester, which writes `requested` and then checks for
	 * a pending signal: this one responds to the newest request. */
	__atomic_store_n(&to->in_flight, 0, __ATOMIC_SEQ_CST);
	uint32_t requested = __atomic_load_n(&to->requested, __ATOMIC_SEQ_CST);
	if (requested == to->given) {
		thread_count(thread, LEDGER_LATE, 1);
		return;
	}
	struct unwind_result unwound = unwind_addresses(ucontext, &thread->stack, thread_memo(thread),
	                                                to->addresses, STACK_FRAMES_MAX);
	labels_rename(to->addresses, unwound.depth);
	to->depth = unwound.depth;
	to->truncated = unwound.truncated;
	to->generation = unwound.generation;
	to->query = tag ? tag->key : (struct query_key){ 0, 0 };
	thread_count(thread, LEDGER_STACKS, 1);
	/* Release: the response before its number. */
	__atomic_store_n(&to->given, requested, __ATOMIC_RELEASE);
	__atomic_fetch_add(&response_count, 1, __ATOMIC_RELEASE);
	futex_wake(&response_count, 1);
}
