/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/unwind/frame_pointer.h"

#include <string.h>

#include "base/x86_64.h"
#include "handler/unwind/rules.h"

#ifdef __x86_64__

/* The longest call. */
#define CALL_BYTES 7

/* A function is hardly longer, so a call of it names an address so near below. */
#define FUNCTION_BYTES ((uintptr_t)1 << 20)

/* Whether a call of `target` may have led to `frame`: directly to its function, or to one that
 * jumped there. A function that has unwind information is another frame instead, whose frame
 * pointer this is; so may be any, if this is the newest. */
static bool may_lead_to(const struct code_map *map, uintptr_t target, const struct unwind_frame *frame,
                        rule_t rule, bool is_newest)
{
	if (frame->pc - target < FUNCTION_BYTES)
		return true;
	const rule_t other = rules_find(map, map->rules, target).rule;
	return rule == RULE_NOWHERE ? other == RULE_NOWHERE || other == RULE_HOLE || other == RULE_TABLELESS
	                            : !is_newest;
}

/* Whether a call that returns to the address may have led to the frame. */
static bool is_from_call(const struct code_map *map, uintptr_t address, const struct unwind_frame *frame,
                         rule_t rule, bool is_newest)
{
	uint8_t bytes[CALL_BYTES];
	struct x86_instruction i;

	if (address < CALL_BYTES || !stack_copy_part(address - CALL_BYTES, bytes, CALL_BYTES))
		return false;
	for (unsigned length = 2; length <= CALL_BYTES; length++) {
		const uint8_t *const at = bytes + CALL_BYTES - length;

		if (!x86_decode(at, length, &i) || i.length != length || i.map != X86_ONE_BYTE || i.is_vector)
			continue;
		if (i.opcode == 0xff && (i.operand >> 3 & 7) == 2)
			return true;
		if (i.opcode == 0xe8 && may_lead_to(map, (uintptr_t)x86_address(&i, at, address - length),
		                                    frame, rule, is_newest))
			return true;
	}
	return false;
}

/* A program's start has a hlt after its call, unlike any compiler's code. Go's goroutines return
 * to the second instruction of runtime.goexit(), after no call: nop, call. */
static bool is_end(const struct unwind_frame *frame, bool has_called)
{
	uint8_t at[2];

	return frame->fp == 0 && stack_copy_part(frame->pc, at, sizeof(at)) &&
	       ((has_called && at[1] == 0xf4) || (at[0] == 0x90 && at[1] == 0xe8));
}

/* The caller by this rule; false: the rule's result is impossible. */
static bool step_by(const struct code_map *map, const struct unwind_bounds *bounds, rule_t guess, rule_t rule,
                    bool is_newest, const struct unwind_frame *frame, struct unwind_frame *caller)
{
	uintptr_t fp_slot;

	*caller = *frame;
	return rule_apply(guess, caller, bounds, &fp_slot) == RULE_STEPPED &&
	       (is_from_call(map, caller->pc + 1, frame, rule, is_newest) || is_end(caller, false));
}

static const rule_t as_called = 1 << RULE_OFFSET_SHIFT | RULE_SP;
static const rule_t pushed = 2 << RULE_OFFSET_SHIFT | 2 << 4 | RULE_SP;
static const rule_t in_frame = 2 << RULE_OFFSET_SHIFT | 2 << 4 | RULE_FP;

/* --- the newest frame --------------------------------------------------------------------------- */

/*
 * A compiler has the stack at one depth at each instruction. So any path from the interrupted one on
 * shows where its frame is, by what it does first: makes the frame, uses it, leaves it, or returns
 * without one. Branches are not taken at first; if a path shows nothing, the next one is followed.
 */

#define RSP 4u
#define RBP 5u
#define WAYS 8
#define INSTRUCTIONS 256

struct path {
	uintptr_t pc;
	int32_t depth; /* bytes that were pushed on it */
};

struct ahead {
	const struct code_map *map;
	const struct unwind_frame *frame;
	struct path paths[WAYS];
	uint32_t count;
	uintptr_t start; /* of the code that was read */
	uint32_t size;
	uint8_t code[256];
};

static const uint8_t *code_at(struct ahead *ahead, uintptr_t pc, size_t *size)
{
	if (pc - ahead->start >= ahead->size || ahead->start + ahead->size - pc < X86_BYTES_MAX) {
		ahead->start = pc;
		ahead->size = sizeof(ahead->code);
		if (!stack_copy_part(pc, ahead->code, sizeof(ahead->code))) {
			const uintptr_t rest = STACK_COPY_BYTES - pc % STACK_COPY_BYTES;

			ahead->size = rest < sizeof(ahead->code) && stack_copy_part(pc, ahead->code, rest)
			                      ? (uint32_t)rest
			                      : 0;
		}
	}
	*size = ahead->start + ahead->size - pc;
	return ahead->code + (pc - ahead->start);
}

