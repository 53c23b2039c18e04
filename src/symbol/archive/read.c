/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads an object and an archive into the form of side.h.
 *
 * The extents of the object's functions come from its call frame information,
 * which stripping leaves: it has every function, also those without a symbol.
 * Nothing read is trusted; what does not fit is left out.
 */
#include "symbol/archive/read.h"

#include <ar.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/regular_file.h"
#include "base/search.h"
#include "symbol/consulted.h"

#define OBJECT_BYTES_MAX (UINT64_C(32) << 20)
#define ARCHIVE_BYTES_MAX (UINT64_C(64) << 20)

/* Bounds the time that a file made to waste it can take. */
#define FUNCTION_BYTES_MAX (UINT64_C(1) << 18)

/* A symbol of neither side, as a location. Two names with one number would need a
 * collision of 63 bits. */
static uint64_t extern_location(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return hash | ARCHIVE_EXTERN;
}

/* --- an ELF file in memory ------------------------------------------------------ */

struct file {
	const unsigned char *bytes; /* a zero byte follows */
	uint64_t size;
	Elf64_Ehdr header;
};

/* Copies: members of an archive are not aligned. */
static bool read_part(const struct file *file, uint64_t offset, void *to, size_t size)
{
	if (offset > file->size || size > file->size - offset)
		return false;
	memcpy(to, file->bytes + offset, size);
	return true;
}

static bool read_section(const struct file *file, uint64_t index, Elf64_Shdr *section)
{
	if (index >= file->header.e_shnum ||
	    !read_part(file, file->header.e_shoff + index * sizeof(*section), section, sizeof(*section)))
		return false;
	return section->sh_type == SHT_NOBITS ||
	       (section->sh_offset <= file->size && section->sh_size <= file->size - section->sh_offset);
}

static const char *read_string(const struct file *file, const Elf64_Shdr *strings, uint64_t at)
{
	if (strings->sh_type != SHT_STRTAB || at >= strings->sh_size)
		return "";
	return (const char *)file->bytes + strings->sh_offset + at;
}

static bool open_file(struct file *file, const unsigned char *bytes, uint64_t size, uint16_t type,
                      uint16_t machine)
{
	file->bytes = bytes;
	file->size = size;
	return read_part(file, 0, &file->header, sizeof(file->header)) &&
	       memcmp(file->header.e_ident, ELFMAG, SELFMAG) == 0 &&
	       file->header.e_ident[EI_CLASS] == ELFCLASS64 && file->header.e_ident[EI_DATA] == ELFDATA2LSB &&
	       file->header.e_type == type && file->header.e_machine == machine &&
	       file->header.e_shentsize == sizeof(Elf64_Shdr) && file->header.e_shoff <= file->size;
}

/* The file's first section of that type. */
static bool find_section(const struct file *file, uint32_t type, Elf64_Shdr *section)
{
	for (unsigned i = 0; i < file->header.e_shnum; i++)
		if (read_section(file, i, section) && section->sh_type == type)
			return true;
	return false;
}

static bool add_section(struct code_side *side, const struct file *file, const Elf64_Shdr *header,
                        const char *name, uint64_t address)
{
	bool is_constant = (header->sh_flags & SHF_MERGE) && header->sh_entsize <= 64;
	return vector_push(&side->sections,
	                   (struct code_section){ .address = address,
	                                          .size = header->sh_size,
	                                          .bytes = header->sh_type == SHT_NOBITS
	                                                           ? NULL
	                                                           : file->bytes + header->sh_offset,
	                                          .member = side->member_count,
	                                          .unit = is_constant ? (uint32_t)header->sh_entsize : 0,
	                                          .is_strings = header->sh_flags & SHF_STRINGS,
	                                          .is_code = header->sh_flags & SHF_EXECINSTR,
	                                          .is_writable = header->sh_flags & SHF_WRITE,
	                                          .is_offset_table = strncmp(name, ".got", 4) == 0,
	                                          .is_stub = strncmp(name, ".plt", 4) == 0 });
}

static bool add_symbol(struct code_side *side, const Elf64_Sym *symbol, const char *name, uint64_t address)
{
	struct code_symbol item = { .name = name,
		                    .address = address,
		                    .size = symbol->st_size,
		                    .is_function = ELF64_ST_TYPE(symbol->st_info) == STT_FUNC,
		                    .is_global = ELF64_ST_BIND(symbol->st_info) != STB_LOCAL };
	bool good = true;
	if (item.is_global)
		good = vector_push(&side->globals, item);
	if (good && ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && item.size)
		good = vector_push(&side->objects, item);
	return good;
}

