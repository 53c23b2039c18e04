/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a ClickHouse server's response, in a table.
 */
#pragma once

#include <sqlite3.h>

/* Sends `sql` to the server and makes a temporary table of the response, with its columns, while it arrives.
 * url: http_url_with()'s. A command_result. */
int pull_rows(sqlite3 *db, const char *table, const char *url, const char *sql);
