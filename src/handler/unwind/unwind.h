/*
 * From the registers of an interrupted thread to its stack trace.
 *
 * Async-signal-safe: no malloc, no lock, no loader call. Reads of the stack stay
 * within [sp - 128, stack_end) of the thread (128: the ABI's red zone, where the
 * rule of an epilogue may still point), or go as far as another stack can be read.
 * Needs at most 1 KiB of the interrupted thread's own stack when the rules are
 * cached, at most 4 KiB otherwise (measured on x86-64: 600 bytes, 2.5 KiB with the
 * parser, 3.1 KiB with all registers; on an unknown stack up to 350 more).
 */
#ifndef QUERYPROF_HANDLER_UNWIND_UNWIND_H
#define QUERYPROF_HANDLER_UNWIND_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

/* The bounds of the thread's stack, both 0 when they are not known. A trace of
 * another stack (an alternate signal stack, a coroutine's) is read as far as the
 * kernel says that it can be: unwind_unknown.h. */
struct unwind_stack {
	uintptr_t start, end;
};

/* What a thread keeps between two of its samples (the memo of its last stack).
 * Zero-filled memory is a valid empty one; NULL is allowed. */
struct unwind_memo;
extern const unsigned unwind_memo_bytes;

/* Size of the rule cache that a code map carries (code_map.h). With it a process of 30
 * modules keeps 130 KiB for unwinding, and 32 KiB of memo for each sampled thread. */
extern const unsigned unwind_cache_bytes;

struct unwind_result {
	int depth;           /* entries written, >= 1 unless max is 0 */
	bool truncated;      /* the bottom of the stack was not reached */
	uint32_t generation; /* of the code map used */
};

/* Writes at most `max` addresses, leaf first: the interrupted address itself,
 * then for each caller an address inside its call instruction (the return
 * address less one), so that each can be looked up as it stands. A frame that a
 * signal interrupted is reported at its exact address. */
struct unwind_result unwind_trace(const void *ucontext, const struct unwind_stack *stack,
                                  struct unwind_memo *memo, uint64_t *trace, int max);

/* The same for a signal handler of the host's, which the sampler does not count:
 * keeps the code map readable for as long as it runs. No memo, as the signal may
 * have interrupted a sample of the thread's own. */
struct unwind_result unwind_trace_for_host(const void *ucontext, const struct unwind_stack *stack,
                                           uint64_t *trace, int max);

/* Counters for the ledger, added up over all threads. */
enum unwind_counter {
	UNWIND_CACHE_MISSES,   /* rules taken from the CFI parser */
	UNWIND_FULL_STEPS,     /* frames that needed all registers */
	UNWIND_NO_RULE,        /* traces that ended at code without unwind information */
	UNWIND_BAD_READ,       /* traces that ended at a slot outside the stack */
	UNWIND_UNKNOWN_STACKS, /* traces of stacks other than the thread's own */
	UNWIND_COUNTERS,
};
uint64_t unwind_counter(enum unwind_counter which);

#endif
