/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inlined functions of a library with known functions (inlined/), from gcc's and clang's DWARF 4 and 5. The
 * library calls the test from each place, so the addresses are the same as in a sample.
 */
#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "inlined/inlined.h"
#include "symbol/elf_image.h"
#include "symbol/symbol.h"

struct library {
	char path[4096], build_id[BUILD_ID_TEXT];
	struct symbol_object object;
	uint64_t addresses[INLINED_PLACES]; /* ELF */
	const struct inlined_expected *(*expect)(enum inlined_place, int);
};

static uint64_t *visited;

/* A trace has the return address minus one for each caller. */
static __attribute__((noinline)) void visit(enum inlined_place place)
{
	visited[place] = (uint64_t)(uintptr_t)__builtin_return_address(0) - 1;
}

/* Returns false if the library was not built. */
static bool load(const char *name, struct library *library)
{
	memset(library, 0, sizeof(*library));
	snprintf(library->path, sizeof(library->path), INLINED "/%s.so", name);
	if (access(library->path, R_OK) != 0)
		return false;
	void *handle = dlopen(library->path, RTLD_NOW);
	struct link_map *map;
	struct elf_image image;
	if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
		fail_msg("%s", dlerror());
	void (*run)(inlined_visitor) = (void (*)(inlined_visitor))dlsym(handle, "inlined_run");
	library->expect =
		(const struct inlined_expected *(*)(enum inlined_place, int))dlsym(handle, "inlined_expect");
	assert_true(run && library->expect);
	visited = library->addresses;
	run(visit);
	for (int i = 0; i < INLINED_PLACES; i++) {
		assert_true(library->addresses[i] != 0);
		library->addresses[i] -= map->l_addr;
	}
	assert_true(elf_image_open(&image, library->path));
	elf_image_build_id(&image, library->build_id);
	elf_image_close(&image);
	library->object = (struct symbol_object){ .path = library->path, .build_id = library->build_id };
	return true;
}

static bool is_frame(const struct symbol_frame *frame, const struct inlined_expected *expected)
{
	char *function = frame->function ? symbol_demangle(frame->function) : NULL;
	const char *seen = function ? function : frame->function ? frame->function : "";
	const char *slash = frame->file ? strrchr(frame->file, '/') : NULL;
	bool good = strcmp(seen, expected->function) == 0 && slash &&
	            strcmp(slash + 1, expected->file) == 0 && frame->line == expected->line;
	if (!good)
		print_message("expected %s %s:%d, seen %s %s:%d\n", expected->function, expected->file,
		              expected->line, seen, frame->file ? frame->file : "-", frame->line);
	free(function);
	return good;
}

/* All addresses of the extent have these frames. */
static void check_extent(const struct library *library, uint64_t address, const struct symbol_frame *frames,
                         size_t count)
{
	struct symbol_frame others[SYMBOL_FRAMES_MAX];
	struct extent extent;
	assert_int_equal(symbol_frames_around(&library->object, address, others, SYMBOL_FRAMES_MAX, &extent),
	                 count);
	assert_true(extent.start <= address && address < extent.end && extent.end - extent.start < 4096);
	for (uint64_t at = extent.start; at < extent.end; at++) {
		assert_int_equal(symbol_frames(&library->object, at, others, SYMBOL_FRAMES_MAX), count);
		for (size_t i = 0; i < count; i++) {
			assert_string_equal(others[i].function, frames[i].function);
			assert_string_equal(others[i].file, frames[i].file);
			assert_int_equal(others[i].line, frames[i].line);
		}
	}
}

