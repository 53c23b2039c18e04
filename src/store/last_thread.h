/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose first thread has called pthread_exit() ends with its last one. queryprof's must not keep it
 * alive.
 */
#pragma once

#include <stdbool.h>

#include "store/control/control.h"

/* On a thread of the host: starts the thread that watches for the end of the last one, if necessary. False:
 * none was started. */
bool last_thread_watch(void) REQUIRES(store_control.lock);

/* If the store may have no threads: waits for its end. */
void last_thread_await_watch(void);
