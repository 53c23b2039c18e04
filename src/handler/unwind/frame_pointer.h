/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The step from a frame whose code has no unwind information: in programs built without it (bun,
 * deno), and in code compiled at run time (V8, JavaScriptCore). Both keep frame pointers. That proves
 * nothing, so everything is checked: the frame is further up on the stack; the return address is
 * after a call; a call that names its target names code around this frame's. The instructions ahead
 * must show whether the newest frame has its own frame pointer. A frame that fails one of these
 * checks ends the stack, truncated.
 *
 * Go keeps frame pointers, too, and its calls of C change the stack: RULE_OTHER_STACK, and then the
 * frame remains the same.
 */
#pragma once

#include <stdbool.h>

#include "base/code_map.h"
#include "handler/unwind/arch.h"

/* Like rule_apply(), if the address has no plain rule: acts only for RULE_HOLE, RULE_TABLELESS and
 * RULE_NOWHERE. `is_newest`: the frame was not left by a call. The step also reads code, so the
 * memo never serves it. */
enum rule_result frame_pointer_step(const struct code_map *map, const struct unwind_bounds *bounds,
                                    rule_t rule, bool is_newest, struct unwind_frame *frame);
