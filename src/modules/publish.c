/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers outside the sampler's handlers count themselves (publish_enter_reader). A new reader counts
 * itself on the open side. A turn opens the other side, so the readers of the first only leave. A
 * reader may choose a side just before the turn and count itself just after it, hence the second
 * turn. Sequentially consistent: the reader's count comes before its load of the map.
 */
#include "modules/publish.h"

#include "base/lock.h"
#include "handler/unwind/unwind.h"
#include "timers/quiesce.h"

/* Programs without the sampler have no handlers to wait for. */
#pragma weak sampler_quiesce

LOCK_DEFINE(turning, LOCK_CODE_MAPS);
BOUNDED_WAIT_DEFINE(for_readers, "a code map that is replaced: its readers", NS_PER_S,
                    "nothing, so it looks every 0.1 ms; a reader takes microseconds");
#define NAP_NS 100000

/* A reader counts itself on the open one of two sides. */
static uint32_t open_side, readers[2];

unsigned publish_enter_reader(void)
{
	const unsigned side = __atomic_load_n(&open_side, __ATOMIC_SEQ_CST) & 1;

	__atomic_fetch_add(&readers[side], 1, __ATOMIC_SEQ_CST);
	return side;
}

void publish_leave_reader(unsigned side)
{
	__atomic_fetch_sub(&readers[side], 1, __ATOMIC_SEQ_CST);
}

void publish_code_map(const struct code_map *map)
{
	/* Release: a handler that sees the pointer also sees the table. */
	__atomic_store_n(&code_map_published, map, __ATOMIC_RELEASE);
}

bool publish_wait(void)
{
	static uint64_t patience = NS_PER_S; /* in all */
	const bool handlers_left = !sampler_quiesce || sampler_quiesce();
	struct bounded_wait wait;
	bool readers_left = true;

	lock_acquire(&turning);
	wait = bounded_wait_begin_within(&for_readers, patience);
	for (int turn = 0; turn < 2; turn++) {
		const unsigned side = __atomic_fetch_add(&open_side, 1, __ATOMIC_SEQ_CST) & 1;
		uint32_t inside;

		while ((inside = __atomic_load_n(&readers[side], __ATOMIC_SEQ_CST)) != 0 &&
		       bounded_wait_nap(&wait, NAP_NS))
			;
		readers_left &= inside == 0;
	}
	/* One wait for a reader that never leaves is enough. */
	patience = readers_left ? NS_PER_S : bounded_wait_remaining(&wait);
	lock_release(&turning);
	return handlers_left && readers_left;
}
