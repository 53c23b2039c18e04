/*
 * Names for the two functions that every program has, when it was stripped: _start
 * and main.
 *
 * The ELF header says where a program starts. What the C run-time has there passes
 * main's address to __libc_start_main and does nothing else, so that its code
 * proves both names: every instruction up to the call is one that we know, the call
 * goes through the slot that the dynamic linker fills with __libc_start_main, and
 * the first argument is a constant. Any other start names nothing. main's extent is
 * that of its call frame information, which stripping leaves.
 */
#include "symbol/entry.h"

#include <string.h>

#include "symbol/plt.h"

/* --- the start's code ---------------------------------------------------------------- */

enum effect {
	EFFECT_OTHER,         /* leaves the first argument as it is */
	EFFECT_MAIN_RELATIVE, /* sets it, relative to the next instruction */
	EFFECT_MAIN_ABSOLUTE,
	EFFECT_CALL, /* through a slot, relative to the next instruction */
};

struct instruction {
	unsigned char bytes[4];
	uint8_t size;    /* of these */
	uint8_t operand; /* bytes that follow */
	uint8_t effect;
};

/* The starts of glibc since 2.2.5; another machine needs a table of its own. */
static const struct instruction x86_64[] = {
	{ { 0xf3, 0x0f, 0x1e, 0xfa }, 4, 0, EFFECT_OTHER },   /* endbr64 */
	{ { 0x31, 0xed }, 2, 0, EFFECT_OTHER },               /* xor %ebp,%ebp */
	{ { 0x49, 0x89, 0xd1 }, 3, 0, EFFECT_OTHER },         /* mov %rdx,%r9 */
	{ { 0x5e }, 1, 0, EFFECT_OTHER },                     /* pop %rsi */
	{ { 0x48, 0x89, 0xe2 }, 3, 0, EFFECT_OTHER },         /* mov %rsp,%rdx */
	{ { 0x48, 0x83, 0xe4, 0xf0 }, 4, 0, EFFECT_OTHER },   /* and $-16,%rsp */
	{ { 0x50 }, 1, 0, EFFECT_OTHER },                     /* push %rax */
	{ { 0x54 }, 1, 0, EFFECT_OTHER },                     /* push %rsp */
	{ { 0x45, 0x31, 0xc0 }, 3, 0, EFFECT_OTHER },         /* xor %r8d,%r8d */
	{ { 0x31, 0xc9 }, 2, 0, EFFECT_OTHER },               /* xor %ecx,%ecx */
	{ { 0x49, 0xc7, 0xc0 }, 3, 4, EFFECT_OTHER },         /* mov $…,%r8 */
	{ { 0x4c, 0x8d, 0x05 }, 3, 4, EFFECT_OTHER },         /* lea …(%rip),%r8 */
	{ { 0x48, 0xc7, 0xc1 }, 3, 4, EFFECT_OTHER },         /* mov $…,%rcx */
	{ { 0x48, 0x8d, 0x0d }, 3, 4, EFFECT_OTHER },         /* lea …(%rip),%rcx */
	{ { 0x48, 0x8d, 0x3d }, 3, 4, EFFECT_MAIN_RELATIVE }, /* lea …(%rip),%rdi */
	{ { 0x48, 0xc7, 0xc7 }, 3, 4, EFFECT_MAIN_ABSOLUTE }, /* mov $…,%rdi */
	{ { 0xbf }, 1, 4, EFFECT_MAIN_ABSOLUTE },             /* mov $…,%edi */
	{ { 0xff, 0x15 }, 2, 4, EFFECT_CALL },                /* call *…(%rip) */
};

struct start {
	uint64_t main, slot;
	uint64_t size; /* of the code up to the call's return address */
};

