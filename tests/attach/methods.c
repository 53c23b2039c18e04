/* SPDX-License-Identifier: Apache-2.0 */
/* For each line that it reads, this program writes to a database in WAL mode and prints which object owns the
 * methods of SQLite's files. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

/* The table of version 3 has 18 pointers after the version. Prints an object again only after another one. */
static void print_owners(sqlite3 *db)
{
	sqlite3_file *file = NULL;
	void *methods[18];
	const char *before = "";
	Dl_info info;

	sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
	memcpy(methods, (const char *)file->pMethods + sizeof(void *), sizeof(methods));
	for (int i = 0; i < 18; i++) {
		const char *name =
			methods[i] && dladdr(methods[i], &info) ? strrchr(info.dli_fname, '/') : NULL;

		if (name && strcmp(name, before) != 0)
			printf("%s", before = name);
	}
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	sqlite3 *db;
	char line[16];

	if (argc != 2 || sqlite3_open(argv[1], &db) ||
	    sqlite3_exec(db, "PRAGMA journal_mode = WAL; CREATE TABLE t(a)", NULL, NULL, NULL))
		return 1;
	puts("ready");
	fflush(stdout);
	while (read(0, line, sizeof(line)) > 0) {
		if (sqlite3_exec(db, "INSERT INTO t VALUES (1); PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL,
		                 NULL))
			return 1;
		print_owners(db);
	}
	return 0;
}
