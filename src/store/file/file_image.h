/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An empty trace file: an image that the build makes of sql/schema/store_schema.sql.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>

/* Writes the image to the connection's file if that is empty and no other process has it open, and syncs. The
 * connection must not have read the file yet. Until the image is complete, the file is an empty database.
 * False: nothing was written, or writing failed. SQLite then finds an empty file or database, and reports the
 * error when it writes. */
bool file_image_write(sqlite3 *db);

/* Whether the connection's file is such an image without later writes and without a log. Then it has no rows,
 * and its tables need no check. The connection must not have read the file yet. False also if another process
 * keeps the file locked. */
bool file_image_is_untouched(sqlite3 *db);