static bool add_function(struct code_side *side, uint64_t address, uint64_t size, const char *name,
                         bool is_global)
{
	return size == 0 || size > FUNCTION_BYTES_MAX ||
	       vector_push(&side->functions, (struct code_function){ .address = address,
	                                                             .size = size,
	                                                             .name = name,
	                                                             .is_exported = is_global });
}

/* --- the object ------------------------------------------------------------------ */

static bool read_object_sections(struct code_side *side, const struct file *file)
{
	Elf64_Shdr names, section;
	if (!read_section(file, file->header.e_shstrndx, &names))
		return false;
	for (unsigned i = 0; i < file->header.e_shnum; i++) {
		if (!read_section(file, i, &section) || !(section.sh_flags & SHF_ALLOC) ||
		    (section.sh_flags & SHF_TLS) || section.sh_addr + section.sh_size > ARCHIVE_BASE)
			continue;
		section.sh_flags &= ~(uint64_t)(SHF_MERGE | SHF_STRINGS);
		if (!add_section(side, file, &section, read_string(file, &names, section.sh_name),
		                 section.sh_addr))
			return false;
	}
	return true;
}

static bool read_object_symbols(struct code_side *side, const struct file *file)
{
	Elf64_Shdr table, strings;
	if (!find_section(file, SHT_DYNSYM, &table) || !read_section(file, table.sh_link, &strings))
		return false;
	for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;
		read_part(file, table.sh_offset + at, &symbol, sizeof(symbol));
		const char *name = read_string(file, &strings, symbol.st_name);
		if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= SHN_LORESERVE || !name[0])
			continue;
		if (!add_symbol(side, &symbol, name, symbol.st_value))
			return false;
		if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
		    !add_function(side, symbol.st_value, symbol.st_size, name, true))
			return false;
	}
	return true;
}

static uint64_t dynamic_symbol_location(const struct file *file, const Elf64_Shdr *table,
                                        const Elf64_Shdr *strings, uint64_t index)
{
	Elf64_Sym symbol;
	if (index >= table->sh_size / sizeof(symbol) ||
	    !read_part(file, table->sh_offset + index * sizeof(symbol), &symbol, sizeof(symbol)))
		return 0;
	if (symbol.st_shndx != SHN_UNDEF)
		return symbol.st_value;
	return extern_location(read_string(file, strings, symbol.st_name));
}

static bool read_object_relocations(struct code_side *side, const struct file *file)
{
	Elf64_Shdr section, symbols = { 0 }, strings = { 0 };
	if (find_section(file, SHT_DYNSYM, &symbols))
		read_section(file, symbols.sh_link, &strings);
	for (unsigned i = 0; i < file->header.e_shnum; i++) {
		if (!read_section(file, i, &section) || section.sh_type != SHT_RELA ||
		    !(section.sh_flags & SHF_ALLOC))
			continue;
		for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= section.sh_size; at += sizeof(Elf64_Rela)) {
			Elf64_Rela relocation;
			uint64_t value = 0;
			read_part(file, section.sh_offset + at, &relocation, sizeof(relocation));
			switch (ELF64_R_TYPE(relocation.r_info)) {
			case R_X86_64_64:
			case R_X86_64_GLOB_DAT:
			case R_X86_64_JUMP_SLOT:
				value = dynamic_symbol_location(file, &symbols, &strings,
				                                ELF64_R_SYM(relocation.r_info));
				/* fall through */
			case R_X86_64_RELATIVE: value += (uint64_t)relocation.r_addend; break;
			default: continue;
			}
			if (!vector_push(&side->relocations,
			                 (struct code_relocation){ .location = relocation.r_offset,
			                                           .value = value }))
				return false;
		}
	}
	return true;
}

/* The one pointer encoding of functions that x86-64 compilers use; others are left
 * out. The common information entry says so in its augmentation. */
