/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For libFuzzer: a file in memory that claims to be a sampled module. The target reads names, lines and
 * inlined functions from it, at the addresses of its functions and at others all over the file.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbol/lines.h"
#include "symbol/sources.h"
#include "symbol/symbol_table.h"
#include "target.h"

#define SPREAD 64    /* addresses all over the file */
#define FUNCTIONS 64 /* whose addresses are looked up */

struct look_up {
	struct lines *lines;
	int left;
};

static void look_up(struct lines *lines, uint64_t address)
{
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	struct extent extent = EXTENT_ALL;
	size_t count = lines_frames(lines, address, frames, SYMBOL_FRAMES_MAX, &extent);

	/* All texts must be readable to their ends. */
	for (size_t i = 0; i < count; i++)
		if ((frames[i].function && strlen(frames[i].function) > INT32_MAX) ||
		    (frames[i].file && strlen(frames[i].file) > INT32_MAX))
			abort();
}

static void look_up_function(void *context, const char *name, uint64_t start, uint64_t end)
{
	struct look_up *look = context;

	(void)name;
	if (!look->lines || look->left-- <= 0)
		return;
	look_up(look->lines, start);
	look_up(look->lines, start + (end - start) / 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	char path[40];
	struct stat status;

	if (fd < 0)
		fd = memfd_create("module", 0);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size || fstat(fd, &status))
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	const struct symbol_object object = {
		.path = path,
		.build_id = "",
		.file_size = (uint64_t)status.st_size,
		.mtime_ns = (int64_t)ns_of_timespec(status.st_mtim),
	};
	struct look_up look = { sources_read_lines(&object, ""), FUNCTIONS };
	for (int stage = 0; stage < NAME_STAGES; stage++) {
		struct names_found found = { 0 };
		struct symbol_table *table = sources_read_names(&object, "", stage, &found);

		for (int i = 0; table && i < SPREAD; i++)
			symbol_table_find(table, i * size / SPREAD, &(struct extent){ 0, UINT64_MAX });
		if (table)
			symbol_table_each(table, look_up_function, &look);
		symbol_table_destroy(table);
	}
	for (int i = 0; look.lines && i < SPREAD; i++)
		look_up(look.lines, i * size / SPREAD);
	lines_close(look.lines);
	return 0;
}
