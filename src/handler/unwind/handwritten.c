/*
 * What handwritten.h says. The instructions are followed in their order; behind a jump
 * or a return, what is pushed is what it is where a jump leads to that place. As that may
 * come later, the function is read more than once. Where two ways disagree, and from an
 * instruction on that is not known or moves the stack pointer in another way, the
 * function has no rule.
 */
#include "handler/unwind/handwritten.h"

#include <stdbool.h>

#if defined(__x86_64__)

#define MAX_PUSHED 8
#define MAX_TARGETS 64
#define MAX_BYTES 4096
#define ROUNDS 3

#define RBP 5 /* as instructions number it */

/* What instructions have behind their opcode, a letter each:
 *	-  nothing             i  1 byte            j  4 bytes (2 with the prefix 66)
 *	m  an operand          b  and 1 byte        d  and 4 bytes
 *	g  an operand, part of whose first byte is opcode
 *	                       B  and 1 byte        D  and 4 bytes
 *	t  as g, and 1 byte if that part is 0 or 1  T  and 4 bytes if so
 *	v  4 bytes, 8 with REX.W
 *	x  not known, or it moves the stack pointer
 * Pushes, jumps and returns are told apart before. */
static const char one_byte[] = "mmmmijxxmmmmijxx"
			       "mmmmijxxmmmmijxx"
			       "mmmmijxxmmmmijxx"
			       "mmmmijxxmmmmijxx"
			       "xxxxxxxxxxxxxxxx"
			       "xxxxxxxxxxxxxxxx"
			       "xxxmxxxxxdxbxxxx"
			       "xxxxxxxxxxxxxxxx"
			       "BDxBmmmmmmmmxmxx"
			       "----x-----xxxx--"
			       "xxxx----ij------"
			       "iiiixiiivvvvxvvv"
			       "BBxxxxBDxxxxxxxx"
			       "ggggxxxxxxxxxxxx"
			       "xxxxxxxxxxxxxxxx"
			       "xxxxx-tT--xx--gx";

/* Behind 0f. */
static const char two_bytes[] = "xxxxxxxxxxxxxxxx"
				"mmmmmmmmgxxxxxgg"
				"xxxxxxxxmmmmmmmm"
				"xxxxxxxxxxxxxxxx"
				"mmmmmmmmmmmmmmmm"
				"mmmmmmmmmmmmmmmm"
				"mmmmmmmmmmmmmmmm"
				"bBBBmmm-xxxxmmmm"
				"xxxxxxxxxxxxxxxx"
				"gggggggggggggggg"
				"xx-mbmxxxxxmbmxm"
				"mmxmxxmmxxBmmmmm"
				"mmbmbbbx----x---"
				"mmmmmmmmmmmmmmmm"
				"mmmmmmmmmmmmmmmm"
				"mmmmmmmmmmmmmmmx";

struct reader {
	uintptr_t at, start, end;
	uint8_t pushed[MAX_PUSHED];
	uint32_t depth, deepest;
	bool known; /* what is pushed here */
	struct {
		uint16_t offset, depth;
	} targets[MAX_TARGETS];
	uint32_t target_count;
};

static uint8_t byte_at(const struct reader *reader, uintptr_t address)
{
	return address < reader->end ? *(const uint8_t *)address : 0;
}

static bool push(struct reader *reader, uint8_t number)
{
	if (!reader->known)
		return true;
	if (reader->depth == MAX_PUSHED)
		return false;
	/* Places that were left with another register in its stead. */
	if (reader->depth < reader->deepest && reader->pushed[reader->depth] != number)
		return false;
	reader->pushed[reader->depth++] = number;
	if (reader->deepest < reader->depth)
		reader->deepest = reader->depth;
	return true;
}

static bool pop(struct reader *reader, uint8_t number)
{
	return !reader->known || (reader->depth > 0 && reader->pushed[--reader->depth] == number);
}

