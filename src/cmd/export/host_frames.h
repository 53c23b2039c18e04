/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of an interpreter on a stack, which a call stack of the program replaces.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "export/export.h"

/* The range of frames that a call stack replaces: from the interpreter's frame that calls SQLite to the
 * interpreter's frame nearest to the root, with the frames in between, such as those of the language's
 * modules. False: the stack does not have such frames, or SQLite is called again in between. Then it is not
 * known which of the call stack's frames are on which side of that call. */
bool host_frames_find(const struct export_stack *stack, size_t *from, size_t *end);
