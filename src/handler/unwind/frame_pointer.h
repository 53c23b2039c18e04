/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The step from a frame whose code has no unwind information: of programs that were built
 * without (bun, deno), and of code that was compiled at run time (V8, JavaScriptCore). Both
 * keep frame pointers. That is no proof, so all is checked: the frame lies further up on the
 * stack; the return address is behind a call; a call that names its target names code around
 * this frame's. The instructions ahead must say whether the newest frame has the frame
 * pointer as its own. A frame that fails one of these checks ends the trace, truncated.
 *
 * Go keeps frame pointers, too, and its calls of C change the stack: RULE_OTHER_STACK, and then the
 * frame is as it was.
 */
#ifndef QUERYPROF_HANDLER_UNWIND_FRAME_POINTER_H
#define QUERYPROF_HANDLER_UNWIND_FRAME_POINTER_H

#include <stdbool.h>

#include "base/code_map.h"
#include "handler/unwind/arch.h"

/* Like rule_apply(), where the address has no plain rule: nothing is done but for RULE_HOLE, RULE_TABLELESS
 * and RULE_NOWHERE. `is_newest`: the frame was not left by a call. The step reads code, too, so it is never
 * the memo's. */
enum rule_result frame_pointer_step(const struct code_map *map, const struct unwind_bounds *bounds,
                                    rule_t rule, bool is_newest, struct unwind_frame *frame);

#endif
