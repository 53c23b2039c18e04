/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for a program whose SQLite was built with SQLITE_OMIT_LOAD_EXTENSION: it imports utimes()
 * and fsync(), as every SQLite does, and has the table of system calls, by which one is recognised, and the
 * layer for Unix without what loads libraries, but not the table of SQLite's functions. */
#include <sqlite3.h>
#include <stddef.h>
#include <sys/time.h>
#include <unistd.h>

static int call(void)
{
	return 0;
}

static struct {
	const char *name;
	int (*function)(void), (*at_first)(void);
} volatile system_calls[] = {
	{ "open", call, NULL },
	{ "close", call, NULL },
	{ "access", call, NULL },
	[3 ... 26] = { "getcwd", call, NULL },
};

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
	(void)vfs, (void)name, (void)file, (void)flags, (void)out;
	return SQLITE_CANTOPEN;
}

static sqlite3_vfs volatile layer = { .iVersion = 3, .mxPathname = 512, .zName = "unix", .xOpen = open_file };

int main(void)
{
	return system_calls[0].function() + !layer.xOpen + !utimes("", NULL) + !fsync(-1);
}
