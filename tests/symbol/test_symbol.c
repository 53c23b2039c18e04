/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and lines of a library with known functions (fixture.c), in every form of an object: whole, stripped
 * with and without debug files, replaced, damaged.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/lock.h"
#include "fixture.h"
#include "symbol/elf_image.h"
#include "symbol/lines.h"
#include "symbol/symbol.h"

#define BUILD_ID "a1b2c3d4e5f60718"
#define DEBUG_PATH FIXTURES "/nowhere:" FIXTURES "/debug"

static const struct fixture_function *functions;
static uint64_t bias;

static struct symbol_object by_build_id(const char *path)
{
	return (struct symbol_object){ .path = path, .build_id = BUILD_ID };
}

/* For the fixtures without build id. */
static struct symbol_object by_time(const char *path)
{
	struct stat status;
	assert_int_equal(stat(path, &status), 0);
	return (struct symbol_object){
		.path = path,
		.build_id = "",
		.file_size = (uint64_t)status.st_size,
		.mtime_ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec,
	};
}

static uint64_t address_of(const char *name)
{
	for (const struct fixture_function *function = functions; function->name; function++)
		if (strcmp(function->name, name) == 0)
			return (uint64_t)(uintptr_t)function->start - bias;
	fail_msg("the fixture has no %s", name);
	return 0;
}

static void expect_name(const struct symbol_object *object, uint64_t address, const char *name)
{
	const char *seen = symbol_name(object, address);
	if (!seen != !name || (seen && strcmp(seen, name) != 0))
		fail_msg("%s at 0x%llx: expected %s, seen %s", object->path, (unsigned long long)address,
		         name ? name : "nothing", seen ? seen : "nothing");
}

static int set_up(void **state)
{
	(void)state;
	void *handle = dlopen(FIXTURES "/full.so", RTLD_NOW);
	if (!handle) {
		print_error("%s\n", dlerror());
		return -1;
	}
	const struct fixture_function *(*get)(void) =
		(const struct fixture_function *(*)(void))dlsym(handle, "fixture_functions");
	struct link_map *map;
	if (!get || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
		return -1;
	functions = get();
	bias = map->l_addr;
	return 0;
}

static int forget(void **state)
{
	(void)state;
	symbol_forget();
	return symbol_set_debug_path(DEBUG_PATH) ? 0 : -1;
}

static void test_every_function_has_its_name(void **state)
{
	(void)state;
	struct symbol_object object = by_build_id(FIXTURES "/full.so");
	for (const struct fixture_function *function = functions; function->name; function++) {
		expect_name(&object, address_of(function->name), function->name);
		expect_name(&object, address_of(function->name) + 3, function->name);
	}
}

static void test_symbol_covers_its_size_and_no_more(void **state)
{
	(void)state;
	struct symbol_object object = by_build_id(FIXTURES "/full.so");
	uint64_t start = address_of("fixture_sized");
	expect_name(&object, start + 15, "fixture_sized");
	for (uint64_t at = start + 16; at < start + 32; at++)
		expect_name(&object, at, NULL);
	expect_name(&object, start + 32, "fixture_unsized");
	expect_name(&object, 0, NULL);
	expect_name(&object, UINT64_MAX, NULL);
}

static void test_symbol_without_size_reaches_to_the_next(void **state)
{
	(void)state;
	struct symbol_object object = by_build_id(FIXTURES "/full.so");
	uint64_t start = address_of("fixture_unsized");
	expect_name(&object, start + 15, "fixture_unsized");
	expect_name(&object, start + 16, "fixture_label_user");
	/* A label may be the start of anything. */
	expect_name(&object, start + 23, "fixture_label_user");
	expect_name(&object, start + 24, NULL);
}

static void test_symbol_without_size_names_one_byte_among_unknown_neighbours(void **state)
{
	(void)state;
	static const char *const paths[] = { FIXTURES "/globals.so", FIXTURES "/bare.so" };
	assert_true(symbol_set_debug_path(FIXTURES "/nowhere"));
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct symbol_object object = by_build_id(paths[i]);
		expect_name(&object, address_of("fixture_unsized"), "fixture_unsized");
		expect_name(&object, address_of("fixture_unsized") + 1, NULL);
		expect_name(&object, address_of("fixture_sized") + 15, "fixture_sized");
	}
}