static bool entry_has_relative_addresses(const unsigned char *entry, uint64_t size)
{
	/* After the id: version, augmentation, alignments, return register, data. */
	if (size < 16 || entry[4] != 1)
		return false;
	const char *augmentation = (const char *)entry + 5;
	uint64_t length = strnlen(augmentation, size - 5), at = 5 + length + 1;
	if (augmentation[0] != 'z' || length >= size - 5)
		return false;
	for (int i = 0; i < 3; i++, at++) /* two LEB128 numbers and a byte */
		while (i < 2 && at < size && (entry[at] & 0x80))
			at++;
	at++; /* length of the data: below 128 */
	for (uint64_t i = 1; i < length && at < size; i++) {
		if (augmentation[i] == 'R')
			return entry[at] == 0x1b; /* relative to itself, 32 bits, signed */
		if (augmentation[i] == 'P' && entry[at] == 0x9b)
			at += 5;
		else if (augmentation[i] == 'L')
			at += 1;
		else if (augmentation[i] != 'S')
			return false;
	}
	return false;
}

static uint32_t read_word(const unsigned char *bytes)
{
	uint32_t word;
	memcpy(&word, bytes, sizeof(word));
	return word;
}

static bool read_frames(struct code_side *side, const struct code_section *section)
{
	const unsigned char *bytes = section->bytes;
	uint64_t known = UINT64_MAX;
	bool known_good = false;
	for (uint64_t at = 0; at + 8 <= section->size;) {
		uint64_t size = read_word(bytes + at), start = at + 4;
		if (size < 4 || size > section->size - start) /* end, or the 64-bit form */
			break;
		at = start + size;
		uint32_t back = read_word(bytes + start);
		if (back == 0 || back > start || size < 12)
			continue;
		uint64_t entry = start - back; /* its length; the id follows */
		if (entry != known) {
			uint64_t length = entry + 4 <= section->size ? read_word(bytes + entry) : 0;
			known = entry;
			known_good = length <= section->size - entry - 4 &&
			             entry_has_relative_addresses(bytes + entry + 4, length);
		}
		if (!known_good)
			continue;
		uint64_t function = section->address + start + 4 +
		                    (uint64_t)(int64_t)(int32_t)read_word(bytes + start + 4);
		if (!add_function(side, function, read_word(bytes + start + 8), NULL, false))
			return false;
	}
	return true;
}

/* --- order ------------------------------------------------------------------------ */

COMPARE_BY(compare_sections, struct code_section, address)
COMPARE_BY(compare_relocations, struct code_relocation, location)
COMPARE_BY(compare_objects, struct code_symbol, address)

static int compare_globals(const void *left, const void *right)
{
	const struct code_symbol *a = left, *b = right;
	int order = strcmp(a->name, b->name);
	return order ? order : (a->address > b->address) - (a->address < b->address);
}

/* Names first, so that they stay when one function is known twice. */
static int compare_functions(const void *left, const void *right)
{
	const struct code_function *a = left, *b = right;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	if (a->is_exported != b->is_exported)
		return a->is_exported ? -1 : 1;
	return (!a->name) - (!b->name);
}

/* Most come in order. */
static void sort(void *items, uint32_t count, size_t size, int (*compare)(const void *, const void *))
{
	const char *bytes = items;
	for (uint32_t i = 1; i < count; i++)
		if (compare(bytes + (i - 1) * size, bytes + i * size) > 0) {
			qsort(items, count, size, compare);
			break;
		}
}

/* Drops what lies in no code, in stubs, or over another function. */
static void commit_functions(struct code_side *side)
{
	uint32_t kept = 0;
	sort(side->functions.items, side->functions.count, sizeof(*side->functions.items), compare_functions);
	for (uint32_t i = 0; i < side->functions.count; i++) {
		struct code_function *function = &side->functions.items[i];
		const struct code_section *section = side_section(side, function->address);
		if (!section || !section->is_code || section->is_stub || !section->bytes ||
		    function->size > section->size - (function->address - section->address))
			continue;
		if (kept) {
			struct code_function *last = &side->functions.items[kept - 1];
			if (function->address - last->address < last->size) {
				/* The same function; a part of one has no business here. */
				last->is_strange |=
					function->address != last->address || function->size != last->size;
				continue;
			}
		}
		function->section = (uint32_t)(section - side->sections.items);
		side->functions.items[kept++] = *function;
	}
	side->functions.count = kept;
}

