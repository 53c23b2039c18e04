/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/static/find.h"

#include <elf.h>
#include <sqlite3ext.h>
#include <stdio.h>
#include <string.h>

#include "base/loaded_symbol.h"
#include "sqlite/static/constant.h"

#define INDEX(routine) (offsetof(struct sqlite3_api_routines, routine) / sizeof(uintptr_t))

/* 3.15 has 216 routines. At most so many of the first are left out by options of the build. */
#define ROUTINES_MIN 150
#define ROUTINES_MAX 400
#define ABSENT_MAX 60

/* The table is named so near to SQLite's first function: 608 KiB away at most in 19 programs. */
#define REACH ((uintptr_t)1 << 20)
#define CHUNK ((uintptr_t)1 << 15)

/* Words between probes for a table: less than either has. */
#define STRIDE 64

/* MAX_PATHNAME of SQLite's layer for Unix. */
#define UNIX_PATHNAME_MAX 512

/* --- whether it can have one ------------------------------------------------------------------ */

/* SQLite touches a lock file, and syncs its files or, built without that for tests, moves its mappings:
 * whatever its options are, it calls one function of each kind. Few programs do: Python, which calls
 * nearly all the rest, touches no file so. */
enum { TOUCHES = 1, KEEPS = 2, ALL_NEEDED = TOUCHES | KEEPS };

static unsigned need_met(const char *name)
{
	switch (*name) {
	case 'u': return strcmp(name, "utime") && strcmp(name, "utimes") ? 0 : TOUCHES;
	case 'f': return strcmp(name, "fsync") && strcmp(name, "fdatasync") ? 0 : KEEPS;
	case 'm': return strcmp(name, "mremap") ? 0 : KEEPS;
	default: return 0;
	}
}

/* Undefined symbols precede those in the hash table, which has the number of its first. An empty
 * table names the first of all symbols; then the address of the strings, which linkers put after
 * the symbols, gives their number. */
static size_t count_imports(const struct loaded_tables *tables)
{
	if (!tables->symbols || !tables->strings)
		return 0;
	if (tables->hash && tables->hash[1] > 1)
		return tables->hash[1];
	if ((const void *)tables->strings <= (const void *)tables->symbols)
		return 0;
	return ((uintptr_t)tables->strings - (uintptr_t)tables->symbols) / sizeof(*tables->symbols);
}

/* A program without imports is linked fully statically: queryprof cannot be loaded into it. */
static bool may_have(const struct dl_phdr_info *info)
{
	struct loaded_tables tables;
	unsigned met = 0;
	size_t count;

	loaded_tables_read(info, &tables);
	count = count_imports(&tables);
	for (size_t i = 1; i < count && met != ALL_NEEDED; i++) {
		const ElfW(Sym) *symbol = &tables.symbols[i];

		if (symbol->st_shndx == SHN_UNDEF && symbol->st_name < tables.strings_size)
			met |= need_met(tables.strings + symbol->st_name);
	}
	return met == ALL_NEEDED;
}

/* --- the first table: where SQLite's code is ------------------------------------------------- */

static bool is_text(const struct static_object *object, uintptr_t address, const char *text)
{
	size_t size = strlen(text) + 1;
	bool is_same = static_is_loaded(object, address, size);

	/* Not memcmp(), with which AddressSanitizer checks whose memory it is. */
	for (size_t i = 0; is_same && i < size; i++)
		is_same = ((const volatile char *)address)[i] == text[i];
	return is_same;
}

/* Records of { name, function now, function at first }, 27 in 3.15. */
#define RECORD 3
#define RECORDS_MIN 25

/* The first three, strictly: the second function is 0 until the first is replaced. */
static bool is_system_calls(const struct static_object *object, const uintptr_t *words)
{
	return words[0] && static_is_in(&object->code, words[1]) && !words[2] && words[4] && !words[5] &&
	       words[7] && !words[8] && is_text(object, words[0], "open") &&
	       is_text(object, words[3], "close") && is_text(object, words[6], "access");
}

