/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ELF header says where a program starts. The C run-time's code there passes main's
 * address to __libc_start_main and does nothing else, so it proves both names: every
 * instruction up to the call is in the table below, the call goes through the slot that the
 * dynamic linker fills with __libc_start_main, and the first argument is a constant. Any
 * other code at the start gives no names. main's extent is in its call frame information,
 * which stripping leaves.
 */
#include "symbol/entry.h"

#include <string.h>

#include "base/x86_64.h"
#include "symbol/plt.h"

/* --- the start's code ---------------------------------------------------------------- */

/* An instruction that glibc's start has, since 2.2.5; another machine needs a table of its
 * own. `operand`, the operand byte, is 0 where there is none. */
static const struct known {
	uint8_t rex, map, opcode, operand;
	enum {
		LEAVES_MAIN,  /* leaves the first argument as it is */
		PASSES_FIELD, /* sets the first argument to the place that it names */
		PASSES_VALUE, /* sets it to a constant of 32 bits */
		CALLS,        /* calls through a slot */
	} effect;
} known_instructions[] = {
	{ 0, X86_0F, 0x1e, 0xfa, LEAVES_MAIN },           /* endbr64 */
	{ 0, X86_ONE_BYTE, 0x31, 0xed, LEAVES_MAIN },     /* xor %ebp,%ebp */
	{ 0x49, X86_ONE_BYTE, 0x89, 0xd1, LEAVES_MAIN },  /* mov %rdx,%r9 */
	{ 0, X86_ONE_BYTE, 0x5e, 0, LEAVES_MAIN },        /* pop %rsi */
	{ 0x48, X86_ONE_BYTE, 0x89, 0xe2, LEAVES_MAIN },  /* mov %rsp,%rdx */
	{ 0x48, X86_ONE_BYTE, 0x83, 0xe4, LEAVES_MAIN },  /* and $-16,%rsp */
	{ 0, X86_ONE_BYTE, 0x50, 0, LEAVES_MAIN },        /* push %rax */
	{ 0, X86_ONE_BYTE, 0x54, 0, LEAVES_MAIN },        /* push %rsp */
	{ 0x45, X86_ONE_BYTE, 0x31, 0xc0, LEAVES_MAIN },  /* xor %r8d,%r8d */
	{ 0, X86_ONE_BYTE, 0x31, 0xc9, LEAVES_MAIN },     /* xor %ecx,%ecx */
	{ 0x49, X86_ONE_BYTE, 0xc7, 0xc0, LEAVES_MAIN },  /* mov $…,%r8 */
	{ 0x4c, X86_ONE_BYTE, 0x8d, 0x05, LEAVES_MAIN },  /* lea …(%rip),%r8 */
	{ 0x48, X86_ONE_BYTE, 0xc7, 0xc1, LEAVES_MAIN },  /* mov $…,%rcx */
	{ 0x48, X86_ONE_BYTE, 0x8d, 0x0d, LEAVES_MAIN },  /* lea …(%rip),%rcx */
	{ 0x48, X86_ONE_BYTE, 0x8d, 0x3d, PASSES_FIELD }, /* lea …(%rip),%rdi */
	{ 0x48, X86_ONE_BYTE, 0xc7, 0xc7, PASSES_VALUE }, /* mov $…,%rdi */
	{ 0, X86_ONE_BYTE, 0xbf, 0, PASSES_VALUE },       /* mov $…,%edi */
	{ 0, X86_ONE_BYTE, 0xff, 0x15, CALLS },           /* call *…(%rip) */
};

static const struct known *find_known(const struct x86_instruction *instruction)
{
	enum { KNOWN = sizeof(known_instructions) / sizeof(known_instructions[0]) };

	for (const struct known *known = known_instructions; known < known_instructions + KNOWN; known++)
		if (known->rex == instruction->rex && known->map == instruction->map &&
		    known->opcode == instruction->opcode && known->operand == instruction->operand &&
		    !instruction->has_short && !instruction->is_vector &&
		    instruction->has_repeat == (known->map == X86_0F))
			return known;
	return NULL;
}

struct start {
	uint64_t main, slot;
	uint64_t size; /* of the code up to the call's return address */
};

static bool decode_start(const unsigned char *code, size_t size, uint64_t address, struct start *start)
{
	struct x86_instruction instruction;
	for (size_t at = 0; x86_decode(code + at, size - at, &instruction); at += instruction.length) {
		const struct known *known = find_known(&instruction);
		int32_t value;
		if (!known)
			return false;
		switch (known->effect) {
		case LEAVES_MAIN: break;
		case PASSES_FIELD: start->main = x86_address(&instruction, code + at, address + at); break;
		case PASSES_VALUE:
			memcpy(&value, code + at + instruction.constants, sizeof(value));
			start->main = (uint64_t)(int64_t)value;
			break;
		case CALLS:
			start->slot = x86_address(&instruction, code + at, address + at);
			start->size = at + instruction.length;
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

bool entry_collect(const struct elf_image *image, struct symbol_table_builder *builder)
{
	struct start start = { 0 };
	if (!is_program(image) || !read_start(image, &start) ||
	    !plt_slot_is(image, start.slot, "__libc_start_main"))
		return true;
	uint64_t entry = image->header.e_entry;
	uint64_t start_size = find_size(image, entry), main_size = find_size(image, start.main);
	/* Without an entry _start is the decoded code, and the instruction at which the
	 * call would return. */
	return symbol_table_builder_add(builder, entry, start_size ? start_size : start.size + 1, "_start",
	                                "") &&
	       (!main_size || symbol_table_builder_add(builder, start.main, main_size, "main", ""));
}
