/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/static/constant.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "sqlite/static/object.h"

static bool is_readable(const struct static_object *object, uintptr_t function)
{
	return static_is_in(&object->code, function) && object->code.end - function >= CONSTANT_CODE_BYTES;
}

#if defined(__x86_64__)

static const uint8_t *skip(const uint8_t *code, const char *bytes, size_t size)
{
	return memcmp(code, bytes, size) ? code : code + size;
}

/* Skips the usual beginning of a function: endbr64; push %rbp; mov %rsp,%rbp (in one of its two
 * encodings). */
static const uint8_t *skip_frame(const uint8_t *code)
{
	code = skip(code, "\xf3\x0f\x1e\xfa", 4);
	code = skip(code, "\x55\x48\x89\xe5", 4);
	return skip(code, "\x55\x48\x8b\xec", 4);
}

static bool returns(const uint8_t *code)
{
	return *skip(code, "\x5d", 1) == 0xc3; /* pop %rbp */
}

static int32_t read_32(const uint8_t *code)
{
	int32_t value;

	memcpy(&value, code, sizeof(value));
	return value;
}

uint32_t constant_returned(const struct static_object *object, uintptr_t function)
{
	const uint8_t *at = (const uint8_t *)function;

	if (!is_readable(object, function))
		return 0;
	at = skip_frame(at);
	return *at == 0xb8 && returns(at + 5) ? (uint32_t)read_32(at + 1) : 0; /* mov $n,%eax */
}

uintptr_t constant_address_returned(const struct static_object *object, uintptr_t function)
{
	const uint8_t *at = (const uint8_t *)function;
	uintptr_t location, value;

	if (!is_readable(object, function))
		return 0;
	at = skip_frame(at);
	if (*at == 0xb8 && returns(at + 5))
		return (uint32_t)read_32(at + 1);
	if (at[0] != 0x48 || at[2] != 0x05 || !returns(at + 7))
		return 0;
	location = (uintptr_t)(at + 7) + (uintptr_t)(intptr_t)read_32(at + 3);
	if (at[1] == 0x8d) /* lea n(%rip),%rax */
		return location;
	/* mov n(%rip),%rax: from the GOT, if the text is exported. */
	if (at[1] != 0x8b || location % sizeof(value) || !static_is_loaded(object, location, sizeof(value)))
		return 0;
	memcpy(&value, (const void *)location, sizeof(value));
	return value;
}

uintptr_t constant_named_at(uintptr_t address)
{
	const uint8_t *at = (const uint8_t *)address;

	/* lea n(%rip),r */
	if ((at[0] & 0xfb) == 0x48 && at[1] == 0x8d && (at[2] & 0xc7) == 0x05)
		return address + 7 + (uintptr_t)(intptr_t)read_32(at + 3);
	/* mov $n,r */
	return (at[0] & 0xf8) == 0xb8 ? (uint32_t)read_32(at + 1) : 0;
}

static bool calls_pointer(const uint8_t *at)
{
	for (unsigned i = 5; i < CONSTANT_CODE_BYTES - 1; i++)
		if (at[i] == 0xff && (at[i + 1] & 0x38) == 0x10) /* call *r, call *n(r) */
			return true;
	return false;
}

uintptr_t constant_next_passed(uintptr_t from, uintptr_t end)
{
	for (const uint8_t *at = (const uint8_t *)from; at < (const uint8_t *)end; at++)
		/* %edx, %rdx */
		if ((at[0] == 0xba || (at[2] == 0x15 && at[0] == 0x48)) && calls_pointer(at))
			return (uintptr_t)at;
	return end;
}

#elif defined(__aarch64__)

#define RETURN 0xd65f03c0u

static uint32_t read_code(uintptr_t at)
{
	uint32_t code;

	memcpy(&code, (const void *)at, sizeof(code));
	return code;
}

/* bti c */
static uintptr_t skip_landing(uintptr_t at)
{
	return read_code(at) == 0xd503245fu ? at + 4 : at;
}

static bool is_move(uint32_t code, uint32_t operation, uint32_t shift)
{
	return (code & 0xffe0001fu) == (operation | shift << 21);
}

/* mov w0,#low; movk w0,#high,lsl #16; ret */
uint32_t constant_returned(const struct static_object *object, uintptr_t function)
{
	uint32_t low, high;

	if (!is_readable(object, function))
		return 0;
	function = skip_landing(function);
	low = read_code(function);
	high = read_code(function + 4);
	if (!is_move(low, 0x52800000u, 0) || !is_move(high, 0x72800000u, 1) ||
	    read_code(function + 8) != RETURN)
		return 0;
	return (low >> 5 & 0xffff) | (high >> 5 & 0xffff) << 16;
}

/* adrp x,page … add y,x,#offset: compilers put others between the two. Returns where the second is,
 * 0: nowhere near. The readable code may begin with a landing, so the last two instructions are left. */
static uintptr_t find_add(uintptr_t at)
{
	uint32_t page = read_code(at);

	for (unsigned i = 4; (page & 0x9f000000u) == 0x90000000u && i < CONSTANT_CODE_BYTES - 8; i += 4)
		if ((read_code(at + i) & 0xffc003e0u) == (0x91000000u | (page & 31) << 5))
			return at + i;
	return 0;
}

/* The constant of an addition to the register that `add` has set, in the next instruction: what is named is
 * in a structure, or near another constant. */
static uint32_t added_next(uintptr_t add)
{
	uint32_t target = read_code(add) & 31, next = read_code(add + 4);

	return (next & 0xffc003ffu) == (0x91000000u | target << 5 | target) ? next >> 10 & 0xfff : 0;
}

uintptr_t constant_named_at(uintptr_t at)
{
	uint32_t page = read_code(at);
	uintptr_t add = find_add(at);
	int64_t pages;

	if (!add)
		return 0;
	pages = (int64_t)((uint64_t)((page >> 5 & 0x7ffff) << 2 | (page >> 29 & 3)) << 43) >> 43;
	return (at & ~(uintptr_t)4095) + (uintptr_t)(pages * 4096) + (read_code(add) >> 10 & 0xfff) +
	       added_next(add);
}

static bool calls_pointer(uintptr_t at)
{
	for (unsigned i = 8; i < CONSTANT_CODE_BYTES; i += 4)
		if ((read_code(at + i) & 0xfffffc1fu) == 0xd63f0000u) /* blr x */
			return true;
	return false;
}

uintptr_t constant_next_passed(uintptr_t from, uintptr_t end)
{
	for (uintptr_t at = from; at < end; at += CONSTANT_CODE_STEP) {
		uintptr_t add = find_add(at);

		if (add && (read_code(add) & 31) == 2 && calls_pointer(at))
			return at;
	}
	return end;
}

uintptr_t constant_address_returned(const struct static_object *object, uintptr_t function)
{
	if (!is_readable(object, function))
		return 0;
	function = skip_landing(function);
	return read_code(function + 8) == RETURN ||
	                       (read_code(function + 12) == RETURN && added_next(function + 4))
	               ? constant_named_at(function)
	               : 0;
}

#else
#error "queryprof supports x86-64 and aarch64"
#endif
