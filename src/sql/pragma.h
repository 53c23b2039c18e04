/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PRAGMAs of ours, in the text of a statement about to be prepared.
 */
#ifndef QUERYPROF_SQL_PRAGMA_H
#define QUERYPROF_SQL_PRAGMA_H

/* When the first statement of `sql` (`bytes` as for sqlite3_prepare) is a PRAGMA of
 * one of our settings, bare or with `system.`, gives the SELECT that does the same,
 * malloc'ed, and in `*tail` where the PRAGMA ends in `sql`. NULL for everything
 * else, which costs a few instructions for text that is not a PRAGMA.
 *
 *   PRAGMA name             SELECT get_setting('name') AS "name"
 *   PRAGMA name = value     SELECT set_setting('name','value') AS "name"
 */
char *pragma_rewrite(const char *sql, int bytes, const char **tail);

#endif
