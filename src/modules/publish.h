/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code map that handlers use, and the wait until no handler uses an earlier one.
 */
#pragma once

#include <stdbool.h>

#include "base/code_map.h"

/* Handlers use `map` from now on. The previous map, and its rules when the epoch moved on,
 * must stay readable until publish_wait() has returned true. */
void publish_code_map(const struct code_map *map);

/* Waits until no handler reads an earlier map. False when one still seems to: its thread is stopped or
 * starves, a handler of the host may have left a walk by longjmp(), or its thread did not survive fork().
 */
bool publish_wait(void);

/* Around each use of a map outside the sampler's handlers. Async-signal-safe; they nest.
 * Pass the result of the first to the second. */
unsigned publish_enter_reader(void);
void publish_leave_reader(unsigned side);
