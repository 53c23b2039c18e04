/*
 * What a name costs: the first one of libsqlite3 and of libc, and one that is
 * known. The budgets: 50 ms for the first, 1 M a second warm.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/store.h"
#include "symbol/address.h"
#include "symbol/elf_image.h"
#include "symbol/symbol.h"

#define CALLS 2000000

static struct library {
	const char *name; /* as dlopen takes it */
	uint64_t base, size;
	char path[4096];
	char build_id[BUILD_ID_TEXT];
} libraries[] = { { .name = "libsqlite3.so.0" }, { .name = "libc.so.6" } };
#define LIBRARIES (sizeof(libraries) / sizeof(libraries[0]))

/* A store that knows these two, as quick as it can be: what is measured is ours. */
bool store_locate(uint64_t address, struct store_location *location)
{
	for (size_t i = 0; i < LIBRARIES; i++) {
		const struct library *library = &libraries[i];
		if (address - library->base >= library->size)
			continue;
		*location = (struct store_location){
			.path = library->path,
			.build_id = library->build_id,
			.address = address - library->base,
			.offset = address - library->base,
		};
		return true;
	}
	return false;
}

int64_t store_process_start(void)
{
	return 0;
}

static double now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static bool find_library(struct library *library)
{
	void *handle = dlopen(library->name, RTLD_NOW);
	struct link_map *map;
	struct elf_image image;
	if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !realpath(map->l_name, library->path))
		return false;
	library->base = map->l_addr;
	if (!elf_image_open(&image, library->path))
		return false;
	elf_image_build_id(&image, library->build_id);
	const Elf64_Shdr *text = elf_image_section(&image, ".text");
	if (text)
		library->size = text->sh_addr + text->sh_size;
	elf_image_close(&image);
	return text != NULL;
}

/* Addresses all over the library's code, in no order. */
static void measure_warm(const struct library *library, char *(*tell)(uint64_t), const char *what)
{
	uint64_t random = 1;
	size_t named = 0;
	double start = now_ms();
	for (int i = 0; i < CALLS; i++) {
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		char *text = tell(library->base + (random >> 20) % library->size);
		named += text && !strstr(text, "+0x");
		free(text);
	}
	double took = now_ms() - start;
	printf("%-16s %-16s warm: %6.2f M calls/s, %.1f %% of addresses have a name\n", library->name,
	       what, CALLS / took / 1e3, 100.0 * (double)named / CALLS);
}

int main(void)
{
	for (size_t i = 0; i < LIBRARIES; i++) {
		struct library *library = &libraries[i];
		if (!find_library(library)) {
			printf("%-16s not here\n", library->name);
			continue;
		}
		double start = now_ms();
		free(address_symbol(library->base + library->size / 2));
		double named = now_ms();
		free(address_line(library->base + library->size / 2));
		printf("%-16s first name %.1f ms, first line %.1f ms\n", library->name, named - start,
		       now_ms() - named);
		measure_warm(library, address_symbol, "address_symbol");
	}
	return 0;
}
