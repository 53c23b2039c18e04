/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often each loop over a virtual table of a foreign module began in a run, and how many rows it had: the
 * calls of the module's xFilter, and those of xEof that found a row (module_methods.h).
 *
 * A module does not learn for which opcode it is called. SQLite's cursor has the module's, so the statement's
 * cursors show which one it is, exactly. Several opcodes may begin loops of one cursor, for an OR; they pass
 * what the plan chose. If that is the same, these loops are not known.
 *
 * The counts are in memory of the run. A run during which methods were replaced has none.
 */
#pragma once

#include "sqlite/session/run.h"

typedef int filter_function(sqlite3_vtab_cursor *, int, const char *, int, sqlite3_value **);
typedef int is_at_end_function(sqlite3_vtab_cursor *);

/* A call of xFilter, and the methods that the module must have if its calls are all seen. */
struct module_filter {
	int index;
	const char *text;
	int argc;
	filter_function *filter;
	is_at_end_function *is_at_end;
};

/* SQLite is about to begin a loop, and the loop has a row. On the thread of the statement's run, in its call.
 */
void module_counts_loop(const sqlite3_vtab_cursor *cursor, const struct module_filter *call);
void module_counts_row(const sqlite3_vtab_cursor *cursor);

/* The run has ended; its statement exists. */
void module_counts_publish(const struct run *run, uint64_t bytecode);

/* The place of the run is for another statement. NULL is ignored. */
void module_counts_forget(struct module_counts *counts);
