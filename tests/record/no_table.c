/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for a program whose SQLite was built with SQLITE_OMIT_LOAD_EXTENSION: it imports utimes()
 * and fsync(), as every SQLite does, and has the table of system calls, by which one is recognised, but not
 * the table of SQLite's functions. */
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

int main(void)
{
	return system_calls[0].function() + !utimes("", NULL) + !fsync(-1);
}