static void check_place(const struct library *library, enum inlined_place place, bool is_one)
{
	const struct inlined_expected *expected = library->expect(place, is_one);
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	size_t count = symbol_frames(&library->object, library->addresses[place], frames, SYMBOL_FRAMES_MAX);
	size_t wanted = 0;
	while (expected[wanted].function)
		wanted++;
	if (count != wanted)
		fail_msg("%s, place %d: expected %zu frames, seen %zu", library->path, place, wanted, count);
	for (size_t i = 0; i < count; i++) {
		if (!is_frame(&frames[i], &expected[i]) || frames[i].is_inlined != (i + 1 < count))
			fail_msg("%s, place %d, frame %zu", library->path, place, i);
	}
	/* symbol_line() returns the innermost line. */
	const char *file;
	int line;
	assert_true(symbol_line(&library->object, library->addresses[place], &file, &line));
	assert_string_equal(file, frames[0].file);
	assert_int_equal(line, frames[0].line);

	check_extent(library, library->addresses[place], frames, count);

	/* With less room, the outer frames are returned, with their own lines. */
	struct symbol_frame fewer[SYMBOL_FRAMES_MAX];
	for (size_t room = 0; room < count; room++) {
		assert_int_equal(symbol_frames(&library->object, library->addresses[place], fewer, room),
		                 room);
		for (size_t i = 0; i < room; i++)
			assert_true(is_frame(&fewer[i], &expected[count - room + i]));
	}
}

static void check_library(void **state)
{
	const char *name = *state;
	struct library library;
	assert_true(symbol_set_debug_path(INLINED "/debug:" INLINED "/other:" INLINED "/beside"));
	if (!load(name, &library))
		skip(); /* its compiler or tool is not installed */
	for (int place = 0; place < INLINED_PLACES; place++)
		check_place(&library, place, strncmp(name, "lto", 3) == 0);
}

/* Debug information in other files is not read because libdw maps those files. There are lines, but no
 * inlined functions. */
static void test_split(void **state)
{
	struct library library;
	(void)state;
	if (!load("split", &library))
		skip();
	for (int place = 0; place < INLINED_PLACES; place++) {
		const struct inlined_expected *expected = library.expect(place, 0);
		struct symbol_frame frames[SYMBOL_FRAMES_MAX];
		size_t last = 0;
		while (expected[last + 1].function)
			last++;
		struct inlined_expected wanted = { expected[last].function, expected[0].file,
			                           expected[0].line };
		assert_int_equal(
			symbol_frames(&library.object, library.addresses[place], frames, SYMBOL_FRAMES_MAX),
			1);
		assert_true(is_frame(&frames[0], &wanted));
	}
}

static void test_without_debug_information(void **state)
{
	struct library library;
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	(void)state;
	assert_true(symbol_set_debug_path(INLINED "/nowhere"));
	if (!load("shared", &library))
		skip();
	size_t count =
		symbol_frames(&library.object, library.addresses[INLINED_TWICE], frames, SYMBOL_FRAMES_MAX);
	assert_int_equal(count, 1);
	assert_string_equal(frames[0].function, "inlined_large");
	assert_null(frames[0].file);
	assert_int_equal(frames[0].line, 0);
	assert_false(frames[0].is_inlined);
	/* No function, no line. */
	assert_int_equal(symbol_frames(&library.object, 1, frames, SYMBOL_FRAMES_MAX), 0);
	library.object.build_id = "00";
	assert_int_equal(symbol_frames(&library.object, library.addresses[INLINED_TWICE], frames, 8), 0);
}

/* Damaged DWARF may only cost an answer. With the sanitizers, this finds reads out of bounds. The seed is
 * fixed. */
