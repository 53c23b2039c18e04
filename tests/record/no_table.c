/* SPDX-License-Identifier: Apache-2.0 */
/* Represents a program whose SQLite was built with SQLITE_OMIT_LOAD_EXTENSION. It imports utimes() and
 * fsync(), like every SQLite, and has the table of system calls, by which the library recognizes a SQLite. It
 * has the layer for Unix without the functions that load libraries, and lacks the table of SQLite's
 * functions. */
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
