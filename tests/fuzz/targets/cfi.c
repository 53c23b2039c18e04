/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For libFuzzer: a module's unwind information as input of the unwinder. An input contains an address to look
 * up, damage to an otherwise valid section, and the instructions of its only function. The section is always
 * at the same address, so that an input always means the same.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cfi.h"
#include "target.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, size) ((void)(memory), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(memory, size) ((void)(memory), (void)(size))
#endif

#define ADDRESS 0x200000000000ul
#define FUNCTION (ADDRESS + 0x100000)
#define FUNCTION_SIZE 0x1000u
#define PAGE 4096u
#define CODE_MAX 2048u
#define STACK_BYTES 1024u
#define DAMAGE_MAX 8u

/* Builds a header with a table of one function, a CIE and an FDE. */
static size_t build(uint8_t *image, const uint8_t *instructions, size_t size)
{
	static const uint8_t cie[] = {
		20,   0, 0, 0,    0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x00, /* code 1, data -8 */
		0x0c, 7, 8, 0x90, 1, 0, 0,                                          /* CFA = rsp + 8 */
	};
	static const uint8_t header[4] = { 1, 0x1b, 0x03, 0x3b };
	const size_t fde = 20 + sizeof(cie), total = fde + 25 + size;
	const uint32_t words[] = { (uint32_t)(21 + size), (uint32_t)(fde + 4 - 20) };
	const uint64_t range[] = { FUNCTION, FUNCTION_SIZE };
	const int32_t entry[] = { (int32_t)(FUNCTION - (ADDRESS + PAGE - total)), (int32_t)fde };
	const uint32_t count = 1;

	memset(image, 0, total);
	memcpy(image, header, sizeof(header));
	memcpy(image + 8, &count, sizeof(count));
	memcpy(image + 12, entry, sizeof(entry));
	memcpy(image + 20, cie, sizeof(cie));
	memcpy(image + fde, words, sizeof(words));
	memcpy(image + fde + 8, range, sizeof(range));
	memcpy(image + fde + 25, instructions, size);
	return total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t *page, image[20 + 24 + 25 + CODE_MAX];
	size_t damages, total;
	struct cfi_row row;
	bool signal_frame;

	/* The second page is not readable, so reading past the section is a fault. */
	if (!page) {
		page = mmap((void *)(uintptr_t)ADDRESS, 2 * PAGE, PROT_NONE,
		            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (page == MAP_FAILED || mprotect(page, PAGE, PROT_READ | PROT_WRITE))
			abort();
	}
	if (size < 2)
		return 0;
	const uintptr_t pc = FUNCTION + data[0];
	damages = data[1] % (DAMAGE_MAX + 1);
	data += 2;
	size -= 2;
	if (size < damages * 2)
		return 0;
	const uint8_t *damage = data;
	data += damages * 2;
	size -= damages * 2;
	total = build(image, data, size < CODE_MAX ? size : CODE_MAX);
	for (size_t i = 0; i < damages; i++)
		image[damage[2 * i] % total] = damage[2 * i + 1];

	ASAN_UNPOISON_MEMORY_REGION(page, PAGE);
	uint8_t *base = page + PAGE - total;
	memcpy(base, image, total);
	ASAN_POISON_MEMORY_REGION(page, PAGE - total);
	const struct cfi_section section = {
		.header = (uintptr_t)base,
		.header_end = (uintptr_t)base + 20,
		.start = (uintptr_t)base,
		.end = (uintptr_t)base + total,
	};
	cfi_find_row(&section, pc, &row);
	cfi_find_register(&section, pc, CFI_FRAME_POINTER, &row.frame_pointer);

	/* The stack's words are addresses within the stack, so that one step can lead to the next. */
	uint64_t *words = malloc(STACK_BYTES), registers[CFI_REGISTERS];
	for (size_t i = 0; i < STACK_BYTES / sizeof(*words); i++)
		words[i] = (uintptr_t)&words[(i * 7 + 3) % (STACK_BYTES / sizeof(*words))];
	for (size_t i = 0; i < CFI_REGISTERS; i++)
		registers[i] = (uintptr_t)words + i * 24;
	const struct cfi_stack stack = { (uintptr_t)words, (uintptr_t)words + STACK_BYTES, NULL, NULL };
	for (int steps = 0; steps < 4; steps++)
		if (cfi_step(&section, pc, &stack, registers, &signal_frame) != CFI_FOUND)
			break;
	free(words);
	return 0;
}