static void commit(struct code_side *side)
{
	sort(side->sections.items, side->sections.count, sizeof(*side->sections.items), compare_sections);
	sort(side->relocations.items, side->relocations.count, sizeof(*side->relocations.items),
	     compare_relocations);
	sort(side->objects.items, side->objects.count, sizeof(*side->objects.items), compare_objects);
	sort(side->globals.items, side->globals.count, sizeof(*side->globals.items), compare_globals);
	commit_functions(side);
}

bool side_read_object(struct code_side *side, const struct elf_image *image)
{
	struct file file;
	if (image->fd < 0 || image->size > OBJECT_BYTES_MAX)
		return false;
	side->file = elf_image_read(image, 0, image->size);
	side->file_size = image->size;
	if (!side->file || !open_file(&file, side->file, image->size, ET_DYN, image->machine))
		return false;
	const Elf64_Shdr *frames = elf_image_section(image, ".eh_frame");
	if (!frames || !read_object_sections(side, &file) || !read_object_symbols(side, &file) ||
	    !read_object_relocations(side, &file))
		return false;
	for (uint32_t i = 0; i < side->sections.count; i++)
		if (side->sections.items[i].address == frames->sh_addr && side->sections.items[i].bytes &&
		    !read_frames(side, &side->sections.items[i]))
			return false;
	commit(side);
	return true;
}

/* --- the archive -------------------------------------------------------------------- */

/* Made-up addresses of one member's sections, by section index. */
struct member {
	struct file file;
	Elf64_Shdr symbols, strings;
	uint64_t *addresses; /* 0: not part of the program */
};

static void close_member(struct member *member)
{
	free(member->addresses);
}

static bool open_member(struct member *member, const unsigned char *bytes, uint64_t size, uint16_t machine)
{
	memset(member, 0, sizeof(*member));
	if (!open_file(&member->file, bytes, size, ET_REL, machine) ||
	    !find_section(&member->file, SHT_SYMTAB, &member->symbols) ||
	    !read_section(&member->file, member->symbols.sh_link, &member->strings))
		return false;
	member->addresses = calloc((size_t)member->file.header.e_shnum + 1, sizeof(uint64_t));
	return member->addresses != NULL;
}

/* Sections of all members one behind the other, with room between them: an address
 * one past the end must not be the start of the next. */
static bool location_sections(struct code_side *side, struct member *member, uint64_t *next, bool add)
{
	for (unsigned i = 0; i < member->file.header.e_shnum; i++) {
		Elf64_Shdr section;
		if (!read_section(&member->file, i, &section) || !(section.sh_flags & SHF_ALLOC) ||
		    (section.sh_flags & SHF_TLS))
			continue;
		member->addresses[i] = *next;
		*next = (*next + section.sh_size + 0x1000) & ~UINT64_C(0xfff);
		if (add && section.sh_size &&
		    !add_section(side, &member->file, &section, "", member->addresses[i]))
			return false;
	}
	return true;
}

static bool read_symbol(const struct member *member, uint64_t index, Elf64_Sym *symbol)
{
	return index < member->symbols.sh_size / sizeof(*symbol) &&
	       read_part(&member->file, member->symbols.sh_offset + index * sizeof(*symbol), symbol,
	                 sizeof(*symbol));
}

static bool read_member_symbols(struct code_side *side, const struct member *member)
{
	Elf64_Sym symbol;
	for (uint64_t i = 1; read_symbol(member, i, &symbol); i++) {
		const char *name = read_string(&member->file, &member->strings, symbol.st_name);
		if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= member->file.header.e_shnum ||
		    !member->addresses[symbol.st_shndx] || !name[0])
			continue;
		uint64_t address = member->addresses[symbol.st_shndx] + symbol.st_value;
		bool is_global = ELF64_ST_BIND(symbol.st_info) != STB_LOCAL;
		if (!add_symbol(side, &symbol, name, address))
			return false;
		/* Each member may have a weak function of that name. */
		if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && ELF64_ST_BIND(symbol.st_info) != STB_WEAK &&
		    !add_function(side, address, symbol.st_size, name, is_global))
			return false;
	}
	return true;
}

/* 0: at no known location. */
static uint64_t symbol_location(const struct code_side *side, const struct member *member, uint64_t index)
{
	Elf64_Sym symbol;
	if (!read_symbol(member, index, &symbol))
		return 0;
	if (symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < member->file.header.e_shnum)
		return member->addresses[symbol.st_shndx]
		               ? member->addresses[symbol.st_shndx] + symbol.st_value
		               : 0;
	if (symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_COMMON)
		return 0;
	const char *name = read_string(&member->file, &member->strings, symbol.st_name);
	const struct code_symbol *global = side_global(side, name);
	return global ? global->address : extern_location(name);
}

