/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/static/find.h"

#include <elf.h>
#include <sqlite3ext.h>
#include <stdio.h>
#include <string.h>

#include "watch/static/constant.h"

#define INDEX(routine) (offsetof(struct sqlite3_api_routines, routine) / sizeof(uintptr_t))

/* 3.15 has 216 routines. At most so many of the first are left out by options of the build. */
#define ROUTINES_MIN 150
#define ROUTINES_MAX 400
#define ABSENT_MAX 60

/* The table is named so near to SQLite's first function: 608 KiB away at most in 19 programs. */
#define REACH ((uintptr_t)1 << 20)
#define CHUNK ((uintptr_t)1 << 15)

/* --- what the object is ------------------------------------------------------------------ */

static void add_range(struct static_range ranges[STATIC_RANGES_MAX], unsigned *count, uintptr_t start,
                      uintptr_t end)
{
	start = (start + sizeof(uintptr_t) - 1) & ~(sizeof(uintptr_t) - 1);
	end &= ~(sizeof(uintptr_t) - 1);
	if (start < end && *count < STATIC_RANGES_MAX)
		ranges[(*count)++] = (struct static_range){ start, end };
}

static void add_segment(struct static_object *object, const ElfW(Phdr) *segment,
                        const struct static_range *relro)
{
	uintptr_t start = object->bias + segment->p_vaddr, end = start + segment->p_filesz;

	if (start < object->image.start)
		object->image.start = start;
	if (start + segment->p_memsz > object->image.end)
		object->image.end = start + segment->p_memsz;
	if (segment->p_flags & PF_R)
		add_range(object->loaded, &object->loaded_count, start, end);
	if ((segment->p_flags & PF_X) && end - start > object->code.end - object->code.start)
		object->code = (struct static_range){ start, end };
	if (!(segment->p_flags & PF_W)) {
		if (object->is_fixed && (segment->p_flags & PF_R))
			add_range(object->constants, &object->constants_count, start, end);
		return;
	}
	/* The loader may have split the segment: RELRO is its beginning. */
	add_range(object->data, &object->data_count,
	          relro->end > start && relro->start <= start ? relro->end : start, end);
	if (!relro->end)
		add_range(object->constants, &object->constants_count, start, end);
}

static void describe(const struct dl_phdr_info *info, struct static_object *object)
{
	struct static_range relro = { 0, 0 };

	*object = (struct static_object){ .bias = info->dlpi_addr, .is_fixed = !info->dlpi_addr };
	object->image.start = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
			relro.start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			relro.end = relro.start + info->dlpi_phdr[i].p_memsz;
			add_range(object->constants, &object->constants_count, relro.start, relro.end);
		}
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_filesz)
			add_segment(object, &info->dlpi_phdr[i], &relro);
}

/* --- whether it can have one ------------------------------------------------------------------ */

/* SQLite touches a lock file by the one or the other, whatever its options are, and few programs
 * do so. Python, which calls nearly all the rest, does not. */
static bool is_needed(const char *name)
{
	return name[0] == 'u' && (!strcmp(name, "utime") || !strcmp(name, "utimes"));
}

struct imports {
	const ElfW(Sym) *symbols;
	const char *strings;
	size_t count, strings_size;
};

/* Undefined symbols come before those in the table of hashes, whose first it names. A table of
 * none names the first of all; then the strings, which linkers put behind the symbols, tell. */
static void read_imports(const struct dl_phdr_info *info, struct imports *imports)
{
	const ElfW(Dyn) *entry = NULL;
	const uint32_t *hash = NULL;

	*imports = (struct imports){ 0 };
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		uintptr_t at = entry->d_un.d_ptr;
		const void *pointer = (const void *)(at < info->dlpi_addr ? at + info->dlpi_addr : at);

		switch (entry->d_tag) {
		case DT_GNU_HASH: hash = pointer; break;
		case DT_SYMTAB: imports->symbols = pointer; break;
		case DT_STRTAB: imports->strings = pointer; break;
		case DT_STRSZ: imports->strings_size = entry->d_un.d_val; break;
		}
	}
	if (hash && hash[1] > 1)
		imports->count = hash[1];
	else if ((const void *)imports->strings > (const void *)imports->symbols)
		imports->count = ((uintptr_t)imports->strings - (uintptr_t)imports->symbols) /
		                 sizeof *imports->symbols;
}