static bool jump_to(struct reader *reader, uintptr_t target)
{
	const uint16_t offset = (uint16_t)(target - reader->start);

	if (!reader->known || target < reader->start || target >= reader->end)
		return true;
	for (uint32_t i = 0; i < reader->target_count; i++)
		if (reader->targets[i].offset == offset)
			return reader->targets[i].depth == reader->depth;
	if (reader->target_count == MAX_TARGETS)
		return false;
	reader->targets[reader->target_count].offset = offset;
	reader->targets[reader->target_count++].depth = (uint16_t)reader->depth;
	return true;
}

static int32_t read_offset(const struct reader *reader, uintptr_t at, unsigned bytes)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint32_t)byte_at(reader, at + i) << (8 * i);
	return bytes == 1 ? (int8_t)value : (int32_t)value;
}

/* The bytes of an operand in memory or a register; 0: it is, or may be, rsp itself. */
static unsigned operand_bytes(const struct reader *reader, uintptr_t at, uint8_t rex, bool group)
{
	const uint8_t modrm = byte_at(reader, at);
	const unsigned mode = modrm >> 6, reg = modrm >> 3 & 7, rm = modrm & 7;
	unsigned bytes = 1;

	if (!group && reg == 4 && (rex & 4) == 0)
		return 0;
	if (mode == 3)
		return rm == 4 && (rex & 1) == 0 ? 0 : bytes;
	if (rm == 4) {
		const uint8_t sib = byte_at(reader, at + 1);
		bytes++;
		if (mode == 0 && (sib & 7) == 5)
			bytes += 4;
	} else if (mode == 0 && rm == 5) {
		bytes += 4;
	}
	return bytes + (mode == 1 ? 1 : mode == 2 ? 4 : 0);
}

/* Bytes behind the opcode at `at`, -1: not known. */
static int operands_bytes(const struct reader *reader, uintptr_t at, char form, uint8_t rex, bool wide)
{
	const unsigned four = wide ? 4 : 2;
	const unsigned part = byte_at(reader, at) >> 3 & 7;
	unsigned operand = 0;

	switch (form) {
	case '-': return 0;
	case 'i': return 1;
	case 'j': return (int)four;
	case 'v': return (rex & 8) != 0 ? 8 : (int)four;
	case 'x': return -1;
	default: break;
	}
	operand = operand_bytes(reader, at, rex, form != 'm' && form != 'b' && form != 'd');
	if (operand == 0)
		return -1;
	switch (form) {
	case 'b':
	case 'B': return (int)operand + 1;
	case 'd':
	case 'D': return (int)(operand + four);
	case 't': return (int)operand + (part < 2);
	case 'T': return (int)(operand + (part < 2 ? four : 0));
	default: return (int)operand;
	}
}

/* What jumps to this place left pushed. False: not the same as comes from above. */
static bool arrive(struct reader *reader)
{
	for (uint32_t i = 0; i < reader->target_count; i++) {
		if (reader->targets[i].offset != reader->at - reader->start)
			continue;
		if (reader->known && reader->depth != reader->targets[i].depth)
			return false;
		reader->depth = reader->targets[i].depth;
		reader->known = true;
	}
	return true;
}