static void test_one_of_several_names(void **state)
{
	(void)state;
	/* fixture_twin is weak, __fixture_global has underscores. */
	struct symbol_object object = by_build_id(FIXTURES "/full.so");
	expect_name(&object, address_of("fixture_global"), "fixture_global");
}

static void test_stripped_object_has_names_from_its_debug_file(void **state)
{
	(void)state;
	struct symbol_object object = by_build_id(FIXTURES "/stripped.so");
	expect_name(&object, address_of("fixture_static"), "fixture_static");

	assert_true(symbol_set_debug_path(FIXTURES "/nowhere"));
	expect_name(&object, address_of("fixture_static"), NULL);
	expect_name(&object, address_of("fixture_global"), "fixture_global");
}

static void test_stripped_object_has_names_that_are_packed_in_it(void **state)
{
	(void)state;
	assert_true(symbol_set_debug_path(FIXTURES "/nowhere"));
	struct symbol_object object = by_build_id(FIXTURES "/embedded.so");
	expect_name(&object, address_of("fixture_static"), "fixture_static");
	expect_name(&object, address_of("fixture_global"), "fixture_global");
	object = by_build_id(FIXTURES "/spoilt.so");
	expect_name(&object, address_of("fixture_static"), NULL);
	expect_name(&object, address_of("fixture_global"), "fixture_global");
}

static void test_deleted_object_has_names_from_its_debug_file(void **state)
{
	(void)state;
	struct symbol_object object = by_build_id("/nowhere/deleted.so (deleted)");
	expect_name(&object, address_of("fixture_static"), "fixture_static");
}

static void test_debug_link(void **state)
{
	(void)state;
	struct symbol_object linked = by_time(FIXTURES "/linked.so");
	expect_name(&linked, address_of("fixture_static"), "fixture_static");
	/* The link's checksum does not match the file. */
	struct symbol_object mislinked = by_time(FIXTURES "/mislinked.so");
	expect_name(&mislinked, address_of("fixture_static"), NULL);
	expect_name(&mislinked, address_of("fixture_global"), "fixture_global");
}

static void test_replaced_file_names_nothing(void **state)
{
	(void)state;
	assert_true(symbol_set_debug_path(FIXTURES "/nowhere"));
	struct symbol_object replaced = by_build_id(FIXTURES "/other.so");
	expect_name(&replaced, address_of("fixture_global"), NULL);
	struct symbol_object without = by_build_id(FIXTURES "/anonymous.so");
	expect_name(&without, address_of("fixture_global"), NULL);

	struct symbol_object object = by_time(FIXTURES "/anonymous.so");
	expect_name(&object, address_of("fixture_global"), "fixture_global");
	object.mtime_ns++;
	expect_name(&object, address_of("fixture_global"), NULL);
	object = by_time(FIXTURES "/anonymous.so");
	object.file_size++;
	expect_name(&object, address_of("fixture_global"), NULL);
	object.file_size = 0;
	expect_name(&object, address_of("fixture_global"), NULL);
}

static void expect_line(const struct symbol_object *object, uint64_t address, int line)
{
	const char *file = NULL;
	int seen = 0;
	if (!symbol_line(object, address, &file, &seen))
		fail_msg("%s: no line at 0x%llx", object->path, (unsigned long long)address);
	assert_non_null(strstr(file, "/tests/symbol/fixture.c"));
	assert_int_equal(seen, line);
}

static void test_lines(void **state)
{
	(void)state;
	struct symbol_object objects[] = {
		by_build_id(FIXTURES "/full.so"),
		by_build_id(FIXTURES "/stripped.so"),
		by_time(FIXTURES "/linked.so"),
	};
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		for (const struct fixture_function *function = functions; function->name; function++)
			if (function->line)
				expect_line(&objects[i], address_of(function->name), function->line);

	const char *file;
	int line;
	assert_false(symbol_line(&objects[0], 1, &file, &line));
	struct symbol_object other = by_build_id(FIXTURES "/other.so");
	assert_true(symbol_set_debug_path(FIXTURES "/nowhere"));
	assert_false(symbol_line(&other, address_of("fixture_global"), &file, &line));
}