static void test_damaged(void **state)
{
	static const char *const sections[] = {
		".debug_info",     ".debug_abbrev", ".debug_line",
		".debug_rnglists", ".debug_str",    ".debug_line_str",
	};
	struct library library;
	struct elf_image image;
	unsigned random = 20261121, frames_seen = 0;
	(void)state;
	assert_true(load("gcc5", &library));
	assert_true(elf_image_open(&image, library.path));
	char *whole = elf_image_read(&image, 0, image.size), *damaged = malloc(image.size);
	assert_true(whole && damaged);
	library.object.path = INLINED "/../damaged_inlined.so";
	alarm(120); /* for an endless loop */
	for (int round = 0; round < 200; round++) {
		memcpy(damaged, whole, image.size);
		for (int flip = 0; flip < 1 + round % 6; flip++) {
			random = random * 1664525 + 1013904223;
			const Elf64_Shdr *section = elf_image_section(&image, sections[(random >> 16) % 6]);
			assert_non_null(section);
			random = random * 1664525 + 1013904223;
			damaged[section->sh_offset + (random >> 3) % section->sh_size] = (char)(random >> 24);
		}
		FILE *file = fopen(library.object.path, "wb");
		assert_non_null(file);
		assert_int_equal(fwrite(damaged, 1, image.size, file), image.size);
		fclose(file);
		for (int place = 0; place < INLINED_PLACES; place++) {
			struct symbol_frame frames[SYMBOL_FRAMES_MAX];
			size_t count = symbol_frames(&library.object, library.addresses[place], frames,
			                             SYMBOL_FRAMES_MAX);
			for (size_t i = 0; i < count; i++)
				frames_seen += frames[i].function && strlen(frames[i].function) > 0;
		}
		symbol_forget();
	}
	alarm(0);
	unlink(library.object.path);
	free(whole);
	free(damaged);
	elf_image_close(&image);
	print_message("damaged files still gave %u frames\n", frames_seen);
	assert_true(frames_seen > 0);
}

/* libdw would read beyond the section. */
static void test_text_without_an_end(void **state)
{
	struct library library;
	const char *file;
	int line;
	(void)state;
	assert_true(load("unended", &library));
	assert_false(symbol_line(&library.object, library.addresses[INLINED_TWICE], &file, &line));
}

/* --- compressed -------------------------------------------------------------------- */

/* Bits in deflate's order, lowest first. */
struct bits {
	FILE *out;
	uint64_t left;
	unsigned count;
};

static void put_bits(struct bits *bits, unsigned value, unsigned count)
{
	bits->left |= (uint64_t)value << bits->count;
	for (bits->count += count; bits->count >= 8; bits->count -= 8, bits->left >>= 8)
		fputc((int)(bits->left & 0xff), bits->out);
}

/* Writes 1 + 258 * `copies` zeros as a compressed section: a zero and copies of it. Returns the section's
 * size. */
static uint64_t write_zeros(FILE *out, uint64_t copies)
{
	const uint64_t size = 1 + 258 * copies, sum = size % 65521 << 16 | 1; /* Adler's */
	const Elf64_Chdr head = { .ch_type = ELFCOMPRESS_ZLIB, .ch_size = size, .ch_addralign = 1 };
	struct bits bits = { .out = out };
	long before = ftell(out);

	fwrite(&head, sizeof(head), 1, out);
	fputs("\x78\x01", out);
	put_bits(&bits, 3, 3);    /* the last block, with fixed codes */
	put_bits(&bits, 0x0c, 8); /* the byte 0 */
	for (uint64_t i = 0; i < copies; i++)
		put_bits(&bits, 0xa3, 8 + 5); /* 258 bytes at distance 1 */
	put_bits(&bits, 0, 7);                /* the end */
	put_bits(&bits, 0, (8 - bits.count) % 8);
	for (int shift = 24; shift >= 0; shift -= 8)
		fputc((int)(sum >> shift & 0xff), out);
	return (uint64_t)(ftell(out) - before);
}

/* Writes a copy of the library whose section .debug_str has so many zeros. */
static void write_copy(const struct library *library, const char *path, uint64_t copies)
{
	struct elf_image image;
	FILE *out = fopen(path, "wb");
	assert_non_null(out);
	assert_true(elf_image_open(&image, library->path));
	char *whole = elf_image_read(&image, 0, image.size);
	const Elf64_Shdr *section = elf_image_section(&image, ".debug_str");
	assert_true(whole && section);
	Elf64_Shdr changed = *section;
	const long place =
		(long)(image.header.e_shoff + (size_t)(section - image.sections) * sizeof(changed));
	assert_int_equal(fwrite(whole, 1, image.size, out), image.size);
	changed.sh_offset = (image.size + 7) & ~UINT64_C(7);
	assert_int_equal(fseek(out, (long)changed.sh_offset, SEEK_SET), 0);
	changed.sh_size = write_zeros(out, copies);
	changed.sh_flags |= SHF_COMPRESSED;
	changed.sh_addralign = 8;
	assert_int_equal(fseek(out, place, SEEK_SET), 0);
	assert_int_equal(fwrite(&changed, sizeof(changed), 1, out), 1);
	assert_int_equal(fclose(out), 0);
	free(whole);
	elf_image_close(&image);
}

