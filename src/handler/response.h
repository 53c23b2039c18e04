/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live stack: timers/stacks.c requests it by a signal, the handler writes the response
 * to the thread's slot.
 */
#pragma once

#include "handler/thread.h"

/* Responds to the newest request. Inside the handler. */
void response_write(struct thread *thread, const void *ucontext);

/* Moves with each response of any thread, and wakes the futex's sleepers. */
extern uint32_t response_count __attribute__((visibility("hidden")));
