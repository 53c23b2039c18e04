/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded between SQLite and the kernel: logs each pread64() and pwrite64() of a file, with the label that
 * the program has set. At the end it writes the log to the file that PAGE_CALLS names:
 *
 *   label r|w size offset number path
 *
 * `number` is the big-endian number at the beginning of the data.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int label;
static char *log_text;
static size_t log_size;
static FILE *log_file;

#define EXPORTED __attribute__((visibility("default")))
EXPORTED void page_calls_label(int number);
EXPORTED ssize_t pread64(int file, void *data, size_t size, off64_t offset);
EXPORTED ssize_t pwrite64(int file, const void *data, size_t size, off64_t offset);

void page_calls_label(int number)
{
	label = number;
}

static void add(char kind, int file, const void *data, size_t size, off64_t offset)
{
	char link[64], path[512];
	uint32_t number = 0;
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	length = readlink(link, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = 0;
	memcpy(&number, data, size < sizeof(number) ? size : sizeof(number));
	if (!log_file)
		log_file = open_memstream(&log_text, &log_size);
	fprintf(log_file, "%d %c %zu %" PRId64 " %" PRIu32 " %s\n", label, kind, size, (int64_t)offset,
	        __builtin_bswap32(number), path);
}

ssize_t pread64(int file, void *data, size_t size, off64_t offset)
{
	ssize_t result = syscall(SYS_pread64, file, data, size, offset);

	/* SQLite reads the rest in another call, or the file ends there. */
	if (result == (ssize_t)size)
		add('r', file, data, size, offset);
	return result;
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t offset)
{
	ssize_t result = syscall(SYS_pwrite64, file, data, size, offset);

	if (result == (ssize_t)size)
		add('w', file, data, size, offset);
	return result;
}

__attribute__((destructor)) static void write_log(void)
{
	const char *path = getenv("PAGE_CALLS");
	FILE *to = path && log_file && !fclose(log_file) ? fopen(path, "w") : NULL;

	if (!to)
		return;
	fwrite(log_text, 1, log_size, to);
	fclose(to);
}
