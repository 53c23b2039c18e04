/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callbacks for which following a connection's statements needs queryprof's SQL. Only the
 * extension sets them: a recorded process has none, and nothing is attached there.
 */
#pragma once

#include "sqlite/session/session.h"

struct watch_sql {
	/* The SELECT that replaces a PRAGMA of queryprof, see sql/pragma.h. */
	char *(*rewrite)(const char *sql, int bytes, const char **tail);
	/* A statement starts on a connection whose texts are not seen before: carries it out if it
	 * is a PRAGMA of queryprof. False: it is not. */
	bool (*run_pragma)(struct session *session, const char *sql);
	/* A text is about to be prepared, on a connection that wants queryprof's tables and does not
	 * have them yet. */
	void (*before_prepare)(struct session *session, const char *sql);
	/* Preparing a statement has failed. SQLITE_NOTFOUND: not because of a missing table of the
	 * schema; SQLITE_OK: the table exists now, prepare again; otherwise the result to return. */
	int (*missing_table)(struct session *session);
};

extern const struct watch_sql *watch_sql_current __attribute__((visibility("hidden"))); /* atomic */

/* NULL: there are none. */
static inline const struct watch_sql *watch_sql(void)
{
	/* Acquire: the structure's content, if another thread set it. */
	return __atomic_load_n(&watch_sql_current, __ATOMIC_ACQUIRE);
}

void watch_sql_set(const struct watch_sql *sql);
