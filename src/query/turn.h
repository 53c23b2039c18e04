/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread's turn on its processor, as its flag shows it (base/switch_flag.h): as long as a turn goes on, the
 * thread has given its processor up to nobody. Turns have numbers, because whoever finds the flag lost sets
 * it again, and others still want to know of the switch.
 *
 * If no flag is ever set, each look finds that another turn has begun. May be called in a signal handler of
 * the host: before the kernel enters it, it aborts the code that must not be interrupted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/switch_flag.h"
#include "handler/thread.h"

/* Whether the turn of this number, which was the calling thread's newest, goes on. */
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