static bool decode_start(const unsigned char *code, uint64_t size, uint64_t address, struct start *start)
{
	enum { INSTRUCTIONS = sizeof(x86_64) / sizeof(x86_64[0]) };

	for (uint64_t at = 0; at < size;) {
		const struct instruction *known = x86_64, *end = x86_64 + INSTRUCTIONS;
		while (known < end && (size - at < known->size + known->operand ||
		                       memcmp(code + at, known->bytes, known->size) != 0))
			known++;
		if (known == end)
			return false;
		at += known->size + known->operand;
		int32_t operand = 0;
		if (known->operand)
			memcpy(&operand, code + at - sizeof(operand), sizeof(operand));
		uint64_t place = (uint64_t)(int64_t)operand;
		switch (known->effect) {
		case EFFECT_MAIN_RELATIVE: start->main = address + at + place; break;
		case EFFECT_MAIN_ABSOLUTE: start->main = place; break;
		case EFFECT_CALL:
			start->slot = address + at + place;
			start->size = at;
			return start->main != 0;
		}
	}
	return false;
}

static bool read_start(const struct elf_image *image, struct start *start)
{
	uint64_t entry = image->header.e_entry;
	for (unsigned i = 0; image->machine == EM_X86_64 && i < image->section_count; i++) {
		const Elf64_Shdr *section = &image->sections[i];
		if (!(section->sh_flags & SHF_EXECINSTR) || entry < section->sh_addr ||
		    entry - section->sh_addr >= section->sh_size)
			continue;
		const Elf_Data *code = elf_image_data(image, section);
		uint64_t at = entry - section->sh_addr;
		return code && at < code->d_size &&
		       decode_start((unsigned char *)code->d_buf + at, code->d_size - at, entry, start);
	}
	return false;
}

static bool is_program(const struct elf_image *image)
{
	return image->header.e_type == ET_EXEC || elf_image_section(image, ".interp");
}

/* --- extents ------------------------------------------------------------------------- */

/* How an entry's addresses are written. Only the 32-bit self-relative form is read,
 * which compilers choose: it is the datum of 'R', the last one in the augmentation. */
static bool has_relative_addresses(const Dwarf_CFI_Entry *entry)
{
	enum { RELATIVE = 0x1b }; /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */

	const char *augmentation = entry->cie.augmentation;
	size_t length = strlen(augmentation);
	return augmentation[0] == 'z' && augmentation[length - 1] == 'R' && entry->cie.augmentation_data &&
	       entry->cie.augmentation_data_size > 0 &&
	       entry->cie.augmentation_data[entry->cie.augmentation_data_size - 1] == RELATIVE;
}

/* Size of the function that starts at the address, 0 when it has no entry. */
static uint64_t find_size(const struct elf_image *image, uint64_t address)
{
	const struct libdw *libdw = image->libdw;
	const unsigned char *ident = image->header.e_ident;
	const Elf64_Shdr *section = elf_image_section(image, ".eh_frame");
	Elf_Data *frames = section ? elf_image_data(image, section) : NULL;
	Dwarf_CFI_Entry entry, common;
	Dwarf_Off next, at = 0, ignored;
	for (; frames && libdw->dwarf_next_cfi(ident, frames, true, at, &next, &entry) == 0; at = next) {
		if (dwarf_cfi_cie_p(&entry) || entry.fde.end - entry.fde.start < 8)
			continue;
		int32_t words[2]; /* where the function lies, its size */
		memcpy(words, entry.fde.start, sizeof(words));
		uint64_t offset = (uint64_t)(entry.fde.start - (const unsigned char *)frames->d_buf);
		if (section->sh_addr + offset + (uint64_t)(int64_t)words[0] == address &&
		    libdw->dwarf_next_cfi(ident, frames, true, entry.fde.CIE_pointer, &ignored, &common) ==
		            0 &&
		    dwarf_cfi_cie_p(&common) && has_relative_addresses(&common))
			return (uint32_t)words[1];
	}
	return 0;
}

bool entry_collect(const struct elf_image *image, struct symbol_collector *collector)
{
	struct start start = { 0 };
	if (!is_program(image) || !read_start(image, &start) ||
	    !plt_slot_is(image, start.slot, "__libc_start_main"))
		return true;
	uint64_t entry = image->header.e_entry;
	uint64_t start_size = find_size(image, entry), main_size = find_size(image, start.main);
	/* Without an entry _start is what was decoded, and the instruction at which the
	 * call would return. */
	return symbol_collector_add(collector, entry, start_size ? start_size : start.size + 1, "_start",
	                            "") &&
	       (!main_size || symbol_collector_add(collector, start.main, main_size, "main", ""));
}
