/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a database or a WAL with sqlite/pages/btree_page.h alone, and prints its content.
 *
 *   read_pages FILE             a line for each page that something points to: number, kind, root page of
 *                               its b-tree, cells, bytes of payload; and the schema's rows
 *   read_pages FILE --map       a line for each entry of the pointer map: number, type, parent
 *   read_pages FILE --wal       a line for each frame of a WAL
 *   read_pages FILE --damage N  reads the pages N times with wrong bytes; each page ends at the end of a
 *                               mapping, so reading a byte past it ends the program
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sqlite/pages/btree_page.h"

#define SEED 20220930
#define DEPTH_MAX 20

static const uint8_t *file;
static size_t file_size;
static struct database_header header;

static const uint8_t *page_at(uint32_t number)
{
	if (!number || (uint64_t)number * header.layout.size > file_size) {
		printf("no page %u\n", number);
		exit(1);
	}
	return file + (size_t)(number - 1) * header.layout.size;
}

static void print_page(uint32_t number, const char *kind, uint32_t root, uint32_t cells, uint64_t payload)
{
	printf("%u %s %u %u %" PRIu64 "\n", number, kind, root, cells, payload);
}

static void print_chain(uint32_t first, uint64_t left, uint32_t root)
{
	for (uint32_t number = first; number; number = btree_page_next(page_at(number))) {
		const uint64_t room = header.layout.usable - 4, here = left < room ? left : room;

		print_page(number, "overflow", root, 0, here);
		left -= here;
	}
}

static void print_text(const char *name, struct schema_text text)
{
	printf(" %s=", name);
	for (uint32_t i = 0; text.bytes && i < text.size; i++)
		if (text.bytes[i]) /* of UTF-16; the test's names are ASCII */
			putchar(text.bytes[i]);
}

static void print_tree(uint32_t number, uint32_t root, int depth);

static void print_schema_row(const struct btree_cell *cell)
{
	struct schema_row row;

	if (!btree_page_read_schema(cell->payload, cell->local, &row)) {
		printf("not a row of the schema\n");
		exit(1);
	}
	printf("schema type=%d", row.type);
	print_text("name", row.name);
	print_text("table", row.table);
	printf(" root=%u known=%d sql=%u\n", row.root, row.root_is_known, row.sql.bytes ? row.sql.size : 0);
	if (row.root)
		print_tree(row.root, row.root, 0);
}

static void print_tree(uint32_t number, uint32_t root, int depth)
{
	struct btree_page page;
	struct btree_cell cell;
	struct page_links links;
	uint64_t payload = 0, linked = 0;
	uint32_t link;
	bool is_overflow, has_overflow = false;

	if (depth > DEPTH_MAX || !btree_page_read(&page, page_at(number), header.layout, number)) {
		printf("not a page of a b-tree: %u\n", number);
		exit(1);
	}
	for (uint32_t i = 0; i < page.cell_count; i++) {
		if (!btree_page_read_cell(&page, i, &cell) || cell.child != btree_page_child(&page, i)) {
			printf("damaged cell %u of page %u\n", i, number);
			exit(1);
		}
		payload += cell.local;
		linked += cell.child + cell.overflow;
		has_overflow |= cell.overflow != 0;
		if (cell.overflow)
			print_chain(cell.overflow, cell.size - cell.local, root);
		if (root == 1 && page.kind == BTREE_LEAF_TABLE)
			print_schema_row(&cell);
	}
	if (btree_page_has_overflow(&page) != has_overflow) {
		printf("cells of page %u have overflow pages: %d\n", number, has_overflow);
		exit(1);
	}
	btree_page_begin_links(&links, &page);
	for (linked += page.right; btree_page_next_link(&links, &link, &is_overflow);)
		linked -= link;
	if (linked) {
		printf("the links of page %u are not those of its cells\n", number);
		exit(1);
	}
	print_page(number, btree_page_is_interior(&page) ? "internal" : "leaf", root, page.cell_count,
	           payload);
	for (uint32_t i = 0; btree_page_is_interior(&page) && i <= page.cell_count; i++)
		print_tree(btree_page_child(&page, i), root, depth + 1);
}

static void print_freelist(void)
{
	for (uint32_t trunk = header.first_trunk; trunk; trunk = btree_page_next(page_at(trunk))) {
		const uint32_t count = btree_page_free_count(page_at(trunk), header.layout);

		print_page(trunk, "trunk", 0, count, 0);
		for (uint32_t i = 0; i < count; i++)
			print_page(btree_page_free_leaf(page_at(trunk), i), "free", 0, 0, 0);
	}
}

static void print_map(void)
{
	struct pointer_entry entry;

	for (uint32_t number = 2; header.has_pointer_map && number <= file_size / header.layout.size;
	     number++) {
		const uint32_t map = btree_page_map_of(number, header.layout);

		if (map == number)
			print_page(number, "map", 0, 0, 0);
		else if (map && btree_page_read_pointer(page_at(map), header.layout, map, number, &entry))
			printf("entry %u %d %u\n", number, entry.type, entry.parent);
	}
}

