/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for a program whose SQLite was built with SQLITE_OMIT_LOAD_EXTENSION: it has the table of
 * system calls, by which a SQLite is recognised, and not the one of SQLite's functions. */
#include <unistd.h>

static int call(void)
{
	return 0;
}

static struct {
	const char *name;
	int (*function)(void), (*at_first)(void);
} volatile system_calls[] = { { "open", call, NULL }, { "close", call, NULL }, { "access", call, NULL } };

int main(void)
{
	char text[8];

	return system_calls[0].function() + (readlink("/", text, sizeof text) > 0);
}
