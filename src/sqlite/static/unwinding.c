/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/static/unwinding.h"

#include <string.h>

/* DWARF's numbers. */
enum {
	ENCODED_RELATIVE_32 = 0x1b, /* signed, from the field itself */
	ENCODED_UNSIGNED_32 = 0x03,
	ENCODED_FROM_HEADER_32 = 0x3b, /* signed, from the header */
	ADVANCE_2 = 0x03,
	SAME_VALUE = 0x08,
	DEFINE_CFA = 0x0c,
	DEFINE_CFA_OFFSET = 0x0e,
	NEGATE_SIGNED = 0x2d, /* whether the return address is signed, the opposite of before */
	SAVED = 0x80,         /* and the register */
};

#if defined(__x86_64__)
#define STACK_POINTER 7
#define FRAME_POINTER 6
#define RETURN_ADDRESS 16
#define CFA_AT_ENTRY 8 /* the call has pushed it */
#else
#define STACK_POINTER 31
#define FRAME_POINTER 29
#define RETURN_ADDRESS 30
#define CFA_AT_ENTRY 0
#endif
#define WORD 8

struct writing {
	uint8_t *to;
	size_t room, size;
	uintptr_t address;
};

static void put(struct writing *writing, const void *bytes, size_t size)
{
	if (writing->size + size <= writing->room)
		memcpy(writing->to + writing->size, bytes, size);
	writing->size += size;
}

static void put_8(struct writing *writing, unsigned value)
{
	put(writing, &(uint8_t){ (uint8_t)value }, 1);
}

static void put_16(struct writing *writing, unsigned value)
{
	put(writing, &(uint16_t){ (uint16_t)value }, 2);
}

static void put_32(struct writing *writing, uint64_t value)
{
	put(writing, &(uint32_t){ (uint32_t)value }, 4);
}

static void put_number(struct writing *writing, uint32_t value)
{
	for (; value >= 0x80; value >>= 7)
		put_8(writing, (value & 0x7f) | 0x80);
	put_8(writing, value);
}

/* A record's length precedes it. */
static size_t begin_record(struct writing *writing)
{
	put_32(writing, 0);
	return writing->size;
}

static void end_record(struct writing *writing, size_t start)
{
	while ((writing->size - start) % 4)
		put_8(writing, 0); /* no operation */
	if (writing->size <= writing->room)
		memcpy(writing->to + start - 4, &(uint32_t){ (uint32_t)(writing->size - start) }, 4);
}

/* Common to all: the frame at a function's first instruction. */
static size_t put_common(struct writing *writing)
{
	size_t start = begin_record(writing);

	put_32(writing, 0);
	put(writing, "\1zR", 4); /* version, augmentation, zero */
	put_number(writing, 1);  /* of code */
	put_8(writing, 0x78);    /* of data: -8 */
	put_number(writing, RETURN_ADDRESS);
	put_number(writing, 1);
	put_8(writing, ENCODED_RELATIVE_32);
	put_8(writing, DEFINE_CFA);
	put_number(writing, STACK_POINTER);
	put_number(writing, CFA_AT_ENTRY);
	if (CFA_AT_ENTRY) {
		put_8(writing, SAVED | RETURN_ADDRESS);
		put_number(writing, CFA_AT_ENTRY / WORD);
	}
	end_record(writing, start);
	return start - 4;
}

static void put_stub(struct writing *writing, const struct placed_stub *placed, size_t common)
{
	const struct stub *stub = &placed->stub;
	size_t start = begin_record(writing);
	uint32_t offset = 0, cfa = CFA_AT_ENTRY, fp = 0;
	bool is_signed = false;

	put_32(writing, start - common);
	put_32(writing, placed->address - (writing->address + writing->size));
	put_32(writing, stub->size);
	put_number(writing, 0);
	for (size_t i = 0; i < stub->rows_count; i++) {
		const struct stub_row *row = &stub->rows[i];

		if (row->offset > offset) {
			put_8(writing, ADVANCE_2);
			put_16(writing, row->offset - offset);
			offset = row->offset;
		}
		if (row->cfa != cfa) {
			put_8(writing, DEFINE_CFA_OFFSET);
			put_number(writing, cfa = row->cfa);
		}
		if (row->fp != fp && row->fp) {
			put_8(writing, SAVED | FRAME_POINTER);
			put_number(writing, row->fp / WORD);
		} else if (row->fp != fp) {
			put_8(writing, SAME_VALUE);
			put_number(writing, FRAME_POINTER);
		}
		fp = row->fp;
		if (row->is_signed != is_signed)
			put_8(writing, NEGATE_SIGNED);
		is_signed = row->is_signed;
	}
	end_record(writing, start);
}

size_t unwinding_write(uint8_t *to, size_t room, uintptr_t address, const struct placed_stub *stubs,
                       size_t count, size_t *size)
{
	struct writing writing = { to, room, 0, address };
	const size_t header = 12 + 8 * count;
	struct writing table = { to, room, 12, address };
	size_t common;

	put_8(&writing, 1);
	put_8(&writing, ENCODED_RELATIVE_32);
	put_8(&writing, ENCODED_UNSIGNED_32);
	put_8(&writing, ENCODED_FROM_HEADER_32);
	put_32(&writing, header - 4); /* to .eh_frame, from here */
	put_32(&writing, count);
	writing.size = header;
	common = put_common(&writing);
	for (size_t i = 0; i < count; i++) {
		put_32(&table, stubs[i].address - address);
		put_32(&table, writing.size);
		put_stub(&writing, &stubs[i], common);
	}
	put_32(&writing, 0);
	*size = writing.size;
	return writing.size <= room ? header : 0;
}
