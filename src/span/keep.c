/* SPDX-License-Identifier: Apache-2.0 */
#include "span/keep.h"

#include <stddef.h>
#include <string.h>

#include "timers/random.h"

#define NAMES ((int)(sizeof(names) / sizeof(*names)))
static const char *const names[] = { "all", "slow", "sampled", "random" }; /* bit by bit */

/* Atomic, all; relaxed: each stands for itself. */
static uint64_t the_rules = KEEP_ALL, least_ns, one;
static uint64_t counters[KEEP_COUNTERS];

unsigned keep_parse(const char *text)
{
	unsigned rules = 0;

	for (;;) {
		size_t size = strcspn(text, ", ");
		int i = 0;

		while (i < NAMES && (strlen(names[i]) != size || strncmp(names[i], text, size) != 0))
			i++;
		if (i == NAMES)
			return 0;
		rules |= 1u << i;
		text += size;
		if (!*text)
			return rules;
		text += strspn(text, ", ");
	}
}

void keep_set(unsigned rules, uint64_t min_duration_ns, uint64_t one_of)
{
	__atomic_store_n(&the_rules, rules, __ATOMIC_RELAXED);
	__atomic_store_n(&least_ns, min_duration_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&one, one_of, __ATOMIC_RELAXED);
}

bool keep_choose(struct thread *thread)
{
	uint64_t rules = __atomic_load_n(&the_rules, __ATOMIC_RELAXED);
	uint64_t of = __atomic_load_n(&one, __ATOMIC_RELAXED);

	return rules & KEEP_ALL || (rules & KEEP_RANDOM && of && random_next(thread) < UINT64_MAX / of);
}

bool keep_decide(uint64_t duration_ns, bool is_sampled)
{
	uint64_t rules = __atomic_load_n(&the_rules, __ATOMIC_RELAXED);

	return rules & KEEP_ALL ||
	       (rules & KEEP_SLOW && duration_ns >= __atomic_load_n(&least_ns, __ATOMIC_RELAXED)) ||
	       (rules & KEEP_SAMPLED && is_sampled);
}

bool keep_decide_foreign(uint64_t trace, uint64_t duration_ns, bool is_sampled)
{
	uint64_t of = __atomic_load_n(&one, __ATOMIC_RELAXED);

	return keep_decide(duration_ns, is_sampled) ||
	       (__atomic_load_n(&the_rules, __ATOMIC_RELAXED) & KEEP_RANDOM && of && trace % of == 0);
}

/* --- samples on other threads ------------------------------------------------------------------ */

/* A trace has one of these as long as no other trace takes it. Then it is unknown whether there
 * were samples, and the trace is kept. Low bit: there were. */
#define WATCHED 4096u
static uint64_t watched[WATCHED];

static uint64_t *watch_of(uint64_t trace)
{
	return &watched[trace >> 8 & (WATCHED - 1)];
}

void keep_watch(uint64_t trace)
{
	uint64_t *at = watch_of(trace);

	if ((__atomic_load_n(at, __ATOMIC_RELAXED) | 1) != (trace | 1))
		__atomic_store_n(at, trace & ~1ull, __ATOMIC_RELAXED);
}

void keep_note_sample(uint64_t trace)
{
	uint64_t seen = trace & ~1ull;

	__atomic_compare_exchange_n(watch_of(trace), &seen, seen | 1, false, __ATOMIC_RELAXED,
	                            __ATOMIC_RELAXED);
}

bool keep_was_sampled(uint64_t trace)
{
	return __atomic_load_n(watch_of(trace), __ATOMIC_RELAXED) != (trace & ~1ull);
}

/* --- counters ------------------------------------------------------------------------------------ */

void keep_count(enum keep_counter which, uint64_t by)
{
	if (by)
		__atomic_fetch_add(&counters[which], by, __ATOMIC_RELAXED);
}

uint64_t keep_counter(enum keep_counter which)
{
	return __atomic_load_n(&counters[which], __ATOMIC_RELAXED);
}

void keep_after_fork(void)
{
	memset(counters, 0, sizeof(counters));
}
