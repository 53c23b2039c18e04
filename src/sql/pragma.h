/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PRAGMAs of queryprof's, in the text of a statement about to be prepared.
 */
#pragma once

#include <stdbool.h>

struct pragma {
	char name[64];    /* of the setting */
	char *value;      /* malloc'ed; NULL: it is read */
	const char *tail; /* where it ends */
};

/* Whether the first statement of `sql` (`bytes` as for sqlite3_prepare) is a PRAGMA of
 * one of queryprof's settings, bare or with `system.`. Costs a few instructions for text that is
 * not a PRAGMA. */
bool pragma_parse(const char *sql, int bytes, struct pragma *pragma);

/* The SELECT that does the same as such a PRAGMA, malloc'ed, and in `*tail` where the
 * PRAGMA ends in `sql`. NULL for everything else.
 *
 *   PRAGMA name             SELECT get_setting('name') AS "name"
 *   PRAGMA name = value     SELECT set_setting('name','value') AS "name"
 */
char *pragma_rewrite(const char *sql, int bytes, const char **tail);