/* What has no imports is linked fully statically, and nobody asks for it. */
static bool may_have(const struct dl_phdr_info *info)
{
	struct imports imports;

	read_imports(info, &imports);
	for (size_t i = 1; imports.symbols && imports.strings && i < imports.count; i++) {
		const ElfW(Sym) *symbol = &imports.symbols[i];

		if (symbol->st_shndx == SHN_UNDEF && symbol->st_name < imports.strings_size &&
		    is_needed(imports.strings + symbol->st_name))
			return true;
	}
	return false;
}

/* --- the first table: where SQLite's code is ------------------------------------------------- */

bool static_is_loaded(const struct static_object *object, uintptr_t address, size_t size)
{
	for (unsigned i = 0; i < object->loaded_count; i++)
		if (static_is_in(&object->loaded[i], address) && object->loaded[i].end - address >= size)
			return true;
	return false;
}

static bool is_text(const struct static_object *object, uintptr_t address, const char *text)
{
	size_t size = strlen(text) + 1;
	bool is_same = static_is_loaded(object, address, size);

	/* Not memcmp(), with which AddressSanitizer checks whose memory it is. */
	for (size_t i = 0; is_same && i < size; i++)
		is_same = ((const volatile char *)address)[i] == text[i];
	return is_same;
}

/* Three records of { name, function now, function at first }: the second function is 0 until
 * the first is replaced. */
static bool is_system_calls(const struct static_object *object, const uintptr_t *words)
{
	return words[0] && static_is_in(&object->code, words[1]) && !words[2] && words[4] && !words[5] &&
	       words[7] && !words[8] && is_text(object, words[0], "open") &&
	       is_text(object, words[3], "close") && is_text(object, words[6], "access");
}

#define SYSTEM_CALLS_WORDS 9

/* The address of its "open", a function of SQLite's; 0: there is none from `*range` and `*from`
 * on, which are moved behind it. */
static uintptr_t find_system_calls(const struct static_object *object, unsigned *range, uintptr_t *from)
{
	for (; *range < object->data_count; ++*range, *from = 0) {
		const struct static_range *data = &object->data[*range];
		const uintptr_t *word = (const uintptr_t *)(*from ? *from : data->start);
		const uintptr_t *end = (const uintptr_t *)data->end;

		for (; end - word >= SYSTEM_CALLS_WORDS; word++)
			if (is_system_calls(object, word)) {
				*from = (uintptr_t)(word + SYSTEM_CALLS_WORDS);
				return word[1];
			}
	}
	return 0;
}

/* --- the second: the routines ------------------------------------------------------------------ */

struct search {
	const struct static_object *object;
	struct static_table *tables;
	size_t count;
};

/* libversion_number() returns a constant, and libversion() a text that says the same. */
static uint32_t read_version(const struct static_object *object, const uintptr_t *routines)
{
	uintptr_t number = routines[INDEX(libversion_number)], name = routines[INDEX(libversion)], text;
	uint32_t version;
	char expected[24];

	if (!static_is_in(&object->code, number) || !static_is_in(&object->code, name))
		return 0;
	version = constant_returned(object, number);
	if (version / 1000000 != 3)
		return 0;
	text = constant_address_returned(object, name);
	snprintf(expected, sizeof expected, "%u.%u.%u", version / 1000000, version / 1000 % 1000,
	         version % 1000);
	/* A fourth number may follow. */
	return static_is_loaded(object, text, sizeof expected) &&
	                       !strncmp((const char *)text, expected, strlen(expected))
	               ? version
	               : 0;
}

/* Those that a session needs in any case are there, and are different functions. */
static bool has_wanted(const uintptr_t *routines)
{
	static const size_t wanted[] = { INDEX(step),    INDEX(reset),      INDEX(finalize), INDEX(exec),
		                         INDEX(prepare), INDEX(prepare_v2), INDEX(close),    INDEX(open),
		                         INDEX(open_v2), INDEX(sql),        INDEX(db_handle) };
	size_t count = sizeof wanted / sizeof *wanted;

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j <= i; j++)
			if (!routines[wanted[i]] || (i != j && routines[wanted[i]] == routines[wanted[j]]))
				return false;
	return true;
}

