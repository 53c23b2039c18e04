/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of code that a signal handler has interrupted (handler/outside.h). interrupted.c and all that it
 * calls are async-signal-safe: the build checks which symbols they need (allowed_symbols.txt).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "interpreter/language.h"

/* Whether a signal handler may call the reader. */
bool interrupted_can_read(const struct frame_reader *reader);

/* The calling thread has frames, which `reader` found for `thread`. They will be found wherever the thread is
 * interrupted later, if the reader may be called there. */
void interrupted_keep(const struct frame_reader *reader, uintptr_t thread);
