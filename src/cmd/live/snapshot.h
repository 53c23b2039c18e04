/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the recorded processes do at one moment, as tables of a connection to their trace file
 * (sql/live/tables.sql).
 */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

#include "cmd/live/processes.h"

struct snapshot {
	uint64_t now_ns;                    /* since 1970 */
	int processes, unread;              /* unread: their memory has another version, or cannot be read */
	int running, between, transactions; /* runs inside SQLite, and between two rows */
	uint32_t changed;
};

/* Replaces the rows of the tables. An SQLite result. */
int snapshot_take(sqlite3 *db, struct live *live, struct snapshot *snapshot);

/* A statement of sql/live on these tables, and on the samples of the last seconds. NULL: it cannot be
 * prepared.
 */
sqlite3_stmt *snapshot_prepare(sqlite3 *db, const struct snapshot *snapshot, const char *sql, int seconds);
