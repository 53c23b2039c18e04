/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another library that defines a function with a name of SQLite's.
 */
#define OURS __attribute__((visibility("default")))

OURS int sqlite3_step(void *stmt);

int sqlite3_step(void *stmt)
{
	return stmt ? 1 : 0;
}
