/*
 * What landing.h says, from the instructions of libgcc: read when the rule of an
 * address is made, never when it is used.
 */
#include "handler/unwind/landing.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)

/* Where the code is not as gcc has made it so far, this many bytes before its end have
 * no rule, and the trace ends there. It was 130 up to gcc 12. */
#define LANDING_MAX_BYTES 256

#define RCX 2 /* its DWARF number */

static bool has_bytes(uintptr_t address, uint32_t bytes, uint32_t mask)
{
	uint32_t found;

	memcpy(&found, (const void *)address, sizeof found);
	return (found & mask) == bytes;
}

static int32_t read_int32(uintptr_t address)
{
	int32_t value;

	memcpy(&value, (const void *)address, sizeof value);
	return value;
}

/* Whether the stack pointer is moved here: mov %rcx,%rsp, as the unwind information
 * says as well. */
static bool is_end(const struct cfi_section *section, uintptr_t address)
{
	struct cfi_row row;

	return has_bytes(address, 0xcc8948, 0xffffff) && cfi_find_row(section, address, &row) == CFI_FOUND &&
	       !row.cfa_by_expression && row.cfa_register == RCX && row.cfa_offset == 8;
}

/* The instruction that moves the stack pointer, 0: there is none. */
static uintptr_t find_end(const struct cfi_section *section, const struct cfi_row *row)
{
	for (uintptr_t p = row->function_start; p + 4 <= row->function_end; p++)
		if (is_end(section, p))
			return p;
	return 0;
}

/* The call of uw_install_context_1, which overwrites, and what follows it:
 *
 *	call ...
 *	mov HANDLER(%rbp),%rsi
 *	mov CFA(%rbp),%rdi
 *
 * where the two are the neighbouring words of the target's context. Returns the
 * call's address and where the CFA is, 0: not found. */
static uintptr_t find_begin(const struct cfi_row *row, uintptr_t end, int32_t *cfa)
{
	enum { CALL = 5, LOAD = 7 };

	for (uintptr_t back = CALL + 2 * LOAD; back <= end - row->function_start; back++) {
		const uintptr_t p = end - back, first = p + CALL, second = first + LOAD;
		if (!has_bytes(p, 0xe8, 0xff) || !has_bytes(first, 0xb58b48, 0xffffff) ||
		    !has_bytes(second, 0xbd8b48, 0xffffff))
			continue;
		*cfa = read_int32(second + 3);
		if (read_int32(first + 3) == *cfa + 8)
			return p;
	}
	return 0;
}

rule_t landing_rule(const struct cfi_section *section, const struct cfi_row *row, uintptr_t code_start,
                    uintptr_t code_end, uintptr_t address)
{
	int32_t cfa;

	/* The last instructions: rbp is the target's already. */
	if (row->frame_pointer.place == CFI_SAME)
		return RULE_FULL_EXACT;
	if (row->function_start < code_start || row->function_end > code_end)
		return RULE_NONE;
	const uintptr_t end = find_end(section, row);
	/* None: the cold part of one, which gives up. */
	if (end == 0)
		return rule_from_row(row);
	const uintptr_t begin = find_begin(row, end, &cfa);
	if (address >= end || address < (begin != 0 ? begin : end - LANDING_MAX_BYTES))
		return rule_from_row(row);
	if (begin == 0 || row->cfa_by_expression || row->cfa_register != CFI_FRAME_POINTER ||
	    row->cfa_offset != 16 || cfa >= 0)
		return RULE_NONE;
	const rule_t rule = rule_make_checked(RULE_LANDING, cfa, 0);
	return (rule & 15) == RULE_LANDING ? rule : RULE_NONE;
}

#else

/* The moment is told wrong, for want of a machine to try it on. */
rule_t landing_rule(const struct cfi_section *section, const struct cfi_row *row, uintptr_t code_start,
                    uintptr_t code_end, uintptr_t address)
{
	(void)section;
	(void)code_start;
	(void)code_end;
	(void)address;
	return rule_from_row(row);
}

#endif
