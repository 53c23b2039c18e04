/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace file without content: an image that the build has made of sql/schema/store_schema.sql.
 */
#ifndef QUERYPROF_STORE_FILE_FILE_IMAGE_H
#define QUERYPROF_STORE_FILE_FILE_IMAGE_H

#include <sqlite3.h>
#include <stdbool.h>

/* Writes it to the connection's file, if that is empty and no other process has it; and waits for the disk.
 * The connection has read nothing of it. An empty database is there until all of the image is. False: nothing
 * is written, or it could not be; SQLite finds an empty file or an empty database then, and says what is
 * wrong when it writes to it. */
bool file_image_write(sqlite3 *db);

#endif
