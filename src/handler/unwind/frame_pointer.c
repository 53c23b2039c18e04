/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/unwind/frame_pointer.h"

#include <string.h>

#include "handler/unwind/rules.h"

#if defined(__x86_64__) && !defined(CFI_FOR_AARCH64)

/* The longest call. */
#define CALL_BYTES 7

/* A function is hardly longer, so a call of it names an address so near below. */
#define FUNCTION_BYTES ((uintptr_t)1 << 20)

/* Whether an instruction of `length` at the end of the bytes calls what a register or memory
 * names: ff /2. */
static bool is_indirect_call(const uint8_t *end, unsigned length)
{
	const uint8_t operand = end[1 - (int)length];
	const unsigned mode = operand >> 6, base = operand & 7;
	unsigned needed = 2 + (mode == 1 ? 1 : mode == 2 ? 4 : 0);

	if (end[-(int)length] != 0xff || (operand >> 3 & 7) != 2)
		return false;
	if (mode == 0 && base == 5)
		needed += 4;
	if (mode != 3 && base == 4)
		needed += 1 + (mode == 0 && (end[2 - (int)length] & 7) == 5 ? 4 : 0);
	return needed == length;
}

/* Whether the function has made its frame before `pc`: backwards from there its push comes before
 * any end of a function that had one. */
#define BACK 512
static bool is_behind_push(uintptr_t pc)
{
	static const uint8_t ends[][2] = { { 0x5d, 0xc3 }, { 0x5d, 0xe9 }, { 0x5d, 0xeb },
		                           { 0x5d, 0xff }, { 0xc9, 0xc3 }, { 0xcc, 0xcc } };
	uint8_t code[BACK + 1];

	if (pc < BACK || !stack_copy_part(pc - BACK, code, sizeof code))
		return false;
	for (unsigned i = BACK; i-- > 0;) {
		for (unsigned e = 0; e < sizeof ends / sizeof *ends; e++)
			if (code[i] == ends[e][0] && code[i + 1] == ends[e][1])
				return false;
		if (i + 4 <= BACK && memcmp(code + i, "\x55\x48\x89\xe5", 4) == 0)
			return true;
	}
	return false;
}

/* Whether a call of `target` may have led to `frame`. If not to its own function, then to one
 * that jumped there. A function that has unwind information is another frame instead, whose
 * frame pointer this is; and so may be any, where this is the newest. */
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
	const uint8_t *const end = bytes + CALL_BYTES;
	int32_t distance;

	if (address < CALL_BYTES || !stack_copy_part(address - CALL_BYTES, bytes, CALL_BYTES))
		return false;
	memcpy(&distance, end - 4, sizeof distance);
	if (end[-5] == 0xe8 &&
	    may_lead_to(map, address + (uintptr_t)(intptr_t)distance, frame, rule, is_newest))
		return true;
	for (unsigned length = 2; length <= CALL_BYTES; length++)
		if (is_indirect_call(end, length))
			return true;
	return false;
}

/* The caller by this rule; false: what the rule says cannot be. */
static bool step_by(const struct code_map *map, const struct unwind_bounds *bounds, rule_t guess, rule_t rule,
                    bool is_newest, const struct unwind_frame *frame, struct unwind_frame *caller)
{
	uintptr_t fp_slot;

	*caller = *frame;
	return rule_apply_plain(guess, caller, bounds, &fp_slot) == RULE_STEPPED &&
	       is_from_call(map, caller->pc + 1, frame, rule, is_newest);
}

static const rule_t as_called = 1 << RULE_OFFSET_SHIFT | RULE_RSP;
static const rule_t pushed = 2 << RULE_OFFSET_SHIFT | 2 << 4 | RULE_RSP;
static const rule_t in_frame = 2 << RULE_OFFSET_SHIFT | 2 << 4 | RULE_RBP;

