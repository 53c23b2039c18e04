/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transactions of sessions: from the first lock on a file of the connection to the moment when it
 * has none. In a WAL, which a connection keeps open, the locks are those of its index.
 *
 * The thread that has the connection changes a transaction; others read its number, and report that
 * they wait for it.
 */
#pragma once

#include <stdbool.h>

#include "sqlite/session/run.h"
#include "wire/transaction_record.h"

struct lock_file;

/* The locks of a file of the session change from the set `before` to the set `after`: 1 << enum
 * transaction_lock for each kind. `run` NULL: no statement that is followed. */
void transaction_locks_change(struct session *session, unsigned before, unsigned after,
                              struct lock_file *file, const struct run *run);

/* A run of the session ends with `rc`. True: another connection of this process waits for its transaction, so
 * the run tells where the program was: the first one that ends meanwhile, and the one that ends it. */
bool transaction_run_ends(struct session *session, const struct run *run, int rc);

/* A run of the session continues, but a call of a preparation or a backup has returned: a
 * transaction that ended in it is separate from the one that the next call may begin. */
static inline void transaction_call_ends(struct session *session, const struct run *run)
{
	if (__builtin_expect(session->transaction.open.has_ended, 0) && !run->is_queryprofs)
		transaction_run_ends(session, run, SQLITE_OK);
}
