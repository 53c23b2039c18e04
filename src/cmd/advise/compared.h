/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a statement's text uses columns: it compares, sorts or groups by them. An index helps with these.
 * The text is read as tokens, not parsed. A wrong candidate costs a measurement, and a missed one is not
 * proposed. SQLite reports which columns a statement reads, and so to which table a column belongs.
 */
#pragma once

#include "cmd/advise/connection.h"

enum role { ROLE_EQUAL, ROLE_RANGE, ROLE_ORDER, ROLE_GROUP };

/* key: what an index has: a column's name in quotes, or a function of a column, with DESC if it is sorted
 * that way. list: columns of one ORDER BY or GROUP BY have the same number. */
struct use {
	const char *table; /* a member of the touches */
	char *key;
	char *condition; /* that a column is a constant, for a partial index; NULL: it is not compared with
	                    one */
	enum role role;
	int list;
};

/* The source of a parameter's values. */
struct parameter {
	const char *table,
		*column; /* column NULL: the parameter with this number; table NULL: its value is `number` */
	int64_t number;
	bool is_known, is_inserted;
};

struct compared {
	VECTOR(struct use) uses;
	VECTOR(struct parameter) parameters; /* by their index - 1 */
};

/* touched: the columns that the statement touches; must outlive the result. */
void compared_find(struct compared *compared, const char *sql, const touches *touched,
                   sqlite3_stmt *statement);
/* Drops the conditions that `written` lacks, because a recorded text has values instead of the parameters
 * of the program's text. */
void compared_keep_conditions(struct compared *compared, const struct compared *written);
void compared_free(struct compared *compared);