static unsigned count_descriptors(void)
{
	unsigned count = 0;
	DIR *folder = opendir("/proc/self/fd");
	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static void test_no_descriptor_stays_open(void **state)
{
	(void)state;
	unsigned before = count_descriptors();
	struct symbol_object object = by_build_id(FIXTURES "/stripped.so");
	expect_name(&object, address_of("fixture_static"), "fixture_static");
	expect_line(&object, address_of("fixture_static"), functions[1].line);
	assert_int_equal(count_descriptors(), before);
}

/* Counts the addresses in [0, end) that have the name. */
static unsigned count_addresses(const struct symbol_object *object, uint64_t end, const char *name)
{
	unsigned count = 0;
	for (uint64_t at = 0; at < end; at++) {
		const char *seen = symbol_name(object, at);
		count += seen && strcmp(seen, name) == 0;
	}
	return count;
}

static void test_stubs(void **state)
{
	(void)state;
#ifdef __x86_64__
	struct symbol_object object = by_build_id(FIXTURES "/full.so");
	uint64_t end = address_of("fixture_calls_out") + 4096;
	unsigned bytes = count_addresses(&object, end, "getppid@plt");
	if (bytes != 16 && bytes != 32) /* .plt, or .plt and .plt.sec */
		fail_msg("getppid@plt covers %u bytes", bytes);
#endif
}

static void test_vdso(void **state)
{
	(void)state;
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct elf_image image;
	if (!vdso || !elf_image_open_memory(&image, vdso))
		skip();
	char build_id[BUILD_ID_TEXT];
	elf_image_build_id(&image, build_id);
	elf_image_close(&image);
	struct symbol_object object = { .path = "[vdso]", .build_id = build_id };
	assert_true(count_addresses(&object, 1 << 14, "__vdso_clock_gettime") > 0);
	/* The vdso of another kernel. */
	object.build_id = BUILD_ID;
	assert_int_equal(count_addresses(&object, 1 << 14, "__vdso_clock_gettime"), 0);
}

static void test_no_object_at_the_path(void **state)
{
	(void)state;
	assert_true(symbol_set_debug_path(FIXTURES "/nowhere"));
	const char *fifo = FIXTURES "/fifo";
	unlink(fifo);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	const char *const paths[] = { "", "/", "/dev/zero", "/nowhere", fifo, FIXTURES "/make_fixtures" };
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct symbol_object object = by_build_id(paths[i]);
		const char *file;
		int line;
		expect_name(&object, address_of("fixture_global"), NULL);
		assert_false(symbol_line(&object, address_of("fixture_global"), &file, &line));
	}
}

static char *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	*size = (size_t)ftell(file);
	rewind(file);
	char *bytes = malloc(*size);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, *size, file), *size);
	fclose(file);
	return bytes;
}

static void write_file(const char *path, const char *bytes, size_t size)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
}

static void copy_file(const char *from, const char *to)
{
	size_t size;
	char *bytes = read_file(from, &size);
	write_file(to, bytes, size);
	free(bytes);
}

/* The file of a library is truncated while it is read. A mapped file would end the host with SIGBUS. */
static void test_file_truncated_while_it_is_read(void **state)
{
	(void)state;
	const char *path = FIXTURES "/../truncated.so"; /* other tests read every file in FIXTURES */
	for (off_t rest = 0; rest < 16384; rest += 4096) {
		struct elf_image image;
		copy_file(FIXTURES "/full.so", path);
		assert_true(elf_image_open(&image, path));
		const Elf64_Shdr *section = elf_image_section_of_type(&image, SHT_SYMTAB);
		assert_non_null(section);
		assert_true(section->sh_offset + section->sh_size > (uint64_t)rest);
		assert_int_equal(truncate(path, rest), 0);
		assert_null(elf_image_data(&image, section));
		assert_null(elf_image_read(&image, 0, image.size));
		char build_id[BUILD_ID_TEXT];
		elf_image_build_id(&image, build_id);
		struct lines *lines = lines_open(&image, FIXTURES);
		lines_close(lines);
		elf_image_close(&image);
	}
	unlink(path);
}

/* A damaged file may only cost an answer. With the sanitizers, this finds reads out of bounds. The seed is
 * fixed. */
