/*
 * The walk over unknown stacks, see unwind_unknown.h. It has the rule cache but no
 * memo, and is in no hurry: the bounds may move between two frames.
 */
#include "handler/unwind_unknown.h"

#include <errno.h>
#include <stdbool.h>

#include "handler/sys.h"
#include "handler/unwind_full.h"
#include "handler/unwind_rules.h"

/* The smallest that pages are: a larger one is asked about several times. */
#define PAGE ((uintptr_t)4096)

/* How much of an unknown stack is read at most: in all, and beyond what is known to
 * be readable for the sake of one frame. */
#define SPAN (256 * PAGE)
#define SPAN_OF_FRAME (64 * PAGE)

/* Signal stacks within signal stacks; more of them is damage. */
#define MAX_CHANGES 4

/* The stack that the walk is on. */
struct view {
	struct unwind_bounds bounds;
	uintptr_t limit; /* how far bounds.high may be moved, 0: the known stack */
	const struct unwind_stack *known;
	uint32_t changes;
};

/* Whether the page of `address` can be read. */
static bool ask_kernel(uintptr_t address)
{
	enum { NO_SUCH_OPERATION = 0x7fff };
	const int saved_errno = errno;
	const long result = syscall(SYS_rt_sigprocmask, NO_SUCH_OPERATION, address & ~(PAGE - 1),
	                            NULL, sizeof(uint64_t));
	const bool readable = result == -1 && errno == EINVAL;

	errno = saved_errno;
	return readable;
}

static bool can_read(uintptr_t address)
{
	/* A kernel that looked at the operation first would call anything readable.
	 * The highest page, which is never a program's, shows it. */
	enum { UNTRIED, WORKS, FAILS };
	static int tried;
	int now = __atomic_load_n(&tried, __ATOMIC_RELAXED);

	if (now == UNTRIED) {
		now = ask_kernel(UINTPTR_MAX) ? FAILS : WORKS;
		__atomic_store_n(&tried, now, __ATOMIC_RELAXED);
	}
	/* An address of 0 would be no mask at all. */
	return now == WORKS && address >= PAGE && ask_kernel(address);
}

static bool enter_known(struct view *view, uintptr_t sp)
{
	const struct unwind_stack *known = view->known;

	if (sp < known->start || sp >= known->end)
		return false;
	view->bounds = (struct unwind_bounds){sp - ARCH_RED_ZONE, known->end & ~(uintptr_t)7};
	if (view->bounds.low < known->start || view->bounds.low > sp)
		view->bounds.low = known->start;
	view->limit = 0;
	return true;
}

static bool enter_unknown(struct view *view, uintptr_t sp)
{
	const uintptr_t page = sp & ~(PAGE - 1);
	uintptr_t low = sp - ARCH_RED_ZONE;

	if (page > UINTPTR_MAX - SPAN - PAGE || !can_read(page))
		return false;
	if (low < page && !can_read(low))
		low = page;
	view->bounds = (struct unwind_bounds){low, page + PAGE};
	view->limit = page + SPAN;
	return true;
}

/* Moves the end of what may be read up by a page. */
static bool extend(struct view *view)
{
	if (view->bounds.high >= view->limit)
		return false;
	if (!can_read(view->bounds.high)) {
		view->limit = view->bounds.high; /* is not asked again */
		return false;
	}
	view->bounds.high += PAGE;
	return true;
}

/* Whether `sp` is further up on the stack that `from` is on. */
static bool is_above(struct view *view, uintptr_t from, uintptr_t sp)
{
	const struct unwind_stack *known = view->known;

	if (view->limit != 0 && sp >= known->start && sp < known->end)
		return false;
	while (sp >= view->bounds.high && sp - view->bounds.high < SPAN_OF_FRAME && extend(view))
		continue;
	return sp > from && sp < view->bounds.high;
}

/* From a signal's trampoline to what the signal interrupted. */
static enum rule_result step_signal(struct view *view, struct full_walk *full, uint32_t index,
                                    struct unwind_frame *frame)
{
	struct unwind_frame interrupted = *frame;

	while (!arch_signal_frame(&interrupted, &view->bounds))
		if (!extend(view))
			return RULE_OUT_OF_BOUNDS;
	if (!is_above(view, frame->sp, interrupted.sp) &&
	    (view->limit == 0 || view->changes++ == MAX_CHANGES ||
	     !(enter_known(view, interrupted.sp) || enter_unknown(view, interrupted.sp))))
		return RULE_OUT_OF_BOUNDS;
	full_begin(full, arch_signal_context(frame), index + 1);
	*frame = interrupted;
	return RULE_STEPPED;
}

/* One step from frame number `index`. */
static enum rule_result step(struct view *view, struct full_walk *full,
                             const struct code_map *map, const struct found_rule *found,
                             uint32_t index, struct unwind_frame *frame)
{
	enum rule_result result;
	uintptr_t fp_slot, more = view->bounds.high + SPAN_OF_FRAME;

	if (rule_leaves_signal(found->rule))
		return step_signal(view, full, index, frame);
	do
		result = rule_apply(found->rule, frame, &view->bounds, &fp_slot);
	while (result == RULE_OUT_OF_BOUNDS && view->bounds.high < more && extend(view));
	if (result != RULE_NEEDS_ALL)
		return result;
	/* Which slot it could not read it would not say. */
	for (more = frame->sp + SPAN_OF_FRAME / 4; view->bounds.high < more && extend(view);)
		continue;
	return step_full(full, NULL, map, &view->bounds, index, rule_is_exact(found->rule), frame);
}

struct unwind_result unwind_unknown(const void *ucontext, const struct code_map *map,
                                    const struct unwind_stack *known, struct unwind_frame leaf,
                                    uint64_t *trace, uint32_t max)
{
	struct view view = {.known = known};
	struct unwind_frame frame = leaf;
	struct full_walk full;
	enum rule_result end;
	uint32_t n = 0;
	bool exact = true; /* `frame` was not left by a call */

	unwind_count(UNWIND_UNKNOWN_STACKS);
	trace[n++] = frame.look;
	if (!enter_unknown(&view, leaf.sp))
		return (struct unwind_result){1, true, map->generation};
	full_begin(&full, ucontext, 0);
	for (;;) {
		const struct found_rule found = rules_find(map, map->rules, frame.look);
		end = step(&view, &full, map, &found, n - 1, &frame);
		if (end != RULE_STEPPED || n == max)
			break;
		exact = rule_is_exact(found.rule);
		trace[n++] = frame.look;
	}
	/* As in walk() of unwind.c. */
	if (end == RULE_AT_START)
		end = exact ? RULE_HAS_NONE : RULE_AT_BOTTOM;
	if (end == RULE_HAS_NONE || end == RULE_NOT_CODE)
		unwind_count(UNWIND_NO_RULE);
	else if (end == RULE_OUT_OF_BOUNDS)
		unwind_count(UNWIND_BAD_READ);
	return (struct unwind_result){(int)n, end != RULE_AT_BOTTOM, map->generation};
}
