/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The greatest costs in a file, and how to reduce them: the table temp.findings.
 */
#pragma once

#include <sqlite3.h>

/* Makes temp.lines, of all selected statements (cmd/file/selection.h), and announces the queries of
 * finding_list_make() to virtual tables (run_sql_prepare()). Both return a command_result, after a
 * complaint. */
int finding_list_begin(sqlite3 *db);

/* Makes the table; after finding_list_begin(). */
int finding_list_make(sqlite3 *db);

/* The findings that could save at least 1 % of the time, and all findings that are not about time, as if they
 * saved 10 %. */
#define FINDING_LIST                                                                                         \
	"WITH whole AS (SELECT total(wall) AS ns FROM temp.finding_statements) "                             \
	"SELECT finding, iif(saved > ns, NULL, round(100 * saved / max(ns, 1), 1)) AS \"share_%\", "         \
	"round(saved / 1e6, 3) AS "                                                                          \
	"saved_ms, "                                                                                         \
	"round(error / 1e6, 3) AS error_ms, title, evidence, cure, sure, see, "                              \
	"printf('%016x', f.hash) AS statement, coalesce(caller, '') AS caller, "                             \
	"coalesce(caller_function, '') AS caller_function, coalesce(query, '') AS query "                    \
	"FROM whole, temp.findings AS f LEFT JOIN temp.finding_statements AS s ON s.hash = f.hash "          \
	"WHERE saved IS NULL OR saved >= 0.01 * ns ORDER BY coalesce(saved, 0.1 * ns) DESC, finding, f.hash"

/* A sentence if most of the time was outside SQLite, to free with sqlite3_free(); NULL: it was not, or that
 * is not known. After finding_list_make(). */
char *finding_list_inside(sqlite3 *db);

/* Prints at most `most` findings, the first ones, in a line each: the share of the time, the title, the
 * statement's id. Returns the number of all findings; -1: they cannot be read. */
int finding_list_lines(sqlite3 *db, int most, void (*print)(const char *line));
