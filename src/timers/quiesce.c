/* SPDX-License-Identifier: Apache-2.0 */
#include "timers/quiesce.h"

#include "base/bounded_wait.h"
#include "collect/slots.h"

BOUNDED_WAIT_DEFINE(for_handlers, "a code map that is replaced, the sampler's end: handlers of other threads",
                    NS_PER_S, "nothing, so it looks every 20 us; a handler takes microseconds");
#define NAP_NS 20000

bool sampler_quiesce(void)
{
	struct bounded_wait wait = bounded_wait_begin(&for_handlers);
	uint32_t slots = slots_count();
	static uint32_t fence;

	/* The caller's stores come before the checks of the handlers. */
	__atomic_fetch_add(&fence, 1, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < slots; i++) {
		struct thread *slot = slots_get(i);
		uint32_t done = __atomic_load_n(&slot->handler.done, __ATOMIC_SEQ_CST);

		while (slot != thread_current &&
		       __atomic_load_n(&slot->handler.is_running, __ATOMIC_SEQ_CST) != 0 &&
		       __atomic_load_n(&slot->handler.done, __ATOMIC_ACQUIRE) == done)
			if (!bounded_wait_nap(&wait, NAP_NS))
				return false;
	}
	return true;
}
