/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names from archives: correct names, and no name without proof.
 *
 * Three kinds of evidence: a small library, compared with its unstripped form; Debian's libsqlite3, in which
 * exported functions with hidden names act as static functions; and damaged files, which may cost names and
 * nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbol/archive/match.h"
#include "symbol/archive/read.h"
#include "symbol/archive/token.h"
#include "symbol/elf_image.h"
#include "symbol/symbol.h"

#define SQLITE_LIBRARY "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0"
#define SQLITE_ARCHIVE "/usr/lib/x86_64-linux-gnu/libsqlite3.a"

/* --- the library with known functions ------------------------------------------------ */

static struct symbol_object object_at(const char *path, char build_id[BUILD_ID_TEXT])
{
	struct elf_image image;
	assert_true(elf_image_open(&image, path));
	elf_image_build_id(&image, build_id);
	elf_image_close(&image);
	return (struct symbol_object){ .path = path, .build_id = build_id };
}

/* Counts the static functions of full.so; returns how many of them `path` names. Fails if it names one
 * differently. */
static unsigned count_names(const char *path, unsigned *functions)
{
	struct elf_image image;
	char build_id[BUILD_ID_TEXT];
	struct symbol_object object = object_at(path, build_id);
	unsigned named = 0;
	*functions = 0;
	assert_true(elf_image_open(&image, ARCHIVES "/full.so"));
	const Elf64_Shdr *section = elf_image_section_of_type(&image, SHT_SYMTAB);
	assert_non_null(section);
	Elf64_Sym *symbols = elf_image_read(&image, section->sh_offset, section->sh_size);
	char *names = elf_image_read(&image, image.sections[section->sh_link].sh_offset,
	                             image.sections[section->sh_link].sh_size);
	assert_non_null(symbols);
	assert_non_null(names);
	for (size_t i = 0; i < section->sh_size / sizeof(*symbols); i++) {
		const char *truth = names + symbols[i].st_name;
		if (ELF64_ST_TYPE(symbols[i].st_info) != STT_FUNC || symbols[i].st_size == 0 ||
		    ELF64_ST_BIND(symbols[i].st_info) != STB_LOCAL)
			continue;
		++*functions;
		const char *name = symbol_name(&object, symbols[i].st_value);
		const char *last = symbol_name(&object, symbols[i].st_value + symbols[i].st_size - 1);
		if (name && strcmp(name, truth) != 0)
			fail_msg("%s: %s is called %s", path, truth, name);
		assert_true(name == last || (name && last && strcmp(name, last) == 0));
		named += name != NULL;
	}
	free(symbols);
	free(names);
	elf_image_close(&image);
	return named;
}

static void test_names_from_the_matching_archive(void **state)
{
	(void)state;
	unsigned functions, named = count_names(ARCHIVES "/same/libarchived.so", &functions);
	print_message("%u of %u static functions named\n", named, functions);
	assert_true(functions >= 11);
#ifdef __clang__
	assert_true(named * 2 >= functions);
#else
	assert_int_equal(named, functions);
#endif
}

static void test_no_wrong_names_from_another_version(void **state)
{
	(void)state;
	unsigned functions, named = count_names(ARCHIVES "/other/libarchived.so", &functions);
	print_message("%u of %u static functions named\n", named, functions);
	/* Changed functions have other names in that version. */
	assert_true(named <= functions - 2);
}

static void test_nothing_from_an_archive_with_another_string(void **state)
{
	(void)state;
	unsigned functions;
	assert_int_equal(count_names(ARCHIVES "/text/libarchived.so", &functions), 0);
	assert_true(functions > 0);
}

static void test_nothing_without_archive(void **state)
{
	(void)state;
	unsigned functions;
	assert_int_equal(count_names(ARCHIVES "/alone/libarchived.so", &functions), 0);
	assert_true(functions > 0);
}

/* --- libsqlite3 ------------------------------------------------------------------------ */

struct sides {
	struct elf_image image;
	struct code_side object, archive;
	uint32_t *matches;
};

static bool open_sides(struct sides *sides, const char *object, const char *archive)
{
	memset(sides, 0, sizeof(*sides));
	if (!elf_image_open(&sides->image, object))
		return false;
	return side_read_archive(&sides->archive, archive, sides->image.machine) &&
	       side_read_object(&sides->object, &sides->image);
}

