/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What SQLite asked the modules of virtual tables while it planned a statement, and what they answered.
 *
 * The answers are recorded while the host prepares. Reading the plan (bytecode.h) prepares the statement
 * again, and then SQLite gets the recorded answers, so no code of the host runs a second time. If SQLite asks
 * anything that was not recorded, the plan is discarded.
 */
#pragma once

#include "base/vector.h"
#include "sqlite/library/calling.h"
#include "sqlite/library/host.h"

typedef int best_index_function(sqlite3_vtab *, sqlite3_index_info *);
typedef void module_function(sqlite3_context *, int, sqlite3_value **);
typedef int find_function_function(sqlite3_vtab *, int, const char *, module_function **, void **);

struct module_call;

struct module_record {
	const struct host_library *library;
	struct calling *calling; /* of the thread that records */
	uint64_t number;         /* of the preparation */
	bool is_lost;            /* incomplete */
	VECTOR(struct module_call) calls;
};

struct module_replay {
	const struct module_record *record;
	uint64_t call;    /* in which this thread prepares */
	const char *text; /* that it prepares now */
	size_t at;        /* the next call */
	bool is_failed;   /* SQLite asked something else */
};

/* The host begins to prepare a statement on this thread, and has prepared it. Returns what was recorded,
 * possibly no call, which is valid until the thread's next preparation; NULL: it is incomplete, or nothing
 * was recorded. */
void module_record_begin(struct calling *calling, const struct host_library *library);
const struct module_record *module_record_end(struct calling *calling);

/* Until the end, SQLite gets the recorded answers on this thread, for what is prepared in the call of that
 * number and in none inside it. SQLite may run code of the host meanwhile: a function of constants, a busy
 * handler, a module that has its own methods. */
void module_replay_begin(struct module_replay *replay, const struct module_record *record, uint64_t call);
void module_replay_end(void);

/* sqlite3_prepare_v2() of queryprof's own, possibly in a replay. */
int module_replay_prepare(const sqlite3_api_routines *api, sqlite3 *db, const char *text,
                          sqlite3_stmt **stmt);

/* A call begins that prepares the text. In a program that has SQLite inside, the preparation of the replay is
 * such a call, too. */
void module_replay_enter(const struct call *call, const char *text);

/* The methods that replace the modules' own. `module`: a number that identifies the module's methods. */
int module_calls_best_index(int module, best_index_function *real, sqlite3_vtab *table,
                            sqlite3_index_info *info);
int module_calls_find_function(int module, find_function_function *real, sqlite3_vtab *table, int argc,
                               const char *name, module_function **function, void **context);
