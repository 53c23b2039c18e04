/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/library/idle.h"

uint32_t sessions_watched;

void sessions_watch_more(int reasons)
{
	__atomic_add_fetch(&sessions_watched, (uint32_t)reasons, __ATOMIC_RELAXED);
}
