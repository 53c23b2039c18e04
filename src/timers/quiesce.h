/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait for running handlers.
 */
#pragma once

#include <stdbool.h>

/* Waits until every handler that was running at the call has returned. Not from
 * a handler. False after a second of waiting (a thread is stopped by a debugger, or
 * starves): what handlers may use must then stay. */
bool sampler_quiesce(void);
