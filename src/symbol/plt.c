/*
 * Names for the stubs through which an object calls other objects.
 *
 * Stubs have no symbols. Each ends in a jump through a slot of the global offset
 * table, and a relocation says whose address the slot gets: decoding the jump
 * proves the name, whatever order and flavour (.plt, .plt.sec, .plt.got) the
 * linker chose. x86-64 only; elsewhere stubs show as module+offset.
 */
#include <stdlib.h>
#include <string.h>

#include "symbol_table.h"

#define STUB_BYTES 16u /* of .plt and .plt.sec; those of .plt.got may be 8 */

struct slot {
	uint64_t address;
	uint32_t symbol;
};

struct slots {
	struct slot *items;
	size_t count;
};

static int compare_slots(const void *left, const void *right)
{
	const struct slot *a = left, *b = right;
	return (a->address > b->address) - (a->address < b->address);
}

/* The slots that the dynamic linker fills with a function's address. */
static bool collect_slots(const struct elf_image *image, struct slots *slots)
{
	for (unsigned i = 0; i < image->section_count; i++) {
		const Elf64_Shdr *section = &image->sections[i];
		if (section->sh_type != SHT_RELA || section->sh_entsize != sizeof(Elf64_Rela) ||
		    section->sh_link >= image->section_count ||
		    image->sections[section->sh_link].sh_type != SHT_DYNSYM)
			continue;
		Elf64_Rela *relocations = elf_image_contents(image, section);
		uint64_t count = relocations ? section->sh_size / sizeof(Elf64_Rela) : 0;
		struct slot *grown =
			reallocarray(slots->items, slots->count + count + 1, sizeof(*slots->items));
		if (!grown) {
			free(relocations);
			return false;
		}
		slots->items = grown;
		for (uint64_t r = 0; r < count; r++) {
			uint32_t type = ELF64_R_TYPE(relocations[r].r_info);
			if (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT)
				slots->items[slots->count++] =
					(struct slot){ .address = relocations[r].r_offset,
				                       .symbol = ELF64_R_SYM(relocations[r].r_info) };
		}
		free(relocations);
	}
	if (slots->count)
		qsort(slots->items, slots->count, sizeof(*slots->items), compare_slots);
	return true;
}

/* The slot that the stub jumps through; 0 when it is no such stub. */
static uint64_t decode_stub(const unsigned char *code, uint64_t size, uint64_t address)
{
	static const unsigned char endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint64_t at = 0;
	if (size >= sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0)
		at = sizeof(endbr64);
	if (at < size && code[at] == 0xf2) /* bnd */
		at++;
	if (size - at < 6 || code[at] != 0xff || code[at + 1] != 0x25) /* jmp *disp(%rip) */
		return 0;
	int32_t displacement;
	memcpy(&displacement, code + at + 2, sizeof(displacement));
	return address + at + 6 + (uint64_t)(int64_t)displacement;
}

struct names {
	Elf64_Sym *symbols;
	uint64_t count;
	char *strings;
	uint64_t size;
};

static bool name_stubs(const struct elf_image *image, const Elf64_Shdr *section,
                       const struct slots *slots, const struct names *names,
                       struct symbol_collector *collector)
{
	unsigned char *code = elf_image_contents(image, section);
	uint64_t step = section->sh_entsize == 8 ? 8 : STUB_BYTES;
	bool good = true;
	for (uint64_t at = 0; good && code && at + step <= section->sh_size; at += step) {
		struct slot key = { .address = decode_stub(code + at, step, section->sh_addr + at) };
		const struct slot *slot =
			key.address ? bsearch(&key, slots->items, slots->count, sizeof(key), compare_slots) : NULL;
		if (!slot || slot->symbol == 0 || slot->symbol >= names->count)
			continue;
		uint32_t name = names->symbols[slot->symbol].st_name;
		if (name < names->size && names->strings[name])
			good = symbol_collector_add(collector, section->sh_addr + at, step,
			                            names->strings + name, "@plt");
	}
	free(code);
	return good;
}

bool plt_collect(const struct elf_image *image, struct symbol_collector *collector)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got" };
	const Elf64_Shdr *dynamic = elf_image_section_of_type(image, SHT_DYNSYM);
	if (image->machine != EM_X86_64 || !dynamic || dynamic->sh_link >= image->section_count ||
	    dynamic->sh_entsize != sizeof(Elf64_Sym))
		return true;
	const Elf64_Shdr *strings = &image->sections[dynamic->sh_link];
	struct names names = { .symbols = elf_image_contents(image, dynamic),
		               .count = dynamic->sh_size / sizeof(Elf64_Sym),
		               .strings = elf_image_contents(image, strings),
		               .size = strings->sh_size };
	struct slots slots = { 0 };
	bool good = true;
	if (names.symbols && names.strings) {
		good = collect_slots(image, &slots);
		for (size_t i = 0; good && slots.count && i < sizeof(sections) / sizeof(sections[0]); i++) {
			const Elf64_Shdr *section = elf_image_section(image, sections[i]);
			if (section)
				good = name_stubs(image, section, &slots, &names, collector);
		}
	}
	free(slots.items);
	free(names.symbols);
	free(names.strings);
	return good;
}
