/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes a database a trace file: its application id, the version of its tables, and the tables.
 */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

#define STORE_APPLICATION_ID 0x51505246 /* "QPRF" */
#define STORE_SCHEMA_VERSION 14

/* QP_OK, or QP_STORE or QP_TOO_NEW with a sentence in `*error` (malloc'ed). */
int schema_check_identity(const char *path, uint32_t application, uint32_t version, char **error);

/* Runs sql/schema/store_schema.sql on an empty database. An SQLite result. */
int schema_make_tables(sqlite3 *db);

/* Creates the views as temporary ones of this connection, which hide the file's. An SQLite result. */
int schema_make_temporary_views(sqlite3 *db);

/* Makes the database a trace file of this version. An SQLite result. */
int schema_set_identity(sqlite3 *db);
