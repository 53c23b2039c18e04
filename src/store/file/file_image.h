/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace file without content: an image that the build has made of sql/schema/store_schema.sql.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>

/* Writes it to the connection's file, if that is empty and no other process has it, and waits for
 * the disk. The connection has not read the file. Until the whole image is there, the file is an
 * empty database. False: nothing was written, or writing failed. SQLite then finds an empty file
 * or database, and reports the error when it writes. */
bool file_image_write(sqlite3 *db);

/* Whether the connection's file is such an image, in which nothing was written since, and has no log. So it
 * has no content, and its tables need no check. The connection has not read the file. False also if another
 * process keeps the file locked. */
bool file_image_is_untouched(sqlite3 *db);
