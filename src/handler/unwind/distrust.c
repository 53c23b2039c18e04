/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/unwind/distrust.h"

#include <string.h>

/* A landing is at most this long: 131 bytes on x86-64 up to gcc 12, 76 on aarch64. */
#define LANDING_BYTES 256

#ifdef __x86_64__

/* Whether the call at `p` is x86-64's of the copying. A length would not do: the search, which is exact,
 * returns to 15 bytes before it (gcc 12). Two words that lie side by side are what the next call gets:
 *
 *	call uw_install_context_1
 *	mov HANDLER(%rbp),%rsi
 *	mov CFA(%rbp),%rdi
 */
static bool is_copying(const uint8_t *p, const uint8_t *end)
{
	int32_t handler, cfa;

	if (end - p < 19 || p[0] != 0xe8 || memcmp(p + 5, "\x48\x8b\xb5", 3) != 0 ||
	    memcmp(p + 12, "\x48\x8b\xbd", 3) != 0)
		return false;
	memcpy(&handler, p + 8, sizeof(handler));
	memcpy(&cfa, p + 15, sizeof(cfa));
	return handler == cfa + 8;
}

/* Whether it is the row of a function's first instruction: nothing is pushed yet. */
static bool is_as_called(const struct cfi_row *row)
{
	return !row->cfa_by_expression && row->cfa_register == CFI_STACK_POINTER && row->cfa_offset == 8 &&
	       row->frame_pointer.saved == CFI_SAME;
}

/* The instruction after the push with which the function begins; 0: there is none. */
static uintptr_t behind_push(const struct cfi_row *row)
{
	const uint8_t *p = (const uint8_t *)row->function_start;

	if (row->function_end - row->function_start < 8)
		return 0;
	if (memcmp(p, "\xf3\x0f\x1e\xfa", 4) == 0) /* endbr64 */
		p += 4;
	p += *p == 0x41; /* push of r8 to r15 */
	return (*p & 0xf8) == 0x50 ? (uintptr_t)(p + 1) : 0;
}

static bool hides_push(const struct cfi_section *section, const struct cfi_row *row, uintptr_t address)
{
	const uintptr_t behind = behind_push(row);
	struct cfi_row second;

	return behind != 0 && address >= behind && cfi_find_row(section, behind, &second) == CFI_FOUND &&
	       is_as_called(&second);
}

/* Between the moved instruction and the jump. */
#define MOVED_BYTES 32

/* Whether the instruction at `p` adds to the stack pointer, or subtracts from it, and the rows
 * before it, after it and at `address` do not account for that. */
static bool is_denied(const struct cfi_section *section, const struct cfi_row *row, const uint8_t *p,
                      uintptr_t address)
{
	const uintptr_t behind = (uintptr_t)p + (p[1] == 0x83 ? 4 : 7);
	struct cfi_row rows[2];

	if (p[0] != 0x48 || (p[1] != 0x83 && p[1] != 0x81) || (p[2] != 0xc4 && p[2] != 0xec) ||
	    behind > address)
		return false;
	for (int i = 0; i < 2; i++)
		if (cfi_find_row(section, i == 0 ? (uintptr_t)p : behind, &rows[i]) != CFI_FOUND ||
		    rows[i].cfa_by_expression || rows[i].cfa_register != row->cfa_register ||
		    rows[i].cfa_offset != row->cfa_offset)
			return false;
	return true;
}

static bool hides_move(const struct cfi_section *section, const struct cfi_row *row, uintptr_t address)
{
	for (uintptr_t back = 4; back <= MOVED_BYTES && back <= address - row->function_start; back++)
		if (is_denied(section, row, (const uint8_t *)(address - back), address))
			return true;
	return false;
}

#else
#define is_copying(p, end) false
#endif

/* Whether an exception may be landing at `address` of a function in which one can: the frame
 * pointer soon becomes the target's, and the copying has already begun. If that call is not
 * recognized, all of the last LANDING_BYTES are distrusted. */
static bool is_landing(const struct cfi_section *section, const struct cfi_row *row, uintptr_t address)
{
	const uintptr_t end = row->function_end;
	struct cfi_row ahead;

	for (uintptr_t p = address; p < end && p < address + LANDING_BYTES; p++) {
		if (is_copying((const uint8_t *)p, (const uint8_t *)end))
			return false;
		if (cfi_find_row(section, p, &ahead) != CFI_FOUND || ahead.frame_pointer.saved == CFI_SAME)
			return true;
	}
	return false;
}

bool distrust_row(const struct cfi_section *section, const struct cfi_row *row, uintptr_t address)
{
	if (row->eh_return)
		return is_landing(section, row, address);
#ifdef __x86_64__
	return is_as_called(row) ? hides_push(section, row, address) : hides_move(section, row, address);
#else
	return false;
#endif
}
