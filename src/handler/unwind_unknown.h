/*
 * Traces of stacks that nobody told us of.
 *
 * The thread's own stack is known since the thread was registered and is read
 * within those bounds. Alternate signal stacks, coroutines, and threads that nobody
 * registered have stacks of which nothing is known but that the interrupted stack
 * pointer is on one. They are read page by page upwards from there, each page only
 * after the kernel has said that it can be read, and no further than the first that
 * cannot.
 *
 * The kernel is asked by rt_sigprocmask: with an operation that does not exist it
 * copies the new mask from the address that we give, and then fails either because
 * that was not readable or because of the operation. Nothing changes, no usual
 * filter of system calls forbids it, and it takes 100 ns a page; process_vm_readv
 * takes nine times as long and is often forbidden. A load that may fault would be
 * faster (1 ns), but needs a handler for SIGSEGV, and that signal is the host's:
 * what the host, a crash reporter or a sanitizer installs after us takes ours away,
 * and from then on such a load kills the process. Nothing here can: between the
 * question and the read only another thread could take the page away, and the frames
 * of the interrupted thread, which stands still, are not what it would take.
 */
#ifndef QUERYPROF_HANDLER_UNWIND_UNKNOWN_H
#define QUERYPROF_HANDLER_UNWIND_UNKNOWN_H

#include "handler/code_map.h"
#include "handler/unwind.h"
#include "handler/unwind_arch.h"

/* As unwind_trace(), for a `leaf` that is not on the `known` stack; max > 0. Where a
 * signal handler ran on an alternate stack, the walk goes on to the stack that the
 * signal interrupted, known or not. */
struct unwind_result unwind_unknown(const void *ucontext, const struct code_map *map,
                                    const struct unwind_stack *known, struct unwind_frame leaf,
                                    uint64_t *trace, uint32_t max);

#endif
