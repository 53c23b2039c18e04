/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the hooks have anything to do.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* No session samples and no run is open, so hooks have nothing to do. Inline, because it is the
 * whole cost for a host with its timers off. */
extern uint32_t sessions_watched __attribute__((visibility("hidden")));

static inline bool sessions_idle(void)
{
	/* Relaxed: a query that begins while sampling is turned on may be missed. */
	return __atomic_load_n(&sessions_watched, __ATOMIC_RELAXED) == 0;
}

/* One more reason, or one less, for the hooks to look. */
void sessions_watch_more(int reasons);
