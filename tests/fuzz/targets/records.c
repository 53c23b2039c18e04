/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For libFuzzer: memory that a dead or hostile process has shared with `record`, which stores its content in
 * a trace file: records of every kind, and damage to all of the memory around them.
 *
 * An input contains the number of damaged words; for each word its part of the memory, its place there and
 * its value; then records, each with a byte for the kind, two for the size, and its content.
 */
#include "../../store/support.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handler/ring.h"
#include "store/collector.h"
#include "handover/shared_ring.h"
#include "target.h"

#define DAMAGE_MAX 8
#define PAGE 4096
#define PARTS 6

/* The newly made memory, without its empty pages; and a file with empty tables. */
static int fd;
static struct shared_ring shared; /* where the parts of the memory are */
static char *memory;
static struct page {
	size_t at;
	char bytes[PAGE];
} * pages;
static size_t page_count;
static char *empty_file;
static size_t empty_size;

static void must(bool is_so, const char *what)
{
	if (!is_so) {
		perror(what);
		exit(2);
	}
}

static void keep_pages(void)
{
	static const char zeros[PAGE];

	for (size_t at = 0; at + PAGE <= shared.size; at += PAGE) {
		if (memcmp(memory + at, zeros, PAGE) == 0)
			continue;
		pages = realloc(pages, (page_count + 1) * sizeof(*pages));
		must(pages != NULL, "realloc");
		pages[page_count].at = at;
		memcpy(pages[page_count++].bytes, memory + at, PAGE);
	}
}

static void make_memory_anew(void)
{
	must(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)shared.size), "fallocate");
	for (size_t i = 0; i < page_count; i++)
		must(pwrite(fd, pages[i].bytes, PAGE, (off_t)pages[i].at) == PAGE, "pwrite");
}

static void remove_files(void)
{
	unlink(in_folder("x.db-wal"));
	unlink(in_folder("x.db-shm"));
	unlink(trace_path);
}

static void store_all(bool ran)
{
	struct collection to = { .file.path = trace_path };
	struct recorded *recorded = recorded_open(fd);

	if (!recorded)
		return;
	if (ran)
		recorded_store(recorded, &to);
	recorded_end(recorded, &to);
}

static void keep_file(void)
{
	FILE *file;

	remove_files();
	put_thread(1, "first");
	store_all(false);
	file = fopen(trace_path, "re");
	must(file && !fseek(file, 0, SEEK_END), trace_path);
	empty_size = (size_t)ftell(file);
	empty_file = malloc(empty_size);
	rewind(file);
	must(empty_file && fread(empty_file, 1, empty_size, file) == empty_size, trace_path);
	fclose(file);
}

static void make_file_anew(void)
{
	int file;

	remove_files();
	file = open(trace_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	must(file >= 0 && write(file, empty_file, empty_size) == (ssize_t)empty_size, trace_path);
	close(file);
}

static char *place_of(const void *part)
{
	return memory + ((const char *)part - (const char *)shared.memory);
}

/* Another process makes the memory, so that this one owns nothing there. */
static void get_memory(void)
{
	int to_parent[2], to_child[2], number;
	char path[64], byte;
	pid_t child;

	must(!pipe(to_parent) && !pipe(to_child), "pipe");
	child = fork();
	if (!child) {
		number = shared_ring_memory(shared_ring_size(1 << 16));
		must(shared_ring_make(1 << 16, number) != NULL, "shared_ring_make");
		must(write(to_parent[1], &number, sizeof(number)) == sizeof(number), "write");
		_exit(read(to_child[0], &byte, 1) != 1);
	}
	must(read(to_parent[0], &number, sizeof(number)) == sizeof(number), "read");
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)child, number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	must(write(to_child[1], "", 1) == 1 && waitpid(child, NULL, 0) == child, "child");
	must(shared_ring_open(&shared, fd), path);
	memory = mmap(NULL, shared.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(memory != MAP_FAILED, "mmap");
	ring = (struct ring *)place_of(shared.ring);
	for (int i = 0; i < 2; i++) {
		close(to_parent[i]);
		close(to_child[i]);
	}
}

static void remove_folder(void)
{
	ring = NULL; /* no store runs */
	tear_down(NULL);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct module module = { .start = 0x7f0000000000,
		                              .end = 0x7f0000020000,
		                              .path = "/usr/lib/one.so",
		                              .build_id = "11",
		                              .born = 1,
		                              .died = UINT32_MAX };

	(void)argc, (void)argv;
	set_up(NULL);
	atexit(remove_folder);
	set_modules(&module, 1);
	get_memory();
	keep_pages();
	keep_file();
	return 0;
}

struct reader {
	const uint8_t *data;
	size_t size;
};

static uint64_t take(struct reader *reader, size_t bytes)
{
	uint64_t value = 0;

	bytes = bytes < reader->size ? bytes : reader->size;
	memcpy(&value, reader->data, bytes);
	reader->data += bytes;
	reader->size -= bytes;
	return value;
}

static void damage(struct reader *reader)
{
	const void *const parts[PARTS] = { shared.memory, shared.ring,  shared.modules,
		                           shared.waits,  shared.spans, shared.statements };
	char *part = place_of(parts[take(reader, 1) % PARTS]);
	size_t place = take(reader, 2) * sizeof(uint64_t);
	uint64_t value = take(reader, 8);

	/* The memory may end before the last part's largest place. */
	if (place < (size_t)(memory + shared.size - part))
		memcpy(part + place, &value, sizeof(value));
}

static void put_record(struct reader *reader)
{
	unsigned kind = (unsigned)take(reader, 1);
	size_t size = take(reader, 2);
	void *record;

	size = size < reader->size ? size : reader->size;
	record = ring_reserve(ring, size);
	if (record) {
		memset(record, 0, size);
		memcpy(record, reader->data, size);
		ring_commit(ring, record, kind);
	}
	reader->data += size;
	reader->size -= size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reader reader = { data, size };
	const uint8_t *damages;
	size_t count, bytes;

	if (size < 1)
		return 0;
	make_memory_anew();
	make_file_anew();
	count = take(&reader, 1) % (2 * DAMAGE_MAX);
	/* Records are put into a sound ring, which is damaged afterwards. */
	damages = reader.data;
	bytes = count / 2 * 11 < reader.size ? count / 2 * 11 : reader.size;
	reader.data += bytes;
	reader.size -= bytes;
	while (reader.size > 0)
		put_record(&reader);
	reader = (struct reader){ damages, bytes };
	while (reader.size > 0)
		damage(&reader);
	store_all(count % 2);
	return 0;
}
