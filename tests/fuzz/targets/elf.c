/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For libFuzzer: a file that calls itself a sampled module. Its names and lines are read from
 * memory that the file system gives: no disk.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbol/lines.h"
#include "symbol/sources.h"
#include "symbol/symbol_table.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	char path[40];
	struct stat status;

	if (fd < 0)
		fd = memfd_create("module", 0);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size || fstat(fd, &status))
		return 0;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	const struct symbol_object object = {
		.path = path,
		.build_id = "",
		.file_size = (uint64_t)status.st_size,
		.mtime_ns = (int64_t)ns_of_timespec(status.st_mtim),
	};
	for (int stage = 0; stage < NAME_STAGES; stage++) {
		struct names_found found = { 0 };

		symbol_table_destroy(sources_read_names(&object, "", stage, &found));
	}
	lines_close(sources_read_lines(&object, ""));
	return 0;
}
