/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a statement's text does with columns: compares, sorts, groups. An index helps with these.
 *
 * The text is read as tokens, not parsed: what is found too much costs a measurement, and what is missed is
 * not proposed. Which table a column belongs to is known from SQLite, which reports what a statement reads.
 */
#pragma once

#include "cmd/advise/connection.h"

enum role { ROLE_EQUAL, ROLE_RANGE, ROLE_ORDER, ROLE_GROUP };

/* `key`: what an index has: a column's name in quotes, or a function of one, with DESC if it is sorted so.
 * list: columns of one ORDER BY or GROUP BY have the same number. */
struct use {
	const char *table; /* belongs to the touches */
	char *key;
	char *condition; /* that a column is a constant, for a partial index; NULL: it is not compared with
	                    one */
	enum role role;
	int list;
};

/* The source of a parameter's values. */
struct parameter {
	const char *table,
		*column; /* column NULL: that with this number; table NULL: its value is `number` */
	int64_t number;
	bool is_known, is_inserted;
};

struct compared {
	VECTOR(struct use) uses;
	VECTOR(struct parameter) parameters; /* by their index - 1 */
};

/* `touched`: what the statement touches; must outlive the result. */
void compared_find(struct compared *compared, const char *sql, const touches *touched,
                   sqlite3_stmt *statement);
/* Drops the conditions that `written` lacks. A recorded text has values where the program's text has
 * parameters. */
void compared_keep_conditions(struct compared *compared, const struct compared *written);
void compared_free(struct compared *compared);