static void close_sides(struct sides *sides)
{
	free(sides->matches);
	side_free(&sides->object);
	side_free(&sides->archive);
	elf_image_close(&sides->image);
}

static void open_sqlite(struct sides *sides)
{
	if (access(SQLITE_LIBRARY, R_OK) != 0 || access(SQLITE_ARCHIVE, R_OK) != 0 ||
	    !open_sides(sides, SQLITE_LIBRARY, SQLITE_ARCHIVE)) {
		print_message("no libsqlite3 with an archive\n");
		skip();
	}
}

/* Whether the object's function jumps to the address or calls it. Searches its bytes, without the decoder
 * under test. */
static bool goes_to(const struct code_side *side, const char *name, uint64_t address)
{
	const struct code_symbol *symbol = side_global(side, name);
	uint64_t size = symbol ? symbol->size : 0;
	const unsigned char *bytes = symbol ? side_bytes(side, symbol->address, &size) : NULL;
	for (uint64_t at = 0; bytes && at + 5 <= size; at++) {
		int32_t displacement;
		memcpy(&displacement, bytes + at + 1, sizeof(displacement));
		if ((bytes[at] == 0xe8 || bytes[at] == 0xe9) &&
		    symbol->address + at + 5 + (uint64_t)(int64_t)displacement == address)
			return true;
	}
	return false;
}

static void test_sqlite(void **state)
{
	(void)state;
	struct sides sides;
	open_sqlite(&sides);
	sides.matches = archive_match(&sides.object, &sides.archive);
	assert_non_null(sides.matches);
	unsigned nameless = 0, named = 0, found = 0;
	for (uint32_t i = 0; i < sides.object.functions.count; i++)
		nameless += sides.object.functions.items[i].name == NULL;
	for (uint32_t i = 0; i < sides.archive.functions.count; i++) {
		if (sides.matches[i] == ARCHIVE_NONE)
			continue;
		const struct code_function *function = &sides.object.functions.items[sides.matches[i]];
		named += function->name == NULL;
		if (strcmp(sides.archive.functions.items[i].name, "patternCompare") != 0)
			continue;
		found++;
		assert_true(goes_to(&sides.object, "sqlite3_strglob", function->address));
		assert_true(goes_to(&sides.object, "sqlite3_strlike", function->address));
	}
	print_message("%u of %u functions without a symbol named\n", named, nameless);
	assert_int_equal(found, 1);
	assert_true(named * 10 >= nameless * 8);
	close_sides(&sides);
}

/* Removes the names of a random third of the exported functions. */
static unsigned hide_names(struct code_side *side, const char **truth)
{
	unsigned hidden = 0;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < side->functions.count; i++)
		truth[i] = side->functions.items[i].name;
	for (uint32_t i = 0; i < side->globals.count; i++) {
		uint32_t function = side_function(side, side->globals.items[i].address);
		if (side->globals.items[i].is_function && function != ARCHIVE_NONE && rand() % 3 == 0) {
			side->functions.items[function].name = NULL;
			side->functions.items[function].is_exported = false;
			hidden++;
		} else {
			side->globals.items[kept++] = side->globals.items[i];
		}
	}
	side->globals.count = kept;
	return hidden;
}

static void test_hidden_exports_get_their_own_names(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 3; seed++) {
		struct sides sides;
		open_sqlite(&sides);
		srand(seed);
		const char **truth = calloc(sides.object.functions.count, sizeof(*truth));
		assert_non_null(truth);
		unsigned hidden = hide_names(&sides.object, truth), right = 0, wrong = 0;
		sides.matches = archive_match(&sides.object, &sides.archive);
		assert_non_null(sides.matches);
		for (uint32_t i = 0; i < sides.archive.functions.count; i++) {
			if (sides.matches[i] == ARCHIVE_NONE ||
			    sides.object.functions.items[sides.matches[i]].name)
				continue;
			const char *name = sides.archive.functions.items[i].name,
				   *is = truth[sides.matches[i]];
			bool is_global = sides.archive.functions.items[i].is_exported;
			/* The true name of a static function is unknown, but it is not the name of a global
			 * function. */
			if (is ? strcmp(is, name) == 0 : !is_global) {
				right += is != NULL;
			} else {
				print_message("%s is called %s\n", is ? is : "a static function", name);
				wrong++;
			}
		}
		print_message("seed %u: %u hidden, %u found, %u wrong\n", seed, hidden, right, wrong);
		assert_int_equal(wrong, 0);
		assert_true(right * 2 >= hidden);
		free(truth);
		close_sides(&sides);
	}
}

