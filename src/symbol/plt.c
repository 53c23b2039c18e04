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

/* The slots of an object, and what to call them. */
struct slots {
	struct slot *items; /* by address */
	size_t count;
	Elf64_Sym *symbols;
	uint64_t symbol_count;
	char *strings;
	uint64_t strings_size;
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

static void free_slots(struct slots *slots)
{
	free(slots->items);
	free(slots->symbols);
	free(slots->strings);
}

/* False: no memory. An object without dynamic symbols has no slots. */
static bool read_slots(const struct elf_image *image, struct slots *slots)
{
	memset(slots, 0, sizeof(*slots));
	const Elf64_Shdr *dynamic = elf_image_section_of_type(image, SHT_DYNSYM);
	if (image->machine != EM_X86_64 || !dynamic || dynamic->sh_link >= image->section_count ||
	    dynamic->sh_entsize != sizeof(Elf64_Sym))
		return true;
	const Elf64_Shdr *strings = &image->sections[dynamic->sh_link];
	slots->symbols = elf_image_contents(image, dynamic);
	slots->symbol_count = dynamic->sh_size / sizeof(Elf64_Sym);
	slots->strings = elf_image_contents(image, strings);
	slots->strings_size = strings->sh_size;
	return !slots->symbols || !slots->strings || collect_slots(image, slots);
}

/* Whose address the slot gets; NULL when it is no slot. */
static const char *slot_name(const struct slots *slots, uint64_t address)
{
	struct slot key = { .address = address };
	const struct slot *slot =
		slots->count ? bsearch(&key, slots->items, slots->count, sizeof(key), compare_slots) : NULL;
	if (!slot || slot->symbol == 0 || slot->symbol >= slots->symbol_count)
		return NULL;
	uint32_t name = slots->symbols[slot->symbol].st_name;
	return name < slots->strings_size && slots->strings[name] ? slots->strings + name : NULL;
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

static bool name_stubs(const struct elf_image *image, const Elf64_Shdr *section,
                       const struct slots *slots, struct symbol_collector *collector)
{
	unsigned char *code = elf_image_contents(image, section);
	uint64_t step = section->sh_entsize == 8 ? 8 : STUB_BYTES;
	bool good = true;
	for (uint64_t at = 0; good && code && at + step <= section->sh_size; at += step) {
		uint64_t address = section->sh_addr + at;
		const char *name = slot_name(slots, decode_stub(code + at, step, address));
		if (name)
			good = symbol_collector_add(collector, address, step, name, "@plt");
	}
	free(code);
	return good;
}

bool plt_collect(const struct elf_image *image, struct symbol_collector *collector)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got" };
	struct slots slots;
	bool good = read_slots(image, &slots);
	for (size_t i = 0; good && slots.count && i < sizeof(sections) / sizeof(sections[0]); i++) {
		const Elf64_Shdr *section = elf_image_section(image, sections[i]);
		if (section)
			good = name_stubs(image, section, &slots, collector);
	}
	free_slots(&slots);
	return good;
}

bool plt_slot_is(const struct elf_image *image, uint64_t address, const char *name)
{
	struct slots slots;
	const char *seen = read_slots(image, &slots) ? slot_name(&slots, address) : NULL;
	bool same = seen && strcmp(seen, name) == 0;
	free_slots(&slots);
	return same;
}
