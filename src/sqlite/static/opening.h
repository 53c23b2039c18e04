/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first opening of a database by a copy of SQLite inside the program or a module, or the first
 * automatic extension (sqlite3_auto_extension()), which SQLite calls for each opening: only then the
 * rest of the copy is patched. Most processes never get there, and nothing more happens in them.
 * While a copy has no connection, no thread is inside the functions that get a jump.
 *
 * Only part of the preload. One thread at a time calls opening_check().
 */
#pragma once

/* Looks for copies in objects that have come. `first_open` is called with the copy's table of
 * routines before its first connection is opened, and by each thread that comes meanwhile.
 * `refused` is called with what cannot be watched, and why. */
void opening_check(void (*first_open)(const void *routines),
                   void (*refused)(const char *path, const char *why));