/* A function of the archive whose code was changed must not name any function. */
static void test_changed_functions_name_nothing(void **state)
{
	(void)state;
	struct sides sides;
	open_sqlite(&sides);
	srand(1);
	unsigned changed = 0, named = 0;
	bool *is_changed = calloc(sides.archive.functions.count, sizeof(*is_changed));
	assert_non_null(is_changed);
	for (uint32_t i = 0; i < sides.archive.functions.count; i++) {
		const struct code_function *function = &sides.archive.functions.items[i];
		uint64_t size = function->size, at = 0, last = 0;
		unsigned char *bytes = (unsigned char *)side_bytes(&sides.archive, function->address, &size);
		struct code_instruction instruction;
		if (function->is_exported || rand() % 3 != 0)
			continue;
		/* Finds the last byte of an instruction without an address: a constant, an offset, or the
		 * operand. */
		for (unsigned steps = 2 + (unsigned)rand() % 30; at < size && steps > 0; steps--) {
			if (!code_decode(bytes + at, size - at, &instruction))
				break;
			if (instruction.kind == CODE_PLAIN && instruction.length == 3)
				last = at + instruction.length - 1u;
			at += instruction.length;
		}
		if (last == 0)
			continue;
		bytes[last] ^= 8;
		is_changed[i] = true;
		changed++;
	}
	sides.matches = archive_match(&sides.object, &sides.archive);
	assert_non_null(sides.matches);
	for (uint32_t i = 0; i < sides.archive.functions.count; i++)
		if (is_changed[i] && sides.matches[i] != ARCHIVE_NONE) {
			print_message("%s named though changed\n", sides.archive.functions.items[i].name);
			named++;
		}
	print_message("%u changed\n", changed);
	assert_true(changed >= 100);
	assert_int_equal(named, 0);
	free(is_changed);
	close_sides(&sides);
}

/* --- damage ------------------------------------------------------------------------------- */

struct content {
	unsigned char *bytes;
	size_t size;
};

static struct content load(const char *path)
{
	struct content content = { 0 };
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	content.size = (size_t)ftell(file);
	rewind(file);
	content.bytes = malloc(content.size);
	assert_non_null(content.bytes);
	assert_int_equal(fread(content.bytes, 1, content.size, file), content.size);
	fclose(file);
	return content;
}

static void save_damaged(const char *path, const struct content *content)
{
	unsigned char *bytes = malloc(content->size);
	assert_non_null(bytes);
	memcpy(bytes, content->bytes, content->size);
	size_t size = rand() % 4 ? content->size : (size_t)rand() % content->size;
	for (int i = rand() % 40; i > 0; i--)
		bytes[(size_t)rand() % content->size] = (unsigned char)(rand() % 3 ? rand() : 0xff);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
	free(bytes);
}

static void test_damaged_files(void **state)
{
	(void)state;
	static const char object[] = ARCHIVES "/damaged.so", archive[] = ARCHIVES "/damaged.a";
	struct content whole_object = load(ARCHIVES "/same/libarchived.so");
	struct content whole_archive = load(ARCHIVES "/same/libarchived.a");
	unsigned opened = 0, matched = 0;
	srand(7);
	for (int i = 0; i < 600; i++) {
		struct sides sides;
		save_damaged(object, &whole_object);
		save_damaged(archive, &whole_archive);
		if (open_sides(&sides, object, archive)) {
			sides.matches = archive_match(&sides.object, &sides.archive);
			opened++;
			matched += sides.matches != NULL;
		}
		close_sides(&sides);
	}
	print_message("600 damaged pairs: %u could be read, %u matched\n", opened, matched);
	assert_true(opened > 0 && opened < 600);
	unlink(object);
	unlink(archive);
	free(whole_object.bytes);
	free(whole_archive.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_from_the_matching_archive),
		cmocka_unit_test(test_no_wrong_names_from_another_version),
		cmocka_unit_test(test_nothing_from_an_archive_with_another_string),
		cmocka_unit_test(test_nothing_without_archive),
		cmocka_unit_test(test_sqlite),
		cmocka_unit_test(test_hidden_exports_get_their_own_names),
		cmocka_unit_test(test_changed_functions_name_nothing),
		cmocka_unit_test(test_damaged_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