/* A file of 7 MB may expand to a gigabyte, which is more than may be held in memory. */
static void test_compressed_much(void **state)
{
	static const uint64_t copies[] = { 1000, (UINT64_C(1) << 30) / 258 + 1 };
	struct library library;
	(void)state;
	assert_true(load("gcc5", &library));
	for (int i = 0; i < 2; i++) {
		struct symbol_object object = library.object;
		const char *file;
		int line;
		object.path = i ? INLINED "/../packed_much.so" : INLINED "/../packed_little.so";
		write_copy(&library, object.path, copies[i]);
		assert_int_equal(symbol_line(&object, library.addresses[INLINED_TWICE], &file, &line),
		                 i == 0);
		unlink(object.path);
	}
}

static uint64_t debug_size(const char *name)
{
	char path[4096];
	struct elf_image image;
	snprintf(path, sizeof(path), INLINED "/%s.so", name);
	assert_true(elf_image_open(&image, path));
	uint64_t size = elf_image_debug_size(&image);
	elf_image_close(&image);
	return size;
}

static void test_compressed_size(void **state)
{
	(void)state;
	assert_true(debug_size("gcc4") > 1000);
	assert_int_equal(debug_size("old"), debug_size("gcc4"));
}

/* --- made to waste time -------------------------------------------------------------- */

/* Returns the number of frames of the function in a library made from traps.S. */
static size_t look_into_trap(const char *path)
{
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	char build_id[BUILD_ID_TEXT];
	struct symbol_object object = { .path = path, .build_id = build_id };
	struct elf_image image;
	struct link_map *map = NULL;
	void *handle = dlopen(path, RTLD_NOW);

	if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
		fail_msg("%s", dlerror());
	assert_true(elf_image_open(&image, path));
	elf_image_build_id(&image, build_id);
	elf_image_close(&image);
	const uint64_t address = (uint64_t)(uintptr_t)dlsym(handle, "trap_function") - map->l_addr;
	size_t count = symbol_frames(&object, address, frames, SYMBOL_FRAMES_MAX);
	assert_true(count > 0);
	assert_string_equal(frames[count - 1].function, "trap_function");
	return count;
}

/* An entry's sibling is its child. A reader that follows both takes 2^100 steps. */
static void test_siblings_inside(void **state)
{
	alarm(120); /* for an endless loop */
	look_into_trap(*state);
	alarm(0);
}

/* Four million ranges in 100 KB are not read, so inlined functions are not known. */
static void test_many_ranges(void **state)
{
	(void)state;
	assert_int_equal(look_into_trap(TRAP_RANGES), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(check_library, (char[]){ "gcc4" }),
		cmocka_unit_test_prestate(check_library, (char[]){ "gcc5" }),
		cmocka_unit_test_prestate(check_library, (char[]){ "clang4" }),
		cmocka_unit_test_prestate(check_library, (char[]){ "clang5" }),
		cmocka_unit_test_prestate(check_library, (char[]){ "lto4" }),
		cmocka_unit_test_prestate(check_library, (char[]){ "lto5" }),
		cmocka_unit_test_prestate(check_library, (char[]){ "shared" }),
		cmocka_unit_test_prestate(check_library, (char[]){ "beside" }),
		cmocka_unit_test_prestate(check_library, (char[]){ "old" }),
		cmocka_unit_test_prestate(check_library, (char[]){ "apart" }),
		cmocka_unit_test_prestate(check_library, (char[]){ "mixed" }),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_without_debug_information),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_text_without_an_end),
		cmocka_unit_test(test_compressed_much),
		cmocka_unit_test(test_compressed_size),
		cmocka_unit_test_prestate(test_siblings_inside, (char[]){ TRAP_NAMESPACES }),
		cmocka_unit_test_prestate(test_siblings_inside, (char[]){ TRAP_BLOCKS }),
		cmocka_unit_test(test_many_ranges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
