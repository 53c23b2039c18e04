/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the calling thread has run without a break since a moment: two loads, where two readings of a clock
 * are ten times as much.
 *
 * A thread's area for restartable sequences (rseq, <linux/rseq.h>) has a pointer to a description of the code
 * that must not be interrupted. The kernel clears the pointer when it switches to another thread, moves the
 * thread to another processor or delivers a signal, if the thread was not in that code. The flag is set if
 * the pointer leads to a description of code that never runs. Other users of the area (tcmalloc) write the
 * pointer, too: then the flag is not set, as after a switch.
 *
 * A kernel may look at the pointer less often: from Linux 6.19 on it does so for some registrations only. So
 * somebody tests once whether a thread that sleeps loses its flag: `record`, for the programs that it
 * starts, or else the process itself. If it does not, if libc has not registered the area, or not this
 * thread's (valgrind, gVisor, an older libc), no flag is ever set.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The command's finding, in the environment of the programs that it starts: the size of the
 * registration for which it is true, 0: flags are not reliable. */
#define SWITCH_FLAG_VARIABLE "QUERYPROF_RECORD_SWITCH_FLAG"

/* The area's offset from the thread pointer; 0: no flag is ever set. At 0 there is something else,
 * which is never the description's address. Atomic. */
extern ptrdiff_t switch_flag_area __attribute__((visibility("hidden")));

/* As struct rseq_cs, and what the kernel reads where that points. */
struct switch_flag_description {
	uint32_t version, flags;
	uint64_t start, size, abort;
	uint32_t signature;
	char landing[4], nowhere[4];
} __attribute__((aligned(32)));

extern const struct switch_flag_description switch_flag_description __attribute__((visibility("hidden")));

/* The parts of struct rseq. */
#define SWITCH_FLAG_PROCESSOR_AT 4
#define SWITCH_FLAG_POINTER_AT 8

/* Whether the calling thread can have a flag. */
bool switch_flag_is_possible(void);

/* Whether the flag of the calling thread, which was set, still is. */
static inline __attribute__((always_inline)) bool switch_flag_is_set(void)
{
	const ptrdiff_t at = __atomic_load_n(&switch_flag_area, __ATOMIC_RELAXED);
	uint64_t pointer;

#if defined(__x86_64__)
	__asm__ volatile("movq %%fs:8(%1), %0" : "=r"(pointer) : "r"(at));
#else
	const char *area = (const char *)__builtin_thread_pointer() + at;

	pointer = at ? *(const volatile uint64_t *)(area + SWITCH_FLAG_POINTER_AT) : 0;
#endif
	return pointer == (uint64_t)(uintptr_t)&switch_flag_description;
}

/* Sets the flag of the calling thread, if it can have one. Not in the signal handler, because the
 * thread may be in code that must not be interrupted. */
void switch_flag_set(void);

/* The same, and whether it was set until then. A switch before it is set again is one that this reports. */
static inline bool switch_flag_renew(void)
{
	bool was_set = switch_flag_is_set();

	if (__builtin_expect(!was_set, 0))
		switch_flag_set();
	return was_set;
}

/* Finds out whether flags are reliable; once, before there are queries. */
void switch_flag_begin(void);

/* Tests that a thread's flag does not survive a sleep. Returns the size of the registration for
 * which this is true; 0: it is not. Sleeps for a moment. */
unsigned switch_flag_test(void);
