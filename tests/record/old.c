/* SPDX-License-Identifier: Apache-2.0 */
/* Represents an old SQLite library. */
#define EXPORTED __attribute__((visibility("default")))

EXPORTED int sqlite3_step(void *statement);
EXPORTED int sqlite3_libversion_number(void);
EXPORTED const char *sqlite3_libversion(void);

int sqlite3_step(void *statement)
{
	(void)statement;
	return 21;
}

int sqlite3_libversion_number(void)
{
	return 3014002;
}

const char *sqlite3_libversion(void)
{
	return "3.14.2";
}
