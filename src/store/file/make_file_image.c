/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs during the build. Prints an empty trace file as pieces of bytes between long runs of zeros, the
 * position of its identity, and the beginning of an empty database of that shape.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/file/schema.h"
#include "store_schema.h"

#define PAGE 4096
#define SECTOR 512
#define ZEROS 32 /* a shorter run is part of the piece */
/* A number of 8 bytes as SQLite stores it in a row; then the same number. */
#define IDENTITY "\x7fQPRFID!"
#define IDENTITY_NUMBER "0x7f51505246494421"

static void run(sqlite3 *db, const char *sql)
{
	char *error = NULL;

	if (!sqlite3_exec(db, sql, NULL, NULL, &error))
		return;
	fprintf(stderr, "%s\n", error);
	exit(1);
}

static size_t zeros_at(const unsigned char *image, size_t at, size_t size)
{
	size_t end = at;

	while (end < size && !image[end])
		end++;
	return end - at;
}

/* The next piece at or after `at`, with its size. 0: there are no more. */
static size_t piece_at(const unsigned char *image, size_t *at, size_t size)
{
	size_t end, zeros;

	*at += zeros_at(image, *at, size);
	for (end = *at; end < size && (zeros = zeros_at(image, end, size)) < ZEROS; end += zeros ? zeros : 1)
		;
	return end - *at;
}

static void print_pieces(const unsigned char *image, size_t size)
{
	size_t at, piece;

	printf("static const struct piece file_image_pieces[] = {\n");
	for (at = 0; (piece = piece_at(image, &at, size)); at += piece)
		printf("\t{ %zu, %zu },\n", at, piece);
	printf("};\nstatic const unsigned char file_image_bytes[] = {");
	for (at = 0; (piece = piece_at(image, &at, size)); at += piece)
		for (size_t i = 0; i < piece; i++)
			printf("%s%u,", i % 32 ? "" : "\n\t", image[at + i]);
	printf("\n};\n");
}

static void print_beginning(const unsigned char *image)
{
	printf("static const unsigned char file_image_empty[] = {");
	for (size_t i = 0; i < SECTOR; i++)
		printf("%s%u,", i % 32 ? "" : "\n\t", image[i]);
	printf("\n};\n");
}

/* The position of these bytes, which occur once: they are the column `identity` of the table `state`. */
static size_t find_identity(const unsigned char *image, size_t size)
{
	size_t found = 0, count = 0;

	for (size_t i = 0; i + sizeof(IDENTITY) - 1 <= size; i++) {
		if (memcmp(image + i, IDENTITY, sizeof(IDENTITY) - 1))
			continue;
		found = i;
		count++;
	}
	if (count != 1)
		exit(1);
	return found;
}

/* A database made by `sql`. */
static unsigned char *make(const char *sql, sqlite3_int64 *size)
{
	unsigned char *image;
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db))
		exit(1);
	run(db, "PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL; BEGIN");
	run(db, sql);
	run(db, "COMMIT");
	image = sqlite3_serialize(db, "main", size, 0);
	if (!image)
		exit(1);
	sqlite3_close(db);
	return image;
}

int main(void)
{
	char *schema = sqlite3_mprintf("%s; UPDATE state SET identity = " IDENTITY_NUMBER
	                               "; PRAGMA application_id = %d; PRAGMA user_version = %d",
	                               store_schema, STORE_APPLICATION_ID, STORE_SCHEMA_VERSION);
	sqlite3_int64 size, empty_size;
	unsigned char *image = make(schema, &size), *empty = make("PRAGMA user_version = 0", &empty_size);

	if (empty_size != PAGE)
		return 1;
	image[18] = image[19] = 2; /* the versions in the header that allow a WAL */
	printf("#define FILE_IMAGE_SIZE %lld\n#define FILE_IMAGE_IDENTITY %zu\n#define "
	       "FILE_IMAGE_IDENTITY_SIZE %zu\n",
	       size, find_identity(image, (size_t)size), sizeof(IDENTITY) - 1);
	print_pieces(image, (size_t)size);
	print_beginning(empty);
	sqlite3_free(image);
	sqlite3_free(empty);
	sqlite3_free(schema);
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
