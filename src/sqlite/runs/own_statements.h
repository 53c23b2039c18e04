/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof's own statements: they are neither sampled nor logged.
 */
#pragma once

#include "sqlite/library/host.h"

struct call;

/* The calling code is in a step of a statement of `db` that reads queryprof's results, or prepares
 * for it: its time is queryprof's own, neither sampled nor logged. Does nothing if the code is in
 * a step of another connection. */
void own_statements_disown(const sqlite3 *db);

/* The same for the statement of `db` that is being prepared. */
void own_statements_disown_prepared(const sqlite3 *db);

/* Statements stepped between these two are queryprof's own: no runs. `frame` belongs to the
 * function that calls both. */
void own_statements_begin_quiet(struct call *call, const void *frame);
void own_statements_end_quiet(struct call *call);
