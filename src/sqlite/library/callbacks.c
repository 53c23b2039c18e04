/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/library/callbacks.h"

#include <string.h>

#include "handler/unwind/stack_copy.h"

#define CONNECTION_BYTES 0x400u /* the searched part */

static bool was_authorizer_called, was_progress_called; /* one thread finds the locations of one library */

static int on_authorize(void *context, int action, const char *a, const char *b, const char *c, const char *d)
{
	(void)context, (void)action, (void)a, (void)b, (void)c, (void)d;
	was_authorizer_called = true;
	return SQLITE_OK;
}

static int on_progress(void *context)
{
	(void)context;
	was_progress_called = true;
	return 0;
}

static uint32_t find(const sqlite3 *db, const void *callback)
{
	const void *word;

	for (uint32_t at = 0; at < CONNECTION_BYTES; at += sizeof(word))
		if (!stack_copy_part((uintptr_t)db + at, &word, sizeof(word)))
			return 0;
		else if (word == callback)
			return at;
	return 0;
}

/* A library that was built without a callback has no function to set it, or one without effect. So
 * the trial is whether SQLite calls the callback. */
void callbacks_find(struct callback_locations *found, const sqlite3_api_routines *api, sqlite3 *db)
{
	static const char some_opcodes[] = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
					   "LIMIT 100) SELECT max(i) FROM n";

	was_authorizer_called = was_progress_called = false;
	api->set_authorizer(db, on_authorize, NULL);
	api->progress_handler(db, 1, on_progress, NULL);
	found->authorizer.at = find(db, (const void *)on_authorize);
	found->progress.at = find(db, (const void *)on_progress);
	if (api->exec(db, some_opcodes, NULL, NULL, NULL) == SQLITE_OK) {
		found->authorizer.is_never_called = !was_authorizer_called;
		found->progress.is_never_called = !was_progress_called;
	}
	api->set_authorizer(db, NULL, NULL);
	api->progress_handler(db, 0, NULL, NULL);
}

bool callback_is_set(const struct callback_location *location, const sqlite3 *db)
{
	const void *callback;

	if (location->is_never_called)
		return false;
	if (!location->at)
		return true;
	memcpy(&callback, (const char *)db + location->at, sizeof(callback));
	return callback != NULL;
}