static void test_damaged_files(void **state)
{
	(void)state;
	const char *path = FIXTURES "/../damaged.so";
	size_t size;
	char *bytes = read_file(FIXTURES "/full.so", &size);
	char *damaged = malloc(size);
	assert_non_null(damaged);
	Elf64_Ehdr header;
	memcpy(&header, bytes, sizeof(header));
	unsigned random = 20261120;
	unsigned names = 0;
	assert_true(symbol_set_debug_path(FIXTURES "/nowhere"));
	for (int round = 0; round < 600; round++) {
		memcpy(damaged, bytes, size);
		size_t length = size;
		for (int flip = 0; flip < 1 + round % 4; flip++) {
			random = random * 1664525 + 1013904223;
			size_t at = random % size;
			if (round % 3 == 1) /* the section headers */
				at = header.e_shoff + random % (header.e_shnum * sizeof(Elf64_Shdr));
			else if (round % 3 == 2)
				at = random % 4096;
			damaged[at] = (char)(random >> 24);
		}
		if (round % 10 == 9)
			length = random % size;
		write_file(path, damaged, length);
		struct symbol_object object = by_build_id(path);
		const char *file;
		int line;
		for (const struct fixture_function *function = functions; function->name; function++)
			names += symbol_name(&object, address_of(function->name)) != NULL;
		/* elfutils tests libdw itself. A few rounds show that its failures are handled. */
		if (round % 10 == 9)
			symbol_line(&object, address_of("fixture_global"), &file, &line);
		symbol_forget();
	}
	free(damaged);
	free(bytes);
	unlink(path);
	print_message("damaged files still gave %u names\n", names);
	assert_true(names > 0);
}

/* A thousand functions with one name of 128 KiB: copies would take 128 MiB. */
static void test_one_long_name_of_many(void **state)
{
	enum { SYMBOLS = 1024, NAME = 128 << 10 };
	size_t size;
	char *whole = read_file(FIXTURES "/full.so", &size);
	char *made = calloc(1, size + 8 + SYMBOLS * sizeof(Elf64_Sym) + NAME + 2);
	(void)state;
	assert_true(whole && made);
	memcpy(made, whole, size);
	Elf64_Shdr *sections = (Elf64_Shdr *)(made + ((Elf64_Ehdr *)made)->e_shoff), *symbols = sections;
	while (symbols->sh_type != SHT_SYMTAB)
		symbols++;
	Elf64_Sym symbol = *(Elf64_Sym *)(whole + symbols->sh_offset);
	for (size_t i = 0; symbol.st_value != address_of("fixture_global"); i++)
		symbol = ((Elf64_Sym *)(whole + symbols->sh_offset))[i];
	symbol.st_name = 1;
	symbols->sh_offset = (size + 7) & ~(size_t)7;
	symbols->sh_size = SYMBOLS * sizeof(symbol);
	for (size_t i = 0; i < SYMBOLS; i++)
		((Elf64_Sym *)(made + symbols->sh_offset))[i] = symbol;
	sections[symbols->sh_link].sh_offset = symbols->sh_offset + symbols->sh_size;
	sections[symbols->sh_link].sh_size = NAME + 2;
	memset(made + sections[symbols->sh_link].sh_offset + 1, 'x', NAME);
	struct symbol_object object = by_build_id(FIXTURES "/long.so");
	write_file(object.path, made, sections[symbols->sh_link].sh_offset + NAME + 2);
	expect_name(&object, address_of("fixture_global"), NULL);
	unlink(object.path);
	free(whole);
	free(made);
}

/* Threads with a cold cache, each asking for names and lines in its own order. */
static void *ask_everything(void *argument)
{
	unsigned first = (unsigned)(uintptr_t)argument;
	struct symbol_object objects[] = {
		by_build_id(FIXTURES "/full.so"),
		by_build_id(FIXTURES "/stripped.so"),
	};
	unsigned wrong = 0;
	for (unsigned round = 0; round < 400; round++) {
		const struct symbol_object *object = &objects[(first + round) % 2];
		const struct fixture_function *function = &functions[(first + round) % 3];
		uint64_t address = (uint64_t)(uintptr_t)function->start - bias;
		const char *name = symbol_name(object, address);
		const char *file;
		int line;
		wrong += !name || strcmp(name, function->name) != 0;
		wrong += !symbol_line(object, address, &file, &line) || line != function->line;
	}
	return (void *)(uintptr_t)wrong;
}

