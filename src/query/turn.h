/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn is the time from when a thread gets a processor until it gives it up. The thread's flag shows
 * whether a turn has ended (base/switch_flag.h). Turns are numbered: the first code that finds the flag
 * cleared sets it again, and other code must still notice the switch.
 *
 * Without flags, each look finds that the turn has ended. These functions may be called in the host's signal
 * handlers: before the kernel enters one, it aborts the code that must not be interrupted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/switch_flag.h"
#include "handler/thread.h"

/* Whether the turn with this number, once the newest of the calling thread, has not ended. */
static inline bool turn_goes_on(const struct thread *thread, uint64_t number)
{
	return thread->wait.turn == number && switch_flag_is_set();
}

/* The same for the newest turn. If not, another one begins. */
static inline bool turn_renew(struct thread *thread)
{
	const bool goes_on = switch_flag_renew();

	thread->wait.turn += !goes_on;
	return goes_on;
}
