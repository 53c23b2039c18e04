/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk from the interrupted frame to the bottom of the stack.
 *
 * A frame is three words (pc, sp, fp); the rule of its address leads to its caller. Three layers,
 * from fast to slow:
 *
 * The memo. Most of a thread's stack is that of its last sample. When a frame equals a frame of the
 * memo, the same rule reads the same slots. If the slots of the return address and of the saved frame
 * pointer still hold the same values, the caller is the same, and so on by induction: exact, with two
 * loads per frame. The memo never serves a step that read another word (FP_SLOT_OPAQUE).
 *
 * The rule cache, for new frames.
 *
 * From the first frame on whose rule is not plain, the slow walk (slow_walk.h), which also walks
 * stacks without a memo.
 */
#include "handler/unwind/unwind.h"

#include <stddef.h>
#include <string.h>

#include "handler/unwind/arch.h"
#include "handler/unwind/rules.h"
#include "handler/unwind/slow_walk.h"
#include "wire/record.h"

/* `frames` is the last stack, leaf first. The walk writes new frames to `fresh`, at their own
 * positions, because it still compares the old ones; positions below `done` are already in
 * `frames`. */
struct unwind_memo {
	uint32_t busy;  /* a walk is using it */
	uint32_t epoch; /* of the code map */
	uint32_t count;
	uint32_t done;
	struct unwind_stack stack; /* all slots are in it */
	bool bottom;               /* by its rule, the last frame has no caller */
	bool whole;                /* `bottom`, and only the first fp_slot is FP_SLOT_OPAQUE */
	struct memo_frame frames[STACK_FRAMES_MAX];
	struct memo_frame fresh[STACK_FRAMES_MAX]; /* the slow walk's page, when all are in place */
};

/* The walk prefetches the stack so far ahead. */
#define LINE_BYTES 64u
#define BYTES_AHEAD (12 * LINE_BYTES)
#define SETS_OF_PAGE (4096 / sizeof(uint64_t)) /* of the rule cache */

const struct code_map *code_map_published;
uint64_t unwind_counters[UNWIND_COUNTERS];
DEFINE_ADDRESS_OF_RECORDER(uint64_t, unwind_counters)

/* An empty map: the loader looks up each address. */
static const struct code_map no_map;

const unsigned unwind_memo_bytes = sizeof(struct unwind_memo);
const unsigned unwind_memo_head_bytes = offsetof(struct unwind_memo, frames);
const unsigned unwind_cache_bytes = (CACHE_WAYS * CACHE_SETS + SAVED_SLOTS) * sizeof(uint64_t);

/* Moves the fresh frames before number `to` into place. */
static void memo_commit(struct unwind_memo *memo, uint32_t to)
{
	for (uint32_t i = memo->done; i < to; i++)
		memo->frames[i] = memo->fresh[i];
	memo->done = to;
}

/* Moves the memo's frames from `from` on so that they begin at `to`. */
static void memo_shift(struct unwind_memo *memo, uint32_t from, uint32_t to)
{
	const uint32_t all = memo->count - from, room = STACK_FRAMES_MAX - to;
	const uint32_t length = all < room ? all : room;
	if (from == to)
		return;
	memmove(&memo->frames[to], &memo->frames[from], length * sizeof(memo->frames[0]));
	memo->bottom &= length == all; /* or the last frame is cut off */
	memo->count = to + length;
}

bool unwind_read_words(const struct unwind_stack *known, uintptr_t address, uintptr_t *words, unsigned count)
{
	for (unsigned i = 0; i < count; i++, address += sizeof(*words)) {
		if (address % sizeof(*words) != 0)
			return false;
		if (address >= known->start && address < known->end)
			words[i] = *(const volatile uintptr_t *)address;
		else if (!stack_copy_part(address, &words[i], sizeof(*words)))
			return false;
	}
	return true;
}

static bool same_frame(const struct unwind_frame *a, const struct unwind_frame *b)
{
#ifdef ARCH_HAS_LINK
	if (a->link != b->link)
		return false;
#endif
	return a->pc == b->pc && a->sp == b->sp && a->fp == b->fp;
}

/* Writes the memo's callers from number `n` on, as long as each is still the caller of the
 * frame before it. Returns the number of the first that is not. Frame n - 1 is in the
 * stack. */
