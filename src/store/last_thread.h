/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose first thread has ended by pthread_exit() ends with its last one. Ours
 * must not be what keeps it.
 */
#pragma once

#include <stdbool.h>

#include "store/control/control.h"

/* On a thread of the host: starts the thread that looks for the end of the last one, if it is wanted.
 * False: there is none. */
bool last_thread_watch(void) REQUIRES(store_control.lock);

/* Once no thread of the store is allowed: waits for its end. */
void last_thread_await_watch(void);
