/* SPDX-License-Identifier: Apache-2.0 */
#include "span/keep.h"

#include <stddef.h>
#include <string.h>

#include "queryprof.h"
#include "settings/setting.h"
#include "timers/random.h"
#include "timers/timers.h"

#define NAMES ((int)(sizeof(names) / sizeof(*names)))
static const char *const names[] = { "all", "slow", "sampled", "random" }; /* bit by bit */

/* Atomic, all; relaxed: each is independent. */
static uint64_t the_rules = KEEP_ALL;
static uint64_t counters[KEEP_COUNTERS];

/* The rules named in `text`, separated by commas; 0: unknown names. */
static unsigned parse(const char *text)
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

static int set_rules(const struct setting_value *value, char **reason)
{
	unsigned rules = parse(value->text);

	(void)reason;
	if (rules)
		__atomic_store_n(&the_rules, rules, __ATOMIC_RELAXED);
	return rules ? QP_OK : QP_INVALID;
}

SETTING_TEXT(rules_text, SETTING_IS_TEXT, SETTING_WORDS_BYTES, "all", .name = "trace_keep",
             .apply = set_rules,
             .allowed = "all, or one or more of slow, sampled and random, separated by commas",
             .description = "Which traces of requests are kept, decided when they end: all; slow: at least "
                            "trace_keep_min_duration_ns; sampled: with a sample in a span; random: one of "
                            "trace_keep_one_of");
SETTING_NUMBER(least_ns, "ns", 0, PERIOD_MAX_NS, 10000000, .name = "trace_keep_min_duration_ns",
               .description = "With slow in trace_keep: the least duration of a trace that is kept");
SETTING_NUMBER(one_of, "", 1, INT64_MAX, 1000, .name = "trace_keep_one_of",
               .description = "With random in trace_keep: one of this many traces is kept");

static uint64_t get_one_of(void)
{
	return (uint64_t)__atomic_load_n(&one_of, __ATOMIC_RELAXED);
}

bool keep_choose(struct thread *thread)
{
	uint64_t rules = __atomic_load_n(&the_rules, __ATOMIC_RELAXED);

	return rules & KEEP_ALL || (rules & KEEP_RANDOM && random_next(thread) < UINT64_MAX / get_one_of());
}

bool keep_decide(uint64_t duration_ns, bool is_sampled)
{
	uint64_t rules = __atomic_load_n(&the_rules, __ATOMIC_RELAXED);

	return rules & KEEP_ALL ||
	       (rules & KEEP_SLOW && duration_ns >= (uint64_t)__atomic_load_n(&least_ns, __ATOMIC_RELAXED)) ||
	       (rules & KEEP_SAMPLED && is_sampled);
}

bool keep_decide_foreign(uint64_t trace, uint64_t duration_ns, bool is_sampled)
{
	return keep_decide(duration_ns, is_sampled) ||
	       (__atomic_load_n(&the_rules, __ATOMIC_RELAXED) & KEEP_RANDOM && trace % get_one_of() == 0);
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
