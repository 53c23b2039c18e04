/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a name, compared with elfutils' libdwfl, which profilers use (in this process, including its
 * own search for modules), and addr2line, which people run. The libraries are libsqlite3 and libc. The
 * program measures the first name of an exported function, the first name of a function without a symbol in
 * the library itself, and a known name. The budgets: 50 ms for the first name, 1 M names a second warm.
 *
 * Times are CPU times, so other work on the machine counts less. libdwfl finds the nearest symbol even if
 * that symbol does not reach the address; such addresses do not count as named.
 */
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "modules/module_map.h"
#include "frames/address.h"
#include "symbol/elf_image.h"
#include "symbol/symbol.h"

#define CALLS 1000000
#define CALLS_OF_DWFL 1000 /* each call goes through all symbols */

static struct library {
	const char *name;           /* as dlopen takes it */
	const char *exported;       /* a function of it */
	uint64_t base, first, size; /* of its code */
	struct module module;
	char path[4096];
	char build_id[BUILD_ID_TEXT];
} libraries[] = { { .name = "libsqlite3.so.0", .exported = "sqlite3_step" },
	          { .name = LIBC_SO, .exported = "qsort" } };
#define LIBRARIES (sizeof(libraries) / sizeof(libraries[0]))

/* An address space of these two modules, as fast as possible, so that the library's own work is measured. */
static const struct module *locate(const struct address_space *space, uint64_t address)
{
	(void)space;
	for (size_t i = 0; i < LIBRARIES; i++)
		if (address - libraries[i].base < libraries[i].first + libraries[i].size)
			return &libraries[i].module;
	return NULL;
}

static const struct address_space space = { .locate = locate };

static double now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static uint64_t find_library(struct library *library)
{
	void *handle = dlopen(library->name, RTLD_NOW);
	struct link_map *map;
	struct elf_image image;
	if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !realpath(map->l_name, library->path))
		return 0;
	library->base = map->l_addr;
	if (!elf_image_open(&image, library->path))
		return 0;
	elf_image_build_id(&image, library->build_id);
	const Elf64_Shdr *text = elf_image_section(&image, ".text");
	if (text) {
		library->first = text->sh_addr;
		library->size = text->sh_size;
	}
	elf_image_close(&image);
	library->module = (struct module){
		.bias = library->base,
		.start = library->base,
		.path = library->path,
		.build_id = library->build_id,
	};
	return text ? (uint64_t)(uintptr_t)dlsym(handle, library->exported) : 0;
}

/* Addresses all over the library's code, in random order. */
static uint64_t next_address(const struct library *library, uint64_t *random)
{
	*random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return library->base + library->first + (*random >> 20) % library->size;
}

static void print_warm(const char *what, double ms, size_t calls, size_t named)
{
	printf("  %-28s %8.4f M calls/s, %.1f %% of addresses have a name\n", what, (double)calls / ms / 1e3,
	       100.0 * (double)named / (double)calls);
}

/* --- ours ----------------------------------------------------------------------- */

static void measure_ours(const struct library *library, uint64_t exported)
{
	double start = now_ms();
	libdw_load();
	double loaded = now_ms();
	free(address_symbol(&space, exported));
	double named = now_ms();
	printf("  %-28s %8.1f ms, and %.1f for libdw\n", "first name, exported", named - loaded,
	       loaded - start);

	uint64_t random = 1;
	struct symbol_object object = { .path = library->path, .build_id = library->build_id };
	start = now_ms();
	free(address_symbol(&space, library->base + library->first)); /* the start-up code has no symbol */
	printf("  %-28s %8.1f ms\n", "first without a symbol", now_ms() - start);
	const char *file;
	int line;
	start = now_ms();
	bool has_line = symbol_line(&object, exported - library->base, &file, &line);
	printf("  %-28s %8.1f ms%s\n", "first line", now_ms() - start, has_line ? "" : " (there are none)");

	size_t count = 0;
	start = now_ms();
	for (int i = 0; i < CALLS; i++) {
		char *text = address_symbol(&space, next_address(library, &random));
		count += text && !strstr(text, "+0x");
		free(text);
	}
	print_warm("warm", now_ms() - start, CALLS, count);
}

/* --- the others ----------------------------------------------------------------- */

static void measure_dwfl(const struct library *library, uint64_t exported)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
	};
	GElf_Off offset;
	GElf_Sym symbol;
	double start = now_ms();
	Dwfl *dwfl = dwfl_begin(&callbacks);
	Dwfl_Module *module =
		dwfl ? dwfl_report_elf(dwfl, library->name, library->path, -1, library->base, false) : NULL;
	if (!module) {
		printf("  libdwfl: %s\n", dwfl_errmsg(-1));
		return;
	}
	dwfl_report_end(dwfl, NULL, NULL);
	dwfl_module_addrinfo(module, exported, &offset, &symbol, NULL, NULL, NULL);
	printf("  %-28s %8.1f ms\n", "libdwfl, first name", now_ms() - start);
	uint64_t random = 1;
	size_t count = 0;
	start = now_ms();
	for (int i = 0; i < CALLS_OF_DWFL; i++) {
		const char *name = dwfl_module_addrinfo(module, next_address(library, &random), &offset,
		                                        &symbol, NULL, NULL, NULL);
		char *copy = name ? strdup(name) : NULL; /* as ours */
		count += name && offset < symbol.st_size;
		free(copy);
	}
	print_warm("libdwfl, warm", now_ms() - start, CALLS_OF_DWFL, count);
	dwfl_end(dwfl);
}

static void measure_addr2line(const struct library *library, uint64_t exported)
{
	extern char **environ;
	char text[32];
	char program[] = "addr2line", function[] = "-f", file[] = "-e";
	char *const arguments[] = { program, function, file, (char *)library->path, text, NULL };
	posix_spawn_file_actions_t quiet;
	struct rusage usage = { 0 };
	pid_t child;
	int status = -1;
	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)(exported - library->base));
	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", 1 /* O_WRONLY */, 0);
	if (posix_spawnp(&child, program, &quiet, NULL, arguments, environ) == 0)
		wait4(child, &status, 0, &usage);
	double took = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
	              (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
	posix_spawn_file_actions_destroy(&quiet);
	if (status == 0)
		printf("  %-28s %8.1f ms\n", "addr2line, one name", took);
	else
		printf("  addr2line: not here\n");
}

int main(void)
{
	for (size_t i = 0; i < LIBRARIES; i++) {
		struct library *library = &libraries[i];
		uint64_t exported = find_library(library);
		printf("%s%s\n", library->name, exported ? "" : ": not here");
		if (!exported)
			continue;
		measure_ours(library, exported);
		measure_dwfl(library, exported);
		measure_addr2line(library, exported);
	}
	return 0;
}
