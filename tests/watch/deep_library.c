/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that defines a function with the name of a SQLite function.
 */
#define OURS __attribute__((visibility("default")))

OURS int sqlite3_step(void *stmt);

int sqlite3_step(void *stmt)
{
	return stmt ? 1 : 0;
}
