/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/runs/recorded.h"

#include "collect/state.h"
#include "sqlite/library/calling.h"
#include "sqlite/locks/locks.h"
#include "sqlite/opcode/locations.h"
#include "sqlite/runs/binding.h"
#include "sqlite/session/recording.h"
#include "handover/storing.h"
#include "timers/threads.h"

void recording_learn(const struct host_library *library, const void *frame)
{
	const struct thread *thread = NULL;
	struct call call;

	call_enter_quiet(&call, library, frame);
	if (call.number && !call.running && (!session_recording() || session_start_recording()))
		thread = sampler_thread();
	if (thread)
		opcode_library_learn(library, thread);
	call_leave(&call);
}

struct session *session_follow(sqlite3 *db)
{
	struct session *session = session_of(db);

	if (session || !db)
		return session;
	if (!session_start_recording())
		return NULL;
	sqlite3_mutex_enter(sqlite3_db_mutex(db));
	session = session_add(db, sqlite3_db_filename(db, "main"), true);
	if (session)
		locks_follow(session);
	sqlite3_mutex_leave(sqlite3_db_mutex(db));
	if (session && session->recorded)
		session_watch(session);
	if (!session) {
		counter_add(SAMPLER_SESSIONS_REFUSED, 1);
		storing_begin(); /* which notifies it */
	}
	return session;
}

struct session *recording_meets(const struct host_library *library, sqlite3 *db)
{
	struct session *session = session_of_open(library, db);

	if (session || !session_recording())
		return session;
	/* SQLite recognises a closed connection by its state, even where it has been freed. One that is open
	 * and has this as its newest error begins its session at the next call. */
	return host_api(library)->errcode(db) == SQLITE_MISUSE ? NULL : session_follow(db);
}

void recording_closing(const struct host_library *library, sqlite3 *db, bool even_with_statements)
{
	struct session *session = session_of_open(library, db);

	if (!session)
		return;
	/* Only SQLite knows whether it frees the connection now: the remaining statements may be
	 * those of its virtual tables (R-Tree, FTS), which are freed with it. */
	if (host_api(library)->next_stmt(db, NULL))
		session_bind_closing(session, db, even_with_statements);
	else if (!session->bound)
		session_end(session);
}
