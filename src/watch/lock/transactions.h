/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transactions of sessions: from the first lock on a file of the connection to the moment in
 * which it has none. In a WAL, which a connection keeps open, the locks are those of its index.
 *
 * A transaction is changed by the thread that has the connection; others read its number, and
 * say that they wait for it.
 */
#ifndef QUERYPROF_WATCH_TRANSACTIONS_H
#define QUERYPROF_WATCH_TRANSACTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "query/transaction_record.h"
#include "watch/lock/transaction.h"

struct run;
struct session;

/* A file of the session's has its first lock, or has a lock to write, or keeps new readers out until it
 * has an exclusive one, or has that. `run` NULL: no statement that is followed. */
enum transaction_step { TRANSACTION_LOCKS, TRANSACTION_WRITES, TRANSACTION_PENDS, TRANSACTION_EXCLUDES };
void transaction_steps(struct session *session, enum transaction_step step, const char *path,
                       const struct run *run);

/* A file of the session's has no lock any more. */
void transaction_unlocks(struct session *session, const struct run *run);

/* A run of the session goes on, but a call has returned, of a preparation or of a backup: what has ended in
 * it is no part of the transaction that the next call may begin. */
void transaction_call_ends(struct session *session, const struct run *run);

/* A run of the session ends with `rc`. */
void transaction_run_ends(struct session *session, const struct run *run, int rc);

#endif
