/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/quiesce.h"

#include <time.h>

#include "base/clock.h"
#include "sampler/slots.h"

#define QUIESCE_LIMIT_NS NS_PER_S
#define QUIESCE_PAUSE_NS 20000

bool sampler_quiesce(void)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + QUIESCE_LIMIT_NS;
	uint32_t slots = slots_count();
	static uint32_t fence;

	/* The caller's stores come before the looks at the handlers. */
	__atomic_fetch_add(&fence, 1, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < slots; i++) {
		struct thread *slot = slots_get(i);
		uint32_t done = __atomic_load_n(&slot->handler.done, __ATOMIC_SEQ_CST);

		while (slot != thread_current &&
		       __atomic_load_n(&slot->handler.is_running, __ATOMIC_SEQ_CST) != 0 &&
		       __atomic_load_n(&slot->handler.done, __ATOMIC_ACQUIRE) == done) {
			struct timespec pause = timespec_of_ns(QUIESCE_PAUSE_NS);
			if (clock_ns(CLOCK_MONOTONIC) > deadline)
				return false;
			clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		}
	}
	return true;
}
