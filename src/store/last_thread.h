/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose first thread has called pthread_exit() ends with its last thread. queryprof's threads must
 * not keep it alive.
 */
#pragma once

#include <stdbool.h>

#include "store/control/control.h"

/* On a thread of the host: starts the thread that watches for the end of the last one, if necessary. False:
 * none was started. */
bool last_thread_watch(void) REQUIRES(store_control.lock);

/* When the store may have no threads: waits for the end of that thread. */
void last_thread_await_watch(void);