/* Whether it changes the stack or the frame pointer in a path that is not followed. */
static bool loses_frame(const struct x86_instruction *i)
{
	const unsigned at = i->operand >> 6 == 3 ? (i->operand & 7u) | (i->rex & 1u) << 3 : 16;
	const bool is_to_register = (i->opcode < 0x40 && (i->opcode & 2)) || i->opcode == 0x63 ||
	                            i->opcode == 0x69 || i->opcode == 0x6b || i->opcode == 0x8b ||
	                            i->opcode == 0x8d;
	const unsigned changed = is_to_register ? x86_register(i) : at;

	if (i->map != X86_ONE_BYTE || i->is_vector || !(i->rex & 8) || (i->opcode & 0xfc) == 0x38 ||
	    (i->opcode & 0xfe) == 0x84 || ((i->opcode & 0xfc) == 0x80 && x86_register(i) == 7))
		return false;
	return changed == RSP || changed == RBP;
}

/* The rule that one instruction shows, or none yet. The path continues at path->pc, which is 0 at its end. */
static rule_t inspect(struct ahead *ahead, struct path *path)
{
	struct x86_instruction i;
	size_t size;
	const uint8_t *bytes = code_at(ahead, path->pc, &size);
	const struct path here = *path;

	path->pc = 0;
	if (!x86_decode(bytes, size, &i))
		return RULE_NONE;
	const uintptr_t next = here.pc + i.length;
	const uintptr_t place = i.is_branch ? (uintptr_t)x86_address(&i, bytes, here.pc) : 0;
	const bool is_plain = i.map == X86_ONE_BYTE && !i.is_vector, is_wide = i.rex & 8;
	const bool is_call = i.opcode == 0xe8 || (i.opcode == 0xff && (i.operand >> 3 & 7) == 2);
	const bool is_jump = i.opcode == 0xe9 || i.opcode == 0xeb;
	/* mov %rsp,%rbp, and back; of each there are two. */
	const bool makes = is_wide && ((i.opcode == 0x89 && i.operand == 0xe5) ||
	                               (i.opcode == 0x8b && i.operand == 0xec));
	const bool leaves = is_wide && ((i.opcode == 0x89 && i.operand == 0xec) ||
	                                (i.opcode == 0x8b && i.operand == 0xe5));

	/* Memory below the frame pointer; lea to the stack pointer too. */
	if (!i.is_vector && (i.operand >> 6 == 1 || i.operand >> 6 == 2) && (i.operand & 7) == RBP &&
	    !(i.rex & 1))
		return in_frame;
	if (i.is_branch && !(is_plain && (is_call || is_jump)) && ahead->count < WAYS)
		ahead->paths[ahead->count++] = (struct path){ place, here.depth };
	if (!is_plain) {
		path->pc = i.map == X86_0F && !i.is_vector && i.opcode == 0x0b ? 0 : next; /* ud2 */
	} else if ((i.opcode == 0x55 && !(i.rex & 1)) || i.opcode == 0xc2 || i.opcode == 0xc3) {
		return here.depth == 0 ? as_called : (rule_t)RULE_NONE;
	} else if (i.opcode == 0x5d && !(i.rex & 1)) {
		return ahead->frame->sp - (uintptr_t)(intptr_t)here.depth == ahead->frame->fp
		               ? in_frame
		               : (rule_t)RULE_NONE;
	} else if ((i.opcode & 0xf8) == 0x50 || i.opcode == 0x68 || i.opcode == 0x6a) {
		*path = (struct path){ next, here.depth + 8 };
	} else if ((i.opcode & 0xf8) == 0x58) {
		*path = (struct path){ next, here.depth - 8 };
	} else if (makes) {
		return here.depth == 0 ? pushed : (rule_t)RULE_NONE;
	} else if (i.opcode == 0xc9 || leaves || is_call) {
		return in_frame; /* a function that calls has a frame */
	} else if (is_wide && (i.opcode == 0x81 || i.opcode == 0x83) &&
	           (i.operand == 0xec || i.operand == 0xc4)) {
		int32_t constant = (int8_t)bytes[i.constants];

		if (i.opcode == 0x81)
			memcpy(&constant, bytes + i.constants, sizeof(constant));
		*path = (struct path){ next, here.depth + (i.operand == 0xec ? constant : -constant) };
	} else if (is_jump) {
		/* It changes nothing: the rule of its target, as for a stub that displaced the
		 * beginning of a function, is its own. */
		const rule_t rule = rules_find(ahead->map, ahead->map->rules, place).rule;

		if (rule_is_plain(rule))
			return here.depth == 0 ? rule : (rule_t)RULE_NONE;
		*path = (struct path){ place, here.depth };
	} else if (i.is_branch || (i.opcode != 0xcc && i.opcode != 0xf4 &&
	                           !(i.opcode == 0xff && (i.operand >> 3 & 7) >= 4) && !loses_frame(&i))) {
		path->pc = next;
	}
	return RULE_NONE;
}