static int print_wal(void)
{
	struct wal_header wal;
	struct wal_frame frame;

	if (!btree_page_read_wal(file, file_size, &wal))
		return 1;
	printf("wal %u\n", wal.page_size);
	for (size_t at = WAL_HEADER_BYTES; at + WAL_FRAME_BYTES + wal.page_size <= file_size;
	     at += WAL_FRAME_BYTES + wal.page_size)
		if (btree_page_read_frame(file + at, file_size - at, &frame))
			printf("frame %u %u %d\n", frame.page, frame.page_count,
			       !memcmp(frame.salt, wal.salt, sizeof(wal.salt)));
	return 0;
}

/* --- wrong bytes ------------------------------------------------------------------------------------ */

static uint64_t state = SEED;

static uint32_t chance(uint32_t below)
{
	state = state * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)(state >> 33) % below;
}

/* Reads a page as each possible kind. The sum keeps the compiler from removing reads. */
static uint64_t read_as_all(const uint8_t *bytes, uint32_t number)
{
	struct database_header read_header;
	struct pointer_entry entry;
	struct btree_page page;
	struct btree_cell cell;
	struct schema_row row;
	struct page_links links;
	uint32_t link;
	bool is_overflow;
	uint64_t sum = btree_page_next(bytes);

	if (btree_page_read(&page, bytes, header.layout, number)) {
		sum += btree_page_has_overflow(&page);
		btree_page_begin_links(&links, &page);
		while (btree_page_next_link(&links, &link, &is_overflow))
			sum += link;
		for (uint32_t i = 0; i <= page.cell_count; i++) {
			sum += btree_page_child(&page, i);
			if (!btree_page_read_cell(&page, i, &cell))
				continue;
			for (uint32_t at = 0; cell.payload && at < cell.local; at++)
				sum += cell.payload[at];
			if (cell.payload && btree_page_read_schema(cell.payload, cell.local, &row)) {
				const struct schema_text texts[] = { row.name, row.table, row.sql };

				for (int text = 0; text < 3; text++)
					for (uint32_t at = 0; texts[text].bytes && at < texts[text].size;
					     at++)
						sum += texts[text].bytes[at];
			}
		}
	}
	for (uint32_t i = 0, count = btree_page_free_count(bytes, header.layout); i < count; i++)
		sum += btree_page_free_leaf(bytes, i);
	for (uint32_t i = 0; i < header.layout.size; i++)
		if (btree_page_read_pointer(bytes, header.layout, 2, i, &entry))
			sum += entry.parent;
	return sum + btree_page_read_header(bytes, header.layout.size, &read_header);
}

static int read_damaged(int count)
{
	static const uint8_t likely[] = { 0, 1, 2, 5, 10, 13, 0x7f, 0x80, 0x81, 0xff };
	const size_t size = header.layout.size, guard = (size_t)sysconf(_SC_PAGESIZE);
	const size_t mapped = (size + guard - 1) / guard * guard;
	uint8_t *memory =
		mmap(NULL, mapped + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t sum = 0;

	if (memory == MAP_FAILED || mprotect(memory + mapped, guard, PROT_NONE))
		return 1;
	for (int i = 0; i < count; i++) {
		const uint32_t number = 1 + chance((uint32_t)(file_size / size));
		uint8_t *bytes = memory + mapped - size;

		memcpy(bytes, page_at(number), size);
		for (uint32_t wrong = 1 + chance(8); wrong; wrong--)
			bytes[chance(2) ? chance((uint32_t)size) : chance(160)] =
				chance(2) ? likely[chance(sizeof(likely))] : (uint8_t)chance(256);
		sum += read_as_all(bytes, number);
	}
	printf("seed %d sum %" PRIu64 "\n", SEED, sum);
	return 0;
}

int main(int argc, char **argv)
{
	const int opened = argc > 1 ? open(argv[1], O_RDONLY) : -1;
	struct stat status;

	if (opened < 0 || fstat(opened, &status) || !status.st_size)
		return 2;
	file_size = (size_t)status.st_size;
	file = mmap(NULL, file_size, PROT_READ, MAP_PRIVATE, opened, 0);
	if (file == MAP_FAILED)
		return 2;
	if (argc > 2 && !strcmp(argv[2], "--wal"))
		return print_wal();
	if (!btree_page_read_header(file, file_size, &header))
		return printf("not a database\n"), 1;
	if (argc > 3 && !strcmp(argv[2], "--damage"))
		return read_damaged(atoi(argv[3]));
	if (argc > 2 && !strcmp(argv[2], "--map")) {
		print_map();
		return 0;
	}
	print_tree(1, 1, 0);
	print_freelist();
	return 0;
}
