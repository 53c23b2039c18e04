/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of stacks whose bounds are unknown: alternate signal stacks, coroutines, threads
 * that are not registered. The walk reads such a stack from the interrupted stack pointer
 * upwards, through stack_copy.h, to the first page that cannot be read.
 */
#ifndef QUERYPROF_HANDLER_UNWIND_UNKNOWN_H
#define QUERYPROF_HANDLER_UNWIND_UNKNOWN_H

#include "handler/unwind/arch.h"
#include "handler/unwind/code_map.h"
#include "handler/unwind/unwind.h"

/* As unwind_trace(), for a `leaf` that is not on the `known` stack; max > 0. From a signal
 * handler on an alternate stack the walk continues on the stack that the signal
 * interrupted, known or not. `frames`, of which there are as many, get the frames; NULL: nobody
 * wants them. */
struct unwind_result unwind_unknown(const void *ucontext, const struct code_map *map,
                                    const struct unwind_stack *known, struct unwind_frame leaf,
                                    uint64_t *trace, uint32_t max, struct memo_frame *frames);

/* The same from frame number `n` on, whose callee `frame` is on another stack (RULE_OTHER_STACK). */
struct unwind_result unwind_other_stack(const struct code_map *map, const struct unwind_stack *known,
                                        struct unwind_frame frame, uint64_t *trace, uint32_t n, uint32_t max,
                                        struct memo_frame *frames);

#endif
