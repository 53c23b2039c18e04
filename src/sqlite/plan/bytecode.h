/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytecode and plans of statements that had samples, published once each.
 *
 * At the end of such a run the statement's opcodes are hashed. If the hash is new, the plan is read
 * (plan.h) at the next moment at which the host cannot notice that its connection prepares a
 * statement: when its next call sets the connection's error code anyway. That statement is never
 * stepped: no lock, no I/O, no transaction and no count. No code of the host runs, because
 * connections with an authorizer or a progress handler are skipped, and modules of the host's virtual
 * tables are not called (module_calls.h).
 */
#pragma once

#include "base/fast_clock.h"
#include "query/statement_stats.h"
#include "sqlite/plan/missing.h"
#include "sqlite/library/calling.h"
#include "sqlite/session/session.h"

struct module_record;

/* A run of the statement has ended, with samples; `is_done`: in a step that found no more rows. The hash of
 * its bytecode, 0: not known. */
uint64_t bytecode_see(const struct session *session, const sqlite3_stmt *stmt, const char *text,
                      bool is_done);

/* The host has just prepared this statement, in a quiet call. Sets start->bytecode and its
 * opcodes, 0: not known, and the layout and the hash of the name's text. The plan of new bytecode is read
 * immediately, so that a run that never ends, or fails, has one. `clock`: the thread's, which was read at the
 * end of the preparation. `answers`: see module_record_end(). */
void bytecode_prepared(const struct session *session, const sqlite3_stmt *stmt, struct run_start *start,
                       struct fast_clock *clock, struct statement_name *name,
                       const struct module_record *answers);

/* Of the statement's bytecode, without the parts that change with the schema and with literals:
 * two plans have two layouts, and a plan keeps its layout as long as its tables and indexes keep
 * their roots. 0: not known. In a call that has the statement. */
uint64_t bytecode_layout(const struct host_library *library, const void *stmt, const char *text);

/* A plan that the calling thread is to read, and the statement or connection that it is due
 * for. */
struct bytecode_due;

void bytecode_read_due(struct calling *calling, const void *subject, const void *frame);

/* The host has just reset this statement, or ended sqlite3_exec() on this connection; or it is about to
 * finalize the statement, or to prepare with the connection. */
static inline void bytecode_read(const void *subject, const void *frame)
{
	struct calling *calling = calling_current;

	if (__builtin_expect(calling && calling->due, 0))
		bytecode_read_due(calling, subject, frame);
}

/* How often a plan was read, or was missing for that reason. */
uint64_t bytecode_counter(enum bytecode_counter which);

/* The next recording has another trace file, so all bytecode is due again. */
void bytecode_publish_again(void);