static void test_threads(void **state)
{
	(void)state;
	pthread_t threads[8];
	uintptr_t wrong = 0;
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_everything, (void *)i), 0);
	for (size_t i = 0; i < 8; i++) {
		void *result;
		pthread_join(threads[i], &result);
		wrong += (uintptr_t)result;
	}
	assert_int_equal(wrong, 0);
}

static atomic_bool stop;

/* Returned names stay valid when the folders change: one setting gives a name, the other gives none. */
static void *change_folders(void *argument)
{
	(void)argument;
	for (unsigned i = 0; !atomic_load(&stop); i++)
		symbol_set_debug_path(i % 2 ? FIXTURES "/nowhere" : DEBUG_PATH);
	return NULL;
}

static void test_folders_change_meanwhile(void **state)
{
	(void)state;
	struct symbol_object object = by_build_id(FIXTURES "/stripped.so");
	pthread_t thread;
	unsigned named = 0, wrong = 0;
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, change_folders, NULL), 0);
	/* Until a round with a name and a round without one were seen. */
	for (unsigned round = 0; round < 1000 || (named % round == 0 && round < 100000000); round++) {
		const char *name = symbol_name(&object, address_of("fixture_static")), *file;
		int line = functions[1].line;
		symbol_line(&object, address_of("fixture_static"), &file, &line);
		named += name != NULL;
		wrong += (name && strcmp(name, "fixture_static") != 0) || line != functions[1].line;
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(wrong, 0);
}

/* Keeps the locks busy, because a new key loads the object again. */
static void *load_all_the_time(void *argument)
{
	(void)argument;
	struct symbol_object object = by_build_id(FIXTURES "/full.so");
	const char *file;
	int line;
	for (object.mtime_ns = 1; !atomic_load(&stop); object.mtime_ns++)
		symbol_line(&object, address_of("fixture_global"), &file, &line);
	return NULL;
}

static void test_fork(void **state)
{
	(void)state;
	pthread_t thread;
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, load_all_the_time, NULL), 0);
	unsigned failed = 0;
	for (int i = 0; i < 20 && !failed; i++) {
		locks_before_fork();
		pid_t child = fork();
		if (child != 0)
			locks_after_fork_in_parent();
		if (child == 0) {
			locks_after_fork_in_child();
			alarm(300); /* a deadlock ends the child by a signal */
			struct symbol_object object = by_build_id(FIXTURES "/stripped.so");
			const char *file;
			int line;
			bool good = symbol_line(&object, address_of("fixture_static"), &file, &line);
			_exit(good ? 0 : 1);
		}
		int status = -1;
		waitpid(child, &status, 0);
		failed += status != 0;
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(failed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_every_function_has_its_name, forget),
		cmocka_unit_test_setup(test_symbol_covers_its_size_and_no_more, forget),
		cmocka_unit_test_setup(test_symbol_without_size_reaches_to_the_next, forget),
		cmocka_unit_test_setup(test_symbol_without_size_names_one_byte_among_unknown_neighbours,
		                       forget),
		cmocka_unit_test_setup(test_one_of_several_names, forget),
		cmocka_unit_test_setup(test_stripped_object_has_names_from_its_debug_file, forget),
		cmocka_unit_test_setup(test_stripped_object_has_names_that_are_packed_in_it, forget),
		cmocka_unit_test_setup(test_deleted_object_has_names_from_its_debug_file, forget),
		cmocka_unit_test_setup(test_debug_link, forget),
		cmocka_unit_test_setup(test_replaced_file_names_nothing, forget),
		cmocka_unit_test_setup(test_lines, forget),
		cmocka_unit_test_setup(test_no_descriptor_stays_open, forget),
		cmocka_unit_test_setup(test_stubs, forget),
		cmocka_unit_test_setup(test_vdso, forget),
		cmocka_unit_test_setup(test_no_object_at_the_path, forget),
		cmocka_unit_test_setup(test_file_truncated_while_it_is_read, forget),
		cmocka_unit_test_setup(test_damaged_files, forget),
		cmocka_unit_test_setup(test_one_long_name_of_many, forget),
		cmocka_unit_test_setup(test_threads, forget),
		cmocka_unit_test_setup(test_folders_change_meanwhile, forget),
		cmocka_unit_test_setup(test_fork, forget),
	};
	return cmocka_run_group_tests(tests, set_up, NULL);
}