static void try_table(struct search *search, uintptr_t address, uintptr_t end)
{
	const struct static_object *object = search->object;
	const uintptr_t *routines = (const uintptr_t *)address;
	size_t words = (end - address) / sizeof *routines, absent = 0, count = 0;
	uint32_t version;

	for (size_t i = 0; i < search->count; i++)
		if (search->tables[i].routines == routines)
			return;
	if (search->count == STATIC_TABLES_MAX || words < ROUTINES_MIN ||
	    !(version = read_version(object, routines)))
		return;
	for (; count < words && count < ROUTINES_MAX; count++) {
		if (routines[count] && !static_is_in(&object->code, routines[count]))
			break;
		absent += count < ROUTINES_MIN && !routines[count];
	}
	if (count < ROUTINES_MIN || absent > ABSENT_MAX || !has_wanted(routines))
		return;
	search->tables[search->count++] = (struct static_table){ routines, count, version };
}

static bool is_routine(const struct static_object *object, uintptr_t word)
{
	return !word || static_is_in(&object->code, word);
}

/* All constants, in strides shorter than the table: a probe inside of it meets an address of
 * code, or two that are 0, and only there the words around are read. */
#define STRIDE 64

static void search_constants(struct search *search, const struct static_range *range)
{
	const struct static_object *object = search->object;
	const uintptr_t *start = (const uintptr_t *)range->start, *end = (const uintptr_t *)range->end;

	for (const uintptr_t *probe = start + STRIDE - 1; probe < end; probe += STRIDE) {
		const uintptr_t *first = probe, *last = probe;

		if (!static_is_in(&object->code, *probe) &&
		    (*probe || probe + 1 == end || !static_is_in(&object->code, probe[1])))
			continue;
		while (first > start && is_routine(object, first[-1]) && probe - first < ROUTINES_MAX)
			first--;
		while (last < end && is_routine(object, *last) && last - probe < ROUTINES_MAX)
			last++;
		for (const uintptr_t *at = first; last - at >= ROUTINES_MIN; at++)
			if (static_is_in(&object->code, at[INDEX(libversion_number)]) &&
			    constant_returned(object, at[INDEX(libversion_number)]) / 1000000 == 3)
				try_table(search, (uintptr_t)at, (uintptr_t)end);
	}
}

/* A part of the code: does an instruction name the table? */
static bool search_code(struct search *search, uintptr_t start, uintptr_t end)
{
	const struct static_object *object = search->object;
	size_t before = search->count;

	if (start < object->code.start)
		start = object->code.start;
	if (end + CONSTANT_CODE_BYTES > object->code.end)
		end = object->code.end - CONSTANT_CODE_BYTES;
	for (uintptr_t at = start; at < end; at += CONSTANT_CODE_STEP) {
		uintptr_t named = constant_named_at(at);

		if (!named || named % sizeof(uintptr_t))
			continue;
		for (unsigned i = 0; i < object->constants_count; i++)
			if (named >= object->constants[i].start &&
			    named + ROUTINES_MIN * sizeof(uintptr_t) <= object->constants[i].end &&
			    static_is_in(&object->code, *(const uintptr_t *)named))
				try_table(search, named, object->constants[i].end);
	}
	return search->count > before;
}

static void search_around(struct search *search, uintptr_t address)
{
	for (uintptr_t away = 0; away < REACH; away += CHUNK)
		if (search_code(search, address + away, address + away + CHUNK) ||
		    (address > away + CHUNK && search_code(search, address - away - CHUNK, address - away)))
			return;
}

enum static_found static_find(const struct dl_phdr_info *info, struct static_object *object,
                              struct static_table tables[STATIC_TABLES_MAX], size_t *count)
{
	struct search search = { .object = object, .tables = tables };
	unsigned range = 0;
	uintptr_t from = 0, address;
	bool is_here = false;

	*count = 0;
	describe(info, object);
	if (!object->code.end || !may_have(info))
		return STATIC_NOTHING;
	while ((address = find_system_calls(object, &range, &from))) {
		is_here = true;
		if (object->is_fixed)
			search_around(&search, address);
	}
	/* What moves has its table among the relocated constants, which are few. */
	for (unsigned i = 0; is_here && !search.count && i < object->constants_count; i++)
		search_constants(&search, &object->constants[i]);
	*count = search.count;
	return search.count ? STATIC_TABLE : is_here ? STATIC_NO_TABLE : STATIC_NOTHING;
}
