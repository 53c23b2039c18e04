/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/file/file_name.h"

#include <string.h>
#include <unistd.h>

static void file_name(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const char *path = (const char *)sqlite3_value_text(argv[0]);
	const char *slash = path ? strrchr(path, '/') : NULL;

	(void)argc;
	sqlite3_result_text(context, slash ? slash + 1 : path, -1, SQLITE_TRANSIENT);
}

int file_name_add(sqlite3 *db)
{
	return sqlite3_create_function(db, "fileName", 1,
	                               SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, NULL,
	                               file_name, NULL, NULL);
}

const char *file_name_here(const char *path)
{
	char folder[4096];
	const size_t size = getcwd(folder, sizeof(folder)) ? strlen(folder) : 0;

	return size && !strncmp(path, folder, size) && path[size] == '/' ? path + size + 1 : path;
}