/* RULE_NONE: no path shows it. */
static rule_t judge(const struct code_map *map, const struct unwind_frame *frame)
{
	struct ahead ahead = { .map = map, .frame = frame, .paths = { { frame->pc, 0 } }, .count = 1 };
	struct path path = { 0, 0 };

	for (int left = INSTRUCTIONS; left > 0; left--) {
		if (path.pc == 0) {
			if (ahead.count == 0)
				break;
			path = ahead.paths[--ahead.count];
		}
		const rule_t rule = inspect(&ahead, &path);
		if (rule_is_plain(rule))
			return rule;
	}
	return RULE_NONE;
}

/* If a function of Go calls C, the stack is another one, and the frame pointer is kept. */
static bool is_elsewhere(const struct unwind_bounds *bounds, const struct unwind_frame *frame)
{
	return frame->fp >= STACK_COPY_BYTES && frame->fp % 8 == 0 && !unwind_is_inside(bounds, frame->fp);
}

enum rule_result frame_pointer_step(const struct code_map *map, const struct unwind_bounds *bounds,
                                    rule_t rule, bool is_newest, struct unwind_frame *frame)
{
	struct unwind_frame caller, other;
	rule_t guess = in_frame;
	bool is_sure = false;

	if (rule != RULE_HOLE && rule != RULE_TABLELESS && rule != RULE_NOWHERE)
		return RULE_LEADS_NOWHERE;
	if (!is_newest && is_end(frame, true))
		return RULE_AT_BOTTOM;
	/* Assembly in an object that has unwind information otherwise is believed to have a frame
	 * where it has called, only. */
	if (is_newest && rule == RULE_HOLE)
		return RULE_LEADS_NOWHERE;
	if (is_newest) {
		guess = judge(map, frame);
		is_sure = rule_is_plain(guess);
		guess = is_sure ? guess : in_frame;
	}
	if (!step_by(map, bounds, guess, rule, is_newest && !is_sure, frame, &caller))
		return !is_newest && is_elsewhere(bounds, frame) ? RULE_OTHER_STACK : RULE_LEADS_NOWHERE;
	/* Before its first push and after its last pop a function has no frame of its own, and
	 * some never have one: then a return address is on top. */
	if (is_newest && guess == in_frame && !is_sure &&
	    step_by(map, bounds, as_called, rule, false, frame, &other))
		return RULE_LEADS_NOWHERE;
	*frame = caller;
	return RULE_STEPPED;
}

#elif defined(__aarch64__)

#include "handler/unwind/stack_copy.h"

/* Linkers write no unwind information for the PLT. Its entries change neither the stack nor the register of
 * the return address, but for the first one, which the others may go to. An interrupted one is known by its
 * instructions:
 *
 *	bti c, or in the first stp x16,x30,[sp,#-16]!
 *	adrp x16,PAGE
 *	ldr x17,[x16,#SLOT]
 *	add x16,x16,#SLOT
 *	br x17
 */
static bool is_entry(const uint32_t *code)
{
	return (code[0] & 0x9f00001fu) == 0x90000010u && (code[1] & 0xffc003ffu) == 0xf9400211u &&
	       (code[2] & 0xffc003ffu) == 0x91000210u && code[3] == 0xd61f0220u;
}

#define BTI_C 0xd503245fu
#define PUSH 0xa9bf7bf0u /* the first entry's */
#define BEFORE 4u

enum rule_result frame_pointer_step(const struct code_map *map, const struct unwind_bounds *bounds,
                                    rule_t rule, bool is_newest, struct unwind_frame *frame)
{
	uint32_t code[2 * BEFORE + 1];
	unsigned start = BEFORE;
	int64_t pushed;

	(void)map;
	if (!is_newest || rule != RULE_HOLE ||
	    !stack_copy_part(frame->pc - BEFORE * sizeof(*code), code, sizeof(code)))
		return RULE_LEADS_NOWHERE;
	if (code[start] == PUSH || code[start] == BTI_C)
		start++;
	else
		while (start > 1 && (code[start] & 0x9f00001fu) != 0x90000010u)
			start--;
	if (!is_entry(code + start))
		return RULE_LEADS_NOWHERE;
	pushed = start <= BEFORE && code[start - 1] == PUSH ? 16 : 0;
	return rule_apply_link(rule_make_checked(RULE_LINK, pushed, 0, 0), frame, bounds);
}

#else

enum rule_result frame_pointer_step(const struct code_map *map, const struct unwind_bounds *bounds,
                                    rule_t rule, bool is_newest, struct unwind_frame *frame)
{
	(void)map, (void)bounds, (void)rule, (void)is_newest, (void)frame;
	return RULE_LEADS_NOWHERE;
}

#endif
