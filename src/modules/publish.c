/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers outside the sampler's handlers count themselves (publish_enter_reader). A new reader
 * counts itself on the open side. A turn opens the other side, so the readers of the first
 * only leave. A reader may choose a side just before the turn and count itself just after
 * it: hence the second turn. Sequentially consistent: the reader's count comes before its
 * load of the map.
 */
#include "modules/publish.h"

#include <pthread.h>
#include <time.h>

#include "base/lock.h"
#include "sampler/quiesce.h"
#include "handler/unwind/unwind.h"

/* Programs without the sampler have no handlers to wait for. */
#pragma weak sampler_quiesce

LOCK_DEFINE(turning, LOCK_CODE_MAPS);

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
	/* Release: a handler that sees the pointer sees the table. */
	__atomic_store_n(&code_map_published, map, __ATOMIC_RELEASE);
}

bool publish_wait(void)
{
	const struct timespec pause = { .tv_nsec = 100000 };
	static int patience = 10000; /* a second in all */
	const bool handlers_left = sampler_quiesce == NULL || sampler_quiesce();
	bool readers_left = true;

	pthread_mutex_lock(&turning);
	for (int turn = 0; turn < 2; turn++) {
		const unsigned side = __atomic_fetch_add(&open_side, 1, __ATOMIC_SEQ_CST) & 1;
		uint32_t inside;

		while ((inside = __atomic_load_n(&readers[side], __ATOMIC_SEQ_CST)) != 0 && patience > 0) {
			nanosleep(&pause, NULL);
			patience--;
		}
		readers_left &= inside == 0;
	}
	if (readers_left)
		patience = 10000; /* one wait for a reader that never leaves is enough */
	pthread_mutex_unlock(&turning);
	return handlers_left && readers_left;
}
