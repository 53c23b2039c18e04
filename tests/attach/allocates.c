/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host that is nearly always inside malloc() or free(), and occasionally runs a query.
 *
 * usage: allocates SECONDS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sqlite3.h>

int main(int argc, char **argv)
{
	const time_t end = time(NULL) + atoi(argc > 1 ? argv[1] : "1");
	unsigned long count = 0;
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db))
		return 2;
	while (time(NULL) < end) {
		for (int i = 0; i < 1000; i++) {
			size_t size = 100 + count++ % 5000;
			char *memory = malloc(size);

			if (!memory)
				return 2;
			memset(memory, 1, 8);
			free(memory);
		}
		if (count % 100000 == 0 && sqlite3_exec(db, "SELECT 1", NULL, NULL, NULL))
			return 2;
	}
	sqlite3_close(db);
	puts("right");
	return 0;
}
