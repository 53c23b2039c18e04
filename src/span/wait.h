/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waits of queries as spans: children of what runs on the thread.
 */
#pragma once

#include <stdint.h>

#include "wire/wait.h"

/* A wait of the calling thread that was measured for a query has ended. Does nothing outside a
 * trace, or if statements are not spans. Async-signal-safe, because a host's handler may wait,
 * too. */
void span_wait_put(uint64_t start_ns, const struct wait_field *wait);
