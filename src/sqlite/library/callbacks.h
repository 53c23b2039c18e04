/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callbacks of the host that preparing a statement may call: the authorizer and the progress
 * handler. SQLite has no interface to read them, so their offsets in a connection are found by trial,
 * once per library.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sqlite/library/host.h"

struct callback_location {
	uint32_t at;          /* in the connection, 0: not known */
	bool is_never_called; /* the library was built without it (SQLITE_OMIT_PROGRESS_CALLBACK) */
};

struct callback_locations {
	struct callback_location authorizer, progress;
};

/* `db`: a connection of queryprof. */
void callbacks_find(struct callback_locations *found, const sqlite3_api_routines *api, sqlite3 *db);

/* Whether the connection has the callback, or may have it. */
bool callback_is_set(const struct callback_location *location, const sqlite3 *db);