/* Steps over one instruction. */
static bool step_over(struct reader *reader)
{
	uintptr_t at = reader->at;
	uint8_t rex = 0, opcode = byte_at(reader, at);
	bool wide = true, two = false;

	for (; opcode == 0x66 || opcode == 0xf2 || opcode == 0xf3 || opcode == 0x2e || opcode == 0x3e;
	     opcode = byte_at(reader, ++at))
		wide &= opcode != 0x66;
	if ((opcode & 0xf0) == 0x40) {
		rex = opcode;
		opcode = byte_at(reader, ++at);
	}
	at++;
	if ((opcode & 0xf0) == 0x50 && wide) {
		const uint8_t number = (uint8_t)((opcode & 7) + (rex & 1) * 8);
		reader->at = at;
		return opcode < 0x58 ? push(reader, number) : pop(reader, number);
	}
	if (opcode == 0xc3) { /* ret */
		reader->at = at;
		reader->known = false;
		return true;
	}
	if (opcode == 0x0f) {
		two = true;
		opcode = byte_at(reader, at++);
	}
	const bool near = !two && ((opcode & 0xf0) == 0x70 || opcode == 0xeb || opcode == 0xe3);
	const bool far = two ? (opcode & 0xf0) == 0x80 : opcode == 0xe9;
	if (near || far) {
		const unsigned bytes = near ? 1 : 4;
		reader->at = at + bytes;
		if (!jump_to(reader, reader->at + (uintptr_t)(intptr_t)read_offset(reader, at, bytes)))
			return false;
		if (!two && (opcode == 0xeb || opcode == 0xe9))
			reader->known = false;
		return true;
	}

	const int bytes = operands_bytes(reader, at, two ? two_bytes[opcode] : one_byte[opcode], rex, wide);
	if (bytes >= 0)
		reader->at = at + (unsigned)bytes;
	return bytes >= 0;
}

/* The instruction behind the push that the function begins with; 0: it does not. */
static uintptr_t behind_push(uintptr_t start, uintptr_t end)
{
	const uint8_t *p = (const uint8_t *)start, *const last = (const uint8_t *)end;

	if (last - p > 8 && p[0] == 0xf3 && p[1] == 0x0f && p[2] == 0x1e && p[3] == 0xfa) /* endbr64 */
		p += 4;
	if (last - p < 4)
		return 0;
	p += p[0] == 0x41;
	return (*p & 0xf8) == 0x50 ? (uintptr_t)(p + 1) : 0;
}

/* Not inlined: its frame is for few functions, and not above the parser's. */
__attribute__((noinline)) static rule_t read_pushes(uintptr_t start, uintptr_t end, uintptr_t address)
{
	struct reader reader = { .start = start, .end = end };
	bool found = false;
	uint32_t depth = 0, rbp = 0;

	for (int round = 0; round < ROUNDS && !found; round++) {
		reader.at = start;
		reader.depth = 0;
		reader.known = true;
		do {
			if (!arrive(&reader))
				return RULE_NONE;
			if (reader.at == address && reader.known) {
				depth = reader.depth;
				found = true;
			}
		} while (reader.at < end && step_over(&reader));
		if (reader.at < address)
			return RULE_NONE;
	}
	if (!found)
		return RULE_NONE;
	for (uint32_t i = 0; i < depth; i++)
		if (reader.pushed[i] == RBP)
			rbp = i + 2;
	return rule_make(RULE_RSP, (int64_t)depth + 1, rbp);
}

/* Whether the unwind information says what it comes to at `address`. */
static bool says(const struct cfi_section *section, uintptr_t address, rule_t said)
{
	struct cfi_row row;

	return cfi_find_row(section, address, &row) == CFI_FOUND && rule_from_row(&row) == said;
}

rule_t handwritten_rule(const struct cfi_section *section, const struct cfi_row *row, rule_t said,
                        uintptr_t code_start, uintptr_t code_end, uintptr_t address)
{
	const uintptr_t start = row->function_start, end = row->function_end;

	if (!rule_is_as_called(said) || address == start || start < code_start || end > code_end ||
	    end - start > MAX_BYTES)
		return said;
	const uintptr_t first = behind_push(start, end);
	if (first == 0 || address < first || !says(section, first, said))
		return said;
	return read_pushes(start, end, address);
}

#else

rule_t handwritten_rule(const struct cfi_section *section, const struct cfi_row *row, rule_t said,
                        uintptr_t code_start, uintptr_t code_end, uintptr_t address)
{
	(void)section;
	(void)row;
	(void)code_start;
	(void)code_end;
	(void)address;
	return said;
}

#endif
