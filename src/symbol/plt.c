/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stubs have no symbols, and elfutils gives them no names. Each ends in a jump through
 * a slot of the global offset table, and a relocation says which function's address the
 * slot gets. So the decoded jump proves the name, for every order and kind of stub
 * (.plt, .plt.sec, .plt.got) that linkers choose. On other machines than x86-64 stubs show
 * as module+offset.
 *
 * Within libc, and in static programs, a slot may get the version of a function that fits
 * the processor. The relocation then names the function that chooses, and its symbol has
 * the name that callers use.
 */
#include "symbol/plt.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vector.h"
#include "base/x86_64.h"

#define STUB_BYTES 16u /* of .plt and .plt.sec; those of .plt.got may be 8 */

struct slot {
	uint64_t address;
	uint32_t symbol;  /* index of a dynamic one; 0: */
	uint64_t chooser; /* the function that gives the address */
};

/* The slots of an object, and what to call them. */
struct slots {
	const struct elf_image *image;
	VECTOR(struct slot) list; /* by address */
	Elf_Data *symbols;        /* NULL: no dynamic ones */
	uint32_t strings;         /* index of their section */
};

COMPARE_BY(compare_slots, struct slot, address)

/* The slots that the dynamic linker, or a static program itself, fills with a
 * function's address. */
static bool add_slots(struct slots *slots, const Elf64_Shdr *section, bool has_symbols)
{
	Elf_Data *data = elf_image_data(slots->image, section);
	size_t count = data ? data->d_size / sizeof(Elf64_Rela) : 0;
	GElf_Rela relocation;
	for (size_t i = 0; i < count; i++) {
		if (!slots->image->libdw->gelf_getrela(data, (int)i, &relocation))
			break;
		uint64_t type = GELF_R_TYPE(relocation.r_info);
		struct slot slot = { .address = relocation.r_offset };
		if (has_symbols && (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT))
			slot.symbol = (uint32_t)GELF_R_SYM(relocation.r_info);
		else if (type == R_X86_64_IRELATIVE)
			slot.chooser = (uint64_t)relocation.r_addend;
		if ((slot.symbol || slot.chooser) && !vector_push(&slots->list, slot))
			return false;
	}
	return true;
}

/* False: no memory. */
static bool read_slots(const struct elf_image *image, struct slots *slots)
{
	*slots = (struct slots){ .image = image };
	const Elf64_Shdr *dynamic = elf_image_section_of_type(image, SHT_DYNSYM);
	if (image->machine != EM_X86_64)
		return true;
	if (dynamic) {
		slots->symbols = elf_image_data(image, dynamic);
		slots->strings = dynamic->sh_link;
	}
	for (unsigned i = 0; i < image->section_count; i++) {
		const Elf64_Shdr *section = &image->sections[i];
		bool has_symbols = slots->symbols && section->sh_link == (size_t)(dynamic - image->sections);
		if (section->sh_type == SHT_RELA && (section->sh_flags & SHF_ALLOC) &&
		    !add_slots(slots, section, has_symbols))
			return false;
	}
	if (slots->list.count)
		qsort(slots->list.items, slots->list.count, sizeof(*slots->list.items), compare_slots);
	return true;
}

static const struct slot *find_slot(const struct slots *slots, uint64_t address)
{
	struct slot key = { .address = address };
	return slots->list.count
	               ? bsearch(&key, slots->list.items, slots->list.count, sizeof(key), compare_slots)
	               : NULL;
}

/* The dynamic symbol whose address the slot gets; NULL when it gets none's. */
static const char *slot_name(const struct slots *slots, const struct slot *slot)
{
	const struct libdw *libdw = slots->image->libdw;
	GElf_Sym symbol;
	if (!slot || slot->symbol == 0 || slot->symbol > INT32_MAX ||
	    !libdw->gelf_getsym(slots->symbols, (int)slot->symbol, &symbol))
		return NULL;
	const char *name = libdw->elf_strptr(slots->image->elf, slots->strings, symbol.st_name);
	return name && name[0] ? name : NULL;
}

uint64_t plt_decode(const unsigned char *code, size_t size, uint64_t address)
{
	struct x86_instruction instruction;
	size_t at = 0;
	if (!x86_decode(code, size, &instruction))
		return 0;
	/* endbr64 */
	if (instruction.map == X86_0F && instruction.opcode == 0x1e && instruction.operand == 0xfa) {
		at = instruction.length;
		if (!x86_decode(code + at, size - at, &instruction))
			return 0;
	}
	/* jmp *…(%rip), also with the prefix bnd */
	if (instruction.map != X86_ONE_BYTE || instruction.opcode != 0xff ||
	    x86_register(&instruction) != 4 || !instruction.field)
		return 0;
	return x86_address(&instruction, code + at, address + at);
}

static bool name_stubs(const struct slots *slots, const Elf64_Shdr *section,
                       struct symbol_table_builder *builder)
{
	const Elf_Data *code = elf_image_data(slots->image, section);
	uint64_t step = section->sh_entsize == 8 ? 8 : STUB_BYTES;
	bool good = true;
	for (uint64_t at = 0; good && code && at + step <= code->d_size; at += step) {
		uint64_t address = section->sh_addr + at;
		const unsigned char *stub = (unsigned char *)code->d_buf + at;
		const struct slot *slot = find_slot(slots, plt_decode(stub, step, address));
		const char *name = slot && slot->chooser ? symbol_table_builder_find(builder, slot->chooser)
		                                         : slot_name(slots, slot);
		char *copy = name ? strdup(name) : NULL; /* adding may move what was collected */
		good = !name || (copy && symbol_table_builder_add(builder, address, step, copy, "@plt"));
		free(copy);
	}
	return good;
}

bool plt_collect(const struct elf_image *image, struct symbol_table_builder *builder)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got" };
	struct slots slots;
	bool good = read_slots(image, &slots);
	for (size_t i = 0; good && slots.list.count && i < sizeof(sections) / sizeof(sections[0]); i++) {
		const Elf64_Shdr *section = elf_image_section(image, sections[i]);
		if (section)
			good = name_stubs(&slots, section, builder);
	}
	vector_free(&slots.list);
	return good;
}

bool plt_slot_is(const struct elf_image *image, uint64_t address, const char *name)
{
	struct slots slots;
	const char *seen = read_slots(image, &slots) ? slot_name(&slots, find_slot(&slots, address)) : NULL;
	bool same = seen && strcmp(seen, name) == 0;
	vector_free(&slots.list);
	return same;
}
