/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQL that adds a row of statement_counters to an existing one, by store/write/columns.h.
 */
#pragma once

#include "store/write/columns.h"

#define STATEMENTS_NOTHING(...)
#define STATEMENTS_NAME(name, ...) ", " #name
#define STATEMENTS_NAME_PART(i) ", runs_" #i
#define STATEMENTS_MARK(name, ...) ", :" #name
#define STATEMENTS_MARK_PART(i) ", :runs_" #i
#define STATEMENTS_ADD(name, ...) ", " #name " = " #name " + excluded." #name
#define STATEMENTS_ADD_PART(i) ", runs_" #i " = runs_" #i " + excluded.runs_" #i
/* min() with a NULL is NULL; then the other value counts. */
#define STATEMENTS_LEAST(name, ...)                                                                          \
	", " #name " = coalesce(min(" #name ", excluded." #name "), " #name ", excluded." #name ")"
#define STATEMENTS_MOST(name, ...) ", " #name " = max(" #name ", excluded." #name ")"

#define STATEMENTS_NAMES                                                                                     \
	"statement, batch" STATEMENT_COLUMNS(STATEMENTS_NAME, STATEMENTS_NAME, STATEMENTS_NAME_PART,         \
	                                     STATEMENTS_NAME, STATEMENTS_NAME, STATEMENTS_NOTHING)
#define STATEMENTS_ON_CONFLICT                                                                               \
	" ON CONFLICT (normalized_query_hash, database, program) DO UPDATE SET batch = "                     \
	"excluded.batch" STATEMENT_COLUMNS(STATEMENTS_NOTHING, STATEMENTS_ADD, STATEMENTS_ADD_PART,          \
	                                   STATEMENTS_LEAST, STATEMENTS_MOST, STATEMENTS_NOTHING)
/* statements.c binds the values in this order. */
#define STATEMENTS_UPSERT                                                                                    \
	"INSERT INTO statement_counters (" STATEMENTS_NAMES                                                  \
	") VALUES (:statement, :batch" STATEMENT_COLUMNS(                                                    \
		STATEMENTS_MARK, STATEMENTS_MARK, STATEMENTS_MARK_PART, STATEMENTS_MARK, STATEMENTS_MARK,    \
		STATEMENTS_NOTHING) ")" STATEMENTS_ON_CONFLICT
