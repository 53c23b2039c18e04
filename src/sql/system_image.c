/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run by the build: prints the databases with which the schema `system` is filled, one for
 * each encoding that a host's databases can have, as arrays of C. Each is one page, which
 * says CREATE VIRTUAL TABLE for every table.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "sql/table_names.h"

static void run(sqlite3 *db, const char *sql)
{
	char *error = NULL;

	if (!sqlite3_exec(db, sql, NULL, NULL, &error))
		return;
	fprintf(stderr, "%s: %s\n", sql, error);
	exit(1);
}

static void add_table(sqlite3 *db, const char *name)
{
	char *sql = sqlite3_mprintf("INSERT INTO sqlite_schema VALUES ('table', %Q, %Q, 0, "
	                            "'CREATE VIRTUAL TABLE %s USING " TABLES_MODULE_PREFIX "%s')",
	                            name, name, name, name);

	run(db, sql);
	sqlite3_free(sql);
}

static void print_image(const char *encoding, const char *variable)
{
	sqlite3_int64 size = 0;
	unsigned char *image;
	char *pragma = sqlite3_mprintf("PRAGMA page_size = 4096; PRAGMA encoding = %Q", encoding);
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db))
		exit(1);
	run(db, pragma);
	/* A real table first: with it SQLite writes encoding and format into the header. */
	run(db, "CREATE TABLE made(x); PRAGMA writable_schema = ON");
#define ADD(name) add_table(db, #name);
	EACH_TABLE(ADD)
#undef ADD
	run(db, "PRAGMA writable_schema = OFF; DROP TABLE made; VACUUM");
	image = sqlite3_serialize(db, "main", &size, 0);
	if (!image)
		exit(1);
	printf("static const unsigned char %s[] = {", variable);
	for (sqlite3_int64 i = 0; i < size; i++)
		printf("%s%u,", i % 32 ? "" : "\n\t", image[i]);
	printf("\n};\n");
	sqlite3_free(image);
	sqlite3_free(pragma);
	sqlite3_close(db);
}

int main(void)
{
	print_image("UTF-8", "image_utf8");
	print_image("UTF-16le", "image_utf16le");
	print_image("UTF-16be", "image_utf16be");
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