/* The rule of the newest frame where the instruction at its address says it. */
static rule_t judge(const struct code_map *map, const struct unwind_frame *frame)
{
	uint8_t at[5];
	int32_t distance;

	if (!stack_copy_part(frame->pc, at, sizeof at))
		return RULE_NONE;
	if (at[0] == 0x55 || at[0] == 0xc3 || memcmp(at, "\xf3\x0f\x1e\xfa", 4) == 0)
		return as_called; /* push %rbp, ret, endbr64 */
	if (memcmp(at, "\x48\x89\xe5", 3) == 0 || memcmp(at, "\x48\x8b\xec", 3) == 0)
		return pushed; /* mov %rsp,%rbp */
	if (at[0] != 0xe9)
		return in_frame;
	/* A jump changes nothing: the rule of its target, as of a stub that displaced the
	 * beginning of a function, is its own. */
	memcpy(&distance, at + 1, sizeof distance);
	const rule_t rule =
		rules_find(map, map->rules, frame->pc + sizeof at + (uintptr_t)(intptr_t)distance).rule;
	return rule_is_plain(rule) ? rule : in_frame;
}

/* Of assembly in an object that has unwind information otherwise nothing is known but linkers' way to
 * other objects: a jump, behind endbr64 in some. */
static rule_t judge_hole(const struct unwind_frame *frame)
{
	uint8_t at[4];

	if (!stack_copy_part(frame->pc, at, sizeof at))
		return RULE_NONE;
	return memcmp(at, "\xf3\x0f\x1e\xfa", 4) == 0 || (at[0] == 0xff && at[1] == 0x25) ||
	                       (at[0] == 0xf2 && at[1] == 0xff && at[2] == 0x25)
	               ? as_called
	               : (rule_t)RULE_NONE;
}

/* Whether the call before the address names `pc`, or the instruction before it. */
static bool is_called_here(uintptr_t address, uintptr_t pc)
{
	uint8_t call[5];
	int32_t distance;

	if (!stack_copy_part(address - sizeof call, call, sizeof call) || call[0] != 0xe8)
		return false;
	memcpy(&distance, call + 1, sizeof distance);
	return pc - (address + (uintptr_t)(intptr_t)distance) <= 4;
}

enum rule_result frame_pointer_step(const struct code_map *map, const struct unwind_bounds *bounds,
                                    rule_t rule, bool is_newest, struct unwind_frame *frame,
                                    enum rule_result end)
{
	struct unwind_frame caller, other;
	rule_t guess = in_frame;

	if (rule != RULE_HOLE && rule != RULE_TABLELESS && rule != RULE_NOWHERE)
		return end;
	/* The program's start sets it so, and nothing else leaves it 0. */
	if (!is_newest && rule == RULE_TABLELESS && frame->fp == 0)
		return RULE_AT_BOTTOM;
	/* Assembly in an object that has unwind information otherwise is believed to have a frame
	 * where it has called. */
	if (is_newest)
		guess = rule == RULE_HOLE ? judge_hole(frame) : judge(map, frame);
	const bool is_sure = is_newest && guess == in_frame && is_behind_push(frame->pc);
	if (!rule_is_plain(guess) ||
	    !step_by(map, bounds, guess, rule, is_newest && !is_sure, frame, &caller))
		return end;
	/* Before its first push and behind its last pop a function has no frame of its own, some
	 * have none at all: then a return address is on top. */
	if (is_newest && guess == in_frame && !is_sure &&
	    step_by(map, bounds, as_called, rule, is_newest, frame, &other))
		return end;
	if (is_newest && rule == RULE_HOLE && !is_called_here(caller.pc + 1, frame->pc))
		return end;
	*frame = caller;
	return RULE_STEPPED;
}

#else

enum rule_result frame_pointer_step(const struct code_map *map, const struct unwind_bounds *bounds,
                                    rule_t rule, bool is_newest, struct unwind_frame *frame,
                                    enum rule_result end)
{
	(void)map, (void)bounds, (void)rule, (void)is_newest, (void)frame;
	return end;
}

#endif