/* Whether these may be three records of the middle. Names are constants, and of three functions a host may
 * have replaced one. */
static bool may_be_records(const struct static_object *object, const struct static_range *data,
                           const uintptr_t *name)
{
	unsigned names = 0, kept = 0;

	for (unsigned i = 0; i < 3 * RECORD; i += RECORD) {
		names += static_is_in(&object->image, name[i]) && !static_is_in(data, name[i]);
		kept += !name[i + 2];
	}
	return names == 3 && kept >= 2;
}

/* The table's beginning, not before `first`, if the probe meets it at whichever word of a record. */
#define PROBE_WORDS (4 * RECORD - 1)

static const uintptr_t *find_beginning(const struct static_object *object, const struct static_range *data,
                                       const uintptr_t *first, const uintptr_t *probe)
{
	for (const uintptr_t *name = probe; name < probe + RECORD; name++)
		if (may_be_records(object, data, name))
			for (const uintptr_t *at = name; at >= first; at -= RECORD)
				if (is_system_calls(object, at))
					return at;
	return NULL;
}

/* One of the probes meets the table. */
_Static_assert(STRIDE + PROBE_WORDS - 1 <= RECORDS_MIN * RECORD, "a probe lies inside of the table");

/* The address of its "open", a function of SQLite; 0: there is none from `*range` and `*from` on,
 * which are advanced past it. */
static uintptr_t find_system_calls(const struct static_object *object, unsigned *range, uintptr_t *from)
{
	for (; *range < object->data_count; ++*range, *from = 0) {
		const struct static_range *data = &object->data[*range];
		const uintptr_t *word = (const uintptr_t *)(*from ? *from : data->start);
		const uintptr_t *end = (const uintptr_t *)data->end;

		for (; end - word >= STRIDE + PROBE_WORDS - 1; word += STRIDE) {
			const uintptr_t *at = find_beginning(object, data, word, word + STRIDE - 1);

			if (at) {
				*from = (uintptr_t)(at + RECORDS_MIN * RECORD);
				return at[1];
			}
		}
	}
	return 0;
}

/* --- whether it has the second ------------------------------------------------------------------ */

/* SQLITE_OMIT_LOAD_EXTENSION omits the table of routines, and the functions that open libraries in
 * the VFS for Unix, which is in data as well. If no VFS is found, nothing follows. */
static bool may_load_extensions(const struct static_object *object)
{
	bool is_found = false;

	for (unsigned i = 0; i < object->data_count; i++) {
		const struct static_range *data = &object->data[i];

		for (uintptr_t at = data->start; at + sizeof(sqlite3_vfs) <= data->end;
		     at += sizeof(uintptr_t)) {
			const sqlite3_vfs *vfs = (const sqlite3_vfs *)at;

			if (vfs->mxPathname != UNIX_PATHNAME_MAX || !vfs->zName ||
			    !static_is_in(&object->code, (uintptr_t)vfs->xOpen) ||
			    !is_text(object, (uintptr_t)vfs->zName, "unix"))
				continue;
			if (vfs->xDlOpen)
				return true;
			is_found = true;
		}
	}
	return !is_found;
}

/* --- the second: the routines ------------------------------------------------------------------ */

struct search {
	const struct static_object *object;
	struct static_table *tables;
	size_t count;
};

/* libversion_number() returns a constant, and libversion() a text with the same version. */
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
	/* If the object exports the text, the loader uses that of a library that came first. */
	if (text && !static_is_in(&object->image, text))
		return version;
	snprintf(expected, sizeof(expected), "%u.%u.%u", version / 1000000, version / 1000 % 1000,
	         version % 1000);
	/* A fourth number may follow. */
	return static_is_loaded(object, text, sizeof(expected)) &&
	                       !strncmp((const char *)text, expected, strlen(expected))
	               ? version
	               : 0;
}