static inline uint32_t memo_follow(const struct unwind_memo *memo, uint32_t n, uint32_t max,
                                   const struct unwind_bounds *bounds, uint64_t *addresses)
{
	const uint32_t count = memo->count < max ? memo->count : max;
	const uintptr_t low = bounds->low, size = bounds->high - low;

	for (; n < count; n++) {
		const struct memo_frame *next = &memo->frames[n];
		/* Its frame is above one that is in the stack, and below the stack's end, which
		 * has not moved. */
		if (arch_return_address(&next->at) - 1 != next->at.pc)
			break;
		/* The first read found every slot aligned and below the end; this one may
		 * be below what the walk may read now. */
		if (next->fp_slot - low < size) {
			if (*(const uintptr_t *)next->fp_slot != next->at.fp)
				break;
		} else if (next->fp_slot != 0) {
			break;
		}
		addresses[n] = next->at.pc;
	}
	return n;
}

/* The walk meets the memo's stack: frame `old` of the memo becomes frame `n`, with the
 * callers that still hold. Returns the number of frames written. `fp_slot` belongs to the
 * step from frame n - 1 to frame n. */
static uint32_t memo_join(struct unwind_memo *memo, uint32_t old, uint32_t n, uint32_t max,
                          const struct unwind_bounds *bounds, uintptr_t fp_slot, uint64_t *addresses)
{
	memo_shift(memo, old, n);
	memo_commit(memo, n);
	memo->frames[n].fp_slot = fp_slot;
	addresses[n] = memo->frames[n].at.pc;
	memo->done = memo_follow(memo, n + 1, max, bounds, addresses);
	return memo->done;
}

/* Not inlined: an unchanged stack should not pay for its registers. */
__attribute__((noinline)) static struct unwind_result
fast_walk(const struct walk *walk, struct unwind_memo *memo, struct unwind_frame frame)
{
	/* Copies: no store through `addresses` can change them. */
	const struct code_map *const map = walk->map;
	uint64_t *const addresses = walk->addresses, *const rules = map->rules;
	const struct unwind_bounds bounds = walk_bounds(walk->stack, frame.sp);
	const uint32_t max = walk->max;
	enum rule_result end;
	uintptr_t fp_slot = FP_SLOT_OPAQUE;
	uint32_t n = 0, old = 0;
	bool by_rule; /* the last frame's address alone ended the walk */
	bool opaque = false;

	memo->done = 0;
	for (;;) {
		/* Here `frame` is number n, not written yet. */
		opaque |= fp_slot == FP_SLOT_OPAQUE && n > 0;
		while (old < memo->count && memo->frames[old].at.sp < frame.sp)
			old++;
		if (old < memo->count && same_frame(&memo->frames[old].at, &frame)) {
			n = memo_join(memo, old, n, max, &bounds, fp_slot, addresses);
			frame = memo->frames[n - 1].at;
			old = n;
			if (n == memo->count && memo->bottom) {
				end = RULE_AT_BOTTOM;
				by_rule = true;
				break;
			}
		} else {
			memo->fresh[n] = (struct memo_frame){ frame, fp_slot };
			addresses[n++] = frame.pc;
		}
		const struct found_rule found = rules_find(map, rules, frame.pc);
		if (__builtin_expect(rule_is_plain(found.rule), 1)) {
			end = rule_apply(found.rule, &frame, &bounds, &fp_slot);
			__builtin_prefetch((const void *)(frame.sp + BYTES_AHEAD));
		} else {
			end = rule_is_bottom(found.rule) ? RULE_AT_BOTTOM : RULE_LEADS_NOWHERE;
		}
		if (__builtin_expect(end != RULE_STEPPED, 0)) {
			by_rule = found.lasting && rule_is_bottom(found.rule);
			break;
		}
		if (!found.lasting)
			fp_slot = FP_SLOT_OPAQUE;
		if (n == max) { /* there is a caller, but no room for it */
			by_rule = false;
			break;
		}
	}
	if (memo->done > n)
		memo->done = n;
	memo_commit(memo, n);
	memo->count = n;
	memo->bottom = end == RULE_AT_BOTTOM && by_rule;
	memo->whole = memo->bottom && !opaque;
	if (end == RULE_LEADS_NOWHERE)
		return slow_walk(walk, frame, n - 1);
	if (end == RULE_OUT_OF_BOUNDS)
		unwind_count(UNWIND_BAD_READ);
	return (struct unwind_result){ (int16_t)n, end != RULE_AT_BOTTOM, map->generation, memo->frames };
}

/* Whether the memo belongs to this map and stack, and no interrupted walk is using it. */
static inline bool memo_is_usable(const struct unwind_memo *memo, const struct code_map *map,
                                  const struct unwind_stack *stack)
{
	return !memo->busy && memo->epoch == map->epoch && memo->stack.start == stack->start &&
	       memo->stack.end == stack->end;
}

