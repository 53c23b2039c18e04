/*
 * Traces of stacks that nobody told us of.
 *
 * The thread's own stack is known since the thread was registered and is read
 * within those bounds. Alternate signal stacks, coroutines, and threads that nobody
 * registered have stacks of which nothing is known but that the interrupted stack
 * pointer is on one. They are read from there upwards, through stack_copy.h, and no
 * further than the first page that cannot be read.
 */
#ifndef QUERYPROF_HANDLER_UNWIND_UNKNOWN_H
#define QUERYPROF_HANDLER_UNWIND_UNKNOWN_H

#include "handler/unwind/code_map.h"
#include "handler/unwind/unwind.h"
#include "handler/unwind/arch.h"

/* As unwind_trace(), for a `leaf` that is not on the `known` stack; max > 0. Where a
 * signal handler ran on an alternate stack, the walk goes on to the stack that the
 * signal interrupted, known or not. */
struct unwind_result unwind_unknown(const void *ucontext, const struct code_map *map,
                                    const struct unwind_stack *known, struct unwind_frame leaf,
                                    uint64_t *trace, uint32_t max);

#endif