/* The functions that a session always needs exist, and are different. */
static bool has_wanted(const uintptr_t *routines)
{
	static const size_t wanted[] = { INDEX(step),    INDEX(reset),      INDEX(finalize), INDEX(exec),
		                         INDEX(prepare), INDEX(prepare_v2), INDEX(close),    INDEX(open),
		                         INDEX(open_v2), INDEX(sql),        INDEX(db_handle) };
	size_t count = sizeof(wanted) / sizeof(*wanted);

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
	size_t words = (end - address) / sizeof(*routines), absent = 0, count = 0;
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

/* All constants: a probe inside the table finds an address of code, or two that are 0. The search
 * reads libversion_number() of each candidate, if it is in `code`. */
static void search_constants(struct search *search, const struct static_range *range,
                             const struct static_range *code)
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
			if (static_is_in(code, at[INDEX(libversion_number)]) && has_wanted(at) &&
			    constant_returned(object, at[INDEX(libversion_number)]) / 1000000 == 3)
				try_table(search, (uintptr_t)at, (uintptr_t)end);
	}
}

/* A part of the code: does an instruction name the table? */
static bool search_code(struct search *search, uintptr_t start, uintptr_t end, bool only_passed)
{
	const struct static_object *object = search->object;
	size_t before = search->count;

	if (start < object->code.start)
		start = object->code.start;
	if (end + CONSTANT_CODE_BYTES > object->code.end)
		end = object->code.end - CONSTANT_CODE_BYTES;
	for (uintptr_t at = start; at < end; at += CONSTANT_CODE_STEP) {
		uintptr_t named;

		if (only_passed && (at = constant_next_passed(at, end)) == end)
			break;
		named = constant_named_at(at);
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

static void search_around(struct search *search, uintptr_t address, bool only_passed)
{
	for (uintptr_t away = 0; away < REACH; away += CHUNK)
		if (search_code(search, address + away, address + away + CHUNK, only_passed) ||
		    (address > away + CHUNK &&
		     search_code(search, address - away - CHUNK, address - away, only_passed)))
			return;
}

/* Searches around a function of SQLite. Position-independent code has the table among the
 * relocated constants, which are few. Everything that is read becomes resident, so likely places
 * come first: sqlite3_load_extension() passes the table to an extension, and SQLite's functions
 * are adjacent. */
static void search_tables(struct search *search, uintptr_t address, bool only_likely)
{
	const struct static_object *object = search->object;
	struct static_range near = { address > REACH ? address - REACH : 0, address + REACH };

	if (object->is_fixed)
		search_around(search, address, only_likely);
	for (unsigned i = 0; i < object->constants_count && (!object->is_fixed || !only_likely); i++)
		search_constants(search, &object->constants[i], only_likely ? &near : &object->code);
}

/* Returns how many copies are here. */
static size_t search_copies(struct search *search, bool only_likely)
{
	unsigned range = 0;
	uintptr_t from = 0, address;
	size_t copies = 0;

	while ((address = find_system_calls(search->object, &range, &from))) {
		copies++;
		search_tables(search, address, only_likely);
	}
	return copies;
}

enum static_found static_find(const struct dl_phdr_info *info, struct static_object *object,
                              struct static_table tables[STATIC_TABLES_MAX], size_t *count)
{
	struct search search = { .object = object, .tables = tables };
	unsigned range = 0;
	uintptr_t from = 0;

	*count = 0;
	static_object_read(object, info);
	if (!object->code.end || !may_have(info) || !find_system_calls(object, &range, &from))
		return STATIC_NOTHING;
	if (!may_load_extensions(object))
		return STATIC_NO_TABLE;
	if (search_copies(&search, true) > search.count)
		search_copies(&search, false);
	*count = search.count;
	return search.count ? STATIC_TABLE : STATIC_UNKNOWN_TABLE;
}