static bool read_member_relocations(struct code_side *side, const struct member *member)
{
	for (unsigned i = 0; i < member->file.header.e_shnum; i++) {
		Elf64_Shdr section;
		if (!read_section(&member->file, i, &section) || section.sh_type != SHT_RELA ||
		    section.sh_info >= member->file.header.e_shnum || !member->addresses[section.sh_info])
			continue;
		for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= section.sh_size; at += sizeof(Elf64_Rela)) {
			Elf64_Rela relocation;
			read_part(&member->file, section.sh_offset + at, &relocation, sizeof(relocation));
			uint32_t type = ELF64_R_TYPE(relocation.r_info);
			struct code_relocation item = { .location = member->addresses[section.sh_info] +
				                                    relocation.r_offset };
			bool is_known = type == R_X86_64_64 || type == R_X86_64_PC32 ||
			                type == R_X86_64_PLT32 || type == R_X86_64_32 || type == R_X86_64_32S;
			item.is_slot = type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX ||
			               type == R_X86_64_REX_GOTPCRELX;
			if (is_known || item.is_slot)
				item.value = symbol_location(side, member, ELF64_R_SYM(relocation.r_info));
			if (item.value)
				item.value += (uint64_t)relocation.r_addend;
			if (!vector_push(&side->relocations, item))
				return false;
		}
	}
	return true;
}

/* The member's content at `*at`, which moves on; false at the end. */
static bool next_member(const struct code_side *side, uint64_t *at, uint64_t *start, uint64_t *size)
{
	struct ar_hdr header;
	if (*at + sizeof(header) > side->file_size)
		return false;
	memcpy(&header, side->file + *at, sizeof(header));
	if (memcmp(header.ar_fmag, ARFMAG, sizeof(header.ar_fmag)) != 0)
		return false;
	*size = 0;
	for (size_t i = 0; i < sizeof(header.ar_size) && header.ar_size[i] >= '0' && header.ar_size[i] <= '9';
	     i++)
		*size = *size * 10 + (uint64_t)(header.ar_size[i] - '0');
	*start = *at + sizeof(header);
	if (*size > side->file_size - *start)
		return false;
	*at = *start + *size + (*size & 1);
	return true;
}

/* One pass over the members: first sections and symbols, then, when all names are
 * known, relocations. */
static bool read_members(struct code_side *side, uint16_t machine, bool is_first)
{
	uint64_t at = SARMAG, start, size, next = ARCHIVE_BASE;
	while (next_member(side, &at, &start, &size)) {
		struct member member;
		if (!open_member(&member, side->file + start, size, machine))
			continue;
		bool good = location_sections(side, &member, &next, is_first) &&
		            (is_first ? read_member_symbols(side, &member)
		                      : read_member_relocations(side, &member));
		close_member(&member);
		if (!good)
			return false;
		side->member_count += is_first;
	}
	return side->member_count > 0;
}

static bool load_file(struct code_side *side, const char *path)
{
	struct stat status;
	consulted_note(path);
	int fd = regular_file_open(path, &status);
	if (fd < 0)
		return false;
	if (status.st_size > SARMAG && (uint64_t)status.st_size <= ARCHIVE_BYTES_MAX)
		side->file = malloc((size_t)status.st_size + 1);
	while (side->file && side->file_size < (uint64_t)status.st_size) {
		ssize_t got = pread(fd, side->file + side->file_size,
		                    (size_t)status.st_size - side->file_size, (off_t)side->file_size);
		if (got <= 0)
			break;
		side->file_size += (uint64_t)got;
	}
	close(fd);
	if (!side->file)
		return false;
	side->file[side->file_size] = 0;
	return side->file_size > SARMAG && memcmp(side->file, ARMAG, SARMAG) == 0;
}

bool side_read_archive(struct code_side *side, const char *path, uint16_t machine)
{
	if (!load_file(side, path) || !read_members(side, machine, true))
		return false;
	commit(side);
	if (!read_members(side, machine, false))
		return false;
	sort(side->relocations.items, side->relocations.count, sizeof(*side->relocations.items),
	     compare_relocations);
	return true;
}
