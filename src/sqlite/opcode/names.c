/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/opcode/names.h"

#include <ctype.h>
#include <link.h>
#include <string.h>

#include "base/debug.h"

/* A compiler keeps the addresses of the texts, or where each is from the table's beginning. */
struct table {
	uintptr_t start, end; /* of its segment */
	uintptr_t at;
	size_t width;
};

/* The address of the text, 0: the segment has no such entry. */
static uintptr_t text_of(const struct table *table, size_t number)
{
	const uintptr_t entry = table->at + number * table->width;
	uintptr_t address;
	int32_t offset;

	if (table->at < table->start || entry + table->width > table->end)
		return 0;
	if (table->width == sizeof(address)) {
		memcpy(&address, (const void *)entry, sizeof(address));
		return address;
	}
	memcpy(&offset, (const void *)entry, sizeof(offset));
	return table->at + (uintptr_t)(intptr_t)offset;
}

/* Whether a name is there, and readable. */
static bool is_in(const struct table *segment, uintptr_t text)
{
	return text >= segment->start && text < segment->end && segment->end - text >= OPCODE_NAME_BYTES;
}

static bool has_known(const struct table *table, const char *const known[OPCODES])
{
	for (size_t i = 0; i < OPCODES; i++)
		if (known[i] && text_of(table, i) != (uintptr_t)known[i])
			return false;
	return true;
}

/* `first`: a number with a known text. */
static bool find_in(struct table *table, const char *const known[OPCODES], size_t first)
{
	for (table->at = table->start; table->at < table->end; table->at += table->width)
		if (text_of(table, first) == (uintptr_t)known[first] && has_known(table, known))
			return true;
	return false;
}

#define SEGMENTS_MAX 16

/* The readable segments, without those that are not part of the file; the linker puts the header
 * at the beginning of the image. */
static size_t find_segments(const struct host_library *library, struct table segments[SEGMENTS_MAX])
{
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)library->start;
	const ElfW(Phdr) *segment = (const ElfW(Phdr) *)(library->start + header->e_phoff), *first = NULL;
	size_t count = 0;

	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
		return 0;
	for (unsigned i = 0; i < header->e_phnum && count < SEGMENTS_MAX; i++, segment++) {
		if (segment->p_type != PT_LOAD)
			continue;
		if (!first)
			first = segment;
		if (segment->p_flags & PF_R) {
			segments[count].start = library->start + segment->p_vaddr - first->p_vaddr;
			segments[count].end = segments[count].start + segment->p_filesz;
			count++;
		}
	}
	return count;
}

static bool find_table(struct table *table, const struct table *segment, const char *const known[OPCODES],
                       size_t first)
{
	table->end = segment->end;
	table->start = (segment->start + sizeof(uintptr_t) - 1) & -sizeof(uintptr_t);
	for (table->width = sizeof(uintptr_t); table->width >= sizeof(int32_t); table->width /= 2)
		if (find_in(table, known, first))
			return true;
	return false;
}

static void copy_name(char name[OPCODE_NAME_BYTES], const char *text)
{
	size_t size = 0;

	while (size < OPCODE_NAME_BYTES - 1 && isalnum((unsigned char)text[size]))
		size++;
	memcpy(name, text, size);
	name[size] = 0;
}

void opcode_names_find(char names[OPCODES][OPCODE_NAME_BYTES], const char *const known[OPCODES],
                       const struct host_library *library)
{
	struct table segments[SEGMENTS_MAX], table = { 0 };
	const struct table *texts = NULL;
	size_t count = find_segments(library, segments), first = 0;
	bool is_found = false;

	while (first < OPCODES - 1 && !known[first])
		first++;
	for (size_t i = 0; i < count && !texts; i++)
		if (is_in(&segments[i], (uintptr_t)known[first]))
			texts = &segments[i];
	/* The last segments are those with addresses, and small. */
	for (size_t i = count; texts && i-- > 0 && !is_found;)
		is_found = find_table(&table, &segments[i], known, first);
	if (!is_found)
		debug_log(DEBUG_HOOKS, "opcode: %s: no table of names", library->name);
	for (size_t i = 0; i < OPCODES; i++) {
		uintptr_t text = is_found ? text_of(&table, i) : (uintptr_t)known[i];

		if (texts && is_in(texts, text))
			copy_name(names[i], (const char *)text);
	}
}