/* Only handlers on the same thread read it: program order is enough. */
static inline void memo_set_busy(struct unwind_memo *memo, bool busy)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	memo->busy = busy;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Writes the memo's stack if all of it is still valid. The leaf and the bounds equal the memo's,
 * so all slots are readable. Returns the depth; 0: a frame differs. */
static inline uint32_t memo_repeat(struct unwind_memo *memo, const struct code_map *map,
                                   const struct unwind_stack *stack, const struct unwind_frame *leaf,
                                   uint64_t *addresses, int max)
{
	const struct memo_frame *next = memo->frames, *const end = next + memo->count;
	uint32_t depth = 0;

	if (!memo_is_usable(memo, map, stack) || !memo->whole || (int)memo->count > max ||
	    !same_frame(&next->at, leaf))
		return 0;
	memo_set_busy(memo, true);
	for (*addresses = leaf->pc;; *addresses = next->at.pc) {
		if (++next == end) {
			depth = memo->count;
			break;
		}
		addresses++;
		if (arch_return_address(&next->at) - 1 != next->at.pc ||
		    (next->fp_slot != 0 && *(const uintptr_t *)next->fp_slot != next->at.fp))
			break;
	}
	memo_set_busy(memo, false);
	return depth;
}

/* Each load from the stack decides on the next rule, and that rule on the next load. With cold
 * caches each waits for the previous one, and twice as long if the processor also misses the
 * page's address. So the loads from the stack begin here, together, and one for each page of
 * rules. (Always inlined: the compiler drops a call without an effect.) */
__attribute__((always_inline)) static inline void fetch_ahead(const struct code_map *map, uintptr_t sp)
{
	/* The first way only: few rules are in the second. */
	for (unsigned set = 0; map->rules && set < CACHE_SETS; set += SETS_OF_PAGE)
		__builtin_prefetch(&map->rules[set]);
	for (uintptr_t ahead = 0; ahead < BYTES_AHEAD; ahead += LINE_BYTES)
		__builtin_prefetch((const void *)(sp + ahead));
}

/* A stack that is not the memo's as a whole. Not inlined, as fast_walk(). */
__attribute__((noinline)) static struct unwind_result
walk_anew(const void *ucontext, const struct unwind_stack *stack, const struct code_map *map,
          struct unwind_memo *memo, uint64_t *addresses, int max)
{
	const struct unwind_frame leaf = arch_interrupted_frame(ucontext);
	const bool is_usable = memo && !memo->busy;
	uint32_t generation = map ? map->generation : 0;
	struct unwind_result result;

	if (max <= 0)
		return (struct unwind_result){ 0, true, generation, NULL };
	if (__builtin_expect(!map || code_map_moved(map), 0)) {
		/* Not the map's rules, but the loader alone. The next map will know this code. The
		 * walk uses no step of the memo, as no rule lasts. */
		generation++;
		map = &no_map;
	}
	const struct walk walk = { .ucontext = ucontext,
		                   .map = map,
		                   .stack = stack,
		                   .addresses = addresses,
		                   .max = max < STACK_FRAMES_MAX ? (uint32_t)max : STACK_FRAMES_MAX,
		                   .frames = is_usable ? memo->frames : NULL,
		                   .page = is_usable ? (unsigned char *)memo->fresh : NULL };
	fetch_ahead(map, leaf.sp); /* no prefetch faults, whatever the stack */
	if (is_usable) {
		if (!memo_is_usable(memo, map, stack)) {
			memo->epoch = map->epoch;
			memo->stack = *stack;
			memo->count = 0;
		}
		memo->whole = false;
		memo_set_busy(memo, true);
	}
	if (is_usable && leaf.sp >= stack->start && leaf.sp < stack->end &&
	    stack->end - leaf.sp >= sizeof(uintptr_t)) {
		result = fast_walk(&walk, memo, leaf);
	} else {
		if (is_usable)
			memo->count = 0;
		result = slow_walk(&walk, leaf, 0);
	}
	if (is_usable)
		memo_set_busy(memo, false);
	result.generation = generation;
	return result;
}

struct unwind_result unwind_addresses(const void *ucontext, const struct unwind_stack *stack,
                                      struct unwind_memo *memo, uint64_t *addresses, int max)
{
	const struct code_map *map = code_map_current();

	if (memo && map && !code_map_moved(map)) {
		const struct unwind_frame leaf = arch_interrupted_frame(ucontext);
		const uint32_t depth = memo_repeat(memo, map, stack, &leaf, addresses, max);
		if (depth != 0)
			return (struct unwind_result){ (int16_t)depth, false, map->generation, memo->frames };
	}
	return walk_anew(ucontext, stack, map, memo, addresses, max);
}
