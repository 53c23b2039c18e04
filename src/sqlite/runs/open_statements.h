/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements that a connection has prepared and not finalized. A program that never finalizes them grows
 * with each one, and nothing in SQLite says so.
 *
 * Nothing is counted when a statement is prepared or finalized, except the preparations until the next
 * look. A look visits all statements of the connection. If it finds N of them, the next one comes after
 * N / 4 preparations, and at least OPEN_STATEMENTS_MIN. So the looks visit at most five statements for each
 * preparation, and at the end of a program the newest look has seen at least four fifths of those that are
 * open, if they are many. The memory of a sample of them is measured if they have become more by a fifth.
 */
#pragma once

#include "base/hot_path.h"
#include "sqlite/session/session.h"

/* In a call for the session's connection, which is open. Writes a record if the connection has
 * OPEN_STATEMENTS_MIN statements or more, and more than at the newest record: by a fifth, or, if the
 * connection is being closed (`is_last`), by any number. Does nothing while another thread has the
 * connection. */
COLD_PATH void open_statements_inspect(struct session *session, bool is_last);

/* The calling thread has prepared a statement of the session. */
static inline void open_statements_prepared(struct session *session)
{
	/* Relaxed: the calling thread has the connection; a preparation that is not counted is none too many.
	 */
	uint32_t left = __atomic_load_n(&session->newest_look.prepares_left, __ATOMIC_RELAXED);

	if (__builtin_expect(!left, 0))
		open_statements_inspect(session, false);
	else
		__atomic_store_n(&session->newest_look.prepares_left, left - 1, __ATOMIC_RELAXED);
}
