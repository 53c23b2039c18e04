/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waits of the library, in one list: how long each may last, and what ends it.
 *
 *	BOUNDED_WAIT_DEFINE(room, "a trace's end: room in the ring", NS_PER_S, "the flusher, which takes
 *records");
 *	...
 *	struct bounded_wait wait = bounded_wait_begin(&room);
 *
 *	while (!has_room() && bounded_wait_nap(&wait, 100000))
 *		;
 *
 * The linker makes the list (a section), as that of locks. A limit holds on any clock. Time is read by
 * base/clock.h, and counted as well: the kernel counts the length of each sleep itself, and each return from
 * the kernel is some time. So a clock that stands still, or runs backwards, makes a wait longer, not endless;
 * one that jumps ahead makes it shorter.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define BOUND_MS(ms) ((uint64_t)(ms)*1000000)
#define BOUND_OF_CALLER BOUND_MS(INT32_MAX) /* as long as the caller requests */
#define BOUND_NONE UINT64_MAX               /* for threads of the library's own only */

struct bounded_wait_kind {
	const char *name; /* who waits: for what */
	uint64_t limit_ns;
	const char *woken_by;
};

#define BOUNDED_WAIT_DEFINE(variable, name_, limit_ns_, woken_by_)                                           \
	static const struct bounded_wait_kind variable = { (name_), (limit_ns_), (woken_by_) };              \
	static const struct bounded_wait_kind *const entry_##variable                                        \
		__attribute__((used, section("queryprof_bounded_waits"))) = &variable

/* The list; returns the number of its entries. */
uint32_t bounded_wait_kinds(const struct bounded_wait_kind *const **first);

/* One sleep of that kind, for loops that count theirs. */
void bounded_wait_pause(const struct bounded_wait_kind *kind, uint64_t ns);

/* A wait that has begun. */
struct bounded_wait {
	uint64_t start_ns, limit_ns, counted_ns, seen_ns;
};

struct bounded_wait bounded_wait_begin(const struct bounded_wait_kind *kind);
/* With a shorter limit. */
struct bounded_wait bounded_wait_begin_within(const struct bounded_wait_kind *kind, uint64_t ns);

/* The rest of the limit. */
uint64_t bounded_wait_remaining(const struct bounded_wait *wait);

/* Sleeps while *word is `expected`, at most `most_ns` and the rest of the limit. False: that time is over. */
bool bounded_wait_futex(struct bounded_wait *wait, uint32_t *word, uint32_t expected, uint64_t most_ns);

/* Sleeps for at most `ns`, 0: yields the processor. False: the limit has passed, and it has not slept. */
bool bounded_wait_nap(struct bounded_wait *wait, uint64_t ns);
