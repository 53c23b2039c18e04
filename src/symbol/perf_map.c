/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads perf's maps. They have a line for each piece of code, "START SIZE NAME", with
 * numbers in hex. Any user can create a file of that name in /tmp, so only a regular file
 * that belongs to this user is read, and not beyond a bound.
 *
 * Compilers append to their map while it is read: a line counts when it ends in a newline,
 * and the rest is read next time.
 */
#include "symbol/perf_map.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/search.h"
#include "base/vector.h"

#define MAP_BYTES_MAX ((off_t)64 << 20)
#define CODE_BYTES_MAX ((uint64_t)1 << 30) /* of one piece */

/* File times are those of the last kernel tick, and a process is a little older than
 * what it says of itself. */
#define START_SLACK_NS 1000000000

struct code {
	uint64_t start, size;
	uint32_t name;  /* offset in the text */
	uint32_t order; /* later ones count */
};

struct map {
	struct map *next;
	int64_t process_id;
	dev_t device;
	ino_t inode;
	uint64_t changed_ns;
	off_t size; /* of the file when it was read */
	char *text; /* what was taken of it; lines end in a zero */
	size_t text_size;
	VECTOR(struct code) codes; /* by start */
	uint64_t largest;          /* size of a piece */
};

static void forget_maps(void);
LOCK_DEFINE(lock, LOCK_PERF_MAP, .lost = forget_maps);
static struct map *maps;

/* A thread that is not in this child was changing one of them. */
static void forget_maps(void)
{
	maps = NULL;
}

/* --- the file ------------------------------------------------------------------- */

static bool is_ours(const struct stat *status, int64_t start_time_ns)
{
	return S_ISREG(status->st_mode) && status->st_uid == geteuid() && status->st_size > 0 &&
	       status->st_size <= MAP_BYTES_MAX &&
	       (int64_t)ns_of_timespec(status->st_mtim) >= start_time_ns - START_SLACK_NS;
}

static bool is_unchanged(const struct map *map, const struct stat *status)
{
	return map->device == status->st_dev && map->inode == status->st_ino &&
	       map->size == status->st_size && map->changed_ns == ns_of_timespec(status->st_mtim);
}

/* More of the same file: what is known stays. A new file may have the number of one that was deleted,
 * so the beginning is compared, too. */
static bool has_grown(const struct map *map, int fd, const struct stat *status)
{
	char head[64];
	size_t known = map->text_size < sizeof(head) ? map->text_size : sizeof(head);

	if (map->device != status->st_dev || map->inode != status->st_ino || map->size >= status->st_size ||
	    pread(fd, head, known, 0) != (ssize_t)known)
		return false;
	for (size_t i = 0; i < known; i++)
		if (map->text[i] != (head[i] == '\n' ? '\0' : head[i]))
			return false;
	return true;
}

static void empty(struct map *map)
{
	free(map->text);
	vector_free(&map->codes);
	*map = (struct map){ .next = map->next, .process_id = map->process_id };
}

/* The part of the file that is new, behind the text. */
static bool read_rest(struct map *map, int fd, off_t size)
{
	char *grown = realloc(map->text, (size_t)size + 1);
	if (!grown)
		return false;
	map->text = grown;
	size_t end = map->text_size;
	while (end < (size_t)size) {
		ssize_t got = pread(fd, map->text + end, (size_t)size - end, (off_t)end);
		if (got <= 0)
			break;
		end += (size_t)got;
	}
	while (end > map->text_size && map->text[end - 1] != '\n')
		end--;
	map->text_size = end;
	return true;
}

/* --- its lines ------------------------------------------------------------------ */

/* Takes a number and the blank behind it. */
static bool parse_hex(char **at, uint64_t *number)
{
	char *end;
	if (!strchr("0123456789abcdefABCDEF", **at) || !**at) /* no sign, no blank */
		return false;
	*number = strtoull(*at, &end, 16);
	if (end == *at || *end != ' ')
		return false;
	*at = end + 1;
	return true;
}

static bool add_line(struct map *map, char *line)
{
	struct code code = { .order = (uint32_t)map->codes.count };
	if (!parse_hex(&line, &code.start) || !parse_hex(&line, &code.size) || code.size == 0 ||
	    code.size > CODE_BYTES_MAX || !line[0])
		return true;
	code.name = (uint32_t)(line - map->text);
	if (code.size > map->largest)
		map->largest = code.size;
	return vector_push(&map->codes, code);
}

COMPARE_BY_TWO(compare_codes, struct code, start, order)

static bool read_map(struct map *map, int fd, const struct stat *status)
{
	if (!has_grown(map, fd, status))
		empty(map);
	size_t from = map->text_size;
	bool good = read_rest(map, fd, status->st_size);
	for (size_t at = from; good && at < map->text_size;) {
		char *line = map->text + at, *end = memchr(line, '\n', map->text_size - at);
		*end = 0;
		at = (size_t)(end + 1 - map->text);
		good = add_line(map, line);
	}
	if (!good) {
		empty(map);
		return false;
	}
	if (map->codes.count)
		qsort(map->codes.items, map->codes.count, sizeof(*map->codes.items), compare_codes);
	map->device = status->st_dev;
	map->inode = status->st_ino;
	map->size = status->st_size;
	map->changed_ns = ns_of_timespec(status->st_mtim);
	return true;
}

/* --- look-ups ------------------------------------------------------------------- */

static struct map *find_map(int64_t process_id)
{
	struct map *map = maps;
	while (map && map->process_id != process_id)
		map = map->next;
	if (map)
		return map;
	map = calloc(1, sizeof(*map));
	if (map) {
		map->process_id = process_id;
		map->next = maps;
		maps = map;
	}
	return map;
}

/* The process's map as its file is now; NULL when there is none for us. */
static const struct map *current_map(int64_t process_id, int64_t start_time_ns)
{
	char path[64];
	struct stat status;
	snprintf(path, sizeof(path), "/tmp/perf-%" PRId64 ".map", process_id);
	if (lstat(path, &status) != 0 || !is_ours(&status, start_time_ns))
		return NULL;
	struct map *map = find_map(process_id);
	if (!map || is_unchanged(map, &status))
		return map;
	/* Looked at again once it is open: by then the name may be that of another file. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	bool good = fd >= 0 && fstat(fd, &status) == 0 && is_ours(&status, start_time_ns) &&
	            read_map(map, fd, &status);
	if (fd >= 0)
		close(fd);
	return good ? map : NULL;
}

static const char *find_name(const struct map *map, uint64_t address)
{
	const struct code *found = NULL;
	size_t before = SEARCH_COUNT(map->codes.count, i, map->codes.items[i].start <= address);
	for (; before > 0 && address - map->codes.items[before - 1].start < map->largest; before--) {
		const struct code *code = &map->codes.items[before - 1];
		if (address - code->start < code->size && (!found || code->order > found->order))
			found = code;
	}
	return found ? map->text + found->name : NULL;
}

char *perf_map_name(int64_t process_id, int64_t start_time_ns, uint64_t address)
{
	lock_acquire(&lock);
	const struct map *map = current_map(process_id, start_time_ns);
	const char *name = map ? find_name(map, address) : NULL;
	char *copy = name ? strdup(name) : NULL;
	lock_release(&lock);
	return copy;
}
